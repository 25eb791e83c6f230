//! Ways back to kept revisions.

use plimsoll_plan::plan::Action;

use super::*;

/// Lets a number of seconds pass in which all requests are answered, except for those that are held. Returns
/// the effects as texts.
pub(super) fn pass(
    course: &mut Course,
    seconds: u64,
    is_held: fn(&OperatorEffect) -> bool,
) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..seconds {
        let effects = std::mem::take(&mut course.unanswered).into_iter();
        let (held, answered): (Vec<_>, Vec<_>) = effects.partition(is_held);
        course.unanswered = answered;
        texts.extend(course.answer());
        course.seconds += 1;
        let effects = course.reconciler.handle_timeout(course.moment());
        texts.extend(effects.iter().map(text));
        course.unanswered.extend(effects);
        course.unanswered.extend(held);
    }
    texts
}

/// Shows the Operator `bar` with another spec. Returns the effects as texts.
pub(super) fn request(course: &mut Course, generation: i64, spec: Value) -> Vec<String> {
    course.resource_version += 1;
    let mut object = course.shown["bar"].clone();
    object["metadata"]["generation"] = json!(generation);
    object["metadata"]["resourceVersion"] = json!(course.resource_version.to_string());
    object["spec"] = spec;
    course.shown(OperatorKind::Operator, "bar", Some(object))
}

/// Answers a request to inspect objects. Returns the effects as texts.
fn answer_inspection(course: &mut Course, findings: Findings) -> Vec<String> {
    let is_it = |it: &OperatorEffect| matches!(it, OperatorEffect::InspectObjects { .. });
    let index = course.unanswered.iter().position(is_it).expect("objects are inspected");
    let OperatorEffect::InspectObjects { operator, ticket, .. } = course.unanswered.remove(index)
    else {
        unreachable!("it was found")
    };
    course.handle(OperatorEvent::ObjectsInspected { operator, ticket, findings: Ok(findings) })
}

/// Answers a request to inspect objects with an unsafe change of a definition. Returns the effects as texts.
fn find_unsafe(course: &mut Course) -> Vec<String> {
    let unsafe_definitions = vec!["pots.example.com: v1: ^.spec.color is removed".to_owned()];
    answer_inspection(course, Findings { unsafe_definitions, ..Findings::default() })
}

/// Returns a condition of the Operator `bar` as it was reported last.
pub(super) fn reported(course: &Course, type_: &str) -> String {
    let conditions = course.shown["bar"]["status"]["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|it| it["type"] == type_).expect("it is reported");
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

fn is_applied(effects: &[String]) -> bool {
    effects.iter().any(|it| it.starts_with("apply"))
}

pub(super) fn nothing_held(_: &OperatorEffect) -> bool {
    false
}

const REFUSAL: &str = "evision 1 is not applied again: bar.v1.2.1 changes definitions in ways that break \
                       their users: pots.example.com: v1: ^.spec.color is removed; set \
                       spec.crdUpgradeSafety to Warn to go ahead all the same";

#[test]
fn a_kept_revision_is_judged_before_it_is_applied_again() {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.1", true);
    pass(&mut course, 12, nothing_held);
    request(&mut course, 2, json!({ "version": "1.2.5" }));
    pass(&mut course, 12, nothing_held);
    assert_eq!(course.shown["bar"]["status"]["revision"], 2);

    let effects = request(&mut course, 3, json!({ "version": "1.2.5", "revision": 1 }));
    assert!(effects.contains(&"inspect 2 objects".to_owned()), "{effects:?}");
    assert!(!is_applied(&effects), "{effects:?}");
    let mut effects = find_unsafe(&mut course);
    effects.extend(pass(&mut course, 5, nothing_held));
    assert!(!is_applied(&effects), "{effects:?}");
    let refused = format!("False UpgradeBlocked: R{REFUSAL}");
    assert_eq!(reported(&course, "Progressing"), refused);
    assert_eq!(reported(&course, "Upgradeable"), refused);
    assert_eq!(course.shown["bar"]["status"]["revision"], 2);

    let spec = json!({ "version": "1.2.5", "revision": 1, "crdUpgradeSafety": "Warn" });
    let effects = request(&mut course, 4, spec);
    assert!(effects.contains(&"inspect 2 objects".to_owned()), "{effects:?}");
    find_unsafe(&mut course);
    assert!(is_applied(&pass(&mut course, 12, nothing_held)));
    let status = &course.shown["bar"]["status"];
    assert_eq!(status["revision"], 1);
    let risks = &status["history"][0]["acceptedRisks"];
    assert_eq!(*risks, "pots.example.com: v1: ^.spec.color is removed");
}

#[test]
fn a_rollout_is_not_given_up_for_a_revision_that_loses_data() {
    let is_execution = |it: &OperatorEffect| matches!(it, OperatorEffect::Execute { .. });
    let is_held = |it: &OperatorEffect| {
        matches!(it, OperatorEffect::Execute { .. } | OperatorEffect::InspectObjects { .. })
    };
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.1", true);
    pass(&mut course, 12, nothing_held);
    let mut spec = json!({ "version": "1.2.5", "rollback": "Automatic", "progressDeadline": "8s" });
    request(&mut course, 2, spec.clone());
    pass(&mut course, 6, is_execution);
    let effects = pass(&mut course, 10, is_held);
    assert!(effects.contains(&"inspect 2 objects".to_owned()), "{effects:?}");
    let mut effects = find_unsafe(&mut course);
    effects.extend(pass(&mut course, 5, is_execution));
    assert!(!is_applied(&effects), "{effects:?}");
    let progressing = reported(&course, "Progressing");
    let failed = "False InstallationFailed: Rollout of v1.2.5 failed: it is not complete after 8s";
    assert!(progressing.starts_with(failed), "{progressing}");
    assert!(progressing.ends_with(&format!("; r{REFUSAL}")), "{progressing}");
    assert_eq!(reported(&course, "Upgradeable"), format!("False UpgradeBlocked: R{REFUSAL}"));
    assert_eq!(course.shown["bar"]["status"]["history"][0]["revision"], 2);

    spec["crdUpgradeSafety"] = json!("Warn");
    request(&mut course, 3, spec);
    find_unsafe(&mut course);
    pass(&mut course, 5, is_execution);
    let newest = &course.shown["bar"]["status"]["history"][0];
    assert_eq!((&newest["revision"], &newest["state"]), (&json!(1), &json!("Completed")));
}

#[test]
fn a_definition_that_no_server_accepts_blocks_an_update_beforehand() {
    let is_held = |it: &OperatorEffect| matches!(it, OperatorEffect::InspectObjects { .. });
    for safety in ["Enforce", "Warn", "Off"] {
        let mut course = Course::begin();
        course.operator("bar", "1", "1.2.1", true);
        pass(&mut course, 12, nothing_held);
        request(&mut course, 2, json!({ "version": "1.2.5", "crdUpgradeSafety": safety }));
        pass(&mut course, 6, is_held);
        let refused_definitions = vec!["pots.example.com: v1 is stored".to_owned()];
        let findings = Findings { refused_definitions, ..Findings::default() };
        let mut effects = answer_inspection(&mut course, findings);
        effects.extend(pass(&mut course, 5, nothing_held));
        assert!(!is_applied(&effects), "{safety}: {effects:?}");
        let progressing = reported(&course, "Progressing");
        let refused =
            "changes definitions as no API server accepts: pots.example.com: v1 is stored";
        assert!(progressing.starts_with("False UpgradeBlocked: "), "{safety}: {progressing}");
        assert!(progressing.ends_with(refused), "{safety}: {progressing}");
    }
}

/// Answers a request to read a bundle with one whose definition has two versions.
fn answer_with_versions(course: &mut Course) {
    let is_it = |it: &OperatorEffect| matches!(it, OperatorEffect::ReadBundle { .. });
    let index = course.unanswered.iter().position(is_it).expect("a bundle is read");
    let OperatorEffect::ReadBundle { operator, ticket, bundle, .. } =
        course.unanswered.remove(index)
    else {
        unreachable!("it was found")
    };
    let version = |name: &str, is_stored: bool| json!({ "name": name, "served": false, "storage": is_stored });
    let mut content = content(&operator, bundle);
    content.objects.push(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kettles.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Kettle", "plural": "kettles" },
            "versions": [version("v1", false), version("v2", true)],
        },
    }));
    let content = Ok(Box::new(content));
    course.handle(OperatorEvent::BundleRead { operator, ticket, content });
}

#[test]
fn a_rollout_that_migrates_objects_is_not_given_up() {
    let is_migration = |it: &OperatorEffect| matches!(it, OperatorEffect::Execute { plan, step, .. } if plan.steps[*step].action == Action::Migrate);
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.1", true);
    pass(&mut course, 12, nothing_held);
    let spec = json!({ "version": "1.2.5", "rollback": "Automatic", "progressDeadline": "8s" });
    request(&mut course, 2, spec);
    answer_with_versions(&mut course);
    // The deadline passes while objects are migrated.
    pass(&mut course, 30, is_migration);
    assert!(course.unanswered.iter().any(is_migration), "objects are migrated");
    let progressing = reported(&course, "Progressing");
    assert!(progressing.starts_with("True RollingOut: Rolling out v1.2.5: "), "{progressing}");
    let newest = &course.shown["bar"]["status"]["history"][0];
    assert_eq!((&newest["revision"], &newest["state"]), (&json!(2), &json!("Partial")));
    pass(&mut course, 12, nothing_held);
    let newest = &course.shown["bar"]["status"]["history"][0];
    assert_eq!((&newest["revision"], &newest["state"]), (&json!(2), &json!("Completed")));
}
