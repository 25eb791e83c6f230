//! Deletion of the definition of Operators. The API server deletes all Operators along with it, which is not a
//! request to delete what was applied for them.

use jiff::{SignedDuration, Timestamp};

/// The maximum difference of the clocks of two API servers: one sets the time of the deletion of a definition,
/// and possibly another one that of its objects.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_secs(60);

/// The times of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionTimes {
    /// The time at which it was created.
    pub created: Timestamp,
    /// The time at which its deletion was requested; `None` if it was not.
    pub deleted: Option<Timestamp>,
}

/// Returns whether an Operator whose deletion was requested at a time goes because a definition of Operators
/// was deleted: the existing one, at that time or before, or an earlier one that the existing one replaced.
/// `definition` is `None` if there is none.
pub(crate) fn takes_along(definition: Option<&DefinitionTimes>, deleted: Timestamp) -> bool {
    let Some(definition) = definition else { return true };
    let is_before = |at: Timestamp| at.duration_since(deleted) <= CLOCK_SKEW_MAX;
    deleted < definition.created || definition.deleted.is_some_and(is_before)
}

#[cfg(test)]
mod tests {
    //! Tests of the order of two deletions.

    use super::*;

    #[test]
    fn an_operator_that_was_deleted_before_its_definition_is_not_taken_along() {
        let time = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let existing = |created, deleted: Option<i64>| {
            Some(DefinitionTimes { created: time(created), deleted: deleted.map(time) })
        };
        // The definition, when the deletion of the Operator was requested, and whether it is taken along.
        let cases = [
            (existing(0, None), 1000, false),
            (existing(1000, None), 1000, false),
            (existing(0, Some(1000)), 1000, true),
            (existing(0, Some(1000)), 5000, true),
            // The clocks of two servers differ.
            (existing(0, Some(1000)), 990, true),
            (existing(0, Some(1000)), 900, false),
            // The finalizers of the earlier definition were removed by force.
            (existing(1001, None), 1000, true),
            (None, 1000, true),
        ];
        for (definition, deleted, expected) in cases {
            let found = takes_along(definition.as_ref(), time(deleted));
            assert_eq!(found, expected, "{definition:?} {deleted}");
        }
    }
}
