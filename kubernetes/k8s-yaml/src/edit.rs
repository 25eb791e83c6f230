//! Changing single fields of a text, with everything else as it is: comments, order, quotes.

use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::{RepeatedKey, YamlError, document, lines, parse, split};

/// Why a field cannot be changed in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text has no such document.
    #[error("there is no such document")]
    NoDocument,
    /// The document cannot be read.
    #[error("line {line}: {0}", line = .0.line)]
    Unreadable(YamlError),
    /// A key stands twice, so that one change would not be the only value.
    #[error("{0}")]
    Repeated(RepeatedKey),
    /// There is an alias, a list or a text where a field would be, or nothing where one should be.
    #[error("its form does not allow that: write the field as `KEY: VALUE` on a line of its own")]
    Form,
    /// The changed text would say something else.
    #[error(
        "something else would change with it, such as the value of an alias: write the field as \
         `KEY: VALUE` on a line of its own"
    )]
    OtherMeaning,
}

/// Sets a field of a document to a string; mappings on its path that are missing are added. A part of the
/// path such as `[0]` leads to an item of a list. Documents are numbered from 0, empty ones not counted.
///
/// # Errors
/// [`EditError`]; a text that is returned says the same as the one before, except for the field.
pub fn set_field(
    text: &str,
    number: usize,
    path: &[&str],
    value: &str,
) -> Result<String, EditError> {
    let changed = edit(text, number, &|content| change(content, path, value))?;
    let changed = with_line_ends_of(text, changed);
    checked(text, changed, number, path, Some(value))
}

/// Removes a field that has a line of its own from a document, as [`set_field`] numbers them.
///
/// # Errors
/// As [`set_field`], and when there is no such field.
pub fn remove_field(text: &str, number: usize, path: &[&str]) -> Result<String, EditError> {
    let changed = edit(text, number, &|content| Some((own_line(content, path)?, String::new())))?;
    checked(text, changed, number, path, None)
}

/// Returns a changed text with the line ends of the one before, if all of these are those of Windows.
fn with_line_ends_of(before: &str, changed: String) -> String {
    let ends = before.matches('\n').count();
    if ends == 0 || before.matches("\r\n").count() != ends {
        return changed;
    }
    changed.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// A changed text, unless it says something else than the text before with the field set, or without
/// it.
fn checked(
    text: &str,
    changed: String,
    number: usize,
    path: &[&str],
    value: Option<&str>,
) -> Result<String, EditError> {
    let values = |text: &str| -> Vec<Option<Value>> {
        let values = parse(text).into_iter().map(|it| it.value.ok());
        values.filter(|it| *it != Some(Value::Null)).collect()
    };
    let (mut meant, mut found) = (values(text), values(&changed));
    let is_meant = meant
        .get_mut(number)
        .and_then(Option::as_mut)
        .is_some_and(|document| assign(document, path, value).is_some());
    // A block without its last key is null, and is read as an empty mapping is.
    for documents in [&mut meant, &mut found] {
        if let Some(document) = documents.get_mut(number).and_then(Option::as_mut) {
            empty_to_null(document, &path[..path.len().saturating_sub(1)]);
        }
    }
    if is_meant && meant == found { Ok(changed) } else { Err(EditError::OtherMeaning) }
}

/// Sets or removes a field of a value; `None` if there is something other than a mapping on the path.
fn assign(value: &mut Value, path: &[&str], to: Option<&str>) -> Option<()> {
    let Some((key, rest)) = path.split_first() else {
        *value = Value::String(to?.to_owned());
        return Some(());
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    if let (Value::Array(items), Some(index)) = (&mut *value, index_of(key)) {
        return assign(items.get_mut(index)?, rest, to);
    }
    let map = value.as_object_mut()?;
    if rest.is_empty() && to.is_none() {
        return map.remove(*key).map(|_| ());
    }
    assign(map.entry(*key).or_insert(Value::Null), rest, to)
}

fn empty_to_null(value: &mut Value, path: &[&str]) {
    match path.split_first() {
        Some((key, rest)) => {
            let inner = match value {
                Value::Array(items) => index_of(key).and_then(|index| items.get_mut(index)),
                other => other.as_object_mut().and_then(|it| it.get_mut(*key)),
            };
            if let Some(inner) = inner {
                empty_to_null(inner, rest);
            }
        }
        None if value.as_object().is_some_and(Map::is_empty) => *value = Value::Null,
        None => {}
    }
}

/// Bytes, and what takes their place.
type Replacement = (Range<usize>, String);

/// Replaces something of a document.
fn edit(
    text: &str,
    number: usize,
    replaced: &dyn Fn(&str) -> Option<Replacement>,
) -> Result<String, EditError> {
    let mut left = number;
    for chunk in split::documents(text) {
        let content = chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text);
        let read = document(content, chunk.line);
        let count = read.iter().filter(|it| it.value != Ok(Value::Null)).count();
        if left >= count {
            left -= count;
            continue;
        }
        let [document] = read.as_slice() else { return Err(EditError::Form) };
        if let Err(error) = &document.value {
            return Err(EditError::Unreadable(error.clone()));
        }
        let lines = lines(text);
        let lines = lines.get(number).ok_or(EditError::NoDocument)?;
        if let Some(key) = lines.repeated(&document.notes).into_iter().next() {
            return Err(EditError::Repeated(key));
        }
        let from = content.as_ptr() as usize - text.as_ptr() as usize;
        let (at, insert) = replaced(content).ok_or(EditError::Form)?;
        let (start, end) = (from + at.start, from + at.end);
        return Ok(format!("{}{insert}{}", &text[..start], &text[end..]));
    }
    Err(EditError::NoDocument)
}

/// The line of a key and its value, if there is nothing else on it.
fn own_line(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let key = path.last()?;
    let found = find(text, path).filter(|it| it.mapping.is_none())?;
    let start = text[..found.span.start].rfind('\n').map_or(0, |end| end + 1);
    // The block of a text ends where the next key begins.
    let last = match found.is_block {
        true => found.span.start + text[found.span.clone()].trim_end().len(),
        false => found.span.end,
    };
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
    let before = text[start..found.span.start].trim().strip_suffix(':')?;
    let after = text[last..end].trim();
    let is_key = before.trim_end().trim_matches(['"', '\'']) == *key;
    (is_key && (after.is_empty() || after.starts_with('#'))).then_some(start..end)
}

/// A value on the path.
struct Found {
    /// Its bytes.
    span: Range<usize>,
    /// Column of its first key, from 0, if it is a mapping.
    mapping: Option<usize>,
    /// Whether it is a text in a block of its own: `|` or `>`.
    is_block: bool,
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
        if parent.is_block {
            return Some(one_line(text, &parent.span, value));
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

/// Puts a value in place of a text in a block; a comment behind its indicator stays.
fn one_line(text: &str, block: &Range<usize>, value: &str) -> Replacement {
    let content = text[block.clone()].trim_end();
    let header = content.lines().next().unwrap_or_default();
    let comment = header.find(" #").map_or("", |at| &header[at..]);
    let insert = format!("{}{comment}", scalar(value, None, false));
    (block.start..block.start + content.len(), insert)
}

/// The number in a part of a path such as `[0]`.
fn index_of(part: &str) -> Option<usize> {
    part.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// A collection around the current node.
enum Frame {
    /// A mapping, with the key of the value that is next; `None` if a key is next.
    Mapping(Option<String>),
    /// A list, with the number of items before the one that is next.
    List(usize),
}

impl Frame {
    /// Whether a part of a path leads to the node that is next.
    fn is_at(&self, part: &str) -> bool {
        match self {
            Self::Mapping(key) => key.as_deref() == Some(part),
            Self::List(index) => index_of(part) == Some(*index),
        }
    }

    /// Moves on behind a node.
    fn pass(&mut self) {
        match self {
            Self::Mapping(key) => *key = None,
            Self::List(index) => *index += 1,
        }
    }
}

/// The value at a path; the document itself at the empty one.
fn find(text: &str, path: &[&str]) -> Option<Found> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // Bytes of characters: the parser counts characters.
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut around: Vec<Frame> = Vec::new();
    let mut found: Option<Found> = None;
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.ok()?;
        let start = *bytes.get(span.start.index())?;
        let end = *bytes.get(span.end.index())?;
        if let Some(mapping) = found.take() {
            return completed(mapping, &event, start, span.start.col());
        }
        let is_value = !matches!(around.last(), Some(Frame::Mapping(None)));
        let is_here = is_value
            && around.len() == path.len()
            && around.iter().zip(path).all(|(frame, part)| frame.is_at(part));
        match event {
            Event::Scalar(content, style, ..) => {
                if is_here {
                    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                    let is_empty = start == end && !is_block;
                    let start = match is_block {
                        true => indicator(text, start)?,
                        false if is_empty => after_colon(text, start),
                        false => start,
                    };
                    let end = if is_empty { start } else { end };
                    return Some(Found { span: start..end, mapping: None, is_block });
                }
                match around.last_mut() {
                    Some(Frame::Mapping(key @ None)) => *key = Some(content.to_string()),
                    Some(frame) => frame.pass(),
                    None => {}
                }
            }
            Event::Alias(_) if is_here => return None,
            Event::SequenceStart(..) if is_here => {
                return Some(Found { span: start..start + 1, mapping: None, is_block: false });
            }
            Event::MappingStart(..) => {
                if is_here {
                    if text[start..].starts_with('{') {
                        let span = start..text.len();
                        return Some(Found { span, mapping: Some(0), is_block: false });
                    }
                    found = Some(Found { span: start..start, mapping: None, is_block: false });
                }
                around.push(Frame::Mapping(None));
            }
            Event::SequenceStart(..) => around.push(Frame::List(0)),
            Event::MappingEnd | Event::SequenceEnd => {
                around.pop();
                if let Some(frame) = around.last_mut() {
                    frame.pass();
                }
            }
            Event::Alias(_) => {
                if let Some(frame) = around.last_mut() {
                    frame.pass();
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
            Some(Found { span, mapping: Some(column), ..mapping })
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

/// Where the indicator of a text in a block is, `|` or `>`: the parser reports where its content is.
fn indicator(text: &str, content: usize) -> Option<usize> {
    let header = text[..content].trim_end();
    let line = header.rfind('\n').map_or(0, |end| end + 1);
    let is_indicator = |at: &usize| {
        let written = &header[*at..];
        let written = written.split_once(" #").map_or(written, |(before, _)| before);
        let modifiers = written.trim_end().strip_prefix(['|', '>']);
        modifiers.is_some_and(|it| it.chars().all(|it| matches!(it, '-' | '+' | '1'..='9')))
    };
    (line..header.len()).filter(|at| header.is_char_boundary(*at)).find(is_indicator)
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
