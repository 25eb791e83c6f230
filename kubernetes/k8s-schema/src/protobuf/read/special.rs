//! Messages that JSON shows as something else than an object: times, quantities, raw JSON.
//!
//! Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/time_proto.go: ProtoTime
//! Upstream: k8s.io/apimachinery/pkg/api/resource/generated.proto: Quantity
//! Upstream: k8s.io/apimachinery/pkg/util/intstr/generated.proto: IntOrString
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/generated.proto: JSONSchemaPropsOrArray
use jiff::Timestamp;
use serde_json::Value;

use super::ProtobufError;
use crate::protobuf::tables::{JsonForm, SCHEMA_MESSAGE, Tables};
use crate::protobuf::wire::{Reader, malformed};

/// The JSON of a message of a form.
pub(super) fn read(
    tables: &Tables,
    form: JsonForm,
    bytes: &[u8],
    path: &str,
    depth: usize,
) -> Result<Value, ProtobufError> {
    let mut reader = Reader::new(bytes, path);
    match form {
        JsonForm::Time | JsonForm::MicroTime => read_time(form, &mut reader, path),
        JsonForm::IntOrString => read_int_or_string(&mut reader, path),
        JsonForm::Quantity => {
            let text = reader.next_field()?.map(|(_, content)| content.text(path)).transpose()?;
            Ok(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "0".to_owned()).into())
        }
        JsonForm::Duration => {
            let nanos =
                reader.next_field()?.map(|(_, content)| content.integer(path)).transpose()?;
            Ok(go_duration(nanos.unwrap_or_default()).into())
        }
        JsonForm::Json => match reader.next_field()? {
            None => Ok(Value::Null),
            Some((_, content)) => {
                let text = content.bytes(path)?;
                if text.is_empty() {
                    return Ok(Value::Null);
                }
                serde_json::from_slice(text).map_err(|_| malformed(path))
            }
        },
        JsonForm::Items => {
            let mut items = Vec::new();
            while let Some((_, content)) = reader.next_field()? {
                items.push(Value::from(content.text(path)?));
            }
            Ok(items.into())
        }
        JsonForm::SchemaOrArray | JsonForm::SchemaOrBool | JsonForm::SchemaOrStrings => {
            read_schema_or(tables, form, &mut reader, path, depth)
        }
    }
}

fn read_time(form: JsonForm, reader: &mut Reader<'_>, path: &str) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos, mut is_set) = (0, 0, false);
    while let Some((number, content)) = reader.next_field()? {
        is_set = true;
        match number {
            1 => seconds = content.integer(path)?,
            2 => nanos = content.integer(path)?,
            _ => {}
        }
    }
    if !is_set {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| malformed(path))?;
    let time = Timestamp::new(seconds, nanos).map_err(|_| malformed(path))?;
    let pattern =
        if form == JsonForm::Time { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
    Ok(time.strftime(pattern).to_string().into())
}

fn read_int_or_string(reader: &mut Reader<'_>, path: &str) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    while let Some((field, content)) = reader.next_field()? {
        match field {
            1 => is_text = content.integer(path)? == 1,
            2 => number = content.integer(path)?,
            3 => text = content.text(path)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn read_schema_or(
    tables: &Tables,
    form: JsonForm,
    reader: &mut Reader<'_>,
    path: &str,
    depth: usize,
) -> Result<Value, ProtobufError> {
    let schema = tables.message(SCHEMA_MESSAGE).ok_or_else(|| malformed(path))?;
    let (mut one, mut many, mut flag) = (None, Vec::new(), false);
    while let Some((number, content)) = reader.next_field()? {
        let is_schema = number == if form == JsonForm::SchemaOrBool { 2 } else { 1 };
        match form {
            _ if is_schema => {
                one = Some(super::value(tables, schema, content.bytes(path)?, path, depth + 1)?);
            }
            JsonForm::SchemaOrBool => flag = content.integer(path)? != 0,
            JsonForm::SchemaOrStrings => many.push(content.text(path)?.into()),
            _ => {
                many.push(super::value(tables, schema, content.bytes(path)?, path, depth + 1)?);
            }
        }
    }
    Ok(match one {
        Some(schema) => schema,
        None if form == JsonForm::SchemaOrBool => flag.into(),
        None => many.into(),
    })
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A duration as Go prints whole seconds: `1h2m3s`.
fn go_duration(nanos: i64) -> String {
    let total = nanos / NANOS_PER_SECOND;
    let (hours, minutes, seconds) = (total / 3_600, total / 60 % 60, total % 60);
    let fraction = nanos % NANOS_PER_SECOND;
    let seconds = if fraction == 0 {
        seconds.to_string()
    } else {
        format!("{seconds}.{fraction:09}").trim_end_matches('0').to_owned()
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}
