//! CVS-55, CVS-56, CVS-60 and CVS-61.

use std::collections::BTreeSet;

use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::capability::CapabilityRegistry;

use super::{Capabilities, SpecChange, review};

fn effective(spec: &ClusterVersionSpec, before: &[String], always: &[String]) -> Capabilities {
    effective_with_gates(spec, before, always, &BTreeSet::new())
}

fn effective_with_gates(
    spec: &ClusterVersionSpec,
    before: &[String],
    always: &[String],
    gates: &BTreeSet<String>,
) -> Capabilities {
    super::effective(spec, before, always, &CapabilityRegistry::built_in(), gates)
}

fn owned(names: &str) -> Vec<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

/// A spec with a set and additional capabilities.
fn spec(set: &str, additional: &str) -> ClusterVersionSpec {
    ClusterVersionSpec {
        capabilities: Some(CapabilitiesSpec {
            baseline_capability_set: set.to_owned(),
            additional_enabled_capabilities: owned(additional),
        }),
        ..ClusterVersionSpec::default()
    }
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn check(capabilities: &Capabilities, enabled: &str, implicit: &str) {
    assert_eq!(joined(&capabilities.enabled), enabled);
    assert_eq!(joined(&capabilities.implicit), implicit);
}

#[test]
fn no_choice_means_everything() {
    for spec in [ClusterVersionSpec::default(), spec("", ""), spec("vCurrent", "Console")] {
        let capabilities = effective(&spec, &[], &[]);
        assert_eq!(capabilities.enabled.len(), 17);
        assert_eq!(capabilities.enabled, capabilities.known);
        assert!(capabilities.implicit.is_empty());
    }
}

#[test]
fn what_was_enabled_stays_and_is_implicit() {
    check(&effective(&spec("None", "Console"), &[], &[]), "Console", "");
    check(&effective(&spec("None", ""), &owned("Console"), &[]), "Console", "Console");
    check(&effective(&spec("None", "Console"), &owned("Console"), &[]), "Console", "");
    check(
        &effective(&spec("None", "Insights"), &[], &owned("Ingress")),
        "Ingress Insights",
        "Ingress",
    );
    check(
        &effective(&spec("v4.11", ""), &owned("baremetal Build"), &[]),
        "Build MachineAPI baremetal marketplace openshift-samples",
        "Build",
    );
}

#[test]
fn an_unknown_name_is_kept() {
    let capabilities = effective(&spec("None", ""), &owned("Zeppelin"), &[]);
    check(&capabilities, "Zeppelin", "Zeppelin");
    assert!(!capabilities.known.contains("Zeppelin"));
}

#[test]
fn a_capability_behind_a_gate_that_is_off_does_not_exist() {
    let requested = spec("None", "ClusterAPI CompatibilityRequirements");
    let off = effective(&requested, &owned("ClusterAPI"), &[]);
    check(&off, "", "");
    assert!(!off.known.contains("ClusterAPI"));
    let gates: BTreeSet<String> =
        owned("CRDCompatibilityRequirementOperator").into_iter().collect();
    let one = effective_with_gates(&requested, &owned("ClusterAPI"), &[], &gates);
    check(&one, "CompatibilityRequirements", "");
    let gates: BTreeSet<String> = owned("ClusterAPIMachineManagement").into_iter().collect();
    let both = effective_with_gates(&requested, &[], &[], &gates);
    check(&both, "ClusterAPI CompatibilityRequirements", "");
    assert_eq!(both.known.len(), 19);
}

#[test]
fn what_does_not_exist_is_refused_and_not_acted_on() {
    let cases = [
        (
            spec("none", "Console"),
            "spec.capabilities.baselineCapabilitySet: Unsupported value: \"none\": this release does not know it, did you mean \"None\"?",
        ),
        (
            spec("None", "Console Insigths"),
            "spec.capabilities.additionalEnabledCapabilities[1]: Unsupported value: \"Insigths\": this release does not know it, did you mean \"Insights\"?",
        ),
        (
            spec("None", "Console ClusterAPI"),
            "spec.capabilities.additionalEnabledCapabilities[1]: Unsupported value: \"ClusterAPI\": it needs a feature gate that is off: ClusterAPIMachineManagement",
        ),
    ];
    for (spec, refused) in cases {
        let capabilities = effective(&spec, &[], &[]);
        check(&capabilities, "Console", "");
        let said: Vec<String> = capabilities.unavailable.iter().map(ToString::to_string).collect();
        assert_eq!(said, [refused]);
    }
    let kept = effective(&spec("None", "Zeppelin"), &owned("Zeppelin"), &[]);
    check(&kept, "Zeppelin", "");
    assert_eq!(kept.unavailable, []);
}

/// Returns the objections to a change of the spec of a cluster where some capabilities are enabled.
fn reviewed(old: Option<&ClusterVersionSpec>, new: &ClusterVersionSpec, enabled: &str) -> String {
    let enabled = owned(enabled);
    let change = SpecChange { old, new, enabled: &enabled };
    let objections = review(&change, &CapabilityRegistry::built_in(), &BTreeSet::new());
    objections.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_write_that_takes_something_away_is_refused_with_what_to_do() {
    let none = spec("None", "");
    let console = spec("None", "Console");
    let both = spec("None", "Console Insights");
    let check = |old: &ClusterVersionSpec, new: &ClusterVersionSpec, enabled, expected: &str| {
        assert_eq!(reviewed(Some(old), new, enabled), expected);
    };
    check(
        &console,
        &none,
        "Console",
        "spec.capabilities: Console is enabled, and what is enabled cannot be disabled; keep it in additionalEnabledCapabilities: Console",
    );
    check(
        &both,
        &none,
        "Console Insights",
        "spec.capabilities: Console, Insights are enabled, and what is enabled cannot be disabled; keep them in additionalEnabledCapabilities: Console, Insights",
    );
    check(
        &spec("v4.11", ""),
        &none,
        "baremetal",
        "spec.capabilities: baremetal is enabled, and what is enabled cannot be disabled; keep it in additionalEnabledCapabilities: baremetal",
    );
    check(&ClusterVersionSpec::default(), &spec("v4.18", ""), "Console", "");
    // What is not enabled (yet), and what is enabled implicitly, takes nothing away.
    check(&both, &console, "Console", "");
    check(&console, &both, "Console Build", "");
    check(&none, &none, "Console", "");
}

#[test]
fn a_write_of_names_that_do_not_exist_is_refused_but_old_ones_are_tolerated() {
    let none = spec("None", "");
    let bad = spec("None", "Consle");
    let said = "spec.capabilities.additionalEnabledCapabilities[0]: Unsupported value: \"Consle\": this release does not know it, did you mean \"Console\"?";
    assert_eq!(reviewed(Some(&none), &bad, ""), said);
    assert_eq!(reviewed(None, &bad, ""), said);
    assert_eq!(reviewed(Some(&bad), &spec("None", "Consle Console"), ""), "");
    assert_eq!(reviewed(None, &ClusterVersionSpec::default(), ""), "");
    assert_eq!(reviewed(Some(&none), &spec("None", "Zeppelin"), "Zeppelin"), "");
}

#[test]
fn a_capability_comes_with_what_it_requires() {
    let none = spec("None", "");
    let said = "spec.capabilities.additionalEnabledCapabilities: marketplace requires OperatorLifecycleManager; add: OperatorLifecycleManager";
    assert_eq!(reviewed(Some(&none), &spec("None", "marketplace"), ""), said);
    assert_eq!(
        reviewed(Some(&none), &spec("None", "marketplace OperatorLifecycleManager"), ""),
        "",
    );
    assert_eq!(reviewed(Some(&none), &spec("None", "marketplace"), "OperatorLifecycleManager"), "");
    // The published set is what it is.
    assert_eq!(reviewed(None, &spec("v4.11", ""), ""), "");
}
