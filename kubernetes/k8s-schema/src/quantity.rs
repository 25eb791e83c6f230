//! Resource quantities: `500m`, `1Gi`, `1e3`.
//!
//! Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: ParseQuantity
//! Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: CanonicalizeBytes
#[cfg(test)]
mod tests;

use std::fmt;

/// What kube-apiserver says of a text that is no quantity.
pub(crate) const MALFORMED: &str = "quantities must match the regular expression \
'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Billionths, the resolution of a quantity.
const NANO: i128 = 1_000_000_000;
/// Larger amounts are capped.
const LIMIT: i128 = (i64::MAX as i128) * NANO;

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// An amount and how it is written; it prints in its canonical form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    notation: Notation,
}

impl Quantity {
    /// Reads a quantity; nothing if the text is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let digits_end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (digits, suffix) = unsigned.split_at(digits_end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (notation, ten, two) = read_suffix(suffix)?;
        let nanos = scale(whole, fraction, ten, two)?;
        Some(Self { nanos: if negative { -nanos } else { nanos }, notation })
    }

    /// The amount in billionths.
    pub(crate) fn nanos(self) -> i128 {
        self.nanos
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The whole part.
    pub(crate) fn whole(self) -> i128 {
        self.nanos / NANO
    }
}

/// The notation of a suffix, and the powers of ten and two that it stands for.
fn read_suffix(suffix: &str) -> Option<(Notation, i32, u32)> {
    if let Some((_, ten)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Notation::Decimal, *ten, 0));
    }
    if let Some(index) = BINARY.iter().position(|name| *name == suffix) {
        let two = 10 * (u32::try_from(index).ok()? + 1);
        return Some((Notation::Binary, 0, two));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Notation::Exponent, exponent.parse().ok()?, 0))
}

/// The amount in billionths, rounded up and capped.
fn scale(whole: &str, fraction: &str, ten: i32, two: u32) -> Option<i128> {
    /// More digits than any amount below the cap can have.
    const DIGITS_MAX: usize = 28;
    let digits: String = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let mut exponent = ten.checked_add(9)?.checked_sub(places)?;
    let (kept, dropped) = digits.split_at(digits.len().min(DIGITS_MAX));
    exponent = exponent.checked_add(i32::try_from(dropped.len()).ok()?)?;
    let mut amount: i128 = kept.parse().ok()?;
    let mut inexact = dropped.bytes().any(|byte| byte != b'0');
    amount = match 2_i128.checked_pow(two).and_then(|factor| amount.checked_mul(factor)) {
        Some(amount) => amount,
        None => return Some(LIMIT),
    };
    while exponent > 0 && amount <= LIMIT {
        amount = amount.saturating_mul(10);
        exponent -= 1;
    }
    while exponent < 0 && amount > 0 {
        inexact |= amount % 10 != 0;
        amount /= 10;
        exponent += 1;
    }
    Some((amount + i128::from(inexact)).min(LIMIT))
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return out.write_str("0");
        }
        let is_small = self.nanos.abs() < 1024 * NANO;
        if self.notation == Notation::Binary && !is_small && self.is_whole() {
            let mut number = self.whole();
            let mut steps = 0;
            while number % 1024 == 0 && steps < BINARY.len() {
                number /= 1024;
                steps += 1;
            }
            let suffix = if steps == 0 { "" } else { BINARY[steps - 1] };
            return write!(out, "{number}{suffix}");
        }
        let (mut number, mut exponent) = (self.nanos, -9);
        while number % 1000 == 0 && exponent < 18 {
            number /= 1000;
            exponent += 3;
        }
        if self.notation == Notation::Exponent {
            return match exponent {
                0 => write!(out, "{number}"),
                exponent => write!(out, "{number}e{exponent}"),
            };
        }
        let suffix = DECIMAL.iter().find(|(_, ten)| *ten == exponent).map_or("", |(name, _)| name);
        write!(out, "{number}{suffix}")
    }
}
