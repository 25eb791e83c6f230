//! Findings about loadouts, with fixes.

use plimsoll_content::diagnostic::{LoadoutCode, Severity};
use serde::Serialize;

/// A defect of a loadout, or something to review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadoutFinding {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The severity of its rule, or a higher one.
    pub severity: Severity,
    /// The rule that reports it.
    pub code: LoadoutCode,
    /// The name of the Operator; empty if it is not known.
    pub operator: String,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// The fix; `None` if none is known.
    pub fix: Option<LoadoutFix>,
}

/// A change that resolves a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadoutFix {
    /// What to do, as a sentence without a full stop.
    pub text: String,
    /// The change as an edit of the file; `None` if there are several and a user has to choose.
    pub edit: Option<FieldEdit>,
}

/// An assignment of a value to a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldEdit {
    /// The name of the Operator.
    pub operator: String,
    /// The keys that lead to the field.
    pub path: Vec<String>,
    /// The new value.
    pub value: String,
}
