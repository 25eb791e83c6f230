//! Deletions that wait: of what is paused, and of what cannot be read.

use super::*;

/// Returns an Operator that is being deleted.
fn deleting(spec: &Value) -> Value {
    let metadata = json!({
        "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
        "resourceVersion": "9", "deletionTimestamp": "1970-01-01T00:00:00Z",
    });
    json!({ "metadata": metadata, "spec": spec })
}

#[test]
fn a_deletion_waits_while_it_is_paused_or_what_is_kept_is_not_known() {
    let cases = [
        (json!({ "paused": true }), "Paused"),
        (json!({ "deletion": { "crds": "Keep" } }), "InvalidSpec"),
    ];
    for (spec, reason) in cases {
        let mut course = Course::begin();
        let effects = course.shown(OperatorKind::Operator, "bar", Some(deleting(&spec)));
        let begins = |effects: &[String]| effects.iter().any(|it| it.starts_with("find the kinds"));
        assert!(!begins(&effects), "{effects:?}");
        let status = course.unanswered.iter().find_map(|it| match it {
            OperatorEffect::WriteStatus { name, status, .. } if name == "bar" => Some(status),
            _ => None,
        });
        let conditions = status.expect("a status")["conditions"].as_array().expect("conditions");
        let progressing = conditions.iter().find(|it| it["type"] == "Progressing");
        let progressing = progressing.expect("it says so");
        assert_eq!(progressing["reason"], reason);
        let message = progressing["message"].as_str().expect("a message");
        assert!(message.starts_with("It is not deleted: "), "{message}");
        course.handle(definition::read("bar", Ok(None)));
        let effects = course.shown(OperatorKind::Operator, "bar", Some(deleting(&json!({}))));
        assert!(begins(&effects), "{effects:?}");
    }
}
