//! Reading and writing JSON values.
use std::io::{self, Write};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Encodes a document whose keys are all strings.
pub(crate) fn to_bytes(value: &impl Serialize) -> Bytes {
    encode(value, CompactFormatter)
}

/// Encodes a document whose keys are all strings with indentation.
pub(crate) fn to_indented_bytes(value: &impl Serialize) -> Bytes {
    encode(value, PrettyFormatter::new())
}

fn encode(value: &impl Serialize, formatter: impl Formatter) -> Bytes {
    let mut out = Vec::with_capacity(128);
    let mut serializer = Serializer::with_formatter(&mut out, GoNumbers(formatter));
    value.serialize(&mut serializer).expect("a document with string keys always encodes");
    out.into()
}

/// Writes numbers as Go does: those without a fraction as integers up to 1e21, and integers above those of
/// `i64` rounded to a float.
///
/// Upstream: go/src/encoding/json/encode.go: floatEncoder
struct GoNumbers<F>(F);

impl<F: Formatter> Formatter for GoNumbers<F> {
    fn write_f64<W: Write + ?Sized>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let magnitude = value.abs();
        if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
            let text = format!("{value:e}");
            return match text.split_once('e') {
                Some((digits, exponent)) if !exponent.starts_with('-') => {
                    write!(out, "{digits}e+{exponent}")
                }
                _ => out.write_all(text.as_bytes()),
            };
        }
        write!(out, "{value}")
    }

    fn write_u64<W: Write + ?Sized>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.0.write_i64(out, value),
            Err(_) => self.write_f64(out, value as f64),
        }
    }

    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// A string; empty if the value is missing or something else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The strings in a list; none if the value is missing or something else.
pub(crate) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let table = [
            (json!(1), "1"),
            (json!(1.0), "1"),
            (json!(-0.0), "-0"),
            (json!(1.5), "1.5"),
            (json!(i64::MIN), "-9223372036854775808"),
            (json!(i64::MAX), "9223372036854775807"),
            (json!(9_223_372_036_854_775_808_u64), "9223372036854776000"),
            (json!(u64::MAX), "18446744073709552000"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e21), "1e+21"),
            (json!(-1.5e300), "-1.5e+300"),
            (json!(1e-6), "0.000001"),
            (json!(1e-7), "1e-7"),
        ];
        for (value, expected) in table {
            assert_eq!(to_bytes(&[&value]), format!("[{expected}]"));
            assert_eq!(to_indented_bytes(&[&value]), format!("[\n  {expected}\n]"));
        }
    }
}
