//! The formats of texts that `data/validation.txt` names.
use super::check::{Format, address};
use crate::names;

/// Formats by name.
pub(super) const FORMATS: &[(&str, Format)] = &[
    ("dns-label", names::label),
    ("dns-subdomain", names::subdomain),
    ("ip-address", address),
    ("qualified-name", names::qualified),
];
