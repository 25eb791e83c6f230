//! The formats of texts. Unknown ones are accepted, as apiextensions does.
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: init
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go: GetUnrecognizedFormats
use std::net::{IpAddr, Ipv6Addr};

use super::ValidationResult;
use crate::{FieldError, FieldErrorKind};

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
        "uri" => is_uri(text),
        "hostname" => is_hostname(text),
        "email" => is_email(text),
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

/// Four numbers, with leading zeros if need be.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number = |part: &&str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && part.parse::<u8>().is_ok()
    };
    parts.len() == 4 && parts.iter().all(is_number)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u16>().is_ok_and(|bits| bits <= limit)
}

/// A request URI: absolute, or a path.
fn is_uri(text: &str) -> bool {
    let scheme_ends = text.find(':');
    let has_scheme = scheme_ends.is_some_and(|end| {
        let scheme = &text[..end];
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !text.chars().any(|c| c.is_control() || c == ' ') && (has_scheme || text.starts_with('/'))
}

/// A label, or labels and a top-level domain of two letters or more.
///
/// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: IsHostname
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().count() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    let is_domain = |last: &str| last.chars().count() >= 2 && last.chars().all(char::is_alphabetic);
    text.len() <= 255
        && text.split('.').all(is_label)
        && text.rsplit_once('.').is_none_or(|(_, last)| is_domain(last))
}

// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: IsEmail
fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(rest)) => &rest[start + 1..],
        _ => text,
    };
    address.rsplit_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !address.contains(char::is_whitespace)
    })
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

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    let grouped = parts == [8, 4, 4, 4, 12] || parts == [32];
    let variant = |c: char| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b');
    grouped
        && is_hexadecimal(&digits)
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

// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/time.go: ParseDateTime
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, zone_fits) = if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        (clock, true)
    } else if let Some(index) = time.rfind(['+', '-']) {
        (&time[..index], is_clock(&time[index + 1..], 2))
    } else {
        // The format's reader knows a form without a zone.
        (time, true)
    };
    let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock(seconds, 3) && digits && zone_fits
}

/// `15:04` or `15:04:05`.
fn is_clock(text: &str, fields: usize) -> bool {
    let limits = [23, 59, 60];
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == fields
        && parts.iter().zip(limits).all(|(part, limit)| {
            part.len() == 2 && part.parse::<u8>().is_ok_and(|number| number <= limit)
        })
}

/// Go's durations (`1h30m`), or a number and the name of a unit (`3 days`).
///
/// Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/duration.go: ParseDuration
fn is_duration(text: &str) -> bool {
    const LONG_UNITS: [&str; 20] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "second", "m", "min",
        "minute", "h", "hr", "hour", "d", "day", "w", "week",
    ];
    let text = text.trim();
    if text == "0" {
        return true;
    }
    if let Some((number, unit)) = text.split_once(' ') {
        let unit = unit.trim();
        let singular = unit.strip_suffix('s').unwrap_or(unit);
        let known = LONG_UNITS.contains(&unit) || LONG_UNITS.contains(&singular);
        return number.parse::<f64>().is_ok() && (known || unit.is_empty());
    }
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let unit_length = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_length);
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w"];
        if number.parse::<f64>().is_err() || !units.contains(&unit) {
            return false;
        }
        rest = after;
    }
    true
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hexadecimal(digits)
}

/// `rgb(255,0,0)`.
fn is_rgb_color(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    inside.is_some_and(|inside| {
        let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
    })
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
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

/// Luhn's check over 13 to 16 digits, whatever stands between them.
fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

/// `123-45-6789`.
fn is_social_security_number(text: &str) -> bool {
    let digits = without_separators(text);
    digits.len() == 9 && digits.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 11
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}
