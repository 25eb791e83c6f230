//! Request URIs, as Go's `net/url` reads them.
//!
//! Upstream: k8s.io/kube-openapi/pkg/internal/third_party/govalidator/validator.go: IsRequestURI
use std::net::Ipv6Addr;

/// Where in a URI a text stands; each place has its own rule for what is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The path, or the user and password.
    Any,
    Host,
    Zone,
}

/// Whether a text is a URI with a scheme, an absolute path, or `*`.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(scheme, authority) && is_escaped(path, Place::Any)
        }
        _ => is_escaped(rest, Place::Any),
    }
}

/// The scheme, empty if there is none, and what follows. `None` if the scheme before the colon is empty.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let end = text.find(|c| !part(c)).unwrap_or(text.len());
    match text[end..].strip_prefix(':') {
        Some(_) if end == 0 => None,
        Some(rest) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Some((&text[..end], rest))
        }
        _ => Some(("", text)),
    }
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    is_host(scheme, host) && user.chars().all(is_user) && is_escaped(user, Place::Any)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match (host.rfind('['), host.find(':')) {
        (Some(0), _) => {
            let Some((address, port)) = host[1..].rsplit_once(']') else { return false };
            is_port(port) && is_address(address)
        }
        (Some(_), _) => false,
        (None, None) => is_escaped(host, Place::Host),
        (None, Some(first)) => {
            let strict = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
            let colon = if strict { first } else { host.rfind(':').unwrap_or(first) };
            is_port(&host[colon..]) && is_escaped(host, Place::Host)
        }
    }
}

/// An address of IPv6, with a zone after `%25`.
fn is_address(text: &str) -> bool {
    let (address, zone) = match text.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let has_zone = zone.is_none_or(|zone| !zone.is_empty() && is_escaped(zone, Place::Zone));
    address.parse::<Ipv6Addr>().is_ok() && has_zone
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether every percent sign begins an escape that may stand there, and nothing else need be one.
fn is_escaped(text: &str, place: Place) -> bool {
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            if place != Place::Any && byte.is_ascii() && !stands_in_host(*byte) {
                return false;
            }
            continue;
        }
        let (Some(high), Some(low)) = (digit(after, 0), digit(after, 1)) else { return false };
        let (escaped, is_percent) = (high * 16 + low, after.starts_with(b"25"));
        let fits = match place {
            Place::Any => true,
            Place::Host => !escaped.is_ascii() || is_percent,
            Place::Zone => is_percent || escaped == b' ' || stands_in_host(escaped),
        };
        if !fits {
            return false;
        }
        rest = &after[2..];
    }
    true
}

fn digit(bytes: &[u8], index: usize) -> Option<u8> {
    let digit = char::from(*bytes.get(index)?).to_digit(16)?;
    u8::try_from(digit).ok()
}

fn stands_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte)
}
