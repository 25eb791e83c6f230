//! Messages that JSON shows as something else than an object: times, quantities, raw JSON.
use jiff::Timestamp;
use serde_json::Value;

use super::tables::{Form, Tables};
use super::wire::{Reader, Writer};
use super::{ProtobufError, read, write};

/// The message of the types in a schema.
const SCHEMA: &str = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Largest whole number that a double holds exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

const NANOS_PER_MICRO: i64 = 1_000;

fn malformed(place: &str) -> ProtobufError {
    ProtobufError::Malformed { place: place.to_owned() }
}

/// A number as JSON spells it: whole ones without a fraction.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        (value as i64).into()
    } else {
        value.into()
    }
}

/// The JSON of a message of a form.
pub(super) fn read(
    tables: &Tables,
    form: Form,
    bytes: &[u8],
    place: &str,
    depth: usize,
) -> Result<Value, ProtobufError> {
    let mut reader = Reader::new(bytes, place);
    match form {
        Form::Time | Form::MicroTime => read_time(form, &mut reader, place),
        Form::IntOrString => read_int_or_string(&mut reader, place),
        Form::Quantity => {
            let text = reader.next_field()?.map(|(_, content)| content.text(place)).transpose()?;
            Ok(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "0".to_owned()).into())
        }
        Form::Duration => {
            let nanos =
                reader.next_field()?.map(|(_, content)| content.integer(place)).transpose()?;
            Ok(go_duration(nanos.unwrap_or_default()).into())
        }
        Form::Json => match reader.next_field()? {
            None => Ok(Value::Null),
            Some((_, content)) => {
                let text = content.bytes(place)?;
                if text.is_empty() {
                    return Ok(Value::Null);
                }
                serde_json::from_slice(text).map_err(|_| malformed(place))
            }
        },
        Form::Items => {
            let mut items = Vec::new();
            while let Some((_, content)) = reader.next_field()? {
                items.push(Value::from(content.text(place)?));
            }
            Ok(items.into())
        }
        Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrStrings => {
            read_schema_or(tables, form, &mut reader, (place, depth))
        }
    }
}

fn read_time(form: Form, reader: &mut Reader<'_>, place: &str) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos, mut is_set) = (0, 0, false);
    while let Some((number, content)) = reader.next_field()? {
        is_set = true;
        match number {
            1 => seconds = content.integer(place)?,
            2 => nanos = content.integer(place)?,
            _ => {}
        }
    }
    if !is_set {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| malformed(place))?;
    let time = Timestamp::new(seconds, nanos).map_err(|_| malformed(place))?;
    let pattern = if form == Form::Time { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
    Ok(time.strftime(pattern).to_string().into())
}

fn read_int_or_string(reader: &mut Reader<'_>, place: &str) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    while let Some((field, content)) = reader.next_field()? {
        match field {
            1 => is_text = content.integer(place)? == 1,
            2 => number = content.integer(place)?,
            3 => text = content.text(place)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn read_schema_or(
    tables: &Tables,
    form: Form,
    reader: &mut Reader<'_>,
    (place, depth): (&str, usize),
) -> Result<Value, ProtobufError> {
    let schema = tables.message(SCHEMA).ok_or_else(|| malformed(place))?;
    let (mut one, mut many, mut flag) = (None, Vec::new(), false);
    while let Some((number, content)) = reader.next_field()? {
        let is_schema = number == if form == Form::SchemaOrBool { 2 } else { 1 };
        match form {
            _ if is_schema => {
                one = Some(read::value(tables, schema, content.bytes(place)?, place, depth + 1)?);
            }
            Form::SchemaOrBool => flag = content.integer(place)? != 0,
            Form::SchemaOrStrings => many.push(content.text(place)?.into()),
            _ => {
                many.push(read::value(tables, schema, content.bytes(place)?, place, depth + 1)?);
            }
        }
    }
    Ok(match one {
        Some(schema) => schema,
        None if form == Form::SchemaOrBool => flag.into(),
        None => many.into(),
    })
}

/// The message of a form.
pub(super) fn write(tables: &Tables, form: Form, value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let mut out = Writer::default();
    let refused = || write::wrong("value", value);
    match form {
        Form::Time | Form::MicroTime => {
            let time: Timestamp =
                value.as_str().and_then(|text| text.parse().ok()).ok_or_else(refused)?;
            let nanos = i64::from(time.subsec_nanosecond());
            out.integer(1, time.as_second());
            out.integer(2, if form == Form::Time { 0 } else { nanos - nanos % NANOS_PER_MICRO });
        }
        Form::IntOrString => match value {
            Value::String(text) => {
                out.integer(1, 1);
                out.integer(2, 0);
                out.text(3, text);
            }
            _ => {
                out.integer(1, 0);
                out.integer(2, value.as_i64().ok_or_else(refused)?);
                out.text(3, "");
            }
        },
        Form::Quantity => match value {
            Value::String(text) => out.text(1, text),
            Value::Number(number) => out.text(1, &number.to_string()),
            _ => return Err(refused()),
        },
        Form::Duration => {
            let nanos = value.as_str().and_then(parse_go_duration).ok_or_else(refused)?;
            out.integer(1, nanos);
        }
        Form::Json => out.text(1, &value.to_string()),
        Form::Items => {
            for item in value.as_array().ok_or_else(refused)? {
                out.text(1, item.as_str().ok_or_else(refused)?);
            }
        }
        Form::SchemaOrArray | Form::SchemaOrBool | Form::SchemaOrStrings => {
            write_schema_or(tables, form, value, &mut out)?;
        }
    }
    Ok(out.finish())
}

fn write_schema_or(
    tables: &Tables,
    form: Form,
    value: &Value,
    out: &mut Writer,
) -> Result<(), ProtobufError> {
    let schema = tables.message(SCHEMA).ok_or_else(|| write::wrong("schema", value))?;
    match value {
        Value::Bool(flag) => out.integer(1, (*flag).into()),
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(text) => out.text(2, text),
                    _ => out.bytes(2, &write::message(tables, schema, item)?),
                }
            }
        }
        _ => {
            let encoded = write::message(tables, schema, value)?;
            if form == Form::SchemaOrBool {
                // A schema allows what it describes.
                out.integer(1, 1);
                out.bytes(2, &encoded);
            } else {
                out.bytes(1, &encoded);
            }
        }
    }
    Ok(())
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

fn parse_go_duration(text: &str) -> Option<i64> {
    let mut nanos = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        nanos += amount
            * match &rest[..unit_len] {
                "h" => 3.6e12,
                "m" => 6e10,
                "s" => 1e9,
                "ms" => 1e6,
                "us" | "µs" => 1e3,
                "ns" => 1.0,
                _ => return None,
            };
        rest = &rest[unit_len..];
    }
    Some(nanos as i64)
}
