//! Requests that a page in a browser may have sent.
//!
//! A listener without TLS takes requests without credentials as the administrator's. Any page that
//! is opened on the same machine can send such requests too: under a name that resolves to
//! loopback (`Host`), or to the address itself from another origin. Both are recognized by what
//! browsers always say.
use std::net::IpAddr;

use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::status::{ApiError, StatusReason};

/// What browsers say of the page that a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The content types that a page may send to another origin without asking it first.
const SIMPLE_TYPES: [&str; 3] =
    ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Refuses a request that a page in a browser may have sent.
///
/// # Errors
/// When it names another host than an address or `localhost`, comes from another origin, or is a
/// POST with the content type of a form, or of a page without a content type.
pub(crate) fn refuse(parts: &Parts) -> Result<(), ApiError> {
    let named =
        text(&parts.headers, &HOST).into_iter().chain(parts.uri.authority().map(|it| it.as_str()));
    for host in named {
        if !is_local(host) {
            return Err(forbidden(&format!(
                "the Host {host:?} is neither an IP address nor localhost; use one of them in the \
                 URL of the server"
            )));
        }
    }
    let host = text(&parts.headers, &HOST).unwrap_or_default();
    if let Some(origin) = text(&parts.headers, &ORIGIN)
        && origin.strip_prefix("http://") != Some(host)
    {
        return Err(forbidden(&format!("it comes from the origin {origin:?}")));
    }
    if matches!(text(&parts.headers, &FETCH_SITE), Some("cross-site" | "same-site")) {
        return Err(forbidden("it comes from a page of another site"));
    }
    let media_type = text(&parts.headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // Browsers name the Origin; clients such as the one for Python send neither it nor a content type.
    let is_untyped = essence.is_empty() && parts.headers.contains_key(ORIGIN);
    let problem = match SIMPLE_TYPES.contains(&essence.as_str()) {
        true => "cannot have the Content-Type of a form",
        false if is_untyped => "and with an Origin needs a Content-Type",
        false => return Ok(()),
    };
    if parts.method != Method::POST {
        return Ok(());
    }
    let message = format!("a POST without credentials {problem}; use application/json");
    Err(ApiError::new(StatusReason::UnsupportedMediaType, message))
}

fn forbidden(why: &str) -> ApiError {
    let message = format!("requests without credentials must not come from a browser: {why}");
    ApiError::new(StatusReason::Forbidden, message)
}

/// The value of a header; empty if it is no text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Whether a host and port are an IP address or `localhost`.
fn is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_browsers_are_refused() {
        for (line, headers, expected) in [
            ("GET /", "", "taken"),
            ("GET /", "host: 127.0.0.1:8001", "taken"),
            ("GET /", "host: [::1]:8001", "taken"),
            ("GET /", "host: LocalHost:8001", "taken"),
            ("GET http://127.0.0.1:8001/", "", "taken"),
            ("GET http://evil.example.com/", "host: 127.0.0.1", "the Host"),
            ("GET /", "host: evil.example.com", "the Host"),
            ("GET /", "host: localhost.evil.example.com", "the Host"),
            ("GET /", "host: 127.0.0.1.evil.example.com:80", "the Host"),
            ("GET /", "host: ", "the Host"),
            ("GET /", "host: localhost:1\norigin: http://localhost:1", "taken"),
            ("GET /", "host: localhost:1\norigin: http://localhost:2", "the origin"),
            ("GET /", "host: localhost:1\norigin: null", "the origin"),
            ("GET /", "host: localhost:1\nsec-fetch-site: cross-site", "another site"),
            ("GET /", "host: localhost:1\nsec-fetch-site: none", "taken"),
            ("POST /", "", "taken"),
            ("POST /", "host: localhost:1\norigin: http://evil.example.com", "the origin"),
            ("POST /", "host: localhost:1\norigin: http://localhost:1", "needs a Content-Type"),
            (
                "POST /",
                "host: localhost:1\norigin: http://localhost:1\ncontent-type: ",
                "needs a Content-Type",
            ),
            (
                "POST /",
                "host: localhost:1\norigin: http://localhost:1\ncontent-type: application/yaml",
                "taken",
            ),
            ("PATCH /", "host: localhost:1\norigin: http://localhost:1", "taken"),
            ("POST /", "content-type: text/plain; charset=utf-8", "Content-Type"),
            ("POST /", "content-type: Application/X-WWW-Form-Urlencoded", "Content-Type"),
            ("POST /", "content-type: application/json", "taken"),
            ("DELETE /", "", "taken"),
        ] {
            let (method, uri) = line.split_once(' ').expect("a method and a URL");
            let mut request = http::Request::builder().method(method).uri(uri);
            for header in headers.lines() {
                let (name, value) = header.split_once(": ").expect("a name and a value");
                request = request.header(name, value);
            }
            let refused = refuse(&request.body(()).unwrap().into_parts().0);
            let shown = refused.map_or_else(|error| error.message, |()| "taken".to_owned());
            assert!(shown.contains(expected), "{line} {headers}: {shown}");
        }
    }
}
