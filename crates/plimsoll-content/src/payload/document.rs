//! From a file to its manifests.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{GroupKind, ObjectKey};
use serde_json::{Map, Value};

use super::{Cause, Directory, LoadError, SourceFile};
use crate::finding::{Code, Finding, Place};
use crate::template::{self, Values};
use crate::yaml::{self, Oddity};
use crate::{Manifest, kinds};

/// Most bytes of JSON in a document: an API server refuses larger requests.
pub(super) const JSON_SIZE_MAX: usize = 3 << 20;

/// What became of a file.
#[derive(Debug, Clone)]
pub struct ParsedFile {
    pub(super) directory: Directory,
    name: Arc<str>,
    pub(super) manifests: Vec<Manifest>,
    /// The kinds without namespaces that CustomResourceDefinitions of the file define.
    pub(super) defined_cluster_kinds: Vec<GroupKind>,
    pub(super) warnings: Vec<Finding>,
    pub(super) errors: Vec<LoadError>,
}

impl ParsedFile {
    /// What files are ordered by.
    pub(super) fn order(&self) -> (Directory, &str) {
        (self.directory, &self.name)
    }

    fn place(&self, document: Option<usize>, line: Option<usize>) -> Place {
        Place { directory: self.directory, file: self.name.clone(), document, line }
    }

    fn fail(&mut self, document: Option<usize>, line: Option<usize>, cause: Cause) {
        let place = self.place(document, line);
        self.errors.push(LoadError { place, cause });
    }
}

/// Reads a file that holds manifests. Files of [`Directory::Manifests`] are templates; one that
/// asks for what `values` does not provide is left out with a warning, as it may be made for a
/// newer version of the program.
pub fn parse_file(file: &SourceFile, values: &Values) -> ParsedFile {
    let mut parsed = ParsedFile {
        directory: file.directory,
        name: file.name.as_str().into(),
        manifests: Vec::new(),
        defined_cluster_kinds: Vec::new(),
        warnings: Vec::new(),
        errors: Vec::new(),
    };
    let text = match std::str::from_utf8(&file.bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = &file.bytes[..error.valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            parsed.fail(None, Some(line), Cause::NotUtf8(error.valid_up_to()));
            return parsed;
        }
    };
    match file.directory {
        Directory::ReleaseManifests => read_documents(&mut parsed, text),
        Directory::Manifests => match template::render(text, values) {
            Ok(text) => read_documents(&mut parsed, &text),
            Err(error) => {
                let place = parsed.place(None, Some(error.line));
                let message = format!("the file is left out: {error}");
                parsed.warnings.push(Finding::new(place, Code::Template, message));
            }
        },
    }
    parsed
}

fn read_documents(parsed: &mut ParsedFile, text: &str) {
    let mut seen = BTreeMap::new();
    let mut number = 0;
    for document in yaml::parse(text) {
        if document.value == Ok(Value::Null) && document.notes.is_empty() {
            continue;
        }
        for note in document.notes {
            let code = match note.oddity {
                Oddity::DuplicateKey(_) => Code::DuplicateKey,
                Oddity::IgnoredText => Code::IgnoredText,
            };
            let place = parsed.place(Some(number), note.line.or(Some(document.line)));
            parsed.warnings.push(Finding::new(place, code, note.oddity.to_string()));
        }
        let manifest = match document.value {
            Ok(Value::Null) => continue,
            Ok(value) => {
                parsed.defined_cluster_kinds.extend(kinds::defined_cluster_kind(&value));
                manifest(&parsed.name, number, &value)
            }
            Err(error) => {
                parsed.fail(Some(number), Some(error.line), Cause::Yaml(error));
                number += 1;
                continue;
            }
        };
        match manifest {
            Ok(manifest) => match seen.insert(manifest.key.clone(), number) {
                None => parsed.manifests.push(manifest),
                Some(first) => {
                    let cause = Cause::Duplicate { key: manifest.key, first };
                    parsed.fail(Some(number), Some(document.line), cause);
                }
            },
            Err(cause) => parsed.fail(Some(number), Some(document.line), cause),
        }
        number += 1;
    }
}

fn manifest(file: &Arc<str>, document: usize, value: &Value) -> Result<Manifest, Cause> {
    let object = value.as_object().ok_or_else(|| Cause::NotAnObject(type_name(value)))?;
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("kind");
    if kind.is_empty() {
        return Err(Cause::MissingKind);
    }
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let metadata = object.get("metadata").and_then(Value::as_object);
    let name = metadata.and_then(|metadata| metadata.get("name")?.as_str()).unwrap_or_default();
    if name.is_empty() {
        let is_list = kind.ends_with("List") && object.get("items").is_some_and(Value::is_array);
        let kind = kind.to_owned();
        return Err(if is_list { Cause::List(kind) } else { Cause::MissingName(kind) });
    }
    let namespace = match metadata.and_then(|metadata| metadata.get("namespace")) {
        None | Some(Value::Null) => "",
        Some(Value::String(namespace)) => namespace,
        Some(_) => return Err(Cause::Namespace(kind.to_owned())),
    };
    let raw = serde_json::to_vec(value).expect("a JSON value can always be written");
    if raw.len() > JSON_SIZE_MAX {
        return Err(Cause::Size(raw.len()));
    }
    Ok(Manifest {
        file: file.clone(),
        document,
        key: ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        version: version.to_owned(),
        annotations: metadata.map(annotations).unwrap_or_default(),
        raw: raw.into(),
    })
}

fn annotations(metadata: &Map<String, Value>) -> BTreeMap<String, String> {
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
