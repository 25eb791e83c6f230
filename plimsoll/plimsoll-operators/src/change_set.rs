//! Change sets: Operators that are updated together or not at all (OPR-26).

use std::collections::BTreeMap;

use plimsoll_api::Reason;
use plimsoll_api::olm::CHANGE_SET_ANNOTATION;

use super::{OperatorBlock, RequestedOperator};

/// The maximum number of members of a change set.
const MEMBERS_MAX: usize = 1_000;

/// The change set of an Operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeSet {
    /// The id that all members share.
    pub id: String,
    /// The number of Operators that belong to it.
    pub members: usize,
}

/// The annotation does not have the form `ID/MEMBERS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSetError {
    /// The value of the annotation.
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

/// Returns the change set of an Operator; `None` if it is updated alone.
pub(super) fn of(operator: &RequestedOperator) -> Option<Result<ChangeSet, ChangeSetError>> {
    operator.change_set.as_deref().map(ChangeSet::parse)
}

/// Returns the reason that an Operator with an annotation that cannot be read stays as it is; `None` if the annotation
/// can be read, or is absent.
pub(super) fn invalid(operator: &RequestedOperator) -> Option<OperatorBlock> {
    let error = of(operator)?.err()?;
    let message = format!(
        "the annotation {CHANGE_SET_ANNOTATION} is {:?}; it must be ID/MEMBERS, such as upgrade-42/2",
        error.text
    );
    Some(OperatorBlock::new(Reason::InvalidChangeSet, message))
}

/// Returns the reason that no member of a change set moves of which some do not exist, or are being deleted; `None` if
/// there are all.
pub(super) fn incomplete(
    operators: &BTreeMap<String, RequestedOperator>,
    set: &ChangeSet,
) -> Option<OperatorBlock> {
    let members = members(operators, set);
    if members.len() >= set.members {
        return None;
    }
    let message = format!(
        "change set {} has {} of its {} Operators: {}; apply the others, or remove the annotation \
         {CHANGE_SET_ANNOTATION} if they are gone",
        set.id,
        members.len(),
        set.members,
        members.join(", ")
    );
    Some(OperatorBlock::new(Reason::ChangeSetIncomplete, message))
}

/// Returns the Operators of a change set that exist and are not being deleted, by name.
pub(super) fn members<'a>(
    operators: &'a BTreeMap<String, RequestedOperator>,
    set: &ChangeSet,
) -> Vec<&'a str> {
    let members = operators.iter().filter(|(_, it)| {
        !it.is_deleting && of(it).and_then(Result::ok).is_some_and(|other| other.id == set.id)
    });
    members.map(|(name, _)| name.as_str()).collect()
}
