//! Renders a JSON value as YAML in block style.

use std::fmt::Write as _;

use serde_json::Value;

/// Widest line of folded text, without its indentation.
const TEXT_WIDTH: usize = 80;

/// The value as a document, with the keys of maps in their order.
pub(super) fn render(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

/// Writes a value at the beginning of a line.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let _ = write!(out, "{:indent$}{key}:", "");
                after_key(value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                // What an item holds begins on the line of its dash.
                let mut text = String::new();
                block(item, indent + 2, &mut text);
                let _ = writeln!(out, "{:indent$}- {}", "", text.trim());
            }
        }
        _ => {
            let _ = writeln!(out, "{:indent$}{}", "", scalar(value));
        }
    }
}

fn after_key(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(value, indent + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        Value::String(text) if text.len() > TEXT_WIDTH && text.contains(' ') => {
            out.push_str(" >-\n");
            for line in fold(text) {
                let _ = writeln!(out, "{:1$}{line}", "", indent + 2);
            }
        }
        _ => {
            let _ = writeln!(out, " {}", scalar(value));
        }
    }
}

/// Breaks a text at blanks, where folding puts them back.
fn fold(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, String::len);
        if line > 0 && line + 1 + word.len() > TEXT_WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A value on one line; text is quoted unless it can only be text.
fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '.')
        && text.chars().all(|it| it.is_ascii_graphic() || it == ' ')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !reserved.contains(&text.to_lowercase().as_str());
    if is_plain { text.clone() } else { format!("'{}'", text.replace('\'', "''")) }
}
