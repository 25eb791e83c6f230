//! Findings about loadouts, with what helps.

use plimsoll_content::finding::{LoadoutCode, Severity};
use serde::Serialize;

/// Something to change in a loadout, or to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadoutFinding {
    /// Path of the file.
    pub file: String,
    /// Line in it, from 1.
    pub line: usize,
    /// Column in it, from 1.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// The rule.
    pub code: LoadoutCode,
    /// Name of the Operator; empty if it is not known.
    pub operator: String,
    /// What is wrong, as a sentence without a stop.
    pub message: String,
    /// What helps; `None` if nothing is known to.
    pub fix: Option<LoadoutFix>,
}

/// What makes a finding go away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadoutFix {
    /// What to do, as a sentence without a stop.
    pub text: String,
    /// The same as a change of the file; `None` if there are several ways and a person has to choose.
    pub edit: Option<FieldEdit>,
}

/// A field that is set to another value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldEdit {
    /// Name of the Operator.
    pub operator: String,
    /// The keys that lead to the field.
    pub path: Vec<String>,
    /// Its value afterwards.
    pub value: String,
}
