//! The names of generated objects. They are those that upstream gives, byte for byte: what it
//! installed can be taken over.

use serde::Serialize;
use sha2::{Digest as _, Sha224};

use crate::go_json::go_json;

/// Longest name that is cut.
const NAME_LENGTH_MAX: usize = 63;

/// A name made of a base, which is cut if the whole is too long, and of a suffix.
///
/// Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/util/util.go: ObjectNameForBaseAndSuffix
pub(super) fn with_suffix(base: &str, suffix: &str) -> String {
    let base = if base.len() + suffix.len() > NAME_LENGTH_MAX {
        cut(base, (NAME_LENGTH_MAX - 1).saturating_sub(suffix.len()))
    } else {
        base
    };
    format!("{base}-{suffix}")
}

fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

/// A name that a permission, or anything else that can be written as JSON, makes unique.
pub(super) fn with_hash(base: &str, object: &impl Serialize) -> String {
    with_suffix(base, &hash(object))
}

/// The hash of what a Go program writes as JSON, in digits and small letters.
///
/// Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/util/hash.go: DeepHashObject
fn hash(object: &impl Serialize) -> String {
    let mut hasher = Sha224::new();
    hasher.update(go_json(object));
    hasher.update("\n");
    base36(hasher.finalize().as_slice())
}

/// A number, most significant byte first, to the base 36.
fn base36(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 36).unwrap_or_default();
            remainder = value % 36;
        }
        digits.push(char::from_digit(remainder, 36).unwrap_or('0'));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.into_iter().rev().collect()
}

/// The service of a deployment that serves webhooks or APIs.
///
/// Upstream cuts a deployment's name of 56 characters so that the service has 64, which no API
/// server accepts; here it has 63.
pub(super) fn service(deployment: &str) -> String {
    const SUFFIX: &str = "service";
    let base = deployment.replace('.', "-");
    let base = cut(&base, base.len().min(NAME_LENGTH_MAX - 1 - SUFFIX.len()));
    format!("{base}-{SUFFIX}")
}

/// The Secret with the certificate of a service, and the cert-manager Certificate of that name.
pub(super) fn certificate(service: &str) -> String {
    with_suffix(service, "cert")
}

/// The cert-manager Issuer of a certificate.
pub(super) fn issuer(certificate: &str) -> String {
    with_suffix(certificate, "selfsigned-issuer")
}

#[cfg(test)]
mod tests {
    use super::{base36, service, with_suffix};

    #[test]
    fn names_are_cut_where_upstream_cuts_them() {
        let of = |length: usize| "x".repeat(length);
        for (base, suffix, length) in
            [(of(10), of(20), 31), (of(43), of(20), 64), (of(44), of(20), 63)]
        {
            assert_eq!(with_suffix(&base, &suffix).len(), length, "{base}-{suffix}");
        }
        assert_eq!(with_suffix(&of(3), &of(70)), format!("-{}", of(70)));
        assert_eq!(with_suffix(&"é".repeat(30), &of(43)).len(), 18 + 1 + 43);
    }

    #[test]
    fn a_service_has_a_name_that_api_servers_accept() {
        assert_eq!(service("a.b"), "a-b-service");
        for length in [55, 56, 57, 200] {
            assert_eq!(service(&"x".repeat(length)).len(), 63);
        }
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        for (bytes, text) in [(&[0_u8, 0][..], "0"), (&[0, 36], "10"), (&[1, 0], "74"), (&[], "0")]
        {
            assert_eq!(base36(bytes), text);
        }
    }
}
