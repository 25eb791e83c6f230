//! `'...%s...'.format([...])`.
//!
//! Upstream: github.com/google/cel-go/ext/formatting.go: parseFormatString
//! Upstream: github.com/google/cel-go/ext/formatting.go: FormatString
use super::EvaluationResult;
use crate::go::{float_text, quote};
use crate::types::Type;
use crate::value::{display_text, time};
use crate::{EvaluationError, Value};

const STRING_CLAUSE: &str = "string clause can only be used on strings, bools, bytes, ints, \
                             doubles, maps, lists, types, durations, and timestamps";
const DEFAULT_PRECISION: usize = 6;
/// More digits than any double has; Go would print zeros.
const PRECISION_MAX: usize = 1000;

type Formatted = Result<String, EvaluationError>;

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("format", [Value::String(pattern), Value::List(values)]) => {
            Some(format(pattern, &values.items))
        }
        _ => None,
    }
}

fn format(pattern: &str, values: &[Value]) -> EvaluationResult {
    let mut out = String::new();
    let mut used = 0;
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let value = values.get(used);
        let Some(value) = value else {
            return Err(EvaluationError::new(format!("index {used} out of range")));
        };
        if rest.is_empty() {
            return Err(EvaluationError::new("unexpected end of string"));
        }
        let (text, after) = clause(rest, value)?;
        out.push_str(&text);
        rest = after;
        used += 1;
    }
    out.push_str(rest);
    Ok(Value::string(out))
}

/// What the clause after a `%` writes, and what follows it.
fn clause<'a>(text: &'a str, value: &Value) -> Result<(String, &'a str), EvaluationError> {
    let unreadable = |message: String| {
        EvaluationError::new(format!("could not parse formatting clause: {message}"))
    };
    let (precision, rest) = precision(text).map_err(unreadable)?;
    let mut characters = rest.chars();
    let kind =
        characters.next().ok_or_else(|| unreadable("unexpected end of string".to_owned()))?;
    let formatted = match kind {
        's' => plain(value),
        'd' => decimal(value),
        'f' => fixed(value, precision),
        'e' => scientific(value, precision),
        'b' => binary(value),
        'x' | 'X' => hexadecimal(value, kind == 'X'),
        'o' => octal(value),
        other => {
            return Err(unreadable(format!("unrecognized formatting clause \"{other}\"")));
        }
    };
    let formatted = formatted
        .map_err(|failed| EvaluationError::new(format!("error during formatting: {failed}")))?;
    Ok((formatted, characters.as_str()))
}

/// Reads a pattern; `each` is called with the kind of each clause.
///
/// # Errors
/// What is wrong with the pattern, or what `each` says.
pub(crate) fn clauses(
    pattern: &str,
    mut each: impl FnMut(char) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let unreadable = |message| format!("could not parse formatting clause: {message}");
        let (_, after) = precision(rest).map_err(unreadable)?;
        let kind = after.chars().next().unwrap_or('%');
        if !"sdfebxXo".contains(kind) {
            let message = format!("unrecognized formatting clause \"{kind}\"");
            return Err(unreadable(message));
        }
        each(kind)?;
        rest = &after[kind.len_utf8()..];
    }
    Ok(())
}

/// Whether a clause can show values of a type.
pub(crate) fn accepts(kind: char, of: &Type) -> Result<(), String> {
    let (fits, expected) = match kind {
        'd' => {
            (matches!(of, Type::Int | Type::Uint), "decimal clause can only be used on integers")
        }
        'o' => (matches!(of, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        'f' => (
            matches!(of, Type::Double | Type::String),
            "fixed-point clause can only be used on doubles",
        ),
        'e' => (
            matches!(of, Type::Double | Type::String),
            "scientific clause can only be used on doubles",
        ),
        'b' => (
            matches!(of, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'x' | 'X' => (
            matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        _ => (!matches!(of, Type::Object(_) | Type::Opaque(_) | Type::Optional(_)), STRING_CLAUSE),
    };
    if fits || matches!(of, Type::Dyn) {
        return Ok(());
    }
    Err(format!("error during formatting: {expected}, was given {}", of.runtime_name()))
}

fn precision(text: &str) -> Result<(usize, &str), String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((DEFAULT_PRECISION, text)) };
    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
    if end == rest.len() {
        let message = "could not find end of precision specifier";
        return Err(format!("error while parsing precision: {message}"));
    }
    let digits: usize = rest[..end].parse().map_err(|_| {
        format!(
            "error while parsing precision: error while converting precision to integer: \
             strconv.Atoi: parsing {:?}: invalid syntax",
            &rest[..end]
        )
    })?;
    Ok((digits.min(PRECISION_MAX), &rest[end..]))
}

fn wrong(expected: &str, value: &Value) -> EvaluationError {
    EvaluationError::new(format!("{expected}, was given {}", value.type_name()))
}

fn plain(value: &Value) -> Formatted {
    Ok(match value {
        Value::List(_) | Value::Map(_) => nested(value)?,
        Value::Null => "null".to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(EvaluationError::new(
                    "invalid UTF-8 in bytes, cannot convert to string",
                ));
            }
        },
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Duration(_)
        | Value::Type(_) => display_text(value),
        Value::Optional(_) | Value::Opaque(_) | Value::Host(_) => {
            return Err(wrong(STRING_CLAUSE, value));
        }
    })
}

/// A value within a list or a map, as a literal.
fn nested(value: &Value) -> Formatted {
    Ok(match value {
        Value::List(list) => {
            let items = list.items.iter().map(nested).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in &map.entries {
                entries.push((nested(&key.value())?, nested(value)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::String(text) => quote(text),
        Value::Bytes(bytes) => format!("b{}", quote(&String::from_utf8_lossy(bytes))),
        Value::Timestamp(at) => format!("timestamp({:?})", time::timestamp_text(*at)),
        Value::Duration(span) => format!("duration({:?})", time::duration_text(*span)),
        Value::Double(value) if !value.is_finite() => format!("{:?}", float_text(*value)),
        Value::Double(value) => format!("{value:.6}"),
        Value::Optional(_) | Value::Opaque(_) | Value::Host(_) => {
            return Err(EvaluationError::new(format!(
                "no formatting function for {}",
                value.type_name()
            )));
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Type(_) => {
            plain(value)?
        }
    })
}

fn decimal(value: &Value) -> Formatted {
    match value {
        Value::Int(_) | Value::Uint(_) => Ok(display_text(value)),
        other => Err(wrong("decimal clause can only be used on integers", other)),
    }
}

/// The double that a fixed-point or scientific clause shows; text may name the special ones.
fn number(value: &Value, expected: &str) -> Result<f64, EvaluationError> {
    match value {
        Value::Double(value) => Ok(*value),
        Value::String(text) => match &**text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(wrong(expected, value)),
        },
        _ => Err(wrong(expected, value)),
    }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        Some("NaN".to_owned())
    } else if value.is_infinite() {
        Some(if value > 0.0 { "\u{221e}".to_owned() } else { "-\u{221e}".to_owned() })
    } else {
        None
    }
}

/// Thousands are grouped, as the English locale has it.
///
/// Upstream: github.com/google/cel-go/ext/formatting.go: Fixed
fn fixed(value: &Value, precision: usize) -> Formatted {
    let value = number(value, "fixed-point clause can only be used on doubles")?;
    if let Some(special) = special(value) {
        return Ok(special);
    }
    let text = format!("{value:.precision$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (digits, String::new()),
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    Ok(format!("{sign}{grouped}{fraction}"))
}

// Upstream: github.com/google/cel-go/ext/formatting.go: Scientific
fn scientific(value: &Value, precision: usize) -> Formatted {
    let value = number(value, "scientific clause can only be used on doubles")?;
    if let Some(special) = special(value) {
        return Ok(special);
    }
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("\u{207b}", exponent),
        None => ("", exponent),
    };
    let raised: String = format!("{exponent:0>2}")
        .chars()
        .map(|digit| {
            const RAISED: [char; 10] = [
                '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}',
                '\u{2077}', '\u{2078}', '\u{2079}',
            ];
            digit.to_digit(10).map_or(digit, |digit| RAISED[digit as usize])
        })
        .collect();
    Ok(format!("{digits}\u{d7}10{sign}{raised}"))
}

fn signed(value: i64, write: impl Fn(u64) -> String) -> String {
    let text = write(value.unsigned_abs());
    if value < 0 { format!("-{text}") } else { text }
}

fn binary(value: &Value) -> Formatted {
    match value {
        Value::Int(value) => Ok(signed(*value, |value| format!("{value:b}"))),
        Value::Uint(value) => Ok(format!("{value:b}")),
        Value::Bool(value) => Ok(u8::from(*value).to_string()),
        other => Err(wrong("only integers and bools can be formatted as binary", other)),
    }
}

fn hexadecimal(value: &Value, upper: bool) -> Formatted {
    let octets = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = match value {
        Value::Int(value) => signed(*value, |value| format!("{value:x}")),
        Value::Uint(value) => format!("{value:x}"),
        Value::String(text) => octets(text.as_bytes()),
        Value::Bytes(bytes) => octets(bytes),
        other => {
            let expected = "only integers, byte buffers, and strings can be formatted as hex";
            return Err(wrong(expected, other));
        }
    };
    Ok(if upper { text.to_uppercase() } else { text })
}

fn octal(value: &Value) -> Formatted {
    match value {
        Value::Int(value) => Ok(signed(*value, |value| format!("{value:o}"))),
        Value::Uint(value) => Ok(format!("{value:o}")),
        other => Err(wrong("octal clause can only be used on integers", other)),
    }
}
