//! The CustomResourceDefinitions that Plimsoll installs.
//!
//! They are generated from the types of this crate (`cargo xtask codegen crds`) and lie as YAML
//! beside the sources, so that a person can read and apply them. They are parsed once, on first use.
//! Names of capabilities are open strings in them; [`cluster_versions`] limits those that may be
//! requested to the ones of a release.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

const CLUSTER_VERSIONS: &str = include_str!("../crds/clusterversions.yaml");
const CLUSTER_OPERATORS: &str = include_str!("../crds/clusteroperators.yaml");
const RELEASE_PROGRESSES: &str = include_str!("../crds/releaseprogresses.yaml");
const OPERATORS: &str = include_str!("../crds/operators.yaml");
const OPERATOR_REVISIONS: &str = include_str!("../crds/operatorrevisions.yaml");
const CATALOGS: &str = include_str!("../crds/catalogs.yaml");
const ACTIONS: &str = include_str!("../crds/actions.yaml");
const RETRY_ACTIONS: &str = include_str!("../crds/retryactions.yaml");
const CRON_ACTIONS: &str = include_str!("../crds/cronactions.yaml");
const EVENT_ACTIONS: &str = include_str!("../crds/eventactions.yaml");
const ACTION_PARTS: &str = include_str!("../crds/actionparts.yaml");
const ACTION_CLASSES: &str = include_str!("../crds/actionclasses.yaml");
const ACTION_POLICIES: &str = include_str!("../crds/actionpolicies.yaml");
const MAINTENANCE_WINDOWS: &str = include_str!("../crds/maintenancewindows.yaml");

static MANIFESTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| parse(&[CLUSTER_VERSIONS, CLUSTER_OPERATORS, RELEASE_PROGRESSES]));
static OPERATOR_MANIFESTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| parse(&[OPERATORS, OPERATOR_REVISIONS, CATALOGS]));

static ACTION_MANIFESTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    parse(&[
        ACTIONS,
        RETRY_ACTIONS,
        CRON_ACTIONS,
        EVENT_ACTIONS,
        ACTION_PARTS,
        ACTION_CLASSES,
        ACTION_POLICIES,
        MAINTENANCE_WINDOWS,
    ])
});

fn parse(texts: &[&str]) -> Vec<Value> {
    let parse = |text: &&str| {
        serde_saphyr::from_str(text).expect("our manifests are YAML: a test reads them")
    };
    texts.iter().map(parse).collect()
}

/// Annotation of a definition of ours: its version, a number that grows with each change of its
/// fields. A program that is older leaves a newer definition as it is.
pub const DEFINITION_VERSION: &str = "plimsoll.io/definition-version";

/// The version of a definition by its annotations; 0 for one without, and one that cannot be read.
pub fn definition_version<'a>(annotation: impl FnOnce(&str) -> Option<&'a str>) -> u64 {
    annotation(DEFINITION_VERSION).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// The definitions of ClusterVersion, ClusterOperator and ReleaseProgress, in this order.
pub fn manifests() -> Vec<Value> {
    MANIFESTS.clone()
}

/// The label and its value by which a definition is known as one that the controller keeps.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "plimsoll");

/// Names that a ClusterVersion may request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilityNames {
    /// Names of capability sets, in their order.
    pub sets: Vec<String>,
    /// Names of capabilities.
    pub capabilities: BTreeSet<String>,
}

/// The definition of ClusterVersion that the controller keeps, whose spec accepts no other names of
/// capabilities than these; `None` accepts all. The status accepts all names, so that a capability
/// that an update implies can always be reported.
pub fn cluster_versions(names: Option<&CapabilityNames>) -> Value {
    let mut definition = MANIFESTS[0].clone();
    let (label, value) = MANAGED_BY;
    definition["metadata"]["labels"][label] = value.into();
    if let Some(CapabilityNames { sets, capabilities }) = names {
        let requested = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
            ["spec"]["properties"]["capabilities"]["properties"];
        requested["baselineCapabilitySet"]["enum"] = json!(sets);
        // An enumeration of nothing accepts everything: nothing can be requested of no names.
        match capabilities.is_empty() {
            true => requested["additionalEnabledCapabilities"]["maxItems"] = 0.into(),
            false => {
                requested["additionalEnabledCapabilities"]["items"]["enum"] = json!(capabilities);
            }
        }
    }
    definition
}

/// The definitions of the add-on layer: Operator, OperatorRevision and Catalog, in this order.
pub fn operator_manifests() -> Vec<Value> {
    OPERATOR_MANIFESTS.clone()
}

/// The definitions of Actions: Action, RetryAction, CronAction, EventAction, ActionPart, ActionClass,
/// ActionPolicy and MaintenanceWindow, in this order.
pub fn action_manifests() -> Vec<Value> {
    ACTION_MANIFESTS.clone()
}

/// The definition of MaintenanceWindow, which is also the last one of [`action_manifests`].
pub fn maintenance_windows() -> Value {
    ACTION_MANIFESTS.last().cloned().unwrap_or_default()
}

/// All definitions as YAML text, each with the name of its file.
pub fn texts() -> [(&'static str, &'static str); 14] {
    [
        ("clusterversions.yaml", CLUSTER_VERSIONS),
        ("clusteroperators.yaml", CLUSTER_OPERATORS),
        ("releaseprogresses.yaml", RELEASE_PROGRESSES),
        ("operators.yaml", OPERATORS),
        ("operatorrevisions.yaml", OPERATOR_REVISIONS),
        ("catalogs.yaml", CATALOGS),
        ("actions.yaml", ACTIONS),
        ("retryactions.yaml", RETRY_ACTIONS),
        ("cronactions.yaml", CRON_ACTIONS),
        ("eventactions.yaml", EVENT_ACTIONS),
        ("actionparts.yaml", ACTION_PARTS),
        ("actionclasses.yaml", ACTION_CLASSES),
        ("actionpolicies.yaml", ACTION_POLICIES),
        ("maintenancewindows.yaml", MAINTENANCE_WINDOWS),
    ]
}

#[cfg(test)]
mod tests;
