//! Rollouts that wait for what the rules of their Operator name.

use plimsoll_api::{Effect, Reason, Verdict};

use super::way_back::{nothing_held, pass, reported, request};
use super::*;

const RULE: &str = "self.data.lit == 'true'";

fn spec(rule: &str) -> Value {
    json!({ "version": "1.2.5", "readyWhen": [{ "kind": "ConfigMap", "rule": rule }] })
}

/// Shows the ConfigMap of `bar` as a watch of whole objects does.
fn show(course: &mut Course, health: Verdict) {
    let object = ObservedObject {
        key: ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "bar".to_owned(),
            name: "bar".to_owned(),
        },
        operator: "bar".to_owned(),
        uid: "bar".to_owned(),
        owners: BTreeSet::new(),
        mark: Mark::new(1, Trace::Ours(1)),
        health: Some(health),
        terminating: None,
        whole: None,
    };
    let change = WatchedChange::Present(Box::new(object));
    course.handle(OperatorEvent::Watched(GroupKind::new("", "ConfigMap"), change));
}

#[test]
fn a_rollout_waits_until_the_rules_of_its_operator_hold() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    pass(&mut course, 12, nothing_held);
    assert_eq!(course.shown["bar"]["status"]["revision"], 1);

    let effects = request(&mut course, 2, spec(RULE));
    assert!(effects.contains(&"read bar.v1.2.5".to_owned()), "{effects:?}");
    let effects = pass(&mut course, 12, nothing_held);
    assert!(effects.contains(&"write bar-2".to_owned()), "{effects:?}");
    // Metadata says nothing about it.
    assert!(effects.contains(&"watch ConfigMap".to_owned()), "{effects:?}");
    let message = "ConfigMap \"bar/bar\" is not ready".to_owned();
    let (effect, reason) = (Effect::None, Reason::WorkloadNotAvailable);
    show(&mut course, Verdict::Waiting { effect, reason, message });
    pass(&mut course, 12, nothing_held);
    assert_eq!(course.shown["bar"]["status"]["revision"], 1);
    let progressing = reported(&course, "Progressing");
    assert!(progressing.starts_with("True RollingOut: Rolling out v1.2.5: "), "{progressing}");

    show(&mut course, Verdict::Ready);
    pass(&mut course, 12, nothing_held);
    assert_eq!(course.shown["bar"]["status"]["revision"], 2);
    // Nothing more is made while the rules stay.
    request(&mut course, 3, spec(RULE));
    let effects = pass(&mut course, 12, nothing_held);
    assert!(!effects.iter().any(|it| it.starts_with("read bar")), "{effects:?}");
}

#[test]
fn rules_that_mean_nothing_change_nothing() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.1", true);
    pass(&mut course, 12, nothing_held);
    request(&mut course, 2, spec("self.data.lit ="));
    let effects = pass(&mut course, 12, nothing_held);
    assert!(!effects.iter().any(|it| it.starts_with("read bar")), "{effects:?}");
    let invalid = reported(&course, "Invalid");
    let expected = "True InvalidSpec: spec.readyWhen[0].rule: \"self.data.lit =\" is neither ";
    assert!(invalid.starts_with(expected), "{invalid}");

    let rules = json!([{ "kind": "ConfigMap", "name": "other", "rule": "conditions" }]);
    request(&mut course, 3, json!({ "version": "1.2.1", "readyWhen": rules }));
    let effects = pass(&mut course, 12, nothing_held);
    assert!(!effects.iter().any(|it| it.starts_with("write bar")), "{effects:?}");
    let progressing = reported(&course, "Progressing");
    assert!(progressing.contains("spec.readyWhen[0] selects no object"), "{progressing}");
}

/// Returns the history of the Operator `bar`, newest first, as texts such as `1 Completed`.
fn history(course: &Course) -> Vec<String> {
    let history = course.shown["bar"]["status"]["history"].as_array().expect("a history");
    let entry =
        |it: &Value| format!("{} {}", it["revision"], it["state"].as_str().unwrap_or_default());
    history.iter().map(entry).collect()
}

#[test]
fn rules_that_never_hold_are_given_up_for_good_with_what_they_came_with() {
    for (version, expected) in [
        ("1.2.1", vec!["1 Completed", "2 Partial", "1 Completed"]),
        // The bundle before is tried with the rules, too.
        ("1.2.5", vec!["1 Completed", "3 Partial", "1 Completed", "2 Partial", "1 Completed"]),
    ] {
        let mut course = Course::begin();
        course.operator("bar", "1", "1.2.1", true);
        pass(&mut course, 12, nothing_held);
        let mut spec = spec(RULE);
        spec["version"] = version.into();
        spec["rollback"] = "Automatic".into();
        spec["progressDeadline"] = "8s".into();
        request(&mut course, 2, spec.clone());
        pass(&mut course, 60, nothing_held);
        assert_eq!(history(&course), expected, "{version}");
        assert_eq!(course.shown["bar"]["status"]["revision"], 1, "{version}");
        let progressing = reported(&course, "Progressing");
        assert!(progressing.starts_with("False UpgradeBlocked: "), "{version}: {progressing}");
        assert!(progressing.contains("was given up for the revision before"), "{progressing}");
        pass(&mut course, 60, nothing_held);
        assert_eq!(history(&course), expected, "{version}: nothing is tried again");

        spec["rollback"] = "Manual".into();
        request(&mut course, 3, spec);
        pass(&mut course, 6, nothing_held);
        assert_eq!(history(&course)[0], "2 Partial", "{version}: it is tried again");
    }
}
