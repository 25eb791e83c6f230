//! From a file to its manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::GroupKind;
use serde_json::Value;

use super::{Directory, PayloadError, PayloadErrorCause, SourceFile};
use crate::Manifest;
use crate::annotations;
use crate::capability::is_declaration;
use crate::diagnostic::{Diagnostic, FindingCode, Severity};
use crate::location::FileLocation;
use crate::template::{self, TemplateValues};
use crate::yaml::{self, YamlWarningKind};

/// What became of a file.
#[derive(Debug, Clone)]
pub(super) struct ParsedFile {
    pub(super) directory: Directory,
    name: Arc<str>,
    pub(super) manifests: Vec<Manifest>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) errors: Vec<PayloadError>,
}

impl ParsedFile {
    /// What files are ordered by.
    pub(super) fn order(&self) -> (Directory, &str) {
        (self.directory, &self.name)
    }

    /// Removes the namespaces from the keys of objects whose kinds, among `cluster_kinds`, have none; two
    /// manifests of one object are an error.
    pub(super) fn normalize_keys(&mut self, cluster_kinds: &BTreeSet<GroupKind>) {
        let mut is_changed = false;
        for manifest in &mut self.manifests {
            is_changed |= manifest.key.normalize(cluster_kinds);
        }
        if !is_changed {
            return;
        }
        let mut seen = BTreeMap::new();
        for manifest in std::mem::take(&mut self.manifests) {
            match seen.insert(manifest.key.clone(), manifest.document) {
                None => self.manifests.push(manifest),
                Some(first) => {
                    let cause = PayloadErrorCause::Duplicate { key: manifest.key, first };
                    self.fail(Some(manifest.document), None, cause);
                }
            }
        }
    }

    fn location(&self, document: Option<usize>, line: Option<usize>) -> FileLocation {
        FileLocation { directory: self.directory, file: self.name.clone(), document, line }
    }

    fn fail(&mut self, document: Option<usize>, line: Option<usize>, cause: PayloadErrorCause) {
        let location = self.location(document, line);
        self.errors.push(PayloadError { location, cause });
    }
}

/// Reads a file that holds manifests. Files of [`Directory::Manifests`] are templates; one that
/// asks for what `values` does not provide is left out with a warning, as it may be made for a
/// newer version of the program.
pub(super) fn parse_file(file: &SourceFile, values: &TemplateValues) -> ParsedFile {
    let mut parsed = ParsedFile {
        directory: file.directory,
        name: file.name.as_str().into(),
        manifests: Vec::new(),
        warnings: Vec::new(),
        errors: Vec::new(),
    };
    let text = match std::str::from_utf8(&file.bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = &file.bytes[..error.valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            parsed.fail(None, Some(line), PayloadErrorCause::NotUtf8(error.valid_up_to()));
            return parsed;
        }
    };
    match file.directory {
        Directory::ReleaseManifests => read_documents(&mut parsed, text),
        Directory::Manifests => match template::render(text, values) {
            Ok(text) => read_documents(&mut parsed, &text),
            Err(error) => {
                let location = parsed.location(None, Some(error.line));
                let message = format!("the file is left out: {error}");
                parsed.warnings.push(location.diagnostic(FindingCode::Template, message));
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
                YamlWarningKind::DuplicateKey(_) | YamlWarningKind::DuplicateScalar(_) => {
                    FindingCode::DuplicateKey
                }
                YamlWarningKind::IgnoredText => FindingCode::IgnoredText,
            };
            let location = parsed.location(Some(number), note.line.or(Some(document.line)));
            parsed.warnings.push(location.diagnostic(code, note.oddity.to_string()));
        }
        let value = match document.value {
            Ok(Value::Null) => continue,
            Ok(value) => value,
            Err(error) => {
                parsed.fail(Some(number), Some(error.line), PayloadErrorCause::Yaml(error));
                number += 1;
                continue;
            }
        };
        match Manifest::read(Arc::clone(&parsed.name), number, &value) {
            Ok(manifest) => match seen.insert(manifest.key.clone(), number) {
                None => {
                    check_annotations(parsed, text, &manifest, &value);
                    parsed.manifests.push(manifest);
                }
                Some(first) => {
                    let cause = PayloadErrorCause::Duplicate { key: manifest.key, first };
                    parsed.fail(Some(number), Some(document.line), cause);
                }
            },
            Err(error) => {
                let cause = PayloadErrorCause::Manifest(error);
                parsed.fail(Some(number), Some(document.line), cause);
            }
        }
        number += 1;
    }
}

/// Adds the errors about the annotations of a manifest of `text`. What declares capabilities is not
/// applied: its annotations mean nothing.
fn check_annotations(parsed: &mut ParsedFile, text: &str, manifest: &Manifest, object: &Value) {
    if is_declaration(manifest) {
        return;
    }
    let defects = annotations::defects(manifest, object).into_iter();
    let mut errors = defects.filter(|it| it.code.severity() == Severity::Error).peekable();
    if errors.peek().is_none() {
        return;
    }
    let lines = yaml::lines(text);
    for defect in errors {
        let line = lines.get(manifest.document).map(|lines| lines.of(&defect.field));
        parsed.fail(Some(manifest.document), line, PayloadErrorCause::Annotation(defect));
    }
}
