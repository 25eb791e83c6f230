//! OperatorRevisions of other clients, and those that are held until the deletion of their Operator has ended.

use super::*;

fn bar() -> RevisionContent {
    let (name, version) = ("bar.v1.2.5".to_owned(), "1.2.5".to_owned());
    content("bar", BundleReference { name, version, ..BundleReference::default() })
}

/// Returns the first revision of `bar`, with a uid of the Operator, as the controller makes it.
fn made(uid: &str) -> Value {
    let draft = RevisionDraft::read(bar()).expect("the objects are valid");
    let (_, mut revisions) = draft.numbered("bar", uid, 1, Some(&KEY));
    revisions.remove(0).1
}

/// Returns a revision of `bar` with an object that is not the bundle's. Any client can make it: its digest is
/// right.
fn forged(number: u32) -> Value {
    let mut content = bar();
    content.objects[1]["data"] = json!({ "of": "another client" });
    let draft = RevisionDraft::read(content).expect("the objects are valid");
    let (_, mut revisions) = draft.numbered("bar", "1", number, None);
    revisions.remove(0).1
}

fn terminating(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    object
}

/// Returns the message of the condition `Invalid` that was reported last; empty without one.
fn invalid(course: &Course) -> String {
    let conditions = course.shown["bar"]["status"]["conditions"].as_array();
    let invalid = conditions.into_iter().flatten().find(|it| it["type"] == "Invalid");
    invalid.map(|it| it["message"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

fn answer_all(course: &mut Course) -> Vec<String> {
    let mut texts = Vec::new();
    while !course.unanswered.is_empty() {
        texts.extend(course.answer());
    }
    texts
}

#[test]
fn revisions_of_other_clients_are_named_and_neither_used_nor_in_the_way() {
    // What else is forged of each: nothing, the signature, the owner, or the Operator that it names.
    let changes: [(&str, Value); 4] = [
        ("/metadata/name", json!("bar-1")),
        ("/metadata/annotations/olm.io~1signature", json!(KEY.signature("bar-1", "1", &json!({})))),
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/labels", json!({ "olm.io/operator": "other" })),
    ];
    for (field, value) in changes {
        let mut course = Course::begin();
        let mut object = forged(1);
        *object.pointer_mut(field).expect("the field is there") = value;
        course.shown(OperatorKind::Revision, "bar-1", Some(object));
        // The highest number there is would leave none for the next revision.
        course.shown(OperatorKind::Revision, "bar-4294967295", Some(forged(u32::MAX)));
        let mut texts = course.operator("bar", "1", "1.2.5", true);
        texts.extend(answer_all(&mut course));
        assert!(texts.contains(&"write bar-2".to_owned()), "{field}: {texts:?}");
        let named = format!(
            "OperatorRevisions are not used: bar-1: {0}; bar-4294967295: {0}",
            messages::NOT_SIGNED
        );
        assert_eq!(invalid(&course), named, "{field}");
        assert_eq!(course.reconciler.operators["bar"].revisions.len(), 1, "{field}");
        for name in ["bar-1", "bar-4294967295"] {
            course.shown(OperatorKind::Revision, name, None);
        }
        course.seconds += 10;
        let effects = course.reconciler.handle_timeout(course.moment());
        course.unanswered.extend(effects);
        answer_all(&mut course);
        assert_eq!(invalid(&course), "", "{field}");
    }
}

#[test]
fn a_revision_of_an_earlier_operator_counts_only_if_its_deletion_was_aborted() {
    let mut replayed = made("0");
    replayed["metadata"]["ownerReferences"][0]["uid"] = json!("1");
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    course.shown(OperatorKind::Revision, "bar-1", Some(replayed.clone()));
    let texts = answer_all(&mut course);
    assert!(texts.contains(&"write bar-2".to_owned()), "{texts:?}");
    let named = format!("OperatorRevisions are not used: bar-1: {}", messages::OF_ANOTHER);
    assert_eq!(invalid(&course), named);
    assert!(course.reconciler.operators["bar"].revisions.keys().eq(&[2]));
    // It goes when it is deleted.
    let texts = course.shown(OperatorKind::Revision, "bar-1", Some(terminating(replayed.clone())));
    assert!(texts.contains(&"release bar-1".to_owned()), "{texts:?}");

    // `operator abort` names the earlier Operator, before or after the revision is given over.
    for is_named_first in [true, false] {
        let mut course = Course::begin();
        let metadata =
            json!({ "name": "bar", "uid": "1", "generation": 1, "resourceVersion": "9" });
        let mut object =
            json!({ "metadata": metadata, "spec": { "version": "1.2.5", "paused": true } });
        course.shown(OperatorKind::Operator, "bar", Some(object.clone()));
        answer_all(&mut course);
        object["status"] = json!({ "observedGeneration": 0, "revision": 1, "predecessors": ["0"] });
        let operator = (OperatorKind::Operator, "bar", object);
        let revision = (OperatorKind::Revision, "bar-1", replayed.clone());
        let mut shown = vec![operator, revision];
        if !is_named_first {
            shown.reverse();
        }
        for (kind, name, object) in shown {
            course.shown(kind, name, Some(object));
        }
        course.seconds += 10;
        let effects = course.reconciler.handle_timeout(course.moment());
        course.unanswered.extend(effects);
        answer_all(&mut course);
        assert_eq!(invalid(&course), "", "{is_named_first}");
        let status = &course.shown["bar"]["status"];
        assert_eq!(status["bundle"]["name"], "bar.v1.2.5", "{status:#}");
        assert_eq!(status["predecessors"], json!(["0"]), "{status:#}");
    }
}

#[test]
fn a_revision_that_names_an_operator_which_comes_later_is_named_too() {
    let mut course = Course::begin();
    let mut object = forged(9);
    object["metadata"]["ownerReferences"] = json!([]);
    course.shown(OperatorKind::Revision, "bar-9", Some(object));
    for uid in ["1", "2"] {
        course.operator("bar", uid, "1.2.5", true);
        let operator = &course.reconciler.operators["bar"];
        assert!(operator.unusable.contains_key("bar-9"), "{uid}");
    }
}

#[test]
fn revisions_are_held_while_their_operator_is_there_and_released_with_it() {
    let mut course = Course::begin();
    course.shown(OperatorKind::Revision, "bar-1", Some(made("1")));
    let status = json!({
        "revision": 1,
        "history": [{
            "state": "Completed", "bundle": "bar.v1.2.5", "version": "1.2.5", "revision": 1,
            "startedTime": "1970-01-01T00:00:00Z", "completionTime": "1970-01-01T00:00:00Z",
        }],
    });
    let operator = |metadata: Value| {
        let mut object = json!({
            "metadata": {
                "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
                "resourceVersion": "9",
            },
            "spec": { "version": "1.2.5" }, "status": status,
        });
        for (field, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][field] = value.clone();
        }
        object
    };
    course.shown(OperatorKind::Operator, "bar", Some(operator(json!({}))));
    let mut texts = answer_all(&mut course);
    // Another client deletes the record, and later the Operator.
    texts.extend(course.shown(OperatorKind::Revision, "bar-1", Some(terminating(made("1")))));
    texts.extend(answer_all(&mut course));
    assert!(!texts.iter().any(|it| it.starts_with("release")), "{texts:?}");
    let deleted = operator(json!({ "deletionTimestamp": "1970-01-01T00:00:00Z" }));
    let mut texts = course.shown(OperatorKind::Operator, "bar", Some(deleted));
    texts.extend(answer_all(&mut course));
    assert!(!texts.contains(&"find the kinds of bar".to_owned()), "{texts:?}");
    let released: Vec<&String> = texts.iter().filter(|it| it.starts_with("release")).collect();
    assert_eq!(released, ["release bar-1"], "{texts:?}");
    assert!(!texts.contains(&"remove the finalizer of bar".to_owned()), "{texts:?}");
    let mut texts = course.shown(OperatorKind::Revision, "bar-1", None);
    texts.extend(answer_all(&mut course));
    assert!(texts.contains(&"remove the finalizer of bar".to_owned()), "{texts:?}");
    assert!(!texts.contains(&"find the kinds of bar".to_owned()), "{texts:?}");
}

#[test]
fn a_revision_that_is_deleted_is_released_if_there_is_nothing_to_hold_it_for() {
    // Without its Operator, whose finalizer another client removed.
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    course.shown(OperatorKind::Revision, "bar-1", Some(made("1")));
    let shown = course.shown(OperatorKind::Revision, "bar-1", Some(terminating(made("1"))));
    assert!(!shown.contains(&"release bar-1".to_owned()), "{shown:?}");
    let shown = course.shown(OperatorKind::Operator, "bar", None);
    assert!(shown.contains(&"release bar-1".to_owned()), "{shown:?}");
    // Of another Operator with the name, and not before Operators were listed.
    let mut reconciler = OperatorReconciler::new([], KEY);
    let event = OperatorEvent::Configuration {
        kind: OperatorKind::Revision,
        name: "bar-1".to_owned(),
        object: Some(Box::new(terminating(made("0")))),
    };
    let moment = course.moment();
    assert!(reconciler.handle(event, moment).is_empty());
    let listed =
        reconciler.handle(OperatorEvent::ConfigurationListed(OperatorKind::Operator), moment);
    assert_eq!(listed.iter().map(text).collect::<Vec<_>>(), ["release bar-1"]);
    // Of another client, who is asked to delete it.
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    let shown = course.shown(OperatorKind::Revision, "bar-9", Some(terminating(forged(9))));
    assert!(shown.contains(&"release bar-9".to_owned()), "{shown:?}");
}
