//! IP addresses and ranges of them.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/ip.go: IP
//! Upstream: k8s.io/apiserver/pkg/cel/library/cidr.go: CIDR
use std::net::IpAddr;

use super::EvaluationResult;
use crate::go::quote;
use crate::value::opaque::{Cidr, Opaque};
use crate::{EvaluationError, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match arguments {
        [Value::String(text)] => on_text(function, text),
        [Value::Opaque(of), rest @ ..] => match &**of {
            Opaque::Ip(address) if rest.is_empty() => on_address(function, *address),
            Opaque::Cidr(range) => on_range(function, *range, rest),
            _ => None,
        },
        _ => None,
    }
}

fn boolean(holds: bool) -> Option<EvaluationResult> {
    Some(Ok(Value::Bool(holds)))
}

fn on_text(function: &str, text: &str) -> Option<EvaluationResult> {
    match function {
        "ip" => Some(parse_address(text).map(|address| Opaque::Ip(address).into_value())),
        "isIP" => boolean(parse_address(text).is_ok()),
        "ip.isCanonical" => {
            Some(parse_address(text).map(|address| Value::Bool(address.to_string() == text)))
        }
        "cidr" => Some(parse_range(text).map(|range| Opaque::Cidr(range).into_value())),
        "isCIDR" => boolean(parse_range(text).is_ok()),
        _ => None,
    }
}

fn on_address(function: &str, address: IpAddr) -> Option<EvaluationResult> {
    let link_local_multicast = match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.octets()[0] == 0xff && address.octets()[1] & 0xf == 2,
    };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    match function {
        "family" => Some(Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 }))),
        "isUnspecified" => boolean(address.is_unspecified()),
        "isLoopback" => boolean(address.is_loopback()),
        "isLinkLocalMulticast" => boolean(link_local_multicast),
        "isLinkLocalUnicast" => boolean(link_local),
        "isGlobalUnicast" => {
            let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            let special = address.is_unspecified() || address.is_loopback();
            boolean(!broadcast && !special && !address.is_multicast() && !link_local)
        }
        _ => None,
    }
}

fn on_range(function: &str, range: Cidr, rest: &[Value]) -> Option<EvaluationResult> {
    let other = match rest {
        [] => None,
        [Value::String(text)] => Some(match function {
            "containsIP" => parse_address(text).map(Opaque::Ip),
            "containsCIDR" => parse_range(text).map(Opaque::Cidr),
            _ => return None,
        }),
        [Value::Opaque(of)] => Some(Ok((**of).clone())),
        _ => return None,
    };
    match (function, other) {
        (_, Some(Err(error))) => Some(Err(error)),
        ("ip", None) => Some(Ok(Opaque::Ip(range.address).into_value())),
        ("prefixLength", None) => Some(Ok(Value::Int(i64::from(range.length)))),
        ("masked", None) => Some(Ok(Opaque::Cidr(range.masked()).into_value())),
        ("containsIP", Some(Ok(Opaque::Ip(address)))) => boolean(range.contains(address)),
        ("containsCIDR", Some(Ok(Opaque::Cidr(other)))) => {
            boolean(range.length <= other.length && range.contains(other.address))
        }
        _ => None,
    }
}

/// Why Go's `netip` does not read an address, for the cases that people meet.
fn reason(text: &str) -> String {
    let quoted = quote(text);
    if text.contains(':') {
        return format!("ParseAddr({quoted}): unexpected character (at {quoted})");
    }
    if !text.contains('.') {
        return format!("ParseAddr({quoted}): unable to parse IP");
    }
    let fields: Vec<&str> = text.split('.').collect();
    for field in &fields {
        if field.is_empty() {
            let detail = "IPv4 field must have at least one digit";
            return format!("ParseAddr({quoted}): {detail} (at {quoted})");
        }
        if field.len() > 1 && field.starts_with('0') {
            return format!("ParseAddr({quoted}): IPv4 field has octet with leading zero");
        }
        if let Some(at) = field.find(|c: char| !c.is_ascii_digit()) {
            let rest = &text[text.find(field).unwrap_or_default() + at..];
            let rest = quote(rest);
            return format!("ParseAddr({quoted}): unexpected character (at {rest})");
        }
        if field.parse::<u8>().is_err() {
            return format!("ParseAddr({quoted}): IPv4 field has value >255");
        }
    }
    let detail = if fields.len() < 4 { "IPv4 address too short" } else { "IPv4 address too long" };
    format!("ParseAddr({quoted}): {detail}")
}

fn parse_address(text: &str) -> Result<IpAddr, EvaluationError> {
    let quoted = quote(text);
    let without_zone = text.split_once('%').map(|(address, _)| address);
    if let Some(address) = without_zone
        && matches!(address.parse(), Ok(IpAddr::V6(_)))
    {
        let message = format!("IP address {quoted} with zone value is not allowed");
        return Err(EvaluationError::new(message));
    }
    match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            let message = format!("IPv4-mapped IPv6 address {quoted} is not allowed");
            Err(EvaluationError::new(message))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(EvaluationError::new(format!(
            "IP Address {quoted} parse error during conversion from string: {}",
            reason(text)
        ))),
    }
}

fn parse_range(text: &str) -> Result<Cidr, EvaluationError> {
    let prefix = "network address parse error during conversion from string: ";
    let quoted = quote(text);
    let unreadable = |detail: String| {
        let message = format!("{prefix}{prefix}netip.ParsePrefix({quoted}): {detail}");
        EvaluationError::new(message)
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| unreadable("no '/'".to_owned()))?;
    let address: IpAddr = address.parse().map_err(|_| unreadable(reason(address)))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let shaped = length.bytes().all(|byte| byte.is_ascii_digit())
        && !(length.len() > 1 && length.starts_with('0'));
    let shown = quote(length);
    let bits: u32 = length
        .parse()
        .ok()
        .filter(|_| shaped)
        .ok_or_else(|| unreadable(format!("bad bits after slash: {shown}")))?;
    if bits > most {
        return Err(unreadable("prefix length out of range".to_owned()));
    }
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        let message = format!("{prefix}IPv4-mapped IPv6 address {quoted} is not allowed");
        return Err(EvaluationError::new(message));
    }
    Ok(Cidr { address, length: bits as u8 })
}
