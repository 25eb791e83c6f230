//! The formats of texts. Unknown ones are accepted, as apiextensions does.
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: init
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go: GetUnrecognizedFormats
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use k8s_cel::go;
use regex::Regex;

use super::ValidationResult;
use crate::{FieldError, FieldErrorKind};

mod email;
mod uri;

/// Reports a text that does not have the format.
pub(super) fn check(format: &str, text: &str, path: &str, out: &mut ValidationResult) {
    out.checks += 1;
    let normalized = format.replace('-', "");
    if has_format(&normalized, text) {
        return;
    }
    let detail = format!("{path} in body must be of type {format}: {text:?}");
    out.push(FieldError::new(path, FieldErrorKind::TypeInvalid, detail).with_value(text.into()));
}

/// Formats that are checked; others are ignored.
const KNOWN: [&str; 27] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
    "",
];

/// Whether kube-apiserver knows a format of texts.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go: supportedFormatsAtVersion
pub(crate) fn is_known(format: &str) -> bool {
    KNOWN.contains(&format.replace('-', "").as_str())
}

fn has_format(format: &str, text: &str) -> bool {
    match format {
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uri" => uri::is_request_uri(text),
        "hostname" => is_hostname(text),
        "email" => email::is_address(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "byte" => is_base64(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "hexcolor" => is_hex_color(text),
        "rgbcolor" => is_rgb_color(text),
        "bsonobjectid" => text.len() == 24 && is_hexadecimal(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => is_social_security_number(text),
        "k8sshortname" => is_label(text) && text.len() <= 63,
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => true,
    }
}

/// An address with a dot in it: one of IPv6 may end in numbers, too.
fn is_ipv4(text: &str) -> bool {
    text.contains('.') && lenient_address(text).is_some()
}

/// Reads an address whose decimal numbers may have leading zeros.
///
/// Upstream: k8s.io/utils/net/parse.go: ParseIPSloppy
fn lenient_address(text: &str) -> Option<IpAddr> {
    if !text.contains('.') {
        return text.parse().ok();
    }
    let start = text.rfind(':').map_or(0, |colon| colon + 1);
    let (prefix, numbers) = text.split_at(start);
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let significant = part.trim_start_matches('0');
        match significant {
            "" if digits => Some(0),
            _ if digits => significant.parse::<u8>().ok(),
            _ => None,
        }
    };
    let parts: Vec<u8> = numbers.split('.').map(number).collect::<Option<_>>()?;
    let [a, b, c, d] = parts.as_slice() else { return None };
    format!("{prefix}{}", Ipv4Addr::new(*a, *b, *c, *d)).parse().ok()
}

// Upstream: k8s.io/utils/net/parse.go: ParseCIDRSloppy
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = match lenient_address(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u16>().is_ok_and(|bits| bits <= limit)
}

/// Whether a text matches a pattern, which is compiled once.
fn matches(compiled: &OnceLock<Regex>, pattern: &str, text: &str) -> bool {
    compiled.get_or_init(|| Regex::new(pattern).expect("the pattern is a constant")).is_match(text)
}

/// One label with at most a dash after its first character, or labels and a top-level domain of two
/// letters or more. Symbols count as letters, except in the top-level domain.
///
/// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: IsHostname
fn is_hostname(text: &str) -> bool {
    const PATTERN: &str = r"(?x)^(?:
        [a-zA-Z0-9\p{S}\p{L}]-?[a-zA-Z0-9\p{S}\p{L}]{0,62}
        | (?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+
          [a-zA-Z\p{L}]{2,63}
    )$";
    static COMPILED: OnceLock<Regex> = OnceLock::new();
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && matches(&COMPILED, PATTERN, text)
}

/// Pairs of digits between colons or dashes, or groups of four between dots.
fn is_mac(text: &str) -> bool {
    let fits = |separator: char, width: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == width && is_hexadecimal(part))
    };
    fits(':', 2, [6, 8, 20]) || fits('-', 2, [6, 8, 20]) || fits('.', 4, [3, 4, 10])
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Groups of 8, 4, 4, 4 and 12 digits, each dash between them optional.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    for c in text.chars() {
        match c {
            '-' if matches!(digits.len(), 8 | 12 | 16 | 20) && !text.contains("--") => {}
            _ if c.is_ascii_hexdigit() => digits.push(c.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let variant = |c: char| matches!(c, '8' | '9' | 'a' | 'b');
    digits.len() == 32
        && version.is_none_or(|version| {
            digits.chars().nth(12) == Some(version)
                && (version == '3' || digits.chars().nth(16).is_some_and(variant))
        })
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, width: usize| {
        (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

/// What stands between the first `T` and the next one is a time with a zone; seconds end at 59.
///
/// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/time.go: IsDateTime
fn is_date_time(text: &str) -> bool {
    const PATTERN: &str =
        "^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$";
    static COMPILED: OnceLock<Regex> = OnceLock::new();
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && matches(&COMPILED, PATTERN, time)
        && time[..2] <= *"23"
        && time[3..5] <= *"59"
        && time[6..8] <= *"59"
}

/// Go's durations (`1h30m`), or a text in which a whole number stands before the name of a unit
/// (`3 days`).
///
/// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/duration.go: ParseDuration
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    static COMPILED: OnceLock<Regex> = OnceLock::new();
    if go::parse_duration(text).is_some() {
        return true;
    }
    let pattern = COMPILED.get_or_init(|| {
        Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").expect("the pattern is a constant")
    });
    let mut found = false;
    for (_, [number, unit]) in pattern.captures_iter(text).map(|found| found.extract()) {
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |= UNITS.contains(&unit.as_str())
            || BEGINNINGS.iter().any(|beginning| unit.starts_with(beginning));
    }
    found
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hexadecimal(digits)
}

/// `rgb(255,0,0)`; no number has a leading zero.
fn is_rgb_color(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    let is_number = |part: &str| {
        let part = part.trim_matches(IS_SPACE);
        part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
            && part.parse::<u8>().is_ok()
    };
    inside.is_some_and(|inside| inside.split(',').count() == 3 && inside.split(',').all(is_number))
}

/// White space, as Go's regular expressions know it.
const IS_SPACE: [char; 5] = ['\t', '\n', '\x0c', '\r', ' '];

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| *c != '-' && !IS_SPACE.contains(c)).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let value = |(index, c): (usize, char)| match c {
        'X' if index == 9 => Some(10),
        _ => c.to_digit(10),
    };
    let values: Option<Vec<u32>> = digits.chars().enumerate().map(value).collect();
    values.is_some_and(|values| {
        let sum: u32 = values.iter().zip(1..).map(|(digit, weight)| digit * weight).sum();
        values.len() == 10 && sum.is_multiple_of(11)
    })
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    let values: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(10)).collect();
    values.is_some_and(|values| {
        let weights = [1, 3].iter().cycle();
        let sum: u32 = values.iter().zip(weights).map(|(digit, weight)| digit * weight).sum();
        values.len() == 13 && sum.is_multiple_of(10)
    })
}

/// The digits of a text, those of a known issuer that pass Luhn's check.
///
/// Upstream: k8s.io/kube-openapi/pkg/internal/third_party/govalidator/validator.go: IsCreditCard
fn is_credit_card(text: &str) -> bool {
    const PATTERN: &str = "(?x)^(?:
        4[0-9]{12}(?:[0-9]{3})?
        | 5[1-5][0-9]{14}
        | 6(?:011|5[0-9]{2})[0-9]{12}
        | 3[47][0-9]{13}
        | 3(?:0[0-5]|[68][0-9])[0-9]{11}
        | (?:2131|1800|35[0-9]{3})[0-9]{11}
    )$";
    static COMPILED: OnceLock<Regex> = OnceLock::new();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(index, digit): (usize, u8)| match (index % 2, u32::from(digit - b'0')) {
        (0, digit) => digit,
        (_, digit @ 5..) => digit * 2 - 9,
        (_, digit) => digit * 2,
    };
    matches(&COMPILED, PATTERN, &digits)
        && digits.bytes().rev().enumerate().map(luhn).sum::<u32>().is_multiple_of(10)
}

/// `123-45-6789`, or with spaces.
fn is_social_security_number(text: &str) -> bool {
    let is_number =
        |range: std::ops::Range<usize>| text.as_bytes()[range].iter().all(u8::is_ascii_digit);
    let is_separator = |index: usize| matches!(text.as_bytes()[index], b'-' | b' ');
    text.len() == 11
        && is_number(0..3)
        && is_separator(3)
        && is_number(4..6)
        && is_separator(6)
        && is_number(7..11)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}
