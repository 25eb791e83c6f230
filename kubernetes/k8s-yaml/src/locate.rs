//! At which lines and columns the fields of documents stand.

use std::collections::BTreeMap;
use std::fmt;

use granit_parser::{Event, Options, Parser};
use serde_json::Value;

use super::{YamlWarning, YamlWarningKind, document, split};

/// The lines of a document's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    first: usize,
    fields: BTreeMap<String, (usize, usize)>,
    repeated: Vec<RepeatedKey>,
}

/// A key that stands twice in a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedKey {
    /// The key.
    pub key: String,
    /// The line on which it stands first, from 1.
    pub first: usize,
    /// The line on which it stands again.
    pub line: usize,
}

impl fmt::Display for RepeatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, first, line } = self;
        write!(f, "key {key:?} stands on line {first} and again on line {line}: keep one of them")
    }
}

impl Lines {
    /// The line of the field at a path such as `spec.a[0].b`, or of what surrounds it, or of the
    /// document.
    pub fn of(&self, path: &str) -> usize {
        self.position(path).0
    }

    /// Line and column, both from 1, of the field at a path, or of what surrounds it, or of the
    /// document.
    pub fn position(&self, path: &str) -> (usize, usize) {
        let mut path = path;
        loop {
            if let Some(position) = self.fields.get(path) {
                return *position;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return (self.first, 1),
            }
        }
    }

    /// The keys that stand twice, of what was odd about the document. A key that `<<` brings in
    /// again stands there once.
    pub fn repeated(&self, notes: &[YamlWarning]) -> Vec<RepeatedKey> {
        let repeated = |note: &YamlWarning| {
            let (YamlWarningKind::DuplicateKey(key) | YamlWarningKind::DuplicateScalar(key)) =
                &note.oddity
            else {
                return None;
            };
            let is_it =
                |it: &&RepeatedKey| it.key == *key && note.line.is_none_or(|line| line == it.line);
            let found = self.repeated.iter().find(is_it).cloned();
            let (first, line) = (self.first, self.first);
            let unknown = || RepeatedKey { key: key.clone(), first, line };
            found.or_else(|| note.line.is_none().then(unknown))
        };
        notes.iter().filter_map(repeated).collect()
    }
}

/// The lines of every document of a text that is not null, in order.
pub fn lines(text: &str) -> Vec<Lines> {
    let mut all = Vec::new();
    for chunk in split::documents(text) {
        let documents = document(chunk.text, chunk.line);
        let is_one = documents.len() == 1;
        for document in documents.into_iter().filter(|it| it.value != Ok(Value::Null)) {
            let (text, line) = (chunk.text, chunk.line);
            let found = if is_one { fields(text, line) } else { FoundFields::default() };
            let FoundFields { fields, repeated } = found;
            all.push(Lines { first: document.line, fields, repeated });
        }
    }
    all
}

/// What is found in a document.
#[derive(Default)]
struct FoundFields {
    fields: BTreeMap<String, (usize, usize)>,
    repeated: Vec<RepeatedKey>,
}

/// A collection around the current node.
enum Frame {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

fn fields(text: &str, line: usize) -> FoundFields {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut found = FoundFields::default();
    let mut frames: Vec<Frame> = Vec::new();
    for next in Parser::new_from_str_with_options(text, options) {
        let Ok((event, span)) = next else { break };
        if event == Event::DocumentEnd {
            break;
        }
        let at = (line + span.start.line().saturating_sub(1), span.start.col() + 1);
        node(&event, at, &mut frames, &mut found);
    }
    found
}

fn node(event: &Event<'_>, at: (usize, usize), frames: &mut Vec<Frame>, found: &mut FoundFields) {
    if let (Event::Scalar(text, ..), Some(Frame::Map { path, key: key @ None })) =
        (event, frames.last_mut())
    {
        let path = if path.is_empty() { text.to_string() } else { format!("{path}.{text}") };
        if let Some((first, _)) = found.fields.insert(path.clone(), at) {
            found.repeated.push(RepeatedKey { key: text.to_string(), first, line: at.0 });
        }
        *key = Some(path);
        return;
    }
    match event {
        Event::Scalar(..) | Event::Alias(_) => {
            enter(frames, found, at);
        }
        Event::SequenceStart(..) => {
            let path = enter(frames, found, at);
            frames.push(Frame::List { path, next: 0 });
        }
        Event::MappingStart(..) => {
            let path = enter(frames, found, at);
            frames.push(Frame::Map { path, key: None });
        }
        Event::SequenceEnd | Event::MappingEnd => {
            frames.pop();
        }
        _ => {}
    }
}

/// The path of a node that begins.
fn enter(frames: &mut [Frame], found: &mut FoundFields, at: (usize, usize)) -> String {
    match frames.last_mut() {
        None => String::new(),
        Some(Frame::Map { key, .. }) => key.take().unwrap_or_default(),
        Some(Frame::List { path, next }) => {
            let path = format!("{path}[{next}]");
            *next += 1;
            found.fields.insert(path.clone(), at);
            path
        }
    }
}
