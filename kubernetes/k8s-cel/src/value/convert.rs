//! JSON to values and back.
//!
//! Upstream: github.com/google/cel-go/common/types/provider.go: NativeToValue
//! Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go: UnstructuredToVal
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::{ListKind, ListValue, MapKey, MapValue, Value, time};
use crate::EvaluationError;
use crate::go::parse_duration;

impl Value {
    /// The value of JSON of no known type: integers are ints, other numbers doubles.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Self::Int(value),
                (None, Some(value), _) => Self::Uint(value),
                (None, None, value) => Self::Double(value.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(text.as_str().into()),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| {
                        (MapKey::String(key.as_str().into()), Self::from_json(value))
                    })
                    .collect();
                Self::Map(Arc::new(MapValue { entries, object: None }))
            }
        }
    }

    /// A point in time in RFC 3339's notation.
    pub fn timestamp_from(text: &str) -> Option<Self> {
        time::parse_timestamp(text).map(Self::Timestamp)
    }

    /// A duration such as `1h30m`.
    pub fn duration_from(text: &str) -> Option<Self> {
        parse_duration(text).map(Self::Duration)
    }

    /// A list whose items relate as `kind` says.
    pub fn list_of_kind(items: Vec<Value>, kind: ListKind) -> Self {
        Self::List(Arc::new(ListValue { items, kind }))
    }

    /// The JSON that stands for this value where policies write it into objects and audit
    /// annotations.
    ///
    /// # Errors
    /// For values that JSON has nothing for, such as types.
    pub fn to_json(&self) -> Result<Json, EvaluationError> {
        Ok(match self {
            Self::Null | Self::Optional(None) => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => Json::from(*value),
            Self::String(text) => Json::String(text.to_string()),
            Self::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
            Self::Timestamp(at) => Json::String(time::timestamp_text(*at)),
            Self::Duration(nanoseconds) => Json::String(time::duration_text(*nanoseconds)),
            Self::List(list) => {
                Json::Array(list.items.iter().map(Self::to_json).collect::<Result<_, _>>()?)
            }
            Self::Map(map) => {
                let mut object = serde_json::Map::new();
                for (key, value) in &map.entries {
                    object.insert(key.to_string(), value.to_json()?);
                }
                Json::Object(object)
            }
            Self::Optional(Some(value)) => value.to_json()?,
            Self::Type(_) | Self::Opaque(_) | Self::Host(_) => {
                let message =
                    format!("type conversion error from '{}' to 'json'", self.type_name());
                return Err(EvaluationError::new(message));
            }
        })
    }
}
