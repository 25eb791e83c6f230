//! What an update of the platform would break (OPR-31).

use std::collections::BTreeMap;

use plimsoll_resolve::requirement::{InstalledPackages, unfit_for};
use plimsoll_resolve::{Bundle, ClusterFacts};

use super::OperatorInputs;
use super::installed::unmet;

/// An installed Operator that does not fit a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenOperator {
    /// Its name.
    pub name: String,
    /// Why, as a sentence without a stop.
    pub message: String,
}

/// The installed Operators that fit the cluster as it is and would not fit it with other facts: a newer
/// Kubernetes, fewer capabilities, fewer APIs. What is broken already holds up nothing.
pub fn broken_by(inputs: OperatorInputs<'_>, after: &ClusterFacts) -> Vec<BrokenOperator> {
    let mut broken = Vec::new();
    let installed = inputs
        .operators
        .iter()
        .filter_map(|(name, operator)| Some((name.as_str(), &operator.installed.as_ref()?.bundle)));
    let bundles: BTreeMap<&str, &Bundle> = installed.collect();
    let packages = InstalledPackages::new(bundles.clone());
    for (package, bundle) in bundles {
        let found = |message| BrokenOperator { name: package.to_owned(), message };
        if unfit_for(package, bundle, inputs.facts).is_none() {
            broken.extend(unfit_for(package, bundle, after).map(found));
        }
        let check = |facts| packages.check(package, bundle, facts, inputs.expressions);
        for (now, then) in check(inputs.facts).iter().zip(check(after)) {
            if now.provider.is_some() && then.provider.is_none() {
                broken.push(found(unmet(package, &then)));
            }
        }
    }
    broken
}
