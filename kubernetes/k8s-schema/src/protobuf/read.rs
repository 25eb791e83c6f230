//! From messages to JSON.
mod special;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ProtobufError;
use super::tables::{Field, Message, Tables, Type};
use super::wire::{Content, Reader, malformed};

/// How deep messages may be nested; a request deeper than this is malformed.
const DEPTH_MAX: usize = 200;

/// The fields of a message of a kind.
pub(super) fn message(
    tables: &Tables,
    message: &Message,
    bytes: &[u8],
) -> Result<Map<String, Value>, ProtobufError> {
    match value(tables, message, bytes, "object", 0)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(malformed("object")),
    }
}

/// A message as JSON shows it; null if it stands for nothing, as an empty time does.
pub(super) fn value(
    tables: &Tables,
    message: &Message,
    bytes: &[u8],
    path: &str,
    depth: usize,
) -> Result<Value, ProtobufError> {
    if depth > DEPTH_MAX {
        return Err(malformed(path));
    }
    let fields = match message {
        Message::Special(form) => return special::read(tables, *form, bytes, path, depth),
        Message::Fields(fields) => fields,
    };
    let mut object = Map::new();
    let mut reader = Reader::new(bytes, path);
    while let Some((number, content)) = reader.next_field()? {
        if let Some(field) = fields.iter().find(|field| field.0 == number) {
            put(tables, field, content, &mut object, depth)?;
        }
    }
    Ok(Value::Object(object))
}

fn put(
    tables: &Tables,
    field: &Field,
    content: Content<'_>,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    let name = field.1.as_str();
    if field.is_map() {
        let (key, value) = entry(tables, field, content.bytes(name)?, depth)?;
        let map = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
        if let Some(map) = map.as_object_mut() {
            map.insert(key, value);
        }
    } else if field.is_repeated() {
        let mut items = items(tables, field, content, depth)?;
        let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Some(list) = list.as_array_mut() {
            list.append(&mut items);
        }
    } else {
        let value = single(tables, &field.2, content, name, depth)?;
        if field.is_inline() {
            if let Value::Object(inner) = value {
                object.extend(inner);
            }
        } else if !value.is_null() && (field.keeps_zero() || !is_zero(&value)) {
            object.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

fn items(
    tables: &Tables,
    field: &Field,
    content: Content<'_>,
    depth: usize,
) -> Result<Vec<Value>, ProtobufError> {
    if let (Type::Int | Type::Bool, Content::Bytes(bytes)) = (&field.2, content) {
        let mut packed = Reader::new(bytes, &field.1);
        let mut items = Vec::new();
        while let Some(number) = packed.next_packed()? {
            items.push(single(tables, &field.2, Content::Number(number), &field.1, depth)?);
        }
        return Ok(items);
    }
    Ok(vec![single(tables, &field.2, content, &field.1, depth)?])
}

fn entry(
    tables: &Tables,
    field: &Field,
    bytes: &[u8],
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let mut key = String::new();
    let mut value = match &field.2 {
        Type::Message(_) => Value::Object(Map::new()),
        _ => Value::String(String::new()),
    };
    let mut reader = Reader::new(bytes, &field.1);
    while let Some((number, content)) = reader.next_field()? {
        match number {
            1 => key = content.text(&field.1)?,
            2 => value = single(tables, &field.2, content, &field.1, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn single(
    tables: &Tables,
    field_type: &Type,
    content: Content<'_>,
    path: &str,
    depth: usize,
) -> Result<Value, ProtobufError> {
    Ok(match field_type {
        Type::Bool => (content.integer(path)? != 0).into(),
        Type::Bytes => STANDARD.encode(content.bytes(path)?).into(),
        Type::Double => number(content.double(path)?),
        Type::Int => content.integer(path)?.into(),
        Type::String => content.text(path)?.into(),
        Type::Message(name) => {
            let inner = tables.message(name).ok_or_else(|| malformed(path))?;
            value(tables, inner, content.bytes(path)?, path, depth + 1)?
        }
    })
}

/// Whether a field that is left out when it is zero is left out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Largest whole number that a double holds exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A number as JSON spells it: whole ones without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        (value as i64).into()
    } else {
        value.into()
    }
}
