//! Functions on text, and how values are shown as text.
//!
//! Upstream: github.com/google/cel-go/ext/strings.go: Strings
//! Upstream: k8s.io/apiserver/pkg/cel/library/jsonpatch.go: escapeKey
use super::{EvaluationResult, failed};
use crate::Value;
use crate::go;
use crate::value::display_text;

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    let Some(Value::String(text)) = arguments.first() else {
        return if function == "join" { join(arguments) } else { None };
    };
    let text = &**text;
    let rest = &arguments[1..];
    match (function, rest) {
        ("contains", [Value::String(part)]) => boolean(text.contains(&**part)),
        ("startsWith", [Value::String(part)]) => boolean(text.starts_with(&**part)),
        ("endsWith", [Value::String(part)]) => boolean(text.ends_with(&**part)),
        ("charAt", [Value::Int(index)]) => {
            let length = text.chars().count();
            match usize::try_from(*index).ok().filter(|index| *index <= length) {
                Some(index) => {
                    Some(Ok(Value::string(text.chars().skip(index).take(1).collect::<String>())))
                }
                None => failed(format!("index out of range: {index}")),
            }
        }
        ("indexOf", [Value::String(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::String(part), Value::Int(from)]) => index_of(text, part, *from),
        ("lastIndexOf", [Value::String(part)]) => {
            let length = text.chars().count() as i64;
            if part.is_empty() {
                return Some(Ok(Value::Int(length)));
            }
            if text.len() < part.len() {
                return Some(Ok(Value::Int(-1)));
            }
            last_index_of(text, part, length - 1)
        }
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => {
            last_index_of(text, part, *from)
        }
        // The mark of escapes goes first, so that those of slashes are not escaped again.
        ("jsonpatch.escapeKey", []) => {
            Some(Ok(Value::string(text.replace('~', "~0").replace('/', "~1"))))
        }
        ("lowerAscii", []) => Some(Ok(Value::string(text.to_ascii_lowercase()))),
        ("upperAscii", []) => Some(Ok(Value::string(text.to_ascii_uppercase()))),
        ("trim", []) => Some(Ok(Value::from(text.trim()))),
        ("replace", [Value::String(old), Value::String(new)]) => {
            Some(Ok(Value::string(text.replace(&**old, new))))
        }
        ("replace", [Value::String(old), Value::String(new), Value::Int(count)]) => {
            Some(Ok(Value::string(match usize::try_from(*count) {
                Ok(count) => text.replacen(&**old, new, count),
                Err(_) => text.replace(&**old, new),
            })))
        }
        ("split", [Value::String(by)]) => split(text, by, -1),
        ("split", [Value::String(by), Value::Int(count)]) => split(text, by, *count),
        ("substring", [Value::Int(start)]) => {
            substring(text, *start, text.chars().count() as i64, false)
        }
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, *end, true),
        ("strings.quote", []) => Some(Ok(Value::string(quote(text)))),
        ("size", []) => Some(Ok(Value::Int(text.chars().count() as i64))),
        _ => None,
    }
}

fn boolean(holds: bool) -> Option<EvaluationResult> {
    Some(Ok(Value::Bool(holds)))
}

fn index_of(text: &str, part: &str, from: i64) -> Option<EvaluationResult> {
    let Ok(start) = usize::try_from(from) else {
        return failed(format!("index out of range: {from}"));
    };
    let length = text.chars().count();
    if part.is_empty() {
        return Some(Ok(Value::Int(start.min(length) as i64)));
    }
    let found = text.char_indices().map(|(at, _)| at).nth(start).and_then(|at| {
        text[at..].find(part).map(|found| start + text[at..at + found].chars().count())
    });
    Some(Ok(Value::Int(found.map_or(-1, |found| found as i64))))
}

fn last_index_of(text: &str, part: &str, from: i64) -> Option<EvaluationResult> {
    let Ok(start) = usize::try_from(from) else {
        return failed(format!("index out of range: {from}"));
    };
    let length = text.chars().count();
    if part.is_empty() {
        return Some(Ok(Value::Int(start.min(length) as i64)));
    }
    if start >= length {
        return Some(Ok(Value::Int(-1)));
    }
    // Only what begins at `start` or before counts.
    let end = text.char_indices().map(|(at, _)| at).nth(start).unwrap_or(text.len()) + part.len();
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let found = text[..end].rfind(part).map(|at| text[..at].chars().count() as i64);
    Some(Ok(Value::Int(found.unwrap_or(-1))))
}

fn split(text: &str, by: &str, count: i64) -> Option<EvaluationResult> {
    let parts: Vec<&str> = match (by.is_empty(), usize::try_from(count)) {
        (_, Ok(0)) => Vec::new(),
        (true, limit) => characters(text, limit.unwrap_or(usize::MAX)),
        (false, Ok(limit)) => text.splitn(limit, by).collect(),
        (false, Err(_)) => text.split(by).collect(),
    };
    Some(Ok(Value::list(parts.into_iter().map(Value::from).collect())))
}

/// The characters of a text, the last of `limit` parts being all that is left.
fn characters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            return parts;
        }
        let (part, after) = rest.split_at(first.len_utf8());
        parts.push(part);
        rest = after;
    }
    parts
}

fn substring(text: &str, start: i64, end: i64, has_end: bool) -> Option<EvaluationResult> {
    let length = text.chars().count() as i64;
    if has_end && start > end {
        return failed(format!("invalid substring range. start: {start}, end: {end}"));
    }
    for index in [start, end] {
        if !(0..=length).contains(&index) {
            return failed(format!("index out of range: {index}"));
        }
    }
    let part: String = text.chars().skip(start as usize).take((end - start) as usize).collect();
    Some(Ok(Value::string(part)))
}

fn join(arguments: &[Value]) -> Option<EvaluationResult> {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return None,
    };
    let mut parts = Vec::with_capacity(list.items.len());
    for item in &list.items {
        match item {
            Value::String(text) => parts.push(&**text),
            other => return failed(format!("join: invalid input: {}", display_text(other))),
        }
    }
    Some(Ok(Value::string(parts.join(separator))))
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match go::short_escape(character) {
            Some(escaped) => out.push_str(escaped),
            None => out.push(character),
        }
    }
    out.push('"');
    out
}
