//! Operators as they report themselves in the end, and what is wrong with them.

use serde_json::json;

use super::*;

/// Returns the content of a cluster with Operator `foo`.
fn content(
    generation: i64,
    conditions: &[(&str, &str, &str, &str)],
    risks: &str,
) -> ClusterContent {
    let conditions = conditions.iter().map(|(type_, status, reason, message)| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    });
    let revision = json!({
        "state": "Completed", "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
        "revision": generation, "bundle": "foo.v1.0.0", "version": "1.0.0",
        "acceptedRisks": risks,
    });
    let object = json!({
        "metadata": { "name": "foo", "generation": generation },
        "status": {
            "observedGeneration": generation,
            "conditions": conditions.collect::<Vec<_>>(),
            "history": [revision],
        },
    });
    ClusterContent::of(std::iter::once(("operators.olm.io".to_owned(), object)))
}

/// Checks what is wrong after a change, each as `KIND REASON`, with `earlier` or `accepted` behind it.
fn check(before: &ClusterContent, after: &ClusterContent, expected: &[&str]) {
    let found = troubles("foo", before, after).into_iter().map(|it| {
        let notes = [(it.is_earlier, " earlier"), (it.is_accepted, " accepted")];
        let notes: String = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
        format!("{:?} {}{notes}", it.kind, it.reason)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

const WELL: [(&str, &str, &str, &str); 3] = [
    ("Installed", "True", "InstallationSucceeded", ""),
    ("ConstraintsSatisfied", "True", "AsExpected", ""),
    ("Progressing", "False", "AsExpected", ""),
];

#[test]
fn an_operator_is_unsatisfied_stuck_or_invalidates_objects() {
    let well = content(1, &WELL, "");
    let progressing = |status, reason, message| {
        content(2, &[WELL[0], WELL[1], ("Progressing", status, reason, message)], "")
    };
    let unmet = ("ConstraintsSatisfied", "False", "UnmetDependency", "foo depends on bar");
    check(&well, &content(2, &WELL, ""), &[]);
    check(&well, &progressing("True", "RollingOut", "1 of 2 objects"), &["Stuck RollingOut"]);
    check(&well, &progressing("False", "InstallationFailed", ""), &["Stuck InstallationFailed"]);
    check(&well, &progressing("False", "Paused", ""), &[]);
    let message = "foo.v2.0.0 changes definitions: foos: objects would be invalid: Foo a/b";
    let invalidated = progressing("False", "UpgradeBlocked", message);
    check(&well, &invalidated, &["Invalidated UpgradeBlocked"]);
    let unsatisfied = content(2, &[WELL[0], unmet, WELL[2]], "");
    check(&well, &unsatisfied, &["Unsatisfied UnmetDependency"]);
    // What waits for a requirement is not stuck besides.
    let waits = ("Progressing", "False", "ConstraintsUnmet", "");
    let installed = ("Installed", "False", "ConstraintsUnmet", "");
    let blocked = content(2, &[installed, unmet, waits], "");
    check(&ClusterContent::default(), &blocked, &["Unsatisfied UnmetDependency"]);
    check(
        &well,
        &content(2, &[("Invalid", "True", "InvalidSpec", "")], ""),
        &["Stuck InvalidSpec"],
    );
}

#[test]
fn what_was_so_before_and_what_is_accepted_is_marked() {
    let unmet = ("ConstraintsSatisfied", "False", "UnmetDependency", "foo depends on bar");
    let unsatisfied = |generation| content(generation, &[WELL[0], unmet, WELL[2]], "");
    check(&unsatisfied(1), &unsatisfied(1), &["Unsatisfied UnmetDependency earlier"]);
    // A change was requested, and it does not help.
    check(&unsatisfied(1), &unsatisfied(2), &["Unsatisfied UnmetDependency"]);
    let risks = "foos: objects would be invalid: Foo a/b";
    check(&content(1, &WELL, ""), &content(2, &WELL, risks), &["Invalidated  accepted"]);
    check(&content(1, &WELL, risks), &content(1, &WELL, risks), &[]);
}

#[test]
fn a_requirement_that_is_lost_is_not_covered_by_one_that_was_missing() {
    let unmet = ("ConstraintsSatisfied", "False", "UnmetDependency", "foo depends on bar");
    let unsatisfied = |requirements: &[&str]| {
        let mut content = content(1, &[WELL[0], unmet, WELL[2]], "");
        let requirements = ["bar >=1.0.0", "baz >=1.0.0"]
            .map(|it| json!({ "requirement": it, "satisfied": !requirements.contains(&it) }));
        let foo = content.operators.get_mut("foo").expect("it is there");
        foo["status"]["dependencies"] = json!(requirements);
        content
    };
    let (bar, both) = (unsatisfied(&["bar >=1.0.0"]), unsatisfied(&["bar >=1.0.0", "baz >=1.0.0"]));
    check(&bar, &both, &["Unsatisfied UnmetDependency"]);
    check(&both, &bar, &["Unsatisfied UnmetDependency earlier"]);
    check(&both, &both, &["Unsatisfied UnmetDependency earlier"]);
}

#[test]
fn another_object_or_cause_of_the_same_kind_is_new() {
    let reports = |reason: &str, message: &str| {
        content(1, &[WELL[0], WELL[1], ("Progressing", "False", reason, message)], "")
    };
    let failed = |object: &str| {
        let message = format!("Rollout of v1.0.0 failed: deployment.apps \"foo/{object}\" fails");
        reports("InstallationFailed", &message)
    };
    check(&failed("one"), &failed("one"), &["Stuck InstallationFailed earlier"]);
    check(&failed("one"), &failed("two"), &["Stuck InstallationFailed"]);
    // The same object is waited for, first with patience.
    let waits = "Rolling out v1.0.0: 3 of 9 objects, waiting on deployment.apps \"foo/one\"";
    let waits = content(1, &[WELL[0], WELL[1], ("Progressing", "True", "RollingOut", waits)], "");
    check(&waits, &failed("one"), &["Stuck InstallationFailed earlier"]);
    check(&waits, &failed("two"), &["Stuck InstallationFailed"]);
    let invalid = |objects: &str| {
        let message = format!("foo.v2.0.0: foos: objects would be invalid: {objects}");
        reports("UpgradeBlocked", &message)
    };
    let (one, both) =
        (invalid("Foo a/b (spec: no)"), invalid("Foo a/b (spec: no), Foo c (spec: no)"));
    check(&one, &one, &["Invalidated UpgradeBlocked earlier"]);
    check(&one, &both, &["Invalidated UpgradeBlocked"]);
    check(&both, &one, &["Invalidated UpgradeBlocked earlier"]);
    let conflict = reports("Conflict", "Configmap \"foo/config\" exists");
    check(&conflict, &conflict, &["Stuck Conflict earlier"]);
    check(&conflict, &reports("PackageNotFound", "no catalog has it"), &["Stuck PackageNotFound"]);
}

#[test]
fn a_deletion_that_waits_for_other_objects_is_new() {
    let deleting = |objects: &[&str]| {
        let mut content = content(1, &WELL, "");
        let foo = content.operators.get_mut("foo").expect("it is there");
        foo["status"]["deletion"] = json!({
            "phase": "Operands", "startedTime": "2026-01-01T00:00:00Z", "stuck": objects,
        });
        content
    };
    let one = "foo.example.com \"a/one\": finalizers example.com/held";
    let other = "foo.example.com \"a/other\": finalizers example.com/held";
    check(&deleting(&[one]), &deleting(&[one]), &["Stuck Deleting earlier"]);
    check(&deleting(&[one]), &deleting(&[one, other]), &["Stuck Deleting"]);
    check(&deleting(&[one, other]), &deleting(&[other]), &["Stuck Deleting earlier"]);
    check(&deleting(&[]), &deleting(&[]), &["Stuck Deleting earlier"]);
    check(&deleting(&[]), &deleting(&[one]), &["Stuck Deleting"]);
}

#[test]
fn a_deletion_that_a_pause_holds_up_is_stuck() {
    let held = ("Progressing", "False", "Paused", "It is not deleted: spec.paused is set");
    let mut held = content(2, &[WELL[0], WELL[1], held], "");
    check(&content(1, &WELL, ""), &held, &[]);
    let foo = held.operators.get_mut("foo").expect("it is there");
    foo["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    check(&content(1, &WELL, ""), &held, &["Stuck Paused"]);
}
