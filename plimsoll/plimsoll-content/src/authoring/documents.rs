//! From rendered texts to objects: one for each document, and for each item of a list.

use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, FindingCode};
use crate::yaml;

/// What introduces the name of a template in the output of `helm template`.
const TEMPLATE_COMMENT: &str = "# Source: ";

/// A text with manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path in the source; that of the component's folder for what a program rendered.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Whether a program rendered it: its lines are in no file of the source.
    pub is_rendered: bool,
}

/// Where in the source an object comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The path of the file, or of the folder that was rendered.
    pub path: String,
    /// The line on which its document begins; `None` if a program rendered it.
    pub line: Option<usize>,
    /// The lines of its document's fields; `None` if a program rendered it.
    fields: Option<Arc<yaml::Lines>>,
    /// The path of the object in its document, an item of a list; empty if it is the document.
    within: String,
}

impl Origin {
    /// The line and column of a field of the object, or of what surrounds it; `None` if a program
    /// rendered it.
    pub(crate) fn position(&self, field: &str) -> Option<(usize, usize)> {
        let dot = if self.within.is_empty() || field.is_empty() { "" } else { "." };
        let fields = self.fields.as_ref()?;
        Some(fields.position(&format!("{}{dot}{field}", self.within)))
    }

    pub(super) fn problem(&self, message: impl Into<String>) -> Diagnostic {
        let line = self.line;
        Diagnostic { line, ..FindingCode::Source.diagnostic(self.path.clone(), message) }
    }
}

/// An object of a component.
#[derive(Debug, Clone)]
pub(super) struct SourceObject {
    pub(super) origin: Origin,
    pub(super) object: Value,
}

/// Reads the objects of a text.
pub(super) fn read(file: &RenderedFile, problems: &mut Vec<Diagnostic>) -> Vec<SourceObject> {
    let mut objects = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    let fields = if file.is_rendered { Vec::new() } else { yaml::lines(&file.text) };
    let mut fields = fields.into_iter().map(Arc::new);
    for document in yaml::parse(&file.text) {
        let mut origin = origin(file, &lines, document.line);
        if document.value != Ok(Value::Null) {
            origin.fields = fields.next();
        }
        for note in document.notes {
            let line = origin.line.and(note.line.or(origin.line));
            let at = Origin { line, ..origin.clone() };
            problems.push(at.problem(note.oddity.to_string()));
        }
        match document.value {
            Ok(Value::Null) => {}
            Ok(value) => split(value, &origin, &mut objects),
            Err(error) => {
                let line = origin.line.map(|_| error.line);
                let message = format!("{error}, column {}", error.column);
                let help = error.help().map(str::to_owned);
                let problem = Origin { line, ..origin }.problem(message);
                problems.push(Diagnostic { help, ..problem });
            }
        }
    }
    objects
}

fn origin(file: &RenderedFile, lines: &[&str], line: usize) -> Origin {
    if !file.is_rendered {
        let (path, line) = (file.path.clone(), Some(line));
        return Origin { path, line, fields: None, within: String::new() };
    }
    let head = lines
        .iter()
        .skip(line.saturating_sub(1))
        .take_while(|it| it.starts_with("---") || it.starts_with('#') || it.trim().is_empty());
    let template = head.filter_map(|line| line.strip_prefix(TEMPLATE_COMMENT)).next();
    // Helm names templates by the name of the chart, the source by the folder.
    let path = template.and_then(|name| name.split_once('/')).map(|(_, rest)| rest.trim());
    let path = path.map_or_else(|| file.path.clone(), |rest| format!("{}/{rest}", file.path));
    Origin { path, line: None, fields: None, within: String::new() }
}

/// Takes lists apart. Items of a typed list, such as a `ConfigMapList`, have its kind unless they say
/// theirs.
fn split(value: Value, origin: &Origin, objects: &mut Vec<SourceObject>) {
    let kind = value["kind"].as_str().unwrap_or_default();
    let is_list = kind.ends_with("List") && value["items"].is_array();
    if !is_list || value["metadata"]["name"].is_string() {
        objects.push(SourceObject { origin: origin.clone(), object: value });
        return;
    }
    let item_kind = kind.strip_suffix("List").unwrap_or_default().to_owned();
    let version = value["apiVersion"].clone();
    let Value::Object(mut list) = value else { return };
    let Some(Value::Array(items)) = list.remove("items") else { return };
    for (index, mut item) in items.into_iter().enumerate() {
        let dot = if origin.within.is_empty() { "" } else { "." };
        let within = format!("{}{dot}items[{index}]", origin.within);
        let origin = Origin { within, ..origin.clone() };
        if let Some(fields) = item.as_object_mut()
            && !item_kind.is_empty()
            && !fields.contains_key("kind")
        {
            fields.insert("kind".to_owned(), item_kind.clone().into());
            fields.entry("apiVersion").or_insert_with(|| version.clone());
        }
        split(item, &origin, objects);
    }
}
