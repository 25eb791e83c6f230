//! Field errors, printed as Kubernetes' `field.Error` prints them.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go: Error
use std::fmt;

use serde_json::Value;

pub(crate) mod go;

/// What is wrong with a field, in apimachinery's vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// A value that has to be there is not.
    Required,
    /// The value is malformed or out of range.
    Invalid,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The value is not one of those allowed.
    NotSupported,
    /// A value that must be unique occurs again.
    Duplicate,
    /// A string is too long.
    TooLong,
    /// A string is too short.
    TooShort,
    /// A list or map has too many entries.
    TooMany,
    /// A list or map has too few entries.
    TooFew,
    /// The value is not permitted here.
    Forbidden,
    /// Something that was referred to is not there.
    NotFound,
    /// Our own failure, such as a pattern that does not compile.
    Internal,
}

impl FieldErrorKind {
    /// The machine-readable cause that a `Status` carries for it.
    pub fn cause_reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    /// Whether rules that are stated as expressions are not evaluated on an object with such an
    /// error.
    pub fn blocks_expressions(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid
        )
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// An error of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The field: `spec.foo[0].bar`, or `<nil>` for the object itself.
    pub path: String,
    /// The class of the error.
    pub kind: FieldErrorKind,
    /// The offending value; absent where the message shows none.
    pub value: Option<Value>,
    /// How the message shows the value; absent where that is JSON with sorted keys.
    pub shown: Option<String>,
    /// The message after the class and the value; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error without a value.
    pub fn new(path: impl Into<String>, kind: FieldErrorKind, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind, value: None, shown: None, detail: detail.into() }
    }

    /// The same error, showing `value`.
    #[must_use]
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    /// The same error, showing the offending value as `text`.
    #[must_use]
    pub fn with_shown(mut self, text: impl Into<String>) -> Self {
        self.shown = Some(text.into());
        self
    }

    /// The same error of a value that lies at `segment`, a field or an index such as `[0]`, of what
    /// surrounds it.
    pub(crate) fn within(self, segment: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        let path = format!("{segment}{dot}{}", self.path);
        Self { path, ..self }
    }

    /// The message without the path, as a `Status` cause carries it.
    pub fn message(&self) -> String {
        let mut out = self.kind.title().to_owned();
        let shows_value = !matches!(
            self.kind,
            FieldErrorKind::Required
                | FieldErrorKind::Forbidden
                | FieldErrorKind::TooLong
                | FieldErrorKind::TooShort
                | FieldErrorKind::Internal
        );
        let shown = self.shown.clone().or_else(|| self.value.as_ref().map(go::shown));
        if let (true, Some(shown)) = (shows_value, shown) {
            out.push_str(": ");
            out.push_str(&shown);
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.message())
    }
}

impl std::error::Error for FieldError {}
