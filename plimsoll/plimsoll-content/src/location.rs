//! Where something lies in a payload.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The directories of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Directory {
    /// `manifests`: the manifests of the program that applies the payload. Only these are
    /// templates.
    #[serde(rename = "manifests")]
    Manifests,
    /// `release-manifests`: everybody else's.
    #[serde(rename = "release-manifests")]
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileLocation {
    /// The directory of the payload that the file lies in.
    pub directory: Directory,
    /// The name of the file in that directory.
    #[serde(serialize_with = "text")]
    pub file: Arc<str>,
    /// Document in the file, from 0, empty ones not counted; `None` for the whole file.
    pub document: Option<usize>,
    /// Line in the file, from 1; `None` when it is not known.
    pub line: Option<usize>,
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.directory, self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(document) = self.document {
            write!(f, " (document {document})")?;
        }
        Ok(())
    }
}
