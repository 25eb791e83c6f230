//! At which lines and columns the fields of documents stand.

use std::collections::BTreeMap;

use granit_parser::{Event, Options, Parser};
use serde_json::Value;

use super::{document, split};

/// The lines of a document's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    first: usize,
    fields: BTreeMap<String, (usize, usize)>,
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
}

/// The lines of every document of a text that is not null, in order.
pub fn lines(text: &str) -> Vec<Lines> {
    let mut all = Vec::new();
    for chunk in split::documents(text) {
        let documents = document(chunk.text, chunk.line);
        let is_one = documents.len() == 1;
        for document in documents.into_iter().filter(|it| it.value != Ok(Value::Null)) {
            let fields = if is_one { fields(chunk.text, chunk.line) } else { BTreeMap::new() };
            all.push(Lines { first: document.line, fields });
        }
    }
    all
}

/// A collection around the current node.
enum Frame {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

fn fields(text: &str, line: usize) -> BTreeMap<String, (usize, usize)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut found = BTreeMap::new();
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

fn node(
    event: &Event<'_>,
    at: (usize, usize),
    frames: &mut Vec<Frame>,
    found: &mut BTreeMap<String, (usize, usize)>,
) {
    if let (Event::Scalar(text, ..), Some(Frame::Map { path, key: key @ None })) =
        (event, frames.last_mut())
    {
        let path = if path.is_empty() { text.to_string() } else { format!("{path}.{text}") };
        found.insert(path.clone(), at);
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
fn enter(
    frames: &mut [Frame],
    found: &mut BTreeMap<String, (usize, usize)>,
    at: (usize, usize),
) -> String {
    match frames.last_mut() {
        None => String::new(),
        Some(Frame::Map { key, .. }) => key.take().unwrap_or_default(),
        Some(Frame::List { path, next }) => {
            let path = format!("{path}[{next}]");
            *next += 1;
            found.insert(path.clone(), at);
            path
        }
    }
}
