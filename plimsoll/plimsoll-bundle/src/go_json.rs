//! JSON as Go writes it.

use serde::Serialize;

/// JSON as Go writes it.
pub(crate) fn go_json(object: &impl Serialize) -> String {
    escape_html(&serde_json::to_string(object).unwrap_or_default())
}

/// Go escapes in JSON what means something in HTML or to JavaScript.
pub(crate) fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}
