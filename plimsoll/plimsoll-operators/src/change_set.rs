//! Change sets: Operators that move together or not at all (OPR-26).

use super::{OperatorInputs, RequestedOperator};

/// Most members of a change set.
const MEMBERS_MAX: usize = 1_000;

/// The set of an Operator that is to change together with others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeSet {
    /// Its id.
    pub id: String,
    /// How many Operators belong to it.
    pub members: usize,
}

/// The annotation has another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSetError {
    /// What is written.
    pub text: String,
}

impl ChangeSet {
    /// Reads the annotation, `ID/MEMBERS`.
    ///
    /// # Errors
    ///
    /// When the id is empty or the number of members is not between 1 and 1,000.
    pub fn parse(text: &str) -> Result<Self, ChangeSetError> {
        let error = || ChangeSetError { text: text.to_owned() };
        let (id, members) = text.rsplit_once('/').ok_or_else(error)?;
        let members = members.parse().map_err(|_| error())?;
        if id.is_empty() || !(1..=MEMBERS_MAX).contains(&members) {
            return Err(error());
        }
        Ok(Self { id: id.to_owned(), members })
    }
}

/// The set that an Operator belongs to; `None` if it moves alone.
pub(super) fn of(operator: &RequestedOperator) -> Option<Result<ChangeSet, ChangeSetError>> {
    operator.change_set.as_deref().map(ChangeSet::parse)
}

/// The Operators of a set that are there, by name.
pub(super) fn members<'a>(inputs: OperatorInputs<'a>, set: &ChangeSet) -> Vec<&'a str> {
    let operators = inputs.operators.iter();
    let members = operators.filter(|(_, it)| {
        !it.is_deleting && of(it).and_then(Result::ok).is_some_and(|other| other.id == set.id)
    });
    members.map(|(name, _)| name.as_str()).collect()
}
