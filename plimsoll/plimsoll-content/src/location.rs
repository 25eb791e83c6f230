//! Where something lies in a payload.

use std::fmt;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, FindingCode};

/// The directories of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Directory {
    /// `manifests`: the manifests of the program that applies the payload. Only these are
    /// templates.
    Manifests,
    /// `release-manifests`: everybody else's.
    ReleaseManifests,
}

impl Directory {
    /// Both, in loading order.
    pub const ALL: [Self; 2] = [Self::Manifests, Self::ReleaseManifests];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::ReleaseManifests => "release-manifests",
        }
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file of a payload, or a document or line in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// The directory of the payload that the file lies in.
    pub directory: Directory,
    /// The name of the file in that directory.
    pub file: Arc<str>,
    /// Document in the file, from 0, empty ones not counted; `None` for the whole file.
    pub document: Option<usize>,
    /// Line in the file, from 1; `None` when it is not known.
    pub line: Option<usize>,
}

impl FileLocation {
    /// Returns the path of the file in the payload.
    pub fn path(&self) -> String {
        format!("{}/{}", self.directory, self.file)
    }

    /// Returns a diagnostic of what lies there.
    pub(crate) fn diagnostic(&self, code: FindingCode, message: impl Into<String>) -> Diagnostic {
        let (document, line) = (self.document, self.line);
        Diagnostic { document, line, ..code.diagnostic(self.path(), message) }
    }
}
