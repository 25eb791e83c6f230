//! Changing single fields of a text, with everything else as it is: comments, order, quotes.

use std::ops::Range;

use granit_parser::{Event, Options, Parser};
use serde_json::Value;

use super::{document, split};

/// Sets a field of a document to a string; mappings on its path that are missing are added. Documents
/// are numbered from 0, empty ones not counted. `None` if there is no such document, if it cannot be
/// read, or if something other than a mapping is on the path.
pub fn set_field(text: &str, number: usize, path: &[&str], value: &str) -> Option<String> {
    edit(text, number, &|content| change(content, path, value))
}

/// Removes a field that has a line of its own from a document, as [`set_field`] numbers them. `None` if
/// there is no such field, or it has another form.
pub fn remove_field(text: &str, number: usize, path: &[&str]) -> Option<String> {
    edit(text, number, &|content| Some((own_line(content, path)?, String::new())))
}

/// Bytes, and what takes their place.
type Replacement = (Range<usize>, String);

/// Replaces something of a document.
fn edit(
    text: &str,
    number: usize,
    replaced: &dyn Fn(&str) -> Option<Replacement>,
) -> Option<String> {
    let mut left = number;
    for chunk in split::documents(text) {
        let content = chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text);
        let read = document(content, chunk.line);
        let count = read.iter().filter(|it| it.value != Ok(Value::Null)).count();
        if left >= count {
            left -= count;
            continue;
        }
        if count != 1 || read.iter().any(|it| it.value.is_err()) {
            return None;
        }
        let from = content.as_ptr() as usize - text.as_ptr() as usize;
        let (at, insert) = replaced(content)?;
        let (start, end) = (from + at.start, from + at.end);
        return Some(format!("{}{insert}{}", &text[..start], &text[end..]));
    }
    None
}

/// The line of a key and its value, if there is nothing else on it.
fn own_line(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let key = path.last()?;
    let found = find(text, path).filter(|it| it.mapping.is_none())?;
    let start = text[..found.span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[found.span.end..].find('\n').map_or(text.len(), |at| found.span.end + at + 1);
    let before = text[start..found.span.start].trim().strip_suffix(':')?;
    let after = text[found.span.end..end].trim();
    let is_key = before.trim_end().trim_matches(['"', '\'']) == *key;
    (is_key && (after.is_empty() || after.starts_with('#'))).then_some(start..end)
}

/// A value on the path.
struct Found {
    /// Its bytes.
    span: Range<usize>,
    /// Column of its first key, from 0, if it is a mapping.
    mapping: Option<usize>,
}

/// What is replaced by what.
fn change(text: &str, path: &[&str], value: &str) -> Option<Replacement> {
    let is_json = text.trim_start().starts_with('{');
    let (mut depth, mut parent) = (0, find(text, &[])?);
    while depth < path.len() {
        match find(text, &path[..=depth]) {
            Some(found) => parent = found,
            None => break,
        }
        depth += 1;
    }
    let missing = &path[depth..];
    let current = &text[parent.span.clone()];
    let Some((key, inner)) = missing.split_first() else {
        if parent.mapping.is_some() || current.starts_with('[') {
            return None;
        }
        let quote = current.chars().next().filter(|it| matches!(it, '"' | '\''));
        let is_in_flow = is_json || text[parent.span.end..].trim_start().starts_with([',', '}']);
        let insert = scalar(value, quote, is_in_flow);
        let blank = if current.is_empty() { " " } else { "" };
        return Some((parent.span, format!("{blank}{insert}")));
    };
    if let Some(inside) = current.strip_prefix('{') {
        let quote = is_json.then_some('"');
        let mut insert = scalar(value, quote, true);
        for key in inner.iter().rev() {
            insert = format!("{{{}: {insert}}}", scalar(key, quote, true));
        }
        let more = if inside.trim_start().starts_with('}') { "" } else { ", " };
        let at = parent.span.start + 1;
        return Some((at..at, format!("{}: {insert}{more}", scalar(key, quote, true))));
    }
    // A block: in front of its first key, or below a key without a value.
    let (at, column) = match parent.mapping {
        Some(column) => (parent.span.start, column),
        None if current.is_empty() => {
            let line = text[..parent.span.start].rfind('\n').map_or(0, |end| end + 1);
            let indent = text[line..].chars().take_while(|it| *it == ' ').count();
            (parent.span.start, indent + 2)
        }
        None => return None,
    };
    let mut insert = String::new();
    for (level, key) in missing.iter().enumerate() {
        let blanks = " ".repeat(column + 2 * level);
        let separator = if level == 0 { String::new() } else { format!("\n{blanks}") };
        insert.push_str(&format!("{separator}{}:", scalar(key, None, false)));
    }
    insert.push_str(&format!(" {}", scalar(value, None, false)));
    let blanks = " ".repeat(column);
    Some(match parent.mapping {
        Some(_) => (at..at, format!("{insert}\n{blanks}")),
        None => (at..at, format!("\n{blanks}{insert}")),
    })
}

/// The value at a path; the document itself at the empty one.
fn find(text: &str, path: &[&str]) -> Option<Found> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // Bytes of characters: the parser counts characters.
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // Keys around the current node; `None` for what is no mapping, or awaits a key.
    let mut around: Vec<(bool, Option<String>)> = Vec::new();
    let mut found: Option<Found> = None;
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.ok()?;
        let start = *bytes.get(span.start.index())?;
        let end = *bytes.get(span.end.index())?;
        if let Some(mapping) = found.take() {
            return completed(mapping, &event, start, span.start.col());
        }
        let is_value = !matches!(around.last(), Some((true, None)));
        let is_here = is_value
            && around.len() == path.len()
            && around.iter().zip(path).all(|((_, key), name)| key.as_deref() == Some(*name));
        match event {
            Event::Scalar(content, ..) => {
                if is_here {
                    let is_empty = start == end;
                    let start = if is_empty { after_colon(text, start) } else { start };
                    let end = if is_empty { start } else { end };
                    return Some(Found { span: start..end, mapping: None });
                }
                match around.last_mut() {
                    Some((true, key @ None)) => *key = Some(content.to_string()),
                    Some((true, key)) => *key = None,
                    Some((false, _)) | None => {}
                }
            }
            Event::Alias(_) if is_here => return None,
            Event::SequenceStart(..) if is_here => {
                return Some(Found { span: start..start + 1, mapping: None });
            }
            Event::MappingStart(..) => {
                if is_here {
                    if text[start..].starts_with('{') {
                        return Some(Found { span: start..text.len(), mapping: Some(0) });
                    }
                    found = Some(Found { span: start..start, mapping: None });
                }
                around.push((true, None));
            }
            Event::SequenceStart(..) => around.push((false, None)),
            Event::MappingEnd | Event::SequenceEnd => {
                around.pop();
                if let Some((true, key)) = around.last_mut() {
                    *key = None;
                }
            }
            Event::Alias(_) => {
                if let Some((true, key)) = around.last_mut() {
                    *key = None;
                }
            }
            _ => {}
        }
    }
    None
}

/// Completes a mapping with what follows its beginning, at a byte and a column: its first key, or its end.
fn completed(mapping: Found, next: &Event<'_>, start: usize, column: usize) -> Option<Found> {
    match next {
        Event::Scalar(..) => {
            let span = mapping.span.start.min(start)..mapping.span.end;
            Some(Found { span, mapping: Some(column) })
        }
        Event::MappingEnd => Some(Found { mapping: Some(0), ..mapping }),
        _ => None,
    }
}

/// Where the value of a key without one belongs: the parser reports the colon, or a later line.
fn after_colon(text: &str, at: usize) -> usize {
    match text[at..].starts_with(':') {
        true => at + 1,
        false => text[..at].rfind(':').map_or(at, |colon| colon + 1),
    }
}

/// A string as YAML, in the quotes that it had.
fn scalar(value: &str, quote: Option<char>, is_in_flow: bool) -> String {
    let is_read_back = || {
        let read = document(value, 1);
        matches!(read.as_slice(), [one] if one.value == Ok(Value::String(value.to_owned())))
    };
    let is_separated = is_in_flow && value.contains([',', '{', '}', '[', ']']);
    let is_plain = !is_separated && !value.contains(['#', '\n', '"', '\'', ':']) && is_read_back();
    match quote {
        Some('\'') if !value.contains('\'') => format!("'{value}'"),
        None if is_plain => value.to_owned(),
        _ => Value::String(value.to_owned()).to_string(),
    }
}

#[cfg(test)]
mod tests;
