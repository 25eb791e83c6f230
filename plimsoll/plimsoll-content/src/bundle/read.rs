//! The files of one bundle as values, and where in them something stands.

use serde_json::Value;

use super::BundleFile;
use crate::catalog::{Defect, DefectCode};
use crate::yaml;

/// A document of a file.
#[derive(Debug, Clone)]
pub struct BundleManifest<'f> {
    /// The file that it stands in.
    pub file: &'f BundleFile,
    /// Number of the document in the file, empty ones not counted.
    number: usize,
    /// The line on which it begins, from 1.
    pub first_line: u32,
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
    pub fn line(&self, field: &str) -> u32 {
        let text = std::str::from_utf8(&self.file.bytes).unwrap_or_default();
        let lines = yaml::lines(text);
        let line = lines.get(self.number).map(|lines| lines.of(field));
        line.and_then(|line| u32::try_from(line).ok()).unwrap_or(self.first_line)
    }

    /// A defect of a field.
    pub fn defect(&self, field: &str, code: DefectCode, message: impl Into<String>) -> Defect {
        Defect {
            file: self.file.path.clone(),
            line: self.line(field),
            package: String::new(),
            code,
            message: message.into(),
        }
    }
}

/// Whether a file is likely to hold documents.
pub(super) fn is_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    !name.starts_with('.')
        && [".yaml", ".yml", ".json"].iter().any(|extension| name.ends_with(extension))
}

/// The documents of a file; what cannot be read becomes a defect.
pub fn documents<'f>(file: &'f BundleFile, defects: &mut Vec<Defect>) -> Vec<BundleManifest<'f>> {
    let mut report = |line: usize, code: DefectCode, message: String| {
        defects.push(Defect {
            file: file.path.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            package: String::new(),
            code,
            message,
        });
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
                let first_line = u32::try_from(document.line).unwrap_or(u32::MAX);
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
