//! Which optional parts of a release a cluster has (cluster-version §5.2, design 000).
//!
//! Capabilities only grow: what was enabled once stays enabled, and is called *implicit* once the
//! spec no longer asks for it. A capability behind a feature gate that is off does not exist: it
//! is neither known nor enabled, whoever asks.

use std::collections::BTreeSet;

use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_content::capability::{KNOWN, Set};

/// The capabilities in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Enabled, for whatever reason.
    pub enabled: BTreeSet<String>,
    /// Enabled although the spec does not ask for them.
    pub implicit: BTreeSet<String>,
    /// All that exist.
    pub known: BTreeSet<String>,
}

/// The capabilities in force in a cluster without feature gates: see [`effective_with_gates`].
pub fn effective(
    spec: &ClusterVersionSpec,
    previous_enabled: &[String],
    always: &[String],
) -> Capabilities {
    effective_with_gates(spec, previous_enabled, always, &BTreeSet::new())
}

/// The capabilities in force: those that the spec asks for, those that were enabled before, and
/// those that this cluster `always` has. `gates` are the feature gates that are on.
///
/// No capabilities in the spec, no set, and a set that does not exist all mean `vCurrent`.
pub fn effective_with_gates(
    spec: &ClusterVersionSpec,
    previous_enabled: &[String],
    always: &[String],
    gates: &BTreeSet<String>,
) -> Capabilities {
    let asked_for = spec.capabilities.clone().unwrap_or_default();
    let set = Set::named(&asked_for.baseline_capability_set).unwrap_or(Set::Current);
    let asked_for: BTreeSet<String> = set
        .capabilities()
        .map(str::to_owned)
        .chain(asked_for.additional_enabled_capabilities)
        .filter(|name| exists(name, gates))
        .collect();
    let implicit: BTreeSet<String> = previous_enabled
        .iter()
        .chain(always)
        .filter(|name| exists(name, gates) && !asked_for.contains(*name))
        .cloned()
        .collect();
    let known = KNOWN.iter().map(|known| known.name.to_owned());
    Capabilities {
        enabled: asked_for.union(&implicit).cloned().collect(),
        known: known.filter(|name| exists(name, gates)).collect(),
        implicit,
    }
}

/// Whether the gates let a capability be. A name that nobody knows may be one of a newer release.
fn exists(name: &str, gates: &BTreeSet<String>) -> bool {
    KNOWN.iter().find(|known| known.name == name).is_none_or(|known| {
        known.gates.is_empty() || known.gates.iter().any(|gate| gates.contains(*gate))
    })
}

#[cfg(test)]
mod tests;
