//! From the events of a YAML parser to a value.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::quoted::{Guess, Mending};
use super::resolve::{self, Scalar};
use super::{COPIES_MAX, NESTING_MAX, YamlError, YamlErrorKind, YamlWarning, YamlWarningKind};

/// What a node costs besides its text, in bytes.
const NODE_WEIGHT: usize = 32;

/// Builds the value of the first document of a text whose first line has the number `line`.
pub(super) fn build(
    text: &str,
    line: usize,
    notes: &mut Vec<YamlWarning>,
) -> Result<Value, YamlError> {
    match build_once(text, line, notes, None) {
        Err(Failure { left_of_block: Some(_), .. }) => {}
        result => return result.map_err(|failure| failure.error),
    }
    if let Some(value) = build_guessed(text, line, notes) {
        return Ok(value);
    }
    let mut mending = Mending::new(text);
    loop {
        notes.clear();
        match build_once(&mending.text, line, notes, None) {
            Err(Failure { left_of_block: Some(at), .. }) if mending.indent_from(at) => {}
            result => return result.map_err(|failure| failure.error),
        }
    }
}

/// Builds the value of a text whose quoted scalars go on to the left of their blocks, if a guess finds them.
fn build_guessed(text: &str, line: usize, notes: &mut Vec<YamlWarning>) -> Option<Value> {
    let guess = Guess::new(text)?;
    let mut quoted = Vec::new();
    notes.clear();
    let value = build_once(&guess.text, line, notes, Some(&mut quoted)).ok()?;
    guess.holds(&quoted).then_some(value)
}

/// Why a text could not be read.
struct Failure {
    error: YamlError,
    /// The offset, if what is wrong is that a quoted scalar goes on there, left of its block.
    left_of_block: Option<usize>,
}

/// Builds the value; `quoted` receives the places of quoted scalars.
fn build_once(
    text: &str,
    line: usize,
    notes: &mut Vec<YamlWarning>,
    mut quoted: Option<&mut Vec<Range<usize>>>,
) -> Result<Value, Failure> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder::new(line, notes);
    let mut ended = false;
    for next in Parser::new_from_str_with_options(text, options) {
        if ended {
            let at_end = next.is_ok_and(|(event, _)| event == Event::StreamEnd);
            if !at_end {
                builder
                    .notes
                    .push(YamlWarning { line: None, oddity: YamlWarningKind::IgnoredText });
            }
            break;
        }
        let (event, span) = next.map_err(|error| {
            let at = error.marker();
            let left = *error.kind() == ErrorKind::InvalidQuotedScalarIndent;
            let offset = at.byte_offset().filter(|_| left);
            let left_of_block = offset.filter(|offset| *offset < text.len());
            let info = if offset.is_some() && left_of_block.is_none() {
                "unclosed quote".to_owned()
            } else {
                error.info()
            };
            let error = builder.error(at.line(), at.col(), YamlErrorKind::Syntax(info));
            Failure { error, left_of_block }
        })?;
        ended = event == Event::DocumentEnd;
        if let Some(quoted) = quoted.as_deref_mut()
            && let Event::Scalar(_, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted, ..) =
                &event
        {
            quoted.extend(span.byte_range());
        }
        builder.event(event, &span).map_err(|problem| Failure {
            error: builder.error(span.start.line(), span.start.col(), problem),
            left_of_block: None,
        })?;
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

/// A collection that is being built.
struct Frame {
    collection: Collection,
    anchor: Option<Anchor>,
}

enum Collection {
    List(Vec<Value>),
    Map { map: Map<String, Value>, key: Option<Key> },
}

/// The key whose value comes next.
struct Key {
    line: usize,
    name: KeyName,
}

enum KeyName {
    Text(String),
    Merge,
}

/// An anchor on a node that is being built.
struct Anchor {
    id: usize,
    /// The builder's weight before the node.
    weight_before: usize,
}

/// A node that aliases may refer to.
struct Anchored {
    value: Value,
    weight: usize,
}

struct Builder<'notes> {
    line: usize,
    notes: &'notes mut Vec<YamlWarning>,
    root: Option<Value>,
    frames: Vec<Frame>,
    anchored: BTreeMap<usize, Anchored>,
    /// What has been built so far, copies included.
    weight: usize,
    /// What has been copied by anchors and aliases.
    copied: usize,
}

impl<'notes> Builder<'notes> {
    fn new(line: usize, notes: &'notes mut Vec<YamlWarning>) -> Self {
        Self {
            line,
            notes,
            root: None,
            frames: Vec::new(),
            anchored: BTreeMap::new(),
            weight: 0,
            copied: 0,
        }
    }

    fn error(&self, line: usize, column: usize, problem: YamlErrorKind) -> YamlError {
        YamlError { line: self.line + line.saturating_sub(1), column: column + 1, problem }
    }

    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlErrorKind> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                self.weight += text.len() + NODE_WEIGHT;
                let tag = tag.as_deref().map(full_name);
                if self.expects_key() {
                    return self.key(text.into_owned(), plain, tag.as_deref(), anchor, span);
                }
                let scalar = resolve::resolve(&text, plain, tag.as_deref())?;
                let weight_before = self.weight.saturating_sub(text.len() + NODE_WEIGHT);
                let value = resolve::value(scalar, text)?;
                self.complete(value, anchored(anchor, weight_before).as_ref())
            }
            Event::SequenceStart(_, anchor, _) => self.open(Collection::List(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                self.open(Collection::Map { map: Map::new(), key: None }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, span),
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        let collection = self.frames.last().map(|frame| &frame.collection);
        matches!(collection, Some(Collection::Map { key: None, .. }))
    }

    fn open(&mut self, collection: Collection, anchor: usize) -> Result<(), YamlErrorKind> {
        if self.expects_key() {
            return Err(YamlErrorKind::Key);
        }
        if self.frames.len() >= NESTING_MAX {
            return Err(YamlErrorKind::Nesting);
        }
        let anchor = anchored(anchor, self.weight);
        self.weight += NODE_WEIGHT;
        self.frames.push(Frame { collection, anchor });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlErrorKind> {
        let Some(Frame { collection, anchor }) = self.frames.pop() else { return Ok(()) };
        let value = match collection {
            Collection::List(items) => Value::Array(items),
            Collection::Map { map, .. } => Value::Object(map),
        };
        self.complete(value, anchor.as_ref())
    }

    fn key(
        &mut self,
        text: String,
        plain: bool,
        tag: Option<&str>,
        anchor: usize,
        span: &Span,
    ) -> Result<(), YamlErrorKind> {
        let merge_tag = "tag:yaml.org,2002:merge";
        if text == "<<" && tag.map_or(plain, |tag| tag == merge_tag) {
            return self.set_key(KeyName::Merge, span);
        }
        let scalar = resolve::resolve(&text, plain, tag)?;
        if anchor != 0 {
            let value = resolve::value(scalar.clone(), text.as_str())?;
            self.anchored.insert(anchor, Anchored { value, weight: text.len() + NODE_WEIGHT });
        }
        let text = if scalar == Scalar::Text { Some(text) } else { resolve::key(scalar, text) };
        self.set_key(KeyName::Text(text.ok_or(YamlErrorKind::Key)?), span)
    }

    fn set_key(&mut self, name: KeyName, span: &Span) -> Result<(), YamlErrorKind> {
        let line = self.line + span.start.line().saturating_sub(1);
        match self.frames.last_mut().map(|frame| &mut frame.collection) {
            Some(Collection::Map { key, .. }) => *key = Some(Key { line, name }),
            Some(Collection::List(_)) | None => return Err(YamlErrorKind::Key),
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), YamlErrorKind> {
        let expects_key = self.expects_key();
        let Anchored { value, weight } =
            self.anchored.get(&id).ok_or(YamlErrorKind::RecursiveAlias)?;
        let weight = *weight;
        self.copied += weight;
        if self.copied > COPIES_MAX {
            return Err(YamlErrorKind::Copies);
        }
        if expects_key {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return Err(YamlErrorKind::Key),
            };
            return self.set_key(KeyName::Text(text), span);
        }
        if self.frames.len() + depth(value) > NESTING_MAX {
            return Err(YamlErrorKind::Nesting);
        }
        let value = value.clone();
        self.weight += weight;
        self.complete(value, None)
    }

    /// Puts a finished value where it belongs.
    fn complete(&mut self, value: Value, anchor: Option<&Anchor>) -> Result<(), YamlErrorKind> {
        if let Some(&Anchor { id, weight_before }) = anchor {
            let weight = self.weight - weight_before;
            self.copied += weight;
            if self.copied > COPIES_MAX {
                return Err(YamlErrorKind::Copies);
            }
            self.anchored.insert(id, Anchored { value: value.clone(), weight });
        }
        match self.frames.last_mut().map(|frame| &mut frame.collection) {
            None => self.root = Some(value),
            Some(Collection::List(items)) => items.push(value),
            Some(Collection::Map { map, key }) => {
                let Key { line, name } = key.take().ok_or(YamlErrorKind::Key)?;
                match name {
                    KeyName::Text(key) => insert(map, key, value, line, self.notes),
                    KeyName::Merge => {
                        for (key, value) in merged(value)? {
                            insert(map, key, value, line, self.notes);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn anchored(id: usize, weight_before: usize) -> Option<Anchor> {
    (id != 0).then_some(Anchor { id, weight_before })
}

/// Sets a key and notes whether it was set before.
fn insert(
    map: &mut Map<String, Value>,
    key: String,
    value: Value,
    line: usize,
    notes: &mut Vec<YamlWarning>,
) {
    if map.contains_key(&key) {
        notes.push(YamlWarning {
            line: Some(line),
            oddity: YamlWarningKind::DuplicateKey(key.clone()),
        });
    }
    map.insert(key, value);
}

/// What the value of `<<` brings in: a mapping, or a list of mappings in which earlier ones win.
fn merged(value: Value) -> Result<Map<String, Value>, YamlErrorKind> {
    let items = match value {
        Value::Object(map) => return Ok(map),
        Value::Array(items) => items,
        _ => return Err(YamlErrorKind::Merge),
    };
    let mut merged = Map::new();
    for item in items.into_iter().rev() {
        match item {
            Value::Object(map) => merged.extend(map),
            _ => return Err(YamlErrorKind::Merge),
        }
    }
    Ok(merged)
}

/// How many collections stand in each other in a value; it is itself at most [`NESTING_MAX`] deep.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A tag as its URI; the tag `!`, which makes a scalar text as quotes would, is none.
fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}
