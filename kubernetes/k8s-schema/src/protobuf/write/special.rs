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
use crate::protobuf::wire::Writer;

const NANOS_PER_MICRO: i64 = 1_000;

/// The message of a form.
pub(super) fn write(
    tables: &Tables,
    form: JsonForm,
    value: &Value,
) -> Result<Vec<u8>, ProtobufError> {
    let mut out = Writer::default();
    let wrong = || super::wrong_value("value", value);
    match form {
        JsonForm::Time | JsonForm::MicroTime => {
            let time: Timestamp =
                value.as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
            let nanos = i64::from(time.subsec_nanosecond());
            out.integer(1, time.as_second());
            out.integer(
                2,
                if form == JsonForm::Time { 0 } else { nanos - nanos % NANOS_PER_MICRO },
            );
        }
        JsonForm::IntOrString => match value {
            Value::String(text) => {
                out.integer(1, 1);
                out.integer(2, 0);
                out.text(3, text);
            }
            _ => {
                out.integer(1, 0);
                out.integer(2, value.as_i64().ok_or_else(wrong)?);
                out.text(3, "");
            }
        },
        JsonForm::Quantity => match value {
            Value::String(text) => out.text(1, text),
            Value::Number(number) => out.text(1, &number.to_string()),
            _ => return Err(wrong()),
        },
        JsonForm::Duration => {
            let nanos = value.as_str().and_then(k8s_cel::go::parse_duration).ok_or_else(wrong)?;
            out.integer(1, nanos);
        }
        JsonForm::Json => out.text(1, &value.to_string()),
        JsonForm::Items => {
            for item in value.as_array().ok_or_else(wrong)? {
                out.text(1, item.as_str().ok_or_else(wrong)?);
            }
        }
        JsonForm::SchemaOrArray | JsonForm::SchemaOrBool | JsonForm::SchemaOrStrings => {
            write_schema_or(tables, form, value, &mut out)?;
        }
    }
    Ok(out.finish())
}

fn write_schema_or(
    tables: &Tables,
    form: JsonForm,
    value: &Value,
    out: &mut Writer,
) -> Result<(), ProtobufError> {
    let schema =
        tables.message(SCHEMA_MESSAGE).ok_or_else(|| super::wrong_value("schema", value))?;
    match value {
        Value::Bool(flag) => out.integer(1, (*flag).into()),
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(text) => out.text(2, text),
                    _ => out.bytes(2, &super::message(tables, schema, item)?),
                }
            }
        }
        _ => {
            let encoded = super::message(tables, schema, value)?;
            if form == JsonForm::SchemaOrBool {
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
