//! Which changes enable capabilities and make another plan due.

use plimsoll_api::config::{ClusterVersionSpec, ComponentOverride};
use plimsoll_content::payload::ReleaseInfo;

use super::{AcceptedRelease, DesiredInputs, DesiredState};
use crate::plan::features::Features;
use crate::plan::mode::Mode;
use crate::reconciler::testing::{PROFILE, at, desired, names, payload, requesting};
use crate::update::target::Target;

const RELEASE: &str = "core web:Console reports:Insights";

/// The names of the objects that the plan applies.
fn planned(desired: &DesiredState) -> String {
    let plan = desired.plan(Mode::Updating);
    let names: Vec<&str> = plan.steps.iter().map(|step| step.manifest.key.name.as_str()).collect();
    names.join(" ")
}

fn overriding(mut spec: ClusterVersionSpec, object: &str) -> ClusterVersionSpec {
    spec.overrides = vec![ComponentOverride {
        kind: "ConfigMap".to_owned(),
        group: String::new(),
        namespace: "x".to_owned(),
        name: object.to_owned(),
        unmanaged: true,
    }];
    spec
}

#[test]
fn the_plan_follows_the_spec_and_what_was_enabled_before() {
    #[track_caller]
    fn check(requested: &str, before: &str, expected: &str) {
        let desired = desired(payload("1.0.0", RELEASE), requesting(requested), before);
        assert_eq!(planned(&desired), expected);
        assert_eq!(desired.capability_rules().enabled, desired.capabilities().enabled);
    }
    check("", "", "core");
    check("Console", "", "core web");
    check("", "Insights", "core reports");
    check("Console Insights", "Console", "core web reports");
}

#[test]
fn a_changed_spec_enables_what_it_requests_and_disables_nothing() {
    #[track_caller]
    fn check(before: &str, after: &str, named: &str, enabled: &[&str], is_changed: bool) {
        let mut desired = desired(payload("1.0.0", RELEASE), requesting(before), "");
        let named: Vec<String> = names(named).into_iter().collect();
        let new = desired.cluster_version_changed(requesting(after), None, &named);
        assert_eq!(new, enabled, "{before} -> {after}");
        assert_eq!(desired.refresh(at(1)), is_changed, "{before} -> {after}");
        assert!(!desired.refresh(at(2)), "taken up once");
    }
    check("", "", "", &[], false);
    check("", "Console", "", &["Console"], true);
    check("Console", "Console", "Console", &[], false);
    check("Console", "", "", &[], false);
    check("Console", "Insights", "", &["Insights"], true);
    // What the status names stays enabled, though it is not requested.
    check("", "", "Console", &[], true);
}

#[test]
fn an_override_changes_the_plan_until_it_expires() {
    let terms = r#"[{"kind": "ConfigMap", "namespace": "x", "name": "core",
        "expires": "1970-01-01T00:01:00Z"}]"#;
    #[track_caller]
    fn check(terms: Option<&str>, now: i64, expected: &str) {
        let mut desired = desired(payload("1.0.0", RELEASE), requesting(""), "");
        let spec = overriding(requesting(""), "core");
        desired.cluster_version_changed(spec, terms, &[]);
        assert!(desired.are_overrides_changed(at(0)));
        desired.refresh(at(0));
        assert_eq!(planned(&desired), "");
        let is_changed = !expected.is_empty();
        assert_eq!(desired.are_overrides_changed(at(now)), is_changed);
        assert_eq!(desired.refresh(at(now)), is_changed);
        assert_eq!(planned(&desired), expected);
    }
    check(None, 1_000_000, "");
    check(Some(terms), 59, "");
    check(Some(terms), 60, "core");
}

#[test]
fn an_update_enables_what_it_makes_necessary() {
    #[track_caller]
    fn check(outgoing: &str, next: &str, expected: &[&str]) {
        let mut desired = desired(payload("1.0.0", outgoing), requesting(""), "");
        let next = payload("2.0.0", next);
        let implied = desired.imply(&next, at(9));
        let found: Vec<&str> = implied.iter().map(|it| it.capability.as_str()).collect();
        assert_eq!(found, expected, "{outgoing}");
        let recorded: Vec<&str> =
            desired.implied().iter().map(|it| it.capability.as_str()).collect();
        assert_eq!(recorded, expected);
        assert!(expected.iter().all(|name| desired.capabilities().implicit.contains(*name)));
        assert!(desired.imply(&next, at(10)).is_empty(), "once");
        desired.release_changed(
            AcceptedRelease { payload: next, verified: true, accepted_risks: "r".to_owned() },
            at(11),
        );
        assert!(expected.iter().all(|name| desired.capabilities().enabled.contains(*name)));
        assert_eq!(desired.release().version, "2.0.0");
        assert_eq!((desired.is_verified(), desired.accepted_risks()), (true, "r"));
        assert!(!desired.refresh(at(12)), "the release was taken up");
    }
    check("core", "core", &[]);
    check("core web", "core web:Console", &["Console"]);
    check("core web:Console", "core web:Console", &[]);
    check("a b", "a:Console b:Insights", &["Console", "Insights"]);
    check("core", "core other:Console", &[]);
}

#[test]
fn an_update_enables_nothing_for_what_an_override_leaves_unmanaged() {
    #[track_caller]
    fn check(overridden: &str, expected: &[&str]) {
        let mut desired = desired(payload("1.0.0", "core web"), requesting(""), "");
        desired.cluster_version_changed(overriding(requesting(""), overridden), None, &[]);
        desired.refresh(at(1));
        let next = payload("2.0.0", "core web:Console");
        let running: Vec<String> =
            desired.clone().imply(&next, at(2)).into_iter().map(|it| it.capability).collect();
        assert_eq!(running, expected, "{overridden}");
        let ours = desired.payload().manifests.iter().map(|manifest| manifest.key.clone());
        let target = Target {
            profile: PROFILE.to_owned(),
            overrides: desired.overrides().for_inclusion(at(2)),
            spec: requesting(""),
            ..Target::default()
        };
        let (_, planned) = target.towards(&next, &ours.collect());
        let planned: Vec<String> = planned.into_iter().map(|it| it.name).collect();
        assert_eq!(planned, expected, "{overridden}");
    }
    check("core", &["Console"]);
    check("web", &[]);
}

#[test]
fn features_make_another_plan_due_only_if_they_change_something() {
    #[track_caller]
    fn check(features: &Features, is_changed: bool) {
        let mut desired = desired(payload("1.0.0", RELEASE), requesting(""), "");
        let change = desired.features_changed(features.clone());
        assert_eq!(change.is_some(), is_changed);
        assert_eq!(desired.features(), features);
    }
    check(&Features::default(), false);
    check(&Features::of_set("TechPreviewNoUpgrade"), true);
}

#[test]
fn capabilities_of_the_settings_are_always_enabled() {
    let desired = DesiredState::new(DesiredInputs {
        profile: PROFILE,
        always_enabled: &["Console".to_owned()],
        payload: payload("1.0.0", RELEASE),
        spec: requesting(""),
        override_terms: None,
        features: Features::default(),
        enabled_before: &names(""),
        implied: Vec::new(),
        now: at(0),
    });
    assert_eq!(planned(&desired), "core web");
    let ReleaseInfo { version, .. } = &desired.payload().release;
    assert_eq!(version, "1.0.0");
}
