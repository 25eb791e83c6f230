//! What there is to say about a place in a payload.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::payload::Directory;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The payload cannot be used, or a document cannot do what its author meant.
    Error,
    /// It works, but somebody should look at it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $severity:ident;)*) => {
        /// What a finding is about. Codes are stable: scripts may rely on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FindingCode { $($(#[$doc])* $variant,)* }

        impl FindingCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// How the code is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// A file or document that keeps the payload from being loaded.
    Load = "load", Error;
    /// A key that occurs twice in a mapping.
    DuplicateKey = "duplicate-key", Warning;
    /// Text that belongs to no document.
    IgnoredText = "ignored-text", Warning;
    /// A template that cannot be filled in; its file is left out.
    Template = "template", Error;
    /// A key of the release metadata that cannot be honoured.
    ReleaseMetadata = "release-metadata", Warning;
    /// A document without an API version.
    MissingApiVersion = "missing-api-version", Error;
    /// A document without annotations, which no cluster ever gets.
    NoAnnotations = "no-annotations", Warning;
    /// A document without an annotation for any profile.
    NoProfile = "no-profile", Warning;
    /// An annotation whose value is not a string.
    AnnotationType = "annotation-type", Error;
    /// An annotation of the release whose value means nothing.
    AnnotationValue = "annotation-value", Error;
    /// A profile or exclude annotation whose value is not `true`.
    ProfileValue = "profile-value", Warning;
    /// A feature set and feature gates on the same document.
    FeatureSetAndGate = "feature-set-and-gate", Error;
    /// A major version on a kind that may not have one, or a contradictory one.
    MajorVersion = "major-version", Error;
    /// A capability that does not exist.
    UnknownCapability = "unknown-capability", Error;
    /// An object that needs something of a capability that it does not belong to itself.
    CapabilityPart = "capability-part", Warning;
    /// A declared set that lacks what one of its capabilities requires.
    CapabilityRequirement = "capability-requirement", Warning;
    /// A declared capability that no manifest belongs to.
    UnusedCapability = "unused-capability", Warning;
    /// A delete annotation other than `true`.
    DeleteValue = "delete-value", Error;
    /// A field that the schema of a built-in kind does not have.
    UnknownField = "unknown-field", Warning;
    /// An object that another file has a manifest of, too, for the same cluster.
    DuplicateObject = "duplicate-object", Warning;
    /// An object that one manifest deletes and another one creates.
    DeletesCreated = "deletes-created", Error;
    /// A namespace on an object that has none.
    UnexpectedNamespace = "unexpected-namespace", Warning;
    /// No namespace on an object that needs one.
    MissingNamespace = "missing-namespace", Error;
    /// A ClusterOperator that names no versions.
    OperatorVersions = "operator-versions", Error;
    /// A ClusterOperator that comes before the Deployment of its operator.
    OperatorOrder = "operator-order", Warning;
    /// A ClusterOperator without related objects.
    OperatorRelated = "operator-related-objects", Warning;
    /// A file name that tells neither run level nor component.
    FileName = "file-name", Warning;
    /// A Job that sets its own selector.
    JobSelector = "job-selector", Error;
    /// A kind that neither Kubernetes nor the payload defines.
    UnknownKind = "unknown-kind", Warning;
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A place in a payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileLocation {
    /// The directory.
    pub directory: Directory,
    /// The file in it.
    #[serde(serialize_with = "text")]
    pub file: Arc<str>,
    /// Document in the file, from 0, empty ones not counted; `None` for the whole file.
    pub document: Option<usize>,
    /// Line in the file, from 1, where it is known.
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

/// Something to say about a place in a payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Where.
    #[serde(flatten)]
    pub place: FileLocation,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub code: FindingCode,
    /// What there is to say.
    pub message: String,
}

impl Finding {
    /// A finding as bad as its code.
    pub fn new(place: FileLocation, code: FindingCode, message: impl Into<String>) -> Self {
        Self { place, severity: code.severity(), code, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]: {}", self.place, self.severity, self.code, self.message)
    }
}
