//! From the events of a YAML parser to a value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::dialect::{self, Eased, Places, Strange};
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
    if let Some((number, why)) = dialect::refused_directive(text) {
        return Err(refusal(line + number, why));
    }
    let mut eased = Eased::new(text);
    let mut first = None;
    loop {
        notes.clear();
        match build_eased(&eased, line, notes) {
            Ok(value) => return Ok(value),
            Err(Failure { error, strange: None, .. }) => return Err(error),
            Err(Failure { error, strange: Some(strange), .. }) => {
                let first = first.get_or_insert(error);
                if !eased.ease(strange) {
                    return Err(first.clone());
                }
            }
        }
    }
}

/// What Kubernetes' parser says of a line.
fn refusal(line: usize, why: &str) -> YamlError {
    YamlError { line, column: 1, problem: YamlErrorKind::Syntax(why.to_owned()) }
}

/// Builds the value of a text whose quoted scalars may go on to the left of their blocks.
fn build_eased(
    eased: &Eased<'_>,
    line: usize,
    notes: &mut Vec<YamlWarning>,
) -> Result<Value, Failure> {
    let source = Source { text: &eased.text, line, mark: eased.mark };
    let mut places = Places::default();
    match build_once(source, notes, &mut places) {
        Err(Failure { left_of_block: Some(_), .. }) if eased.tabbed.is_empty() => {}
        Ok(value) => {
            return eased
                .refused(&places, &value)
                .map_or(Ok(value), |(number, why)| Err(Failure::of(refusal(line + number, why))));
        }
        result => return result,
    }
    if let Some(value) = build_guessed(source, notes) {
        return Ok(value);
    }
    let mut mending = Mending::new(source.text);
    loop {
        notes.clear();
        let source = Source { text: &mending.text, ..source };
        match build_once(source, notes, &mut Places::default()) {
            Err(Failure { left_of_block: Some(at), .. }) if mending.indent_from(at) => {}
            // Offsets in the mended text are not those in the text to be eased.
            result => return result.map_err(|failure| Failure { strange: None, ..failure }),
        }
    }
}

/// Builds the value of a text whose quoted scalars go on to the left of their blocks, if a guess finds them.
fn build_guessed(source: Source<'_>, notes: &mut Vec<YamlWarning>) -> Option<Value> {
    let guess = Guess::new(source.text)?;
    let mut places = Places::default();
    notes.clear();
    let value = build_once(Source { text: &guess.text, ..source }, notes, &mut places).ok()?;
    guess.holds(&places.quoted).then_some(value)
}

/// A text to build the value of.
#[derive(Clone, Copy)]
struct Source<'text> {
    text: &'text str,
    /// The number of its first line.
    line: usize,
    /// What stands for byte-order marks.
    mark: Option<char>,
}

/// Why a text could not be read.
struct Failure {
    error: YamlError,
    /// The offset, if what is wrong is that a quoted scalar goes on there, left of its block.
    left_of_block: Option<usize>,
    /// What it is that Kubernetes' parser may take.
    strange: Option<Strange>,
}

impl Failure {
    fn of(error: YamlError) -> Self {
        Self { error, left_of_block: None, strange: None }
    }
}

/// Builds the value; `places` receives the places of what may go on over several lines.
fn build_once(
    source: Source<'_>,
    notes: &mut Vec<YamlWarning>,
    places: &mut Places,
) -> Result<Value, Failure> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder::new(source, notes);
    let mut ended = false;
    for next in Parser::new_from_str_with_options(source.text, options) {
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
            let left_of_block = offset.filter(|offset| *offset < source.text.len());
            let info = if offset.is_some() && left_of_block.is_none() {
                "unclosed quote".to_owned()
            } else {
                error.info()
            };
            let strange = Strange::of(error.kind(), at.byte_offset());
            let error = builder.error(at.line(), at.col(), YamlErrorKind::Syntax(info));
            Failure { error, left_of_block, strange }
        })?;
        ended = event == Event::DocumentEnd;
        places.note(&event, &span);
        builder.event(event, &span).map_err(|problem| {
            Failure::of(builder.error(span.start.line(), span.start.col(), problem))
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
    /// A number or boolean.
    Scalar(String),
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
    /// What stands for byte-order marks.
    mark: Option<char>,
    /// Where the text ends.
    end: usize,
    /// How many blanks its last line, which is not ended, consists of; `None` if it says something.
    blanks_at_end: Option<usize>,
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
    fn new(source: Source<'_>, notes: &'notes mut Vec<YamlWarning>) -> Self {
        let last = source.text.rsplit(['\n', '\r']).next().unwrap_or_default();
        let is_blank = last.trim_matches(' ').is_empty();
        Self {
            line: source.line,
            mark: source.mark,
            end: source.text.len(),
            blanks_at_end: is_blank.then_some(last.len()),
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
                let text = self.as_written(text, style, span);
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

    /// The text of a scalar with its byte-order marks, and without the line break that our parser adds to a
    /// block scalar whose last line is not ended.
    fn as_written<'text>(
        &self,
        text: Cow<'text, str>,
        style: ScalarStyle,
        span: &Span,
    ) -> Cow<'text, str> {
        let text = match self.mark {
            Some(mark) if text.contains(mark) => {
                Cow::Owned(text.replace(mark, &dialect::MARK.to_string()))
            }
            _ => text,
        };
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let is_last = span.end.byte_offset() == Some(self.end);
        // Blanks say something as far as they go beyond the indentation of the scalar.
        let says_something = self
            .blanks_at_end
            .is_none_or(|blanks| span.indent.is_some_and(|indent| blanks > indent));
        match text.strip_suffix('\n') {
            Some(unended) if is_block && is_last && says_something => {
                Cow::Owned(unended.to_owned())
            }
            _ => text,
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
        let is_text = matches!(scalar, Scalar::Text | Scalar::Decoded(_));
        let text = resolve::key(scalar, text).ok_or(YamlErrorKind::Key)?;
        self.set_key(if is_text { KeyName::Text(text) } else { KeyName::Scalar(text) }, span)
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
            let name = match value {
                Value::String(text) => KeyName::Text(text.clone()),
                Value::Bool(_) | Value::Number(_) => KeyName::Scalar(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => return Err(YamlErrorKind::Key),
            };
            return self.set_key(name, span);
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
                let note = |oddity| YamlWarning { line: Some(line), oddity };
                let text = YamlWarningKind::DuplicateKey;
                let repeated = match name {
                    KeyName::Text(key) => insert(map, key, value).map(text),
                    KeyName::Scalar(key) => {
                        insert(map, key, value).map(YamlWarningKind::DuplicateScalar)
                    }
                    KeyName::Merge => {
                        for (key, value) in merged(value)? {
                            self.notes.extend(insert(map, key, value).map(text).map(note));
                        }
                        None
                    }
                };
                self.notes.extend(repeated.map(note));
            }
        }
        Ok(())
    }
}

fn anchored(id: usize, weight_before: usize) -> Option<Anchor> {
    (id != 0).then_some(Anchor { id, weight_before })
}

/// Sets a key; returns it if it was set before.
fn insert(map: &mut Map<String, Value>, key: String, value: Value) -> Option<String> {
    let repeated = map.contains_key(&key).then(|| key.clone());
    map.insert(key, value);
    repeated
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
