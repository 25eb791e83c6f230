//! The files of one bundle as values, and where in them something stands.

use serde_json::Value;

use super::BundleFile;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;
use crate::yaml;

/// A document of a file.
#[derive(Debug, Clone)]
pub struct BundleManifest<'f> {
    /// The file that it stands in.
    pub file: &'f BundleFile,
    /// Number of the document in the file, empty ones not counted.
    number: usize,
    /// The line on which it begins, from 1.
    pub first_line: usize,
    /// What it says.
    pub value: Value,
}

impl BundleManifest<'_> {
    /// Its kind; empty if it has none.
    pub fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// The name of the object; empty if it has none.
    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The text of a field at a path; empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The items of a list at a path.
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The line of a field such as `spec.a[0].b`, or of what surrounds it.
    pub fn line(&self, field: &str) -> usize {
        let text = std::str::from_utf8(&self.file.bytes).unwrap_or_default();
        let lines = yaml::lines(text);
        lines.get(self.number).map_or(self.first_line, |lines| lines.of(field))
    }

    /// A defect of a field.
    pub fn defect(&self, field: &str, code: DefectCode, message: impl Into<String>) -> Diagnostic {
        code.diagnostic(&self.file.path, message).at_line(self.line(field))
    }
}

/// Whether a file is likely to hold documents.
pub(super) fn is_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    !name.starts_with('.')
        && [".yaml", ".yml", ".json"].iter().any(|extension| name.ends_with(extension))
}

/// The documents of a file; what cannot be read becomes a defect.
pub fn documents<'f>(
    file: &'f BundleFile,
    defects: &mut Vec<Diagnostic>,
) -> Vec<BundleManifest<'f>> {
    let mut report = |line: usize, code: DefectCode, message: String| {
        defects.push(code.diagnostic(&file.path, message).at_line(line));
    };
    let Ok(text) = std::str::from_utf8(&file.bytes) else {
        report(0, DefectCode::BundleFile, "not UTF-8".to_owned());
        return Vec::new();
    };
    let mut manifests = Vec::new();
    let mut number = 0;
    for document in yaml::parse(text) {
        for note in document.notes {
            let line = note.line.unwrap_or(document.line);
            report(line, DefectCode::DuplicateKey, note.oddity.to_string());
        }
        match document.value {
            Ok(Value::Null) => {}
            Ok(value) => {
                let first_line = document.line;
                manifests.push(BundleManifest { file, number, first_line, value });
                number += 1;
            }
            Err(error) => {
                let line = text.lines().nth(error.line.saturating_sub(1)).unwrap_or_default();
                let hint = if line.contains(": >") {
                    "; a range that begins with `>` has to be in quotes"
                } else {
                    ""
                };
                report(error.line, DefectCode::BundleFile, format!("{error}{hint}"));
                number += 1;
            }
        }
    }
    manifests
}
