//! Scenarios 55, 56, 60 and 61 of cluster-version §9.H.

use std::collections::BTreeSet;

use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};

use super::{Capabilities, effective, effective_with_gates};

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
    for spec in [ClusterVersionSpec::default(), spec("", ""), spec("vFuture", "")] {
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
fn a_name_that_nobody_knows_is_kept() {
    let capabilities = effective(&spec("None", ""), &owned("Zeppelin"), &[]);
    check(&capabilities, "Zeppelin", "Zeppelin");
    assert!(!capabilities.known.contains("Zeppelin"));
}

#[test]
fn a_capability_behind_a_gate_that_is_off_does_not_exist() {
    let asked = spec("None", "ClusterAPI CompatibilityRequirements");
    let off = effective(&asked, &owned("ClusterAPI"), &[]);
    check(&off, "", "");
    assert!(!off.known.contains("ClusterAPI"));
    let gates: BTreeSet<String> =
        owned("CRDCompatibilityRequirementOperator").into_iter().collect();
    let one = effective_with_gates(&asked, &owned("ClusterAPI"), &[], &gates);
    check(&one, "CompatibilityRequirements", "");
    let gates: BTreeSet<String> = owned("ClusterAPIMachineManagement").into_iter().collect();
    let both = effective_with_gates(&asked, &[], &[], &gates);
    check(&both, "ClusterAPI CompatibilityRequirements", "");
    assert_eq!(both.known.len(), 19);
}
