//! Everything that keeps a payload from being loaded.

use std::error::Error;
use std::fmt;

use plimsoll_api::ObjectKey;

use super::ReleaseError;
use crate::annotations::AnnotationDefect;
use crate::diagnostic::{Diagnostic, FindingCode};
use crate::location::FileLocation;
use crate::manifest::ManifestError;
use crate::{capability, yaml};

/// Everything that is wrong with a payload: never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadErrors {
    /// In loading order.
    pub errors: Vec<PayloadError>,
}

impl fmt::Display for PayloadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.errors.len();
        write!(f, "the payload has {count} defect{}", if count == 1 { "" } else { "s" })?;
        self.errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl Error for PayloadErrors {}

/// Something that keeps a payload from being loaded, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadError {
    /// The file, and the document and line in it as far as they are known.
    pub location: FileLocation,
    /// What is wrong there.
    pub cause: PayloadErrorCause,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.diagnostic().place(), self.cause)
    }
}

impl Error for PayloadError {}

impl PayloadError {
    /// Returns the error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match &self.cause {
            PayloadErrorCause::Annotation(defect) => defect.code,
            PayloadErrorCause::Release(_)
            | PayloadErrorCause::NotUtf8(_)
            | PayloadErrorCause::Yaml(_)
            | PayloadErrorCause::Manifest(_)
            | PayloadErrorCause::Duplicate { .. }
            | PayloadErrorCause::Capabilities(_) => FindingCode::Load,
        };
        let help = match &self.cause {
            PayloadErrorCause::Yaml(error) => error.help().map(str::to_owned),
            _ => None,
        };
        Diagnostic { help, ..self.location.diagnostic(code, self.cause.to_string()) }
    }
}

/// What keeps a payload from being loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadErrorCause {
    /// A special file is missing or wrong.
    #[error("{0}")]
    Release(ReleaseError),
    /// A file is not UTF-8; the offset of the first bad byte.
    #[error("not UTF-8 text: bad byte at offset {0}")]
    NotUtf8(usize),
    /// A document is not YAML or JSON.
    #[error("{0}, column {column}", column = .0.column)]
    Yaml(yaml::YamlError),
    /// A document is no manifest.
    #[error("{0}")]
    Manifest(ManifestError),
    /// An annotation of a manifest cannot be honoured.
    #[error("{}", .0.message)]
    Annotation(AnnotationDefect),
    /// An object has two manifests in the file.
    #[error("duplicate resource: {key} is in document {first}, too")]
    Duplicate {
        /// The object that two documents define.
        key: ObjectKey,
        /// The other document.
        first: usize,
    },
    /// A declaration of capabilities is wrong.
    #[error("{0}")]
    Capabilities(capability::DeclarationError),
}
