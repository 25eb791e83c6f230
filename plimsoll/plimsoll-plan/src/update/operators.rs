//! What an update of the platform would break (OPR-31).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::{InstalledApi, OperatorStatus, PlatformRequirements};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::{Context, Decision, decide};
use plimsoll_resolve::requirement::unfit_for;
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_resolve::{Api, Bundle, ClusterFacts};
use semver::Version;

use crate::update::preconditions::BrokenOperator;

/// What the bundles of installed Operators require of the platform, and the objects that they have, as the
/// Operators report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorsOnPlatform {
    /// The bundles that require something, by the names of their Operators.
    required: BTreeMap<String, Bundle>,
    /// The objects of their installed revisions, by the names of the Operators that have any.
    objects: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Why the Operators cannot be listed; `None` if they can.
    unknown: Option<String>,
}

impl OperatorsOnPlatform {
    /// There may be Operators, and their requirements are not known. `why` is what the API server says.
    pub fn unknown(why: &str) -> Self {
        Self { unknown: Some(why.to_owned()), ..Self::default() }
    }

    /// An Operator reports this; `None` when it is gone. Returns whether what it requires or has changed.
    pub fn observed(&mut self, name: &str, status: Option<&OperatorStatus>) -> bool {
        let objects = status.map(|it| it.inventory.iter().cloned().collect());
        let objects = objects.filter(|it: &BTreeSet<ObjectKey>| !it.is_empty());
        let has_changed = replaced(&mut self.objects, name, objects);
        let requires_changed = replaced(&mut self.required, name, status.and_then(required_bundle));
        has_changed || requires_changed
    }

    /// The Operators that have objects of a release, which it would not take over.
    pub fn holding(&self, manifests: &[Manifest], context: &Context) -> Vec<BrokenOperator> {
        let included = manifests.iter().filter(|it| decide(it, context) == Decision::Included);
        let keys: BTreeSet<&ObjectKey> = included.map(|it| &it.key).collect();
        let held = self.objects.iter().filter_map(|(name, objects)| {
            let shared = objects.iter().filter(|it| keys.contains(it));
            let shared: Vec<String> = shared.map(ToString::to_string).collect();
            (!shared.is_empty()).then(|| BrokenOperator {
                name: name.clone(),
                message: format!(
                    "Operator {name}: {} belongs to it and to the release; with spec.deletion.crds: \
                     Orphan, its deletion keeps definitions and their objects",
                    shared.join(", ")
                ),
            })
        });
        held.collect()
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

/// Replaces what is known of an Operator; returns whether that is a change.
fn replaced<T: PartialEq>(known: &mut BTreeMap<String, T>, name: &str, now: Option<T>) -> bool {
    let before = match now {
        Some(now) => known.insert(name.to_owned(), now),
        None => known.remove(name),
    };
    before.as_ref() != known.get(name)
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
