//! What an administrator may not do to `spec.capabilities`, refused when it is written (design
//! 000, sections "Capabilities cannot be uninstalled" and "Answered Questions").
//!
//! Only what a write changes is judged: a spec that was there before, and a payload that came
//! after it, never make an unrelated write fail.

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::capability::CapabilityRegistry;

use super::{UnavailableCapability, listed, requested};

/// A write of a ClusterVersion.
#[derive(Debug, Clone, Copy)]
pub struct SpecChange<'a> {
    /// The spec before; `None` if the object is created.
    pub old: Option<&'a ClusterVersionSpec>,
    /// The spec after.
    pub new: &'a ClusterVersionSpec,
    /// The capabilities that are enabled, as the status says.
    pub enabled: &'a [String],
}

/// Why a write is refused. Its `Display` says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapabilityViolation {
    /// A name that cannot be acted on.
    Unavailable(UnavailableCapability),
    /// Capabilities that are enabled and would not be asked for any more.
    Disabled(BTreeSet<String>),
    /// A capability that would be enabled without what it requires.
    Incomplete {
        /// The capability.
        capability: String,
        /// What it requires and what is not asked for.
        missing: BTreeSet<String>,
    },
}

impl fmt::Display for CapabilityViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(refused) => refused.fmt(f),
            Self::Disabled(names) => {
                let (verb, them) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
                let names = listed(names);
                write!(
                    f,
                    "spec.capabilities: {names} {verb} enabled, and what is enabled cannot be \
                     disabled; keep {them} in additionalEnabledCapabilities: {names}",
                )
            }
            Self::Incomplete { capability, missing } => {
                let missing = listed(missing);
                write!(
                    f,
                    "spec.capabilities.additionalEnabledCapabilities: {capability} requires \
                     {missing}; add: {missing}",
                )
            }
        }
    }
}

/// Judges a write; nothing to say means that it may be done.
pub fn review(
    change: &SpecChange<'_>,
    registry: &CapabilityRegistry,
    gates: &BTreeSet<String>,
) -> Vec<CapabilityViolation> {
    let empty = CapabilitiesSpec::default();
    let old = change.old.map(|spec| spec.capabilities.as_ref().unwrap_or(&empty));
    let new = change.new.capabilities.as_ref();
    if old == Some(new.unwrap_or(&empty)) {
        return Vec::new();
    }
    let enabled: BTreeSet<String> = change.enabled.iter().cloned().collect();
    let after = requested(new, &enabled, registry, gates);
    let before = old.map(|old| requested(Some(old), &enabled, registry, gates));

    let there_before = |refused: &UnavailableCapability| {
        let before = before.as_ref().map(|it| it.unavailable.as_slice()).unwrap_or_default();
        before.iter().any(|it| it.name == refused.name)
    };
    let refused = after.unavailable.iter().filter(|refused| !there_before(refused));
    let mut violations: Vec<CapabilityViolation> =
        refused.cloned().map(CapabilityViolation::Unavailable).collect();

    let mut taken_away = before.map(|it| it.names).unwrap_or_default();
    taken_away.retain(|name| enabled.contains(name) && !after.names.contains(name));
    if !taken_away.is_empty() {
        violations.push(CapabilityViolation::Disabled(taken_away));
    }
    let all: BTreeSet<String> = after.names.union(&enabled).cloned().collect();
    let added = new.map(|new| new.additional_enabled_capabilities.as_slice()).unwrap_or_default();
    for name in added.iter().filter(|name| !enabled.contains(*name)) {
        let missing = registry.missing_for(name, &all);
        if !missing.is_empty() {
            let missing = missing.into_iter().map(str::to_owned).collect();
            violations.push(CapabilityViolation::Incomplete { capability: name.clone(), missing });
        }
    }
    violations
}
