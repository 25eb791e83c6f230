//! Releases that are not begun in a cluster because they are mistakes, unless forced.
//!
//! A release that is requested in the ClusterVersion passes the
//! [preconditions](crate::update::preconditions), of which those that are judged here are a part. One that
//! the controller is started with does not: it takes the place of the release before because another
//! directory was named. What is refused here would empty a cluster of its management, or take it back.

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_api::config::{Release, UpdateHistory};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{Context, Decision, decide};
use semver::Version;

use crate::forecast;
use crate::plan::Plan;

/// Fewer objects than this tell nothing about the product that they come from.
const OBJECTS_TELLING: usize = 12;
/// A release of the same product keeps more than one in so many of the objects that the release
/// before applied; of two products that share a few namespaces, less.
const KEPT_OF: usize = 4;

/// Why a release is not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseRefusal {
    /// No manifest is included: the profile or the feature set is that of other clusters.
    NothingIncluded {
        /// Version of the release.
        version: String,
        /// How many manifests it has.
        manifests: usize,
        /// Cluster profile; empty for any.
        profile: String,
        /// Feature set; empty for any.
        feature_set: String,
    },
    /// The cluster is at a later version.
    LowerVersion {
        /// Version of the release that the cluster is at or on its way to.
        from: String,
        /// Version of the release.
        version: String,
    },
    /// The release has next to nothing of what the cluster consists of.
    OtherProduct {
        /// Version of the release that the cluster is at.
        from: String,
        /// Version of the release.
        version: String,
        /// How many objects the cluster has of the release that it is at.
        objects: usize,
        /// How many of them the release has.
        kept: usize,
    },
}

impl fmt::Display for ReleaseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingIncluded { version, manifests, profile, feature_set } => write!(
                f,
                "release {version} has nothing for this cluster: none of its {manifests} manifests \
                 is for profile {profile:?} and feature set {feature_set:?}"
            ),
            Self::LowerVersion { from, version } => write!(
                f,
                "release {version} has a lower version than release {from}, which this cluster is at"
            ),
            Self::OtherProduct { from, version, objects, kept } => write!(
                f,
                "release {version} is of another product: of the {objects} objects that release \
                 {from} applied to this cluster it has {kept}"
            ),
        }
    }
}

/// Whether a payload has nothing for a cluster: no manifest is included. What overrides leave out
/// counts as there.
pub fn nothing_included(payload: &Payload, context: &Context) -> Option<ReleaseRefusal> {
    let context = &Context { overrides: Vec::new(), ..context.clone() };
    let is_included = |manifest| decide(manifest, context) == Decision::Included;
    let is_empty = !payload.manifests.iter().any(is_included);
    is_empty.then(|| ReleaseRefusal::NothingIncluded {
        version: payload.release.version.clone(),
        manifests: payload.manifests.len(),
        profile: context.profile.clone().unwrap_or_default(),
        feature_set: context.feature_set.clone().unwrap_or_default(),
    })
}

/// Whether a release has a lower version than the one that a cluster with some history is at. One that
/// the history ends with is not begun but resumed: going back to the release before is requested in the
/// ClusterVersion, which records it.
pub fn goes_back(history: &[UpdateHistory], next: &Release) -> Option<ReleaseRefusal> {
    let newest = history.first()?;
    if newest.image == next.image {
        return None;
    }
    let current = Version::parse(&newest.version).ok()?;
    let target = Version::parse(&next.version).ok()?;
    (target < current).then(|| ReleaseRefusal::LowerVersion {
        from: newest.version.clone(),
        version: next.version.clone(),
    })
}

/// Whether a plan has next to nothing of what a cluster consists of: `ours` are the objects that
/// release `from` applied, `cluster_kinds` the kinds known to have no namespace.
pub fn of_other_product(
    ours: &[&ObjectKey],
    from: &str,
    plan: &Plan,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Option<ReleaseRefusal> {
    let objects = ours.len();
    let kept = objects - forecast::orphans(ours.iter().copied(), plan, cluster_kinds).len();
    (objects >= OBJECTS_TELLING && kept * KEPT_OF < objects).then(|| ReleaseRefusal::OtherProduct {
        from: from.to_owned(),
        version: plan.release.version.clone(),
        objects,
        kept,
    })
}

#[cfg(test)]
mod tests;
