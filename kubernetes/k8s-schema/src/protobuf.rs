//! Kubernetes' protocol buffers, as far as clients speak them, to and from JSON values.
//!
//! On the wire an object is the four bytes `k8s\0` and an envelope: `apiVersion`, `kind` and the
//! encoded object. What a field is called in JSON, and what becomes of zeros, is in tables that
//! `cargo xtask codegen protobuf` writes; they are unpacked when first used. JSON is what the server
//! works on: reading gives the same value that the JSON form of the object would have given.
//!
//! Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go: Serializer

mod read;
mod tables;
#[cfg(test)]
mod tests;
mod wire;
mod write;

use serde_json::Value;

use tables::Tables;
use wire::{Reader, Writer};

/// What every encoded object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why something could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The bytes do not begin as an encoded object does.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoPrefix,
    /// The kind has no encoding: it is custom, or only known to JSON.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The `apiVersion` of the object.
        api_version: String,
        /// The kind of the object.
        kind: String,
    },
    /// The bytes end too early, or are not what the type of a field says.
    #[error("proto: illegal wireType or unexpected EOF in {path}")]
    Malformed {
        /// The name of the field or message.
        path: String,
    },
    /// A JSON value that its field cannot hold.
    #[error("{path} cannot hold {value}")]
    WrongValue {
        /// The name of the field.
        path: String,
        /// The value, as JSON.
        value: String,
    },
}

/// Whether objects of this kind have an encoding.
pub fn is_encodable(api_version: &str, kind: &str) -> bool {
    Tables::get().message_of(api_version, kind).is_some()
}

/// Reads an encoded object; the value has `apiVersion` and `kind` as far as the envelope has.
///
/// # Errors
/// When it is not an object of a known kind.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoPrefix)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut envelope = Reader::new(rest, "Unknown");
    while let Some((number, content)) = envelope.next_field()? {
        match number {
            1 => {
                let mut names = Reader::new(content.bytes("typeMeta")?, "TypeMeta");
                while let Some((number, content)) = names.next_field()? {
                    match number {
                        1 => api_version = content.text("apiVersion")?,
                        2 => kind = content.text("kind")?,
                        _ => {}
                    }
                }
            }
            2 => raw = content.bytes("raw")?,
            _ => {}
        }
    }
    let tables = Tables::get();
    let Some(message) = tables.message_of(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let fields = read::message(tables, message, raw)?;
    let mut object = serde_json::Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    object.extend(fields);
    Ok(Value::Object(object))
}

/// Encodes an object that names its `apiVersion` and `kind`.
///
/// # Errors
/// When its kind has no encoding, or a value does not fit its field.
pub fn encode(object: &Value) -> Result<Vec<u8>, ProtobufError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let tables = Tables::get();
    let message = tables.message_of(api_version, kind).ok_or_else(|| {
        ProtobufError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
    })?;
    let mut names = Writer::default();
    names.text(1, api_version);
    names.text(2, kind);
    let mut envelope = Writer::starting_with(MAGIC);
    envelope.bytes(1, &names.finish());
    envelope.bytes(2, &write::message(tables, message, object)?);
    envelope.text(3, "");
    envelope.text(4, "");
    Ok(envelope.finish())
}

/// Encodes one event of a watch as a frame: its length in four bytes, then type and object.
///
/// # Errors
/// When the object cannot be encoded.
///
/// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go: LengthDelimitedFramer
pub fn encode_watch_event(event_type: &str, object: &Value) -> Result<Vec<u8>, ProtobufError> {
    let mut raw = Writer::default();
    raw.bytes(1, &encode(object)?);
    let mut event = Writer::default();
    event.text(1, event_type);
    event.bytes(2, &raw.finish());
    let event = event.finish();
    let length = u32::try_from(event.len())
        .map_err(|_| ProtobufError::Malformed { path: "WatchEvent".to_owned() })?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(event);
    Ok(frame)
}
