//! What a scalar means, by the rules of YAML 1.1 that Kubernetes keeps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::YamlErrorKind;

/// Prefix of the tags that YAML itself defines.
const CORE: &str = "tag:yaml.org,2002:";

/// A scalar's meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer above those of `i64`.
    Unsigned(u64),
    Float(f64),
    Text,
    /// Text other than the one written.
    Decoded(String),
}

/// What a scalar means: plain ones without a tag by how they look, quoted ones as text, and tagged
/// ones as their tag says. Tags that YAML does not define are ignored.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, YamlErrorKind> {
    let Some(tag) = tag else {
        return Ok(if plain { plain_scalar(text) } else { Scalar::Text });
    };
    let Some(short) = tag.strip_prefix(CORE) else { return Ok(Scalar::Text) };
    let looks_like = plain_scalar(text);
    match (short, &looks_like) {
        ("str" | "timestamp", _) => Ok(Scalar::Text),
        ("null", Scalar::Null)
        | ("bool", Scalar::Bool(_))
        | ("int", Scalar::Integer(_) | Scalar::Unsigned(_))
        | ("float", Scalar::Float(_)) => Ok(looks_like),
        ("float", Scalar::Integer(number)) => Ok(Scalar::Float(*number as f64)),
        ("float", Scalar::Unsigned(number)) => Ok(Scalar::Float(*number as f64)),
        ("binary", _) => {
            let dense: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(dense).map_err(|_| misfit(short, text))?;
            Ok(Scalar::Decoded(String::from_utf8_lossy(&bytes).into_owned()))
        }
        ("null" | "bool" | "int" | "float", _) => Err(misfit(short, text)),
        _ => Ok(Scalar::Text),
    }
}

fn misfit(tag: &str, text: &str) -> YamlErrorKind {
    YamlErrorKind::Tag { tag: format!("!!{tag}"), scalar: text.chars().take(40).collect() }
}

fn plain_scalar(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => float_word(text).or_else(|| float(text)).map_or(Scalar::Text, Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Scalar::Text,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Text,
    }
}

fn float_word(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A number or, when it only begins like one, text: dates, times, addresses, versions.
fn number(text: &str) -> Scalar {
    // Most texts that begin with a digit are no numbers; few characters can follow in one.
    let possible = |byte: u8| byte.is_ascii_hexdigit() || b"+-._xXoObB".contains(&byte);
    if !text.bytes().all(possible) {
        return float_word(text).map_or(Scalar::Text, Scalar::Float);
    }
    let without_underscores;
    let plain = if text.contains('_') {
        without_underscores = text.replace('_', "");
        without_underscores.as_str()
    } else {
        text
    };
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain),
    };
    if let Some(magnitude) = integer(digits) {
        // Only an unsigned number may exceed the signed ones.
        if let Some(signed) = signed(magnitude, negative) {
            return Scalar::Integer(signed);
        }
        if digits.len() == plain.len() {
            return Scalar::Unsigned(magnitude);
        }
    }
    float_word(text).or_else(|| float(plain)).map_or(Scalar::Text, Scalar::Float)
}

fn signed(magnitude: u64, negative: bool) -> Option<i64> {
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() }
}

/// Digits in the base that their prefix tells, as in Go source: `0x`, `0o`, `0b`, or `0` alone for
/// octal.
fn integer(digits: &str) -> Option<u64> {
    let bytes = digits.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // The parser of the standard library takes a sign of its own.
    let begins_with_digit = digits.bytes().next().is_some_and(|byte| byte.is_ascii_hexdigit());
    if begins_with_digit { u64::from_str_radix(digits, radix).ok() } else { None }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, unless it exceeds every float.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa =
        digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let is_exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !(is_mantissa && is_exponent) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The JSON value of a scalar.
pub(super) fn value(scalar: Scalar, text: impl Into<String>) -> Result<Value, YamlErrorKind> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Integer(number) => number.into(),
        Scalar::Unsigned(number) => number.into(),
        Scalar::Float(number) => Value::Number(float_number(number, text)?),
        Scalar::Text => Value::String(text.into()),
        Scalar::Decoded(text) => Value::String(text),
    })
}

/// A float is printed before it is read again: without a fraction it comes back as an integer.
fn float_number(number: f64, text: impl Into<String>) -> Result<Number, YamlErrorKind> {
    // Above this, integers are printed with an exponent.
    const EXPONENT_FROM: f64 = 1e21;
    if number.fract() == 0.0
        && number.abs() < EXPONENT_FROM
        && let Ok(integer) = number.to_string().parse::<i64>()
    {
        return Ok(integer.into());
    }
    Number::from_f64(number).ok_or_else(|| YamlErrorKind::NotFinite(text.into()))
}

/// The text that a scalar becomes as a key; `None` for null.
pub(super) fn key(scalar: Scalar, text: impl Into<String>) -> Option<String> {
    match scalar {
        Scalar::Null => None,
        Scalar::Bool(value) => Some(value.to_string()),
        Scalar::Integer(number) => Some(number.to_string()),
        Scalar::Unsigned(number) => Some(number.to_string()),
        Scalar::Float(number) => Some(float_key(number)),
        Scalar::Text => Some(text.into()),
        Scalar::Decoded(text) => Some(text),
    }
}

/// A float as a key is rounded to 32 bits and printed with an exponent when that is below -4 or
/// above 5.
fn float_key(number: f64) -> String {
    // Kubernetes rounds such keys, too.
    let rounded = number as f32;
    if rounded.is_nan() {
        return ".nan".to_owned();
    }
    if rounded.is_infinite() {
        return if rounded > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{rounded:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return rounded.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
