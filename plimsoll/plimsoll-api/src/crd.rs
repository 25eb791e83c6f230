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
const OPERATORS: &str = include_str!("../crds/operators.yaml");
const OPERATOR_REVISIONS: &str = include_str!("../crds/operatorrevisions.yaml");
const CATALOGS: &str = include_str!("../crds/catalogs.yaml");

static MANIFESTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| parse(&[CLUSTER_VERSIONS, CLUSTER_OPERATORS, RELEASE_PROGRESSES]));
static OPERATOR_MANIFESTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| parse(&[OPERATORS, OPERATOR_REVISIONS, CATALOGS]));

fn parse(texts: &[&str]) -> Vec<Value> {
    let parse = |text: &&str| {
        serde_saphyr::from_str(text).expect("our manifests are YAML: a test reads them")
    };
    texts.iter().map(parse).collect()
}

/// The definitions of ClusterVersion, ClusterOperator and ReleaseProgress, in this order.
pub fn manifests() -> Vec<Value> {
    MANIFESTS.clone()
}

/// The definitions of the add-on layer: Operator, OperatorRevision and Catalog, in this order.
pub fn operator_manifests() -> Vec<Value> {
    OPERATOR_MANIFESTS.clone()
}

/// All definitions as YAML text, each with the name of its file.
pub fn texts() -> [(&'static str, &'static str); 6] {
    [
        ("clusterversions.yaml", CLUSTER_VERSIONS),
        ("clusteroperators.yaml", CLUSTER_OPERATORS),
        ("releaseprogresses.yaml", RELEASE_PROGRESSES),
        ("operators.yaml", OPERATORS),
        ("operatorrevisions.yaml", OPERATOR_REVISIONS),
        ("catalogs.yaml", CATALOGS),
    ]
}

#[cfg(test)]
mod tests;
