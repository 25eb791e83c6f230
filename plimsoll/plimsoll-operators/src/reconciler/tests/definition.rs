//! Deletions of Operators, with or without their definition.

use super::*;
use crate::deletion::definition::DefinitionTimes;

/// More rounds of answers than an installation or a deletion takes.
const STEPS_MAX: usize = 20;

/// Returns the answer to a request to read the definition, by the time at which its deletion was requested, in
/// seconds.
pub(super) fn read(operator: &str, deleted: Result<Option<i64>, &str>) -> OperatorEvent {
    let times = |deleted: Option<i64>| DefinitionTimes {
        created: Timestamp::UNIX_EPOCH,
        deleted: deleted.map(|it| Timestamp::from_second(it).expect("a time")),
    };
    OperatorEvent::DefinitionRead {
        operator: operator.to_owned(),
        definition: deleted.map(times).map(Some).map_err(str::to_owned),
    }
}

/// Begins with an Operator that is installed, and whose deletion was requested at a time in seconds.
fn deleted_at(seconds: i64) -> Course {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    for _ in 0..STEPS_MAX {
        course.answer();
    }
    let metadata = json!({
        "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
        "resourceVersion": "99",
        "deletionTimestamp": Timestamp::from_second(seconds).expect("a time").to_string(),
    });
    let object = json!({ "metadata": metadata, "spec": { "version": "1.2.5" } });
    let asked = course.shown(OperatorKind::Operator, "bar", Some(object));
    assert!(asked.contains(&"read the definition".to_owned()), "{asked:?}");
    course.unanswered.clear();
    course
}

#[test]
fn an_operator_that_goes_with_its_definition_is_let_go() {
    let mut course = deleted_at(1000);
    let effects = course.handle(read("bar", Ok(Some(1000))));
    let expected = ["emit DefinitionDeleted", "remove the finalizer of bar"];
    assert_eq!(effects[..2], expected, "{effects:?}");
    // Nothing is deleted or repaired until the Operator is gone.
    course.seconds += 10;
    let effects = course.reconciler.handle_timeout(course.moment());
    let texts: Vec<String> = effects.iter().map(text).collect();
    assert!(texts.iter().all(|it| it.starts_with("write the status")), "{texts:?}");
}

#[test]
fn nothing_is_deleted_before_the_definition_was_read() {
    let mut course = deleted_at(1000);
    course.handle(read("bar", Err("denied")));
    course.seconds += 10;
    let again = course.reconciler.handle_timeout(course.moment());
    let again: Vec<String> = again.iter().map(text).collect();
    assert!(again.contains(&"read the definition".to_owned()), "{again:?}");
    assert!(!again.iter().any(|it| it.starts_with("inspect")), "{again:?}");
    // The deletion was requested before that of the definition.
    course.handle(read("bar", Ok(Some(5000))));
    for _ in 0..STEPS_MAX {
        if course.answer().contains(&"remove the finalizer of bar".to_owned()) {
            return;
        }
    }
    panic!("the Operator is not deleted");
}
