//! Diagnostics: what is wrong or doubtful about a file, how bad it is, and where.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used, or cannot do what its author meant.
    Error,
    /// It works, but its author should check it.
    Warning,
    /// It works, and may be what its author wants.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// A defect of a file, or a part of it to review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The path of the file.
    pub file: String,
    /// The index of the document in the file, from 0, not counting empty ones; `None` if it is about
    /// the whole file, or about a line of it.
    pub document: Option<usize>,
    /// The line, from 1; `None` if it is not known.
    pub line: Option<usize>,
    /// The column, from 1; `None` if it is not known.
    pub column: Option<usize>,
    /// The severity of its code, or a higher one.
    pub severity: Severity,
    /// The rule that reports it: the text of a [`FindingCode`], [`LoadoutCode`] or
    /// [`DefectCode`](crate::catalog::DefectCode).
    pub code: Cow<'static, str>,
    /// The package that it concerns; empty if there is none or it is not known.
    pub package: String,
    /// What is wrong and what to do, in one line without a full stop.
    pub message: String,
    /// What resolves it; `None` if the message says so, or nothing is known.
    pub help: Option<String>,
    /// The change of the document that resolves it; `None` if there are several or none.
    pub edit: Option<FieldEdit>,
}

/// An assignment of a value to a field of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FieldEdit {
    /// The keys that lead to the field.
    pub path: Vec<String>,
    /// The new value.
    pub value: String,
}

/// A problem of a field of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldProblem {
    /// The path of the field, such as `deploymentConfig.env[0].name`; empty for the whole.
    pub field: String,
    /// What is wrong and what to do, in one line without a full stop.
    pub message: String,
}

impl FieldProblem {
    /// Creates a problem.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// The maximum length of a message in bytes: it repeats text of files, which can be of any length.
const MESSAGE_SIZE_MAX: usize = 2_000;

impl Diagnostic {
    /// Returns the diagnostic with a line, from 1; 0 is the whole file.
    #[must_use]
    pub fn at_line(self, line: usize) -> Self {
        Self { line: (line > 0).then_some(line), ..self }
    }

    /// Returns the file with the line and column as far as they are known; without a column, with the
    /// document.
    pub fn place(&self) -> String {
        let numbers = [self.line, self.column].into_iter().flatten();
        let mut place = numbers.fold(self.file.clone(), |place, it| format!("{place}:{it}"));
        if let (None, Some(document)) = (self.column, self.document) {
            place.push_str(&format!(" (document {document})"));
        }
        place
    }

    /// Returns the message; without a column, with the package.
    pub fn statement(&self) -> String {
        match (self.column, self.package.as_str()) {
            (Some(_), _) | (None, "") => self.message.clone(),
            (None, package) => format!("package {package}: {}", self.message),
        }
    }

    /// Truncates a message that is too long to be read.
    pub fn shorten(&mut self) {
        if self.message.len() > MESSAGE_SIZE_MAX {
            self.message.truncate(self.message.floor_char_boundary(MESSAGE_SIZE_MAX));
            self.message.push('…');
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]: {}", self.place(), self.severity, self.code, self.statement())
    }
}

/// Returns whether any diagnostic is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|it| it.severity == Severity::Error)
}

/// Defines the codes of a linter: an enumeration, how each code is written, and how bad it is.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $text:literal, $severity:ident;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[doc = $doc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// How the code is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// What the code is about, as a noun phrase that begins with a capital letter.
            pub fn description(self) -> &'static str {
                let text = match self { $(Self::$variant => concat!($($doc),*),)* };
                text.trim().trim_end_matches('.')
            }

            /// The severity of what has the code.
            pub fn severity(self) -> $crate::diagnostic::Severity {
                match self { $(Self::$variant => $crate::diagnostic::Severity::$severity,)* }
            }

            /// Returns a diagnostic of a whole file that has the code and its severity.
            pub fn diagnostic(
                self,
                file: impl Into<String>,
                message: impl Into<String>,
            ) -> $crate::diagnostic::Diagnostic {
                $crate::diagnostic::Diagnostic {
                    file: file.into(),
                    document: None,
                    line: None,
                    column: None,
                    severity: self.severity(),
                    code: self.as_str().into(),
                    package: String::new(),
                    message: message.into(),
                    help: None,
                    edit: None,
                }
            }
        }

        impl PartialEq<$name> for std::borrow::Cow<'static, str> {
            fn eq(&self, code: &$name) -> bool {
                *self == code.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use codes;

codes! {
    /// What a finding is about. Codes are stable: scripts may rely on them.
    FindingCode {
    /// A part of a source that keeps its release from being built.
    Source = "source", Error;
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
    /// A field that the schema of its kind does not have.
    UnknownField = "unknown-field", Warning;
    /// A field that an API server refuses: it is missing, or has a value of another type or form.
    InvalidField = "invalid-field", Error;
    /// The validation rules of a definition cost more than API servers of Kubernetes accept.
    RuleCost = "rule-cost", Warning;
    /// A template of Helm that nothing renders.
    TemplateLeft = "template-left", Warning;
    /// An image of a container that is not a reference to one.
    ImageReference = "image-reference", Warning;
    /// An object that another file has a manifest of, too, for the same cluster.
    DuplicateObject = "duplicate-object", Warning;
    /// An object that one manifest deletes and another one creates.
    DeletesCreated = "deletes-created", Error;
    /// A namespace on an object that has none.
    UnexpectedNamespace = "unexpected-namespace", Warning;
    /// No namespace on an object that needs one.
    MissingNamespace = "missing-namespace", Error;
    /// A namespace that neither the payload nor Kubernetes creates.
    UnknownNamespace = "unknown-namespace", Warning;
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
    /// A change of a field that no update changes.
    ImmutableField = "immutable-field", Error;
    /// A kind that neither Kubernetes nor the payload defines.
    UnknownKind = "unknown-kind", Warning;
    }
}

codes! {
    /// What a finding about a directory of Operators is about. Codes are stable: scripts may rely on
    /// them.
    LoadoutCode {
    /// A file or document that cannot be read as an Operator.
    Unreadable = "OL000", Error;
    /// A package that no catalog has.
    PackageNotFound = "OL001", Error;
    /// A range that cannot be read, or that no version is in.
    NoVersion = "OL002", Error;
    /// A requirement that nothing of the loadout satisfies.
    MissingDependency = "OL003", Warning;
    /// A required package in a version that does not satisfy the requirement.
    DependencyOutOfRange = "OL004", Warning;
    /// An API that two Operators provide.
    Conflict = "OL005", Error;
    /// A dependency that nothing depends on.
    Orphan = "OL006", Warning;
    /// Several Operators of one package, or an Operator of another name than its package.
    Duplicate = "OL007", Error;
    /// A channel or catalog that does not exist, or several catalogs of the same weight.
    UnknownSource = "OL008", Error;
    /// A deprecated package, channel or bundle.
    Deprecated = "OL009", Warning;
    /// A bundle that does not fit the cluster.
    ClusterUnfit = "OL010", Error;
    /// An update that is not possible from what is installed.
    NotUpgradable = "OL011", Warning;
    /// An update of which a step changes a CustomResourceDefinition in a way that its users cannot follow, or takes
    /// from others what they require until a later one.
    UnsafeDefinition = "OL012", Warning;
    /// An Operator without a version: which one it gets depends on the catalog of the day.
    Unpinned = "OL013", Info;
    /// A range of a dependency that admits other versions than its dependants need.
    DependencyRange = "OL014", Warning;
    /// Operators that can only be updated together, and are not one change set.
    Deadlock = "OL015", Error;
    /// An Operator that was removed although others depend on it.
    NeededRemoved = "OL016", Warning;
    /// A directory or file without Operators.
    NoOperators = "OL017", Error;
    /// A change set that cannot be read, or that has another number of members than it says.
    ChangeSet = "OL018", Error;
    /// An annotation or label of `olm.io` that nothing reads, or a value of one that means nothing.
    UnreadLabel = "OL019", Warning;
    }
}
