//! URLs, as Go's `net/url` reads request URIs.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/urls.go: URLs
use super::EvaluationResult;
use crate::go::quote;
use crate::value::MapKey;
use crate::value::opaque::{Opaque, Url};
use crate::{EvaluationError, MapValue, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("url", [Value::String(text)]) => Some(match parse(text) {
            Ok(url) => Ok(Opaque::Url(url).into_value()),
            Err(message) => Err(EvaluationError::new(format!(
                "URL parse error during conversion from string: {message}"
            ))),
        }),
        ("isURL", [Value::String(text)]) => Some(Ok(Value::Bool(parse(text).is_ok()))),
        (_, [Value::Opaque(of)]) => match &**of {
            Opaque::Url(url) => part(function, url).map(Ok),
            _ => None,
        },
        _ => None,
    }
}

fn part(function: &str, url: &Url) -> Option<Value> {
    Some(match function {
        "getScheme" => Value::from(url.scheme.as_str()),
        "getHost" => Value::from(url.host.as_str()),
        "getHostname" => Value::from(host_and_port(&url.host).0),
        "getPort" => Value::from(host_and_port(&url.host).1),
        "getEscapedPath" => Value::string(escaped_path(&url.path)),
        "getQuery" => query(&url.query),
        _ => return None,
    })
}

fn host_and_port(host: &str) -> (&str, &str) {
    let (name, port) = match host.rfind(':') {
        Some(at) if host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            (&host[..at], &host[at + 1..])
        }
        Some(_) | None => (host, ""),
    };
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    (inner.unwrap_or(name), port)
}

/// Reads an absolute URL or an absolute path.
///
/// # Errors
/// Go's message when it is neither.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    let wrong = |reason: String| format!("parse {}: {reason}", quote(text));
    if text.chars().any(|c| u32::from(c) < 0x20 || c == '\u{7f}') {
        return Err(wrong("net/url: invalid control character in URL".to_owned()));
    }
    if text.is_empty() {
        return Err(wrong("empty url".to_owned()));
    }
    let (scheme, rest) = scheme(text).map_err(|reason| wrong(reason.to_owned()))?;
    let without_fragment = rest.split('#').next().unwrap_or_default();
    let (before, query) = match without_fragment.split_once('?') {
        Some((before, query)) => (before, query),
        None => (without_fragment, ""),
    };
    if !before.starts_with('/') {
        if scheme.is_empty() {
            return Err(wrong("invalid URI for request".to_owned()));
        }
        // What follows the scheme is opaque, as in `mailto:name`.
        return Ok(Url {
            scheme,
            host: String::new(),
            path: String::new(),
            query: query.to_owned(),
            whole: text.to_owned(),
        });
    }
    let (host, path) = match before.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let end = after.find('/').unwrap_or(after.len());
            (host(&after[..end]).map_err(wrong)?, &after[end..])
        }
        Some(_) | None => (String::new(), before),
    };
    check_escapes(path).map_err(wrong)?;
    let (path, query) = (path.to_owned(), query.to_owned());
    Ok(Url { scheme, host, path, query, whole: text.to_owned() })
}

fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => {
                if at == 0 {
                    return Ok((String::new(), text));
                }
            }
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            _ => return Ok((String::new(), text)),
        }
    }
    Ok((String::new(), text))
}

fn host(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let allowed =
                |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            host
        }
        None => authority,
    };
    let port = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        &host[end + 1..]
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    let valid_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !valid_port {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    if let Some(wrong) = host.chars().find(|c| " \"<>\\^`{|}".contains(*c)) {
        let shown = quote(&wrong.to_string());
        return Err(format!("invalid character {shown} in host name"));
    }
    check_escapes(host)?;
    Ok(host.to_owned())
}

fn check_escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let digits = bytes.get(at + 1..at + 3);
        let valid = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        if *byte == b'%' && !valid {
            let end = (at + 3).min(bytes.len());
            let shown = String::from_utf8_lossy(&bytes[at..end]).into_owned();
            return Err(format!("invalid URL escape {}", quote(&shown)));
        }
    }
    Ok(())
}

fn escaped_path(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn query(query: &str) -> Value {
    let mut found: std::collections::BTreeMap<MapKey, Vec<Value>> = Default::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (unescape(key), unescape(value)) else { continue };
        found.entry(MapKey::String(key.into())).or_default().push(Value::string(value));
    }
    let entries = found.into_iter().map(|(key, values)| (key, Value::list(values))).collect();
    Value::Map(std::sync::Arc::new(MapValue { entries, object: None }))
}

fn unescape(text: &str) -> Option<String> {
    check_escapes(text).ok()?;
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
            }
            other => out.push(other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
