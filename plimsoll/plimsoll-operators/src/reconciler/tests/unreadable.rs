//! Specs that cannot be read.

use super::way_back::{nothing_held, pass, reported, request};
use super::*;

/// The fields of an Operator, each with a value that cannot be read, such as one of a later version.
fn fields() -> Vec<(&'static str, Value)> {
    let texts = [
        ("constraintPolicy.install", "Later"),
        ("constraintPolicy.upgrade", "Later"),
        ("upgradePolicy", "Later"),
        ("crdUpgradeSafety", "Later"),
        ("collisionProtection", "Later"),
        ("deletion.crds", "Later"),
        ("deletion.workloads", "Later"),
        ("deletion.protect", "Later"),
        ("rollback", "Later"),
        ("revision", "one"),
        ("paused", "no"),
        ("progressDeadline", "soon"),
        ("readyWhen", "soon"),
    ];
    let numbers = ["version", "channel", "repository", "namespace"].map(|it| (it, json!(1)));
    texts.into_iter().map(|(field, text)| (field, json!(text))).chain(numbers).collect()
}

fn spec(field: &str, value: &Value) -> Value {
    match field.split_once('.') {
        Some((outer, inner)) => json!({ (outer): { (inner): value } }),
        None => json!({ (field): value }),
    }
}

/// Returns an Operator as it was left by an earlier process.
fn installed(spec: &Value) -> Value {
    json!({
        "metadata": {
            "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
            "resourceVersion": "9",
        },
        "spec": spec,
        "status": { "revision": 1, "resolvedVersion": "1.2.1 (@v1.2.1)" },
    })
}

#[track_caller]
fn check_nothing_changes(effects: &[String]) {
    let words = ["delete", "remove", "add", "find", "read bar", "inspect", "apply"];
    let changes = effects.iter().filter(|it| words.iter().any(|word| it.starts_with(word)));
    let changes: Vec<&String> = changes.collect();
    assert!(changes.is_empty(), "{changes:?}");
}

#[test]
fn an_operator_that_was_never_read_is_left_as_it_is() {
    for (field, value) in fields() {
        let mut course = Course::begin();
        let object = installed(&spec(field, &value));
        let mut effects = course.shown(OperatorKind::Operator, "bar", Some(object));
        effects.extend(pass(&mut course, 15, nothing_held));
        check_nothing_changes(&effects);
        let progressing = reported(&course, "Progressing");
        assert!(
            progressing.starts_with(&format!("False InvalidSpec: spec.{field}: ")),
            "{progressing}"
        );
        let invalid = reported(&course, "Invalid");
        assert!(invalid.ends_with("; nothing is changed until this is corrected"), "{invalid}");
        assert_eq!(course.shown["bar"]["status"]["resolvedVersion"], "1.2.1 (@v1.2.1)");
        let effects = request(&mut course, 2, json!({ "version": "1.2.1" }));
        assert!(effects.contains(&"read bar.v1.2.1".to_owned()), "{field}: {effects:?}");
    }
}

#[test]
fn an_operator_that_was_never_read_is_not_deleted() {
    for (field, value) in fields() {
        let mut course = Course::begin();
        let mut object = installed(&spec(field, &value));
        object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        let mut effects = course.shown(OperatorKind::Operator, "bar", Some(object));
        effects.extend(pass(&mut course, 15, nothing_held));
        check_nothing_changes(&effects);
        let progressing = reported(&course, "Progressing");
        let waits = format!("False InvalidSpec: It is not deleted: spec.{field}: ");
        assert!(progressing.starts_with(&waits), "{progressing}");
        let invalid = reported(&course, "Invalid");
        assert!(invalid.ends_with("; nothing is deleted until this is corrected"), "{invalid}");
        let effects = request(&mut course, 2, json!({ "deletion": { "crds": "Orphan" } }));
        assert!(effects.contains(&"find the kinds of bar".to_owned()), "{field}: {effects:?}");
    }
}

#[test]
fn a_spec_that_becomes_unreadable_changes_and_deletes_nothing() {
    for (field, value) in fields() {
        let mut course = Course::begin();
        course.operator("bar", "1", "1.2.1", true);
        pass(&mut course, 12, nothing_held);
        let mut unreadable = spec(field, &value);
        if field != "version" {
            unreadable["version"] = json!("1.2.5");
        }
        let mut effects = request(&mut course, 2, unreadable);
        effects.extend(pass(&mut course, 5, nothing_held));
        check_nothing_changes(&effects);
        let progressing = reported(&course, "Progressing");
        assert_eq!(progressing, "False AsExpected: v1.2.1 is installed", "{field}");
        let invalid = reported(&course, "Invalid");
        assert!(invalid.starts_with(&format!("True InvalidSpec: spec.{field}: ")), "{invalid}");
        assert!(invalid.ends_with("; what was requested before stays in force"), "{invalid}");

        let mut object = course.shown["bar"].clone();
        object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        let mut effects = course.shown(OperatorKind::Operator, "bar", Some(object));
        effects.extend(pass(&mut course, 15, nothing_held));
        check_nothing_changes(&effects);
        let progressing = reported(&course, "Progressing");
        assert!(progressing.starts_with("False InvalidSpec: It is not deleted: "), "{progressing}");
    }
}

#[test]
fn a_catalog_that_becomes_unreadable_is_served_as_before() {
    let cases = [
        ("source.type", json!("Later")),
        ("source.path", json!(1)),
        ("source.reference", json!(1)),
        ("weight", json!("low")),
        ("availability", json!("Later")),
        ("pollInterval", json!("soon")),
    ];
    for (field, value) in cases {
        let mut course = Course::begin();
        let show = |course: &mut Course, spec: Value| {
            let object = json!({ "metadata": { "name": "side", "uid": "side" }, "spec": spec });
            course.shown(OperatorKind::Catalog, "side", Some(object))
        };
        let conditions = |course: &Course| {
            let status = course.unanswered.iter().find_map(|it| match it {
                OperatorEffect::WriteStatus { name, status, .. } if name == "side" => Some(status),
                _ => None,
            });
            status.expect("a status")["conditions"].to_string()
        };
        let is_served =
            |course: &Course| course.reconciler.served_catalogs().any(|(name, _)| name == "side");
        let read = "read catalog side".to_owned();
        let effects = show(&mut course, spec(field, &value));
        assert!(!effects.contains(&read), "{field}: {effects:?}");
        assert!(conditions(&course).contains("; it is not read until this is corrected"));
        assert!(!is_served(&course));
        course.answer();
        let readable = json!({ "source": { "type": "Directory", "path": "/side" } });
        assert!(show(&mut course, readable).contains(&read), "{field}");
        pass(&mut course, 5, nothing_held);
        assert!(is_served(&course));
        show(&mut course, spec(field, &value));
        assert!(is_served(&course), "{field}");
        assert!(conditions(&course).contains("; what was requested before stays in force"));
    }
}
