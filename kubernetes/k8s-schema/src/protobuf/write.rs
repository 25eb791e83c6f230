//! From JSON to messages.
mod special;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::ProtobufError;
use super::tables::{Field, Message, Tables, Type};
use super::wire::Writer;

/// A value that its field cannot hold.
fn wrong_value(path: &str, value: &Value) -> ProtobufError {
    ProtobufError::WrongValue { path: path.to_owned(), value: value.to_string() }
}

/// Encodes an object as a message, without what the message does not know.
pub(super) fn message(
    tables: &Tables,
    message: &Message,
    value: &Value,
) -> Result<Vec<u8>, ProtobufError> {
    let fields = match message {
        Message::Special(form) => return special::write(tables, *form, value),
        Message::Fields(fields) => fields,
    };
    let Some(object) = value.as_object() else {
        return Err(wrong_value("object", value));
    };
    let mut out = Writer::default();
    for field in fields {
        if field.is_inline() {
            let Type::Message(name) = &field.2 else {
                continue;
            };
            let inner = encode_inner(tables, name, value)?;
            if !inner.is_empty() {
                out.bytes(field.0, &inner);
            }
        } else if let Some(value) = object.get(&field.1).filter(|value| !value.is_null()) {
            put(tables, &mut out, field, value)?;
        }
    }
    Ok(out.finish())
}

fn encode_inner(tables: &Tables, name: &str, value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let inner = tables.message(name).ok_or_else(|| wrong_value(name, value))?;
    message(tables, inner, value)
}

fn put(
    tables: &Tables,
    out: &mut Writer,
    field: &Field,
    value: &Value,
) -> Result<(), ProtobufError> {
    let name = field.1.as_str();
    if field.is_map() {
        for (key, value) in value.as_object().ok_or_else(|| wrong_value(name, value))? {
            let mut entry = Writer::default();
            entry.text(1, key);
            single(tables, &mut entry, 2, &field.2, name, value)?;
            out.bytes(field.0, &entry.finish());
        }
    } else if field.is_repeated() {
        for item in value.as_array().ok_or_else(|| wrong_value(name, value))? {
            single(tables, out, field.0, &field.2, name, item)?;
        }
    } else {
        single(tables, out, field.0, &field.2, name, value)?;
    }
    Ok(())
}

fn single(
    tables: &Tables,
    out: &mut Writer,
    number: u32,
    field_type: &Type,
    path: &str,
    value: &Value,
) -> Result<(), ProtobufError> {
    let wrong = || wrong_value(path, value);
    match field_type {
        Type::Bool => out.integer(number, value.as_bool().ok_or_else(wrong)?.into()),
        Type::Bytes => {
            let text = value.as_str().ok_or_else(wrong)?;
            out.bytes(number, &STANDARD.decode(text).map_err(|_| wrong())?);
        }
        Type::Double => out.double(number, value.as_f64().ok_or_else(wrong)?),
        Type::Int => out.integer(number, integer(value).ok_or_else(wrong)?),
        Type::String => out.text(number, value.as_str().ok_or_else(wrong)?),
        Type::Message(name) => out.bytes(number, &encode_inner(tables, name, value)?),
    }
    Ok(())
}

/// A whole number, however it is spelled.
fn integer(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).map(|n| n as i64))
}
