//! Which capabilities and capability sets there are (CAP-1, CAP-2, CV-22).
//!
//! A [`CapabilityRegistry`] begins with the names of the published API and takes up what a payload declares
//! by manifests of our own kind [`KIND`]: a platform team names its own capabilities without
//! rebuilding the program. Names are case-sensitive and spelled as users write them today,
//! consistent or not.

mod built_in;
mod declaration;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use declaration::{
    CapabilityDeclaration, DeclarationError, GROUP, KIND, VERSION, is_declaration, meant,
};

/// Annotation: the capabilities that a manifest belongs to, separated by `+` (CAP-3).
pub const ANNOTATION: &str = "capability.openshift.io/name";
/// The set that a cluster has that asks for none.
pub const CURRENT: &str = "vCurrent";
/// The set without capabilities.
pub const NONE: &str = "None";

/// A named, optional part of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// What it brings, for people; one line.
    pub description: String,
    /// Capabilities without which it does not work.
    pub requires: Vec<String>,
    /// Feature gates of which one must be on for the capability to exist at all; empty for a
    /// capability that always does.
    pub gates: Vec<String>,
    /// The payload's file that declares it; `None` for one of the published API.
    pub declared: Option<Arc<str>>,
}

impl Capability {
    /// Whether feature gates let the capability be.
    pub fn is_allowed(&self, gates: &BTreeSet<String>) -> bool {
        self.gates.is_empty() || self.gates.iter().any(|gate| gates.contains(gate))
    }
}

/// Capabilities under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilitySet {
    /// Its name.
    pub name: String,
    /// The names of its capabilities; feature gates are not considered.
    pub capabilities: BTreeSet<String>,
    /// The payload's file that declares or changes it; `None` for one of the published API.
    pub declared: Option<Arc<str>>,
}

/// Every capability and every set that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRegistry {
    capabilities: BTreeMap<String, Capability>,
    /// `None`, the versions in order, `vCurrent`, then the declared ones in theirs.
    sets: Vec<CapabilitySet>,
}

impl Default for CapabilityRegistry {
    fn default() -> Self {
        Self::built_in()
    }
}

impl CapabilityRegistry {
    /// The capabilities and sets of the published API.
    pub fn built_in() -> Self {
        built_in::registry()
    }

    /// No capabilities, and the sets `None` and `vCurrent` without any.
    fn bare() -> Self {
        let set = |name: &str| CapabilitySet {
            name: name.to_owned(),
            capabilities: BTreeSet::new(),
            declared: None,
        };
        Self { capabilities: BTreeMap::new(), sets: vec![set(NONE), set(CURRENT)] }
    }

    /// Every capability, sorted by name byte by byte.
    pub fn capabilities(&self) -> impl Iterator<Item = &Capability> {
        self.capabilities.values()
    }

    /// The capability of a name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)
    }

    /// Every set: `None`, those of versions in order, `vCurrent`, those that the payload declares.
    pub fn sets(&self) -> &[CapabilitySet] {
        &self.sets
    }

    /// The set of a name.
    pub fn set(&self, name: &str) -> Option<&CapabilitySet> {
        self.sets.iter().find(|set| set.name == name)
    }

    /// Whether the capability is known and the feature gates let it be.
    pub fn is_known(&self, name: &str, gates: &BTreeSet<String>) -> bool {
        self.capability(name).is_some_and(|capability| capability.is_allowed(gates))
    }

    /// The name of the capability that was probably meant.
    pub fn similar(&self, name: &str) -> Option<&str> {
        most_similar(name, self.capabilities.keys().map(String::as_str))
    }

    /// The name of the set that was probably meant.
    pub fn similar_set(&self, name: &str) -> Option<&str> {
        most_similar(name, self.sets.iter().map(|set| set.name.as_str()))
    }

    /// What a capability needs that is not among others, itself and what those need in turn
    /// included: what must be enabled with it.
    pub fn missing_for(&self, name: &str, enabled: &BTreeSet<String>) -> BTreeSet<&str> {
        let mut missing = BTreeSet::new();
        let mut open: Vec<&str> = self.requirements(name).collect();
        while let Some(next) = open.pop() {
            if next != name && !enabled.contains(next) && missing.insert(next) {
                open.extend(self.requirements(next));
            }
        }
        missing
    }

    fn requirements(&self, name: &str) -> impl Iterator<Item = &str> {
        self.capability(name).into_iter().flat_map(|it| it.requires.iter().map(String::as_str))
    }
}

/// The maximum number of names that a hint lists.
const NAMES_LISTED: usize = 5;

/// Returns what to write instead of a name that does not exist, as the end of a message: the name that may be
/// meant, those that contain it, or some of all.
pub fn hint<'n>(wanted: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    let suggestion = suggestion(wanted, known.clone());
    if !suggestion.is_empty() {
        return suggestion;
    }
    let near = known.clone().filter(|it| it.contains(wanted) || wanted.contains(*it));
    let mut near: Vec<&str> = near.take(NAMES_LISTED).collect();
    if near.is_empty() {
        near = known.clone().take(NAMES_LISTED).collect();
    }
    match (near.as_slice(), known.count() > near.len()) {
        ([], _) => "; there are none".to_owned(),
        (near, true) => format!("; there are {}, …", near.join(", ")),
        (near, false) => format!("; there are {}", near.join(", ")),
    }
}

/// Returns the name that may be meant instead of one that does not exist, as the end of a message that lists all;
/// nothing if none is alike.
pub fn suggestion<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> String {
    let similar = most_similar(wanted, known);
    similar.map_or_else(String::new, |it| format!(", did you mean `{it}`?"))
}

/// How alike two names must be for one to be the other misspelt: 1 is equal.
const LIKENESS_MIN: f64 = 0.8;
/// The end of the names of many packages, which makes no two of them alike.
const PACKAGE_SUFFIX: &str = "-operator";

/// Returns whether one of two names may be the other misspelt.
fn are_alike(one: &str, other: &str) -> bool {
    match one.strip_suffix(PACKAGE_SUFFIX).zip(other.strip_suffix(PACKAGE_SUFFIX)) {
        // A swap in a short name leaves little that is alike.
        Some((one, other)) => {
            strsim::jaro_winkler(one, other) >= LIKENESS_MIN
                || strsim::osa_distance(one, other) == 1
        }
        None => strsim::jaro_winkler(one, other) >= LIKENESS_MIN,
    }
}

/// Longest name that is compared, that of an object. Comparing takes as long as the product of the lengths, and
/// clients of the resolver send what they like.
const COMPARED_MAX: usize = 253;

/// The name with the nearest spelling, if any is similar at all; case counts little. A swap of two
/// neighbouring letters is one edit; of names equally near, the one that begins alike.
pub fn most_similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.trim().to_lowercase();
    if wanted.len() > COMPARED_MAX {
        return None;
    }
    let similar = names.filter(|candidate| *candidate != name).filter_map(|candidate| {
        let lower = candidate.to_lowercase();
        let likeness = strsim::jaro_winkler(&wanted, &lower);
        let distance = strsim::osa_distance(&wanted, &lower);
        are_alike(&wanted, &lower).then_some((distance, likeness, candidate))
    });
    // Of equally similar ones the first, whatever the order of floating-point maxima.
    let is_nearer = |next: &(usize, f64, &str), best: &(usize, f64, &str)| {
        next.0 < best.0 || (next.0 == best.0 && next.1 > best.1)
    };
    similar
        .reduce(|best, next| if is_nearer(&next, &best) { next } else { best })
        .map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests;
