//! The axioms CAP-17 to CAP-22, CAP-12 to CAP-15, and CVS-57 to CVS-60.
//! Names of tests quote the design's ideas.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ObjectKey;
use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec, Release};
use plimsoll_content::Manifest;
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::inclusion::{Context, UnmanagedObject};
use serde_json::json;

use super::{Capabilities, Implied, applied, effective, enabling, implied};
use crate::plan::mode::Mode;
use crate::plan::plan;

const PROFILE: &str = "self-managed";

/// A manifest of a ConfigMap `name` in the profile, with capabilities as annotated; more
/// annotations after `;` as `key=value`.
fn manifest(text: &str) -> Manifest {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let mut parts = rest.split(';');
    let mut annotations =
        vec![(format!("include.release.openshift.io/{PROFILE}"), "true".to_owned())];
    if let Some(capabilities) = parts.next().filter(|it| !it.is_empty()) {
        annotations.push(("capability.openshift.io/name".to_owned(), capabilities.to_owned()));
    }
    for part in parts {
        let (key, value) = part.split_once('=').unwrap();
        annotations.retain(|(known, _)| known != key);
        annotations.push((key.to_owned(), value.to_owned()));
    }
    let annotations: BTreeMap<String, String> = annotations.into_iter().collect();
    let metadata = json!({ "name": name, "namespace": "ns", "annotations": annotations });
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    Manifest::read(format!("0000_50_{name}.yaml").into(), 0, &object).expect("a manifest")
}

fn manifests(texts: &[&str]) -> Vec<Manifest> {
    texts.iter().map(|text| manifest(text)).collect()
}

fn names(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn context() -> Context {
    Context { feature_gates: Some(names("Gate")), ..Context::new(PROFILE, "") }
}

fn asking(set: &str, additional: &str) -> ClusterVersionSpec {
    ClusterVersionSpec {
        capabilities: Some(CapabilitiesSpec {
            baseline_capability_set: set.to_owned(),
            additional_enabled_capabilities: names(additional).into_iter().collect(),
        }),
        ..ClusterVersionSpec::default()
    }
}

fn capabilities(spec: &ClusterVersionSpec, before: &str) -> Capabilities {
    let before: Vec<String> = names(before).into_iter().collect();
    effective(spec, &before, &[], &CapabilityRegistry::built_in(), &BTreeSet::new())
}

/// The names of the objects that a plan applies.
fn planned(texts: &[&str], capabilities: &Capabilities) -> String {
    let context = Context { capabilities: Some(capabilities.for_inclusion()), ..context() };
    let plan = plan(&manifests(texts), &context, Release::default(), Mode::Updating);
    let names: Vec<&str> = plan.steps.iter().map(|step| step.manifest.key.name.as_str()).collect();
    names.join(" ")
}

fn implications(old: &[&str], new: &[&str], enabled: &str) -> Vec<Implied> {
    let enabled = names(enabled);
    let applied = applied(&manifests(old), &context(), &enabled);
    implied(&applied, &manifests(new), &context(), &enabled, "2.0.0")
}

/// The capabilities that an update makes necessary.
fn check_implied(old: &[&str], new: &[&str], enabled: &str, expected: &str) {
    let found = implications(old, new, enabled);
    let found: Vec<&str> = found.iter().map(|it| it.capability.as_str()).collect();
    assert_eq!(found.join(" "), expected, "{old:?} -> {new:?}");
}

#[test]
fn axiom_1_an_admin_can_opt_into_or_out_of_any_capability_at_install_time() {
    let release = ["core", "web:Console", "reports:Insights"];
    for (spec, expected) in [
        (ClusterVersionSpec::default(), "core web reports"),
        (asking("None", ""), "core"),
        (asking("None", "Insights"), "core reports"),
        (asking("v4.11", "Console"), "core web"),
    ] {
        assert_eq!(planned(&release, &capabilities(&spec, "")), expected);
    }
    // Each of them, alone.
    for known in CapabilityRegistry::built_in().capabilities().filter(|it| it.gates.is_empty()) {
        let alone = capabilities(&asking("None", &known.name), "");
        assert_eq!(alone.enabled, names(&known.name));
        assert!(capabilities(&asking("None", ""), "").enabled.is_empty());
    }
}

#[test]
fn axiom_2_an_admin_can_enable_a_disabled_capability_after_installing() {
    let release = ["core", "web:Console"];
    let before = capabilities(&asking("None", ""), "");
    assert_eq!(planned(&release, &before), "core");
    let after = capabilities(&asking("None", "Console"), "");
    assert_eq!(planned(&release, &after), "core web");
    assert!(after.implicit.is_empty());
}

#[test]
fn axiom_3_an_admin_cannot_disable_an_enabled_capability() {
    let kept = capabilities(&asking("None", ""), "Console");
    assert_eq!(planned(&["core", "web:Console"], &kept), "core web");
    assert_eq!(kept.implicit, names("Console"));
}

#[test]
fn axiom_4_what_has_been_applied_continues_to_be_though_its_capability_is_disabled() {
    check_implied(&["m"], &["m:Console"], "", "Console");
    check_implied(&["m:Insights"], &["m:Console"], "Insights", "Console");
    check_implied(&["m:Insights"], &["m:Insights+Console"], "Insights", "Console");
    // Unless it is removed from the payload entirely.
    check_implied(&["m"], &[], "", "");
}

#[test]
fn axiom_5_profiles_take_precedence_over_capabilities() {
    let elsewhere = format!("web:Console;include.release.openshift.io/{PROFILE}=false");
    let enabled = capabilities(&asking("None", "Console"), "");
    assert_eq!(planned(&["core", &elsewhere], &enabled), "core");
    // What the profile includes, the capability can still exclude.
    assert_eq!(planned(&["web:Console"], &capabilities(&asking("None", ""), "")), "");
    // Nor can anything outside the profile force a capability.
    check_implied(&["web"], &[&elsewhere], "", "");
    let before = format!("web:;include.release.openshift.io/{PROFILE}=false");
    check_implied(&[&before], &["web:Console"], "", "");
    let context = context();
    let release = manifests(&["core", &elsewhere, "more:Console"]);
    let registry = CapabilityRegistry::built_in();
    let enabling = enabling("Console", &release, &context, &BTreeSet::new(), &registry);
    assert_eq!(enabling.manifests, [&release[2]]);
    assert_eq!(enabling.elsewhere, 1);
}

#[test]
fn axiom_6_a_capability_is_there_by_default_if_it_is_in_v_current() {
    let current = capabilities(&ClusterVersionSpec::default(), "");
    let registry = CapabilityRegistry::built_in();
    let set = &registry.set("vCurrent").unwrap().capabilities;
    assert!(current.enabled.is_subset(set));
    assert_eq!(current.enabled, current.known);
}

#[test]
fn only_resources_of_which_all_capabilities_are_enabled_are_included() {
    let release = ["both:Console+Insights", "one:Console", "core"];
    for (enabled, expected) in [
        ("", "core"),
        ("Console", "one core"),
        ("Insights", "core"),
        ("Console Insights", "both one core"),
    ] {
        assert_eq!(planned(&release, &capabilities(&asking("None", enabled), "")), expected);
    }
}

#[test]
fn if_any_part_of_a_capability_is_present_the_entire_capability_will_be() {
    // CVS-57: n is new and comes along with m.
    let (old, new) = (["m"], ["m:Console", "n:Console"]);
    let found = implications(&old, &new, "");
    assert_eq!(found.len(), 1);
    assert_eq!(planned(&new, &capabilities(&asking("None", ""), "Console")), "m n");
    // The same, but m was excluded by another capability that is disabled.
    check_implied(&["m:Insights"], &["m:Console"], "", "");
}

#[test]
fn updating_into_an_expanding_enabled_capability_creates_the_new_resources() {
    let new = ["web:Console", "more:Console"];
    check_implied(&["web:Console"], &new, "Console", "");
    assert_eq!(planned(&new, &capabilities(&asking("None", "Console"), "Console")), "web more");
}

#[test]
fn updating_into_an_expanding_disabled_capability_creates_nothing() {
    // CVS-58 and CAP-15.
    check_implied(&["core"], &["core", "more:Console"], "", "");
    assert_eq!(planned(&["core", "more:Console"], &capabilities(&asking("None", ""), "")), "core");
}

#[test]
fn all_capabilities_of_matched_manifests_are_united_with_those_enabled_before() {
    // CVS-59: once is enough, and nothing that is enabled already is implied.
    check_implied(&["m", "n"], &["m:Console", "n:Console+Insights"], "", "Console Insights");
    check_implied(&["m:Console"], &["m:Console"], "Console", "");
    check_implied(&["m"], &["m:Console"], "Console", "");
    let kept = capabilities(&asking("None", ""), "Console");
    assert_eq!(kept.enabled, names("Console"), "whatever the next payload holds");
}

#[test]
fn an_unknown_name_is_implied_and_then_applied() {
    // CVS-60.
    check_implied(&["m"], &["m:Zeppelin"], "", "Zeppelin");
    let kept = capabilities(&asking("None", ""), "Zeppelin");
    assert!(!kept.known.contains("Zeppelin"));
    assert_eq!(planned(&["m:Zeppelin", "n:Console"], &kept), "m");
}

#[test]
fn what_is_filtered_by_gates_on_either_side_forces_nothing() {
    let gated = |gate: &str| format!("m:Console;release.openshift.io/feature-gate={gate}");
    check_implied(&["m"], &[&gated("Other")], "", "");
    check_implied(&["m"], &[&gated("Gate")], "", "Console");
    check_implied(&[&gated("Other").replace("Console", "")], &["m:Console"], "", "");
}

#[test]
fn what_an_override_leaves_unmanaged_was_never_applied() {
    let unmanaged = |name: &str| UnmanagedObject {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    };
    let (old, new) = (manifests(&["m", "n"]), manifests(&["m:Console", "n:Insights"]));
    // What carries our field manager counts alike: after a restart, in a plan, in a rehearsal.
    let ours: BTreeSet<ObjectKey> = old.iter().map(|manifest| manifest.key.clone()).collect();
    for (overridden, expected) in
        [(vec![], "Console Insights"), (vec!["m"], "Insights"), (vec!["m", "n"], "")]
    {
        let overrides = overridden.into_iter().map(unmanaged).collect();
        let context = Context { overrides, ..context() };
        let applied = applied(&old, &context, &BTreeSet::new());
        for applied in [&applied, &ours] {
            let found = implied(applied, &new, &context, &BTreeSet::new(), "2.0.0");
            let found: Vec<&str> = found.iter().map(|it| it.capability.as_str()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }
}

#[test]
fn what_was_only_deleted_was_never_applied() {
    check_implied(&["m:;release.openshift.io/delete=true"], &["m:Console"], "", "");
}

#[test]
fn which_manifest_of_which_payload_forced_which_capability_is_reported() {
    let found = implications(&["a", "b", "c"], &["a:Console", "b:Console", "c:Insights"], "");
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "capability Console becomes enabled: configmap \"ns/a\" has been applied, and in release \
             2.0.0 it belongs to Console (0000_50_a.yaml and one other manifest)",
            "capability Insights becomes enabled: configmap \"ns/c\" has been applied, and in release \
             2.0.0 it belongs to Insights (0000_50_c.yaml)",
        ],
    );
}

#[test]
fn answer_a_name_that_does_not_match_anything_fails_validation() {
    let requested = capabilities(&asking("None", "Consle"), "");
    assert!(requested.enabled.is_empty());
    assert_eq!(requested.unavailable.len(), 1);
}

#[test]
fn answer_components_opt_in_by_annotating_their_resources() {
    // Nothing but the annotation takes a resource out.
    assert_eq!(
        planned(&["core", "dns", "web:Console"], &capabilities(&asking("None", ""), "")),
        "core dns"
    );
}

#[test]
fn answer_turning_a_component_on_is_supported_and_turning_it_off_is_not() {
    let on = capabilities(&asking("None", "Console"), "");
    assert_eq!(planned(&["web:Console"], &on), "web");
    let before: Vec<String> = on.enabled.into_iter().collect();
    let off = capabilities(&asking("None", ""), &before.join(" "));
    assert_eq!(planned(&["web:Console"], &off), "web");
}

#[test]
fn answer_interdependencies_are_known_and_reported() {
    let registry = CapabilityRegistry::built_in();
    let release = manifests(&["market:marketplace"]);
    let enabling = enabling("marketplace", &release, &context(), &BTreeSet::new(), &registry);
    assert_eq!(enabling.missing.into_iter().collect::<Vec<_>>(), ["OperatorLifecycleManager"]);
}
