//! Texts as Go writes and reads them: kube-apiserver's messages, patterns and costs depend on it.
mod memo;
pub mod regexp;

use std::fmt::Write as _;

/// A text in double quotes, as Go's `%q` writes it.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match short_escape(character) {
            Some(escaped) => out.push_str(escaped),
            // Writing to a String cannot fail.
            None if character.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(character));
            }
            None if character.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            None => out.push(character),
        }
    }
    out.push('"');
    out
}

/// The escape of a character that has one of its own within double quotes, such as `\n`.
pub(crate) fn short_escape(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        '\\' => "\\\\",
        '"' => "\\\"",
        _ => return None,
    })
}

/// A floating-point number as `%v` and `%g` print it: the shortest digits that identify it, with an
/// exponent below 1e-4 and from 1e+06 on.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The nanoseconds of a duration such as `1h30m`, as Go reads durations; nothing if it is none or
/// does not fit.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole_length = digits(rest);
        let whole: i128 = if whole_length == 0 { 0 } else { rest[..whole_length].parse().ok()? };
        rest = &rest[whole_length..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let length = digits(after);
            fraction = &after[..length];
            rest = &after[length..];
        }
        if whole_length == 0 && fraction.is_empty() {
            return None;
        }
        let units: [(&str, i128); 8] = [
            ("ns", 1),
            ("us", 1_000),
            ("\u{b5}s", 1_000),
            ("\u{3bc}s", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("m", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ];
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let (_, unit) = units.iter().find(|(name, _)| *name == &rest[..end])?;
        rest = &rest[end..];
        total = total.checked_add(whole.checked_mul(*unit)?)?;
        if !fraction.is_empty() {
            let part: f64 = format!("0.{fraction}").parse().ok()?;
            total += (part * *unit as f64) as i128;
        }
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_go() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (1e21, "1e+21"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(float_text(value), expected);
        }
    }

    #[test]
    fn texts_are_quoted_as_in_go() {
        assert_eq!(quote("a\"b\\c\n\u{1}\u{80}é"), "\"a\\\"b\\\\c\\n\\x01\\u0080é\"");
    }
}
