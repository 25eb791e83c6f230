//! Loadouts: Operators as files declare them, and the result of applying them to a cluster (OPR-15, OPR-21).

mod converge;
mod fields;
mod objects;
mod read;
mod refused;

use std::collections::BTreeMap;

use plimsoll_api::olm::OperatorSpec;
use plimsoll_content::diagnostic::{Diagnostic, LoadoutCode, Severity};
use plimsoll_content::yaml::{self, EditError, Lines};

pub use self::converge::{ConvergedOperators, PlanningProgress, converge, converge_shown};
pub(crate) use self::converge::{converge_apart, converge_watched};
use super::installed::kinds;
use super::{InstalledOperator, RequestedOperator};

/// A file of a loadout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadoutFile {
    /// The path, as findings show it.
    pub path: String,
    /// The content.
    pub text: String,
}

impl LoadoutFile {
    /// Returns a diagnostic of a field of an object.
    pub(super) fn diagnostic(
        &self,
        place: &ObjectPlace,
        lines: &Lines,
        field: &str,
        code: LoadoutCode,
        message: String,
    ) -> Diagnostic {
        let (line, column) = lines.position(&place.field(field));
        Diagnostic {
            document: Some(place.document),
            line: Some(line),
            column: Some(column),
            ..code.diagnostic(&self.path, message)
        }
    }
}

/// The place of an object in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The index of its document in the file, from 0, not counting empty ones.
    pub document: usize,
    /// The path to the object in its document, such as `items` and `[0]`; empty if it is the document.
    pub path: Vec<String>,
}

impl ObjectPlace {
    /// Returns the path of a field of the object in its document, as text.
    fn field(&self, field: &str) -> String {
        let mut text = String::new();
        for part in self.path.iter().map(String::as_str).chain([field]) {
            let is_first = text.is_empty() || part.is_empty() || part.starts_with('[');
            text.push_str(if is_first { "" } else { "." });
            text.push_str(part);
        }
        text
    }

    /// Returns the keys that lead to a field of the object in its document.
    pub(super) fn keys<'a>(&'a self, field: &[&'a str]) -> Vec<&'a str> {
        self.path.iter().map(String::as_str).chain(field.iter().copied()).collect()
    }
}

/// An Operator that a file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredOperator {
    /// The name of the Operator, which is that of its package.
    pub name: String,
    /// The requested spec.
    pub spec: OperatorSpec,
    /// Whether its label says that it was installed as a dependency.
    pub is_dependency: bool,
    /// Whether its label says that a user installed it by its name.
    pub is_of_user: bool,
    /// The annotation of its change set; `None` without one.
    pub change_set: Option<String>,
    /// The index of its file in [`Loadout::files`].
    pub file: usize,
    /// Where it is in the file.
    pub place: ObjectPlace,
    /// Whether a version is written that cannot be read.
    pub(super) has_unread_version: bool,
    /// The positions of the fields of its document.
    pub(super) lines: Lines,
}

/// The Operators of a directory.
#[derive(Debug, Clone, Default)]
pub struct Loadout {
    /// The files, in order.
    pub files: Vec<LoadoutFile>,
    /// The Operators in them, in order; a name may occur twice.
    pub operators: Vec<DeclaredOperator>,
    /// The parts that cannot be read.
    pub defects: Vec<Diagnostic>,
}

impl Loadout {
    /// Reads files that must be without errors.
    ///
    /// # Errors
    ///
    /// The first error, with its position.
    pub fn read_sound(files: Vec<LoadoutFile>) -> Result<Self, String> {
        Self::read(files).without(|_| true)
    }

    /// Reads files whose Operators must be without errors; what declares none may be anything.
    ///
    /// # Errors
    ///
    /// The first error of an Operator, with its position.
    pub fn read_understood(files: Vec<LoadoutFile>) -> Result<Self, String> {
        Self::read(files).without(|defect| !defect.package.is_empty())
    }

    /// Returns the loadout, unless it has an error of some kind.
    fn without(self, is_refused: impl Fn(&Diagnostic) -> bool) -> Result<Self, String> {
        let mut errors = self.defects.iter().filter(|it| it.severity == Severity::Error);
        match errors.find(|it| is_refused(it)) {
            None => Ok(self),
            Some(defect) => {
                let (place, message) = (defect.place(), &defect.message);
                let separator = if message.ends_with('?') { " " } else { "; " };
                let all = "`operator lint` finds everything that is wrong";
                Err(format!("{place}: {message}{separator}{all}"))
            }
        }
    }

    /// Returns the Operators as a cluster without Operators has them after they are applied; of several with
    /// the same name, the first.
    pub fn requested(&self) -> BTreeMap<String, RequestedOperator> {
        let operators = self.operators.iter().rev();
        operators.map(|it| (it.name.clone(), it.requested())).collect()
    }

    /// Returns the first Operator with a name.
    pub fn operator(&self, name: &str) -> Option<&DeclaredOperator> {
        self.operators.iter().find(|it| it.name == name)
    }

    /// Sets a field of an Operator in the text of its file; all other text is unchanged.
    ///
    /// # Errors
    ///
    /// When the form of the document does not allow that.
    pub fn set_field(
        &mut self,
        file: usize,
        place: &ObjectPlace,
        path: &[&str],
        value: &str,
    ) -> Result<(), EditError> {
        let file = self.files.get_mut(file).ok_or(EditError::NoDocument)?;
        file.text = yaml::set_field(&file.text, place.document, &place.keys(path), value)?;
        Ok(())
    }

    /// Removes a field of an Operator from the text of its file; all other text is unchanged.
    ///
    /// # Errors
    ///
    /// When the form of the document does not allow that.
    pub fn remove_field(
        &mut self,
        file: usize,
        place: &ObjectPlace,
        path: &[&str],
    ) -> Result<(), EditError> {
        let file = self.files.get_mut(file).ok_or(EditError::NoDocument)?;
        file.text = yaml::remove_field(&file.text, place.document, &place.keys(path))?;
        Ok(())
    }
}

impl DeclaredOperator {
    /// Returns the Operator as a cluster without it has it after it is applied.
    pub fn requested(&self) -> RequestedOperator {
        RequestedOperator {
            change_set: self.change_set.clone(),
            is_of_user: self.is_of_user,
            ..RequestedOperator::new(self.spec.clone(), self.is_dependency)
        }
    }

    /// Returns the line and column of a field, or of what surrounds it.
    pub(super) fn position(&self, field: &str) -> (usize, usize) {
        self.lines.position(&self.place.field(field))
    }
}

impl RequestedOperator {
    /// Returns the Operator with an installed bundle; it owns the kinds that the bundle provides.
    #[must_use]
    pub fn with_installed(mut self, installed: InstalledOperator) -> Self {
        self.owned.extend(kinds(&installed.bundle));
        self.installed = Some(installed);
        self
    }
}
