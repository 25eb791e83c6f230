//! The generated tables: which field of which message has which number, name and type.
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use serde::Deserialize;

static DATA: &[u8] = include_bytes!("../../data/protobuf.bin");

const REPEATED: u8 = 1;
const MAP: u8 = 2;
const KEEPS_ZERO: u8 = 4;

/// The message of the types in a schema.
pub(super) const SCHEMA_MESSAGE: &str =
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// All messages.
#[derive(Deserialize)]
pub(super) struct Tables {
    /// The package of what every group has, such as `Status`.
    meta: String,
    /// Packages by group-version.
    packages: BTreeMap<String, String>,
    messages: BTreeMap<String, Message>,
}

/// What a message is in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Message {
    /// Something else than an object.
    Special(JsonForm),
    /// An object.
    Fields(Vec<Field>),
}

/// The forms that are no objects in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum JsonForm {
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// JSON text in bytes.
    Json,
    /// A list of strings that needed a message of its own.
    Items,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
}

/// A field: number, name in JSON (empty: its fields belong to the outer object), type, flags.
#[derive(Deserialize)]
pub(super) struct Field(pub(super) u32, pub(super) String, pub(super) Type, u8);

/// The type of a field.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) enum Type {
    Bool,
    Bytes,
    Double,
    Int,
    String,
    Message(String),
}

impl From<String> for Type {
    fn from(name: String) -> Self {
        match name.as_str() {
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "double" => Self::Double,
            "int" => Self::Int,
            "string" => Self::String,
            _ => Self::Message(name),
        }
    }
}

impl Field {
    pub(super) fn is_repeated(&self) -> bool {
        self.3 & REPEATED != 0
    }

    pub(super) fn is_map(&self) -> bool {
        self.3 & MAP != 0
    }

    /// Whether JSON has the field when it is zero.
    pub(super) fn keeps_zero(&self) -> bool {
        self.3 & KEEPS_ZERO != 0
    }

    /// Whether JSON shows the fields of this one in the outer object.
    pub(super) fn is_inline(&self) -> bool {
        self.1.is_empty()
    }
}

impl Tables {
    /// The tables, unpacked once.
    pub(super) fn get() -> &'static Self {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(|| {
            let mut text = Vec::new();
            flate2::read::DeflateDecoder::new(DATA)
                .read_to_end(&mut text)
                .expect("the generated tables are well compressed");
            serde_json::from_slice(&text).expect("the generated tables are well formed")
        })
    }

    /// A message by its full name.
    pub(super) fn message(&self, name: &str) -> Option<&Message> {
        self.messages.get(name)
    }

    /// The message of a kind; what every group has is of all versions.
    pub(super) fn message_of(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let of_package = |package: &String| self.messages.get(&format!("{package}.{kind}"));
        self.packages
            .get(api_version)
            .and_then(of_package)
            .or_else(|| of_package(&self.meta))
            .filter(|message| matches!(message, Message::Fields(_)))
    }
}
