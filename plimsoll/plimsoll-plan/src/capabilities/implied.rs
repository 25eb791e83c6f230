//! Capabilities that a new payload makes necessary (CAP-12 to CAP-16, CV-23).
//!
//! A resource that has been applied must be applied further. If the new payload makes it part of a
//! capability that is disabled, the capability becomes enabled, and with it all its other
//! resources. Which manifest of which payload forced it is recorded.
//!
//! A manifest that deletes its object has never applied it, and forces nothing. Nor does an object
//! that an override leaves unmanaged: it counts as not applied, whoever made it, for a running
//! update, after a restart, in plans and in rehearsals alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_api::ObjectKey;
use plimsoll_content::inclusion::{
    Context, Decision, EnabledCapabilities, capability_names, decide,
};
use plimsoll_content::{Manifest, Payload};

use crate::plan::DELETE;

/// A capability that a payload enables although it was not requested, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implied {
    /// The capability.
    pub capability: String,
    /// Version of the payload that made it necessary.
    pub version: String,
    /// Its manifest that did: the first of those that do.
    pub file: Arc<str>,
    /// The number of the document in the file, from 0.
    pub document: usize,
    /// The object that was applied before and belongs to the capability now.
    pub object: ObjectKey,
    /// API version of the object in the manifest, without the group.
    pub object_version: String,
    /// How many manifests do.
    pub manifests: usize,
}

impl fmt::Display for Implied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capability, version, file, object, manifests, .. } = self;
        write!(f, "capability {capability} becomes enabled: {object} has been applied, and in ")?;
        write!(f, "release {version} it belongs to {capability} ({file}")?;
        match manifests - 1 {
            0 => f.write_str(")"),
            1 => f.write_str(" and one other manifest)"),
            others => write!(f, " and {others} other manifests)"),
        }
    }
}

/// The objects that a payload has a cluster apply where some capabilities are enabled: step 1 of
/// the design. Those that an override leaves unmanaged are not among them, unknown names
/// count as any.
pub fn applied(
    manifests: &[Manifest],
    context: &Context,
    enabled: &BTreeSet<String>,
) -> BTreeSet<ObjectKey> {
    let context = with(context, enabled, manifests);
    let applied = manifests.iter().filter(|manifest| {
        !manifest.annotations.contains_key(DELETE)
            && decide(manifest, &context) == Decision::Included
    });
    applied.map(|manifest| manifest.key.clone()).collect()
}

/// The capabilities beyond the enabled ones that a payload makes necessary, sorted by name, where
/// some objects have been `applied` before: steps 2 to 4 of the design. `context` is that of the
/// new payload with the overrides in force; its capabilities are not considered.
pub fn implied(
    applied: &BTreeSet<ObjectKey>,
    next: &[Manifest],
    context: &Context,
    enabled: &BTreeSet<String>,
    version: &str,
) -> Vec<Implied> {
    let everything = Context { capabilities: None, ..context.clone() };
    let mut found: BTreeMap<&str, Implied> = BTreeMap::new();
    for manifest in next.iter().filter(|manifest| applied.contains(&manifest.key)) {
        let names = capability_names(&manifest.annotations);
        let missing: Vec<&str> =
            names.into_iter().filter(|name| !enabled.contains(*name)).collect();
        if missing.is_empty() || decide(manifest, &everything) != Decision::Included {
            continue;
        }
        for name in missing {
            let new = || Implied {
                capability: name.to_owned(),
                version: version.to_owned(),
                file: Arc::clone(&manifest.file),
                document: manifest.document,
                object: manifest.key.clone(),
                object_version: manifest.version.clone(),
                manifests: 0,
            };
            found.entry(name).or_insert_with(new).manifests += 1;
        }
    }
    found.into_values().collect()
}

/// The capabilities beyond the enabled ones that a payload makes necessary where some objects have
/// been `applied` before, in a cluster where a `context` decides about inclusion. Those that do not
/// exist there because their feature gates are off are not among them.
pub fn implied_within(
    applied: &BTreeSet<ObjectKey>,
    next: &Payload,
    context: &Context,
    enabled: &BTreeSet<String>,
) -> Vec<Implied> {
    let gates = context.feature_gates.clone().unwrap_or_default();
    let version = &next.release.version;
    let mut found = implied(applied, &next.manifests, context, enabled, version);
    let exists = |name: &str| {
        next.capabilities.capability(name).is_none_or(|capability| capability.is_allowed(&gates))
    };
    found.retain(|implied| exists(&implied.capability));
    found
}

/// The capabilities that an update from one payload to another makes necessary: all four steps of
/// the design, for a cluster where a `context` decides about inclusion for each payload, and some
/// capabilities are enabled.
pub fn implied_by_update(
    outgoing: &Payload,
    next: &Payload,
    context: impl Fn(&Payload) -> Context,
    enabled: &BTreeSet<String>,
) -> Vec<Implied> {
    let applied = applied(&outgoing.manifests, &context(outgoing), enabled);
    implied_within(&applied, next, &context(next), enabled)
}

/// A context in which some capabilities are enabled, and all that any manifest names are known.
fn with(context: &Context, enabled: &BTreeSet<String>, manifests: &[Manifest]) -> Context {
    let named = manifests.iter().flat_map(|it| capability_names(&it.annotations));
    let capabilities =
        EnabledCapabilities { known: named.map(str::to_owned).collect(), enabled: enabled.clone() };
    Context { capabilities: Some(capabilities), ..context.clone() }
}
