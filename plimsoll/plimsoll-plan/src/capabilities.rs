//! Which optional parts of a release a cluster has (CAP-5, CAP-7, CV-22.4).
//!
//! Capabilities only grow: what was enabled once stays enabled, and is called *implicit* once the
//! spec no longer asks for it. A capability behind a feature gate that is off does not exist: it
//! is neither known nor enabled, whoever asks.
//!
//! # Departures from upstream
//!
//! * A name or a set that does not exist is unavailable, not acted on: it would stay enabled for good.
//!   That includes a misspelt set, which does not count as `vCurrent`.
//! * An unknown name that became enabled because a payload brought it is applied, not
//!   only listed: once applied, a resource must be applied further.

mod admission;
mod enabling;
mod implied;
pub mod install_config;

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::capability::{CURRENT, CapabilityRegistry, meant};
use plimsoll_content::inclusion::EnabledCapabilities;

pub use admission::{CapabilityViolation, SpecChange, review};
pub use enabling::{Enabling, enabling};
pub use implied::{Implied, applied, implied, implied_by_update, implied_within};

/// A capability that becomes enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnabledCapability {
    /// Its name.
    pub name: String,
    /// Which manifest forces it, or that it is requested.
    pub because: String,
}

/// The capabilities in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Enabled, for whatever reason.
    pub enabled: BTreeSet<String>,
    /// Enabled although the spec does not ask for them.
    pub implicit: BTreeSet<String>,
    /// All that exist.
    pub known: BTreeSet<String>,
    /// What the spec asks for and cannot have.
    pub unavailable: Vec<UnavailableCapability>,
}

impl Capabilities {
    /// What decides about the inclusion of manifests. Unknown names that are enabled
    /// count as known: a payload brought them.
    pub fn for_inclusion(&self) -> EnabledCapabilities {
        EnabledCapabilities {
            known: self.known.union(&self.enabled).cloned().collect(),
            enabled: self.enabled.clone(),
        }
    }
}

/// A name in `spec.capabilities` that is not acted on. Its `Display` is what the `Invalid`
/// condition lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableCapability {
    /// The field, such as `spec.capabilities.additionalEnabledCapabilities[0]`.
    pub field: String,
    /// The name.
    pub name: String,
    /// What makes it unavailable.
    pub cause: UnavailableCause,
}

/// Why a name is not acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnavailableCause {
    /// There is no capability or set of that name; perhaps another one was meant.
    Unknown(Option<String>),
    /// None of the capability's feature gates is on.
    GatedOff(Vec<String>),
}

impl fmt::Display for UnavailableCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, name, cause } = self;
        write!(f, "{field}: Unsupported value: {name:?}: ")?;
        match cause {
            UnavailableCause::Unknown(similar) => {
                write!(f, "this release does not know it{}", meant(similar.as_deref()))
            }
            UnavailableCause::GatedOff(gates) => {
                write!(f, "it needs a feature gate that is off: {}", gates.join(" or "))
            }
        }
    }
}

/// The capabilities in force: those that the spec asks for, those that were enabled `before`, and
/// those that this cluster `always` has. `registry` is the release's; `gates` are the feature gates
/// that are on.
///
/// No capabilities in the spec and no set in them both mean `vCurrent`.
pub fn effective(
    spec: &ClusterVersionSpec,
    before: &[String],
    always: &[String],
    registry: &CapabilityRegistry,
    gates: &BTreeSet<String>,
) -> Capabilities {
    // An unknown name may be one of another release: what was enabled stays.
    let exists = |name: &str| registry.capability(name).is_none_or(|it| it.is_allowed(gates));
    let kept: BTreeSet<String> =
        before.iter().chain(always).filter(|name| exists(name)).cloned().collect();
    let RequestedCapabilities { names, unavailable } =
        requested(spec.capabilities.as_ref(), &kept, registry, gates);
    let known = registry.capabilities().filter(|it| it.is_allowed(gates));
    Capabilities {
        known: known.map(|it| it.name.clone()).collect(),
        enabled: names.union(&kept).cloned().collect(),
        implicit: kept.difference(&names).cloned().collect(),
        unavailable,
    }
}

/// What a spec asks for.
struct RequestedCapabilities {
    /// The names that exist.
    names: BTreeSet<String>,
    unavailable: Vec<UnavailableCapability>,
}

/// What a spec asks for, where the names of `kept` are enabled anyway.
fn requested(
    spec: Option<&CapabilitiesSpec>,
    kept: &BTreeSet<String>,
    registry: &CapabilityRegistry,
    gates: &BTreeSet<String>,
) -> RequestedCapabilities {
    let mut unavailable = Vec::new();
    let set = spec.map_or("", |spec| &spec.baseline_capability_set);
    let set = if set.is_empty() { CURRENT } else { set };
    let mut names: BTreeSet<String> = match registry.set(set) {
        Some(set) => {
            let there = set.capabilities.iter().filter(|name| registry.is_known(name, gates));
            there.cloned().collect()
        }
        None => {
            let cause = UnavailableCause::Unknown(registry.similar_set(set).map(str::to_owned));
            let field = "spec.capabilities.baselineCapabilitySet".to_owned();
            unavailable.push(UnavailableCapability { field, name: set.to_owned(), cause });
            BTreeSet::new()
        }
    };
    let additional = spec.map(|spec| spec.additional_enabled_capabilities.as_slice());
    for (index, name) in additional.unwrap_or_default().iter().enumerate() {
        let cause = match registry.capability(name) {
            Some(capability) if !capability.is_allowed(gates) => {
                UnavailableCause::GatedOff(capability.gates.clone())
            }
            None if !kept.contains(name) => {
                UnavailableCause::Unknown(registry.similar(name).map(str::to_owned))
            }
            _ => {
                names.insert(name.clone());
                continue;
            }
        };
        let field = format!("spec.capabilities.additionalEnabledCapabilities[{index}]");
        unavailable.push(UnavailableCapability { field, name: name.clone(), cause });
    }
    RequestedCapabilities { names, unavailable }
}

/// Names as texts list them.
fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod axioms;
#[cfg(test)]
mod tests;
