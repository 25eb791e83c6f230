//! What an update of the platform would break (OPR-31).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_api::olm::{InstalledApi, OperatorStatus, PlatformRequirements};
use plimsoll_resolve::requirement::unfit_for;
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_resolve::{Api, Bundle, ClusterFacts};
use semver::Version;

use crate::update::preconditions::BrokenOperator;

/// What the bundles of installed Operators require of the platform, as the Operators report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorsOnPlatform {
    /// The bundles that require something, by the names of their Operators.
    required: BTreeMap<String, Bundle>,
    /// Why the Operators cannot be listed; `None` if they can.
    unknown: Option<String>,
}

impl OperatorsOnPlatform {
    /// There may be Operators, and their requirements are not known. `why` is what the API server says.
    pub fn unknown(why: &str) -> Self {
        Self { required: BTreeMap::new(), unknown: Some(why.to_owned()) }
    }

    /// An Operator reports this; `None` when it is gone. Returns whether what is required changed.
    pub fn observed(&mut self, name: &str, status: Option<&OperatorStatus>) -> bool {
        match status.and_then(required_bundle) {
            Some(bundle) => {
                let before = self.required.insert(name.to_owned(), bundle);
                before.as_ref() != self.required.get(name)
            }
            None => self.required.remove(name).is_some(),
        }
    }

    /// The Operators that run on a version of the platform and not on the next minor version.
    pub fn broken_by_next_minor(&self, version: &str) -> Vec<BrokenOperator> {
        let Ok(version) = parse_tolerant(version) else { return Vec::new() };
        let next = Version::new(version.major, version.minor + 1, 0);
        let facts = |version| ClusterFacts { openshift: Some(version), ..ClusterFacts::default() };
        self.broken_by(&facts(version), &facts(next), |bundle| {
            let newest = bundle.max_openshift_version.as_deref().unwrap_or_default();
            format!("it runs on OpenShift {newest} at most")
        })
    }

    /// The Operators that require an API of the platform that is removed.
    ///
    /// # Errors
    ///
    /// Why the Operators cannot be listed.
    pub fn broken_without(
        &self,
        removed: &BTreeSet<GroupKind>,
    ) -> Result<Vec<BrokenOperator>, String> {
        if let Some(why) = &self.unknown {
            return Err(why.clone());
        }
        let is_removed = |api: &Api| removed.contains(&GroupKind::new(&api.group, &api.kind));
        let required = || self.required.values().flat_map(|bundle| &bundle.native_apis);
        let facts = |apis| ClusterFacts { apis: Some(apis), ..ClusterFacts::default() };
        let now = facts(required().cloned().collect());
        let after = facts(required().filter(|api| !is_removed(api)).cloned().collect());
        Ok(self.broken_by(&now, &after, |bundle| {
            let lost = bundle.native_apis.iter().filter(|api| is_removed(api));
            let lost = lost.map(|api| format!("{} ({}/{})", api.kind, api.group, api.version));
            format!("it requires {}, which the release removes", Vec::from_iter(lost).join(", "))
        }))
    }

    /// The Operators that fit the cluster as it is and would not fit it with other facts. What is broken
    /// already holds up nothing.
    fn broken_by(
        &self,
        now: &ClusterFacts,
        after: &ClusterFacts,
        message: impl Fn(&Bundle) -> String,
    ) -> Vec<BrokenOperator> {
        let fits = |name: &str, bundle: &Bundle, facts| unfit_for(name, bundle, facts).is_none();
        let operators = self.required.iter();
        let broken = operators
            .filter(|(name, bundle)| fits(name, bundle, now) && !fits(name, bundle, after));
        let broken = broken.map(|(name, bundle)| BrokenOperator {
            name: name.clone(),
            message: format!("Operator {name} {}: {}", bundle.version, message(bundle)),
        });
        broken.collect()
    }
}

/// What a bundle requires of the platform, for the status of its Operator; `None` if it requires nothing.
pub fn platform_requirements(bundle: &Bundle) -> Option<PlatformRequirements> {
    let api = |it: &Api| InstalledApi {
        group: it.group.clone(),
        version: it.version.clone(),
        kind: it.kind.clone(),
    };
    let required = PlatformRequirements {
        max_openshift_version: bundle.max_openshift_version.clone().unwrap_or_default(),
        native_apis: bundle.native_apis.iter().map(api).collect(),
    };
    (required != PlatformRequirements::default()).then_some(required)
}

/// The bundle that a status is of, as far as it requires something of the platform.
fn required_bundle(status: &OperatorStatus) -> Option<Bundle> {
    let (installed, required) = (status.bundle.as_ref()?, status.platform.as_ref()?);
    let version = parse_tolerant(&installed.version).unwrap_or_else(|_| Version::new(0, 0, 0));
    let mut bundle = Bundle::new(&installed.name, version);
    let newest = &required.max_openshift_version;
    bundle.max_openshift_version = Some(newest.clone()).filter(|it| !it.is_empty());
    let api = |it: &InstalledApi| Api {
        group: it.group.clone(),
        version: it.version.clone(),
        kind: it.kind.clone(),
    };
    bundle.native_apis = required.native_apis.iter().map(api).collect();
    Some(bundle)
}

#[cfg(test)]
mod tests;
