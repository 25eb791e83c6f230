//! The CustomResourceDefinitions that Plimsoll installs.
//!
//! They are generated from the types of this crate (`cargo xtask codegen crds`) and lie as YAML
//! beside the sources, so that a person can read and apply them. They are parsed once, on first use.
//! Names of capabilities are open strings here, unlike
//! in the published API, where an enumeration keeps a controller from reporting a capability that
//! a newer release brings.

use std::sync::LazyLock;

use serde_json::Value;

const CLUSTER_VERSIONS: &str = include_str!("../crds/clusterversions.yaml");
const CLUSTER_OPERATORS: &str = include_str!("../crds/clusteroperators.yaml");
const RELEASE_PROGRESSES: &str = include_str!("../crds/releaseprogresses.yaml");

static MANIFESTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    [CLUSTER_VERSIONS, CLUSTER_OPERATORS, RELEASE_PROGRESSES]
        .into_iter()
        .map(|text| {
            serde_saphyr::from_str(text).expect("our manifests are YAML: a test reads them")
        })
        .collect()
});

/// The definitions of ClusterVersion, ClusterOperator and ReleaseProgress, in this order.
pub fn manifests() -> Vec<Value> {
    MANIFESTS.clone()
}

/// The same definitions as YAML text, each with the name of its file.
pub fn texts() -> [(&'static str, &'static str); 3] {
    [
        ("clusterversions.yaml", CLUSTER_VERSIONS),
        ("clusteroperators.yaml", CLUSTER_OPERATORS),
        ("releaseprogresses.yaml", RELEASE_PROGRESSES),
    ]
}

#[cfg(test)]
mod tests;
