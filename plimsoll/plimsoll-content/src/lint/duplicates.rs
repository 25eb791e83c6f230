//! Objects that more than one file has a manifest of, for the same cluster, and those that one
//! manifest creates and another one deletes.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ObjectKey;

use super::FindingCollector;
use crate::Manifest;
use crate::annotations::DELETE;
use crate::diagnostic::FindingCode;
use crate::inclusion::{
    Context, DEFAULT_PROFILE, Decision, FEATURE_GATE, FEATURE_SETS, INCLUDE_PREFIX, decide,
    is_for_any_profile,
};

pub(super) fn check(manifests: &[Manifest], report: &mut FindingCollector<'_>) {
    let contexts = contexts(manifests);
    check_deletions(manifests, &contexts, report);
    let mut by_object: BTreeMap<&ObjectKey, Vec<&Manifest>> = BTreeMap::new();
    for manifest in manifests {
        by_object.entry(&manifest.key).or_default().push(manifest);
    }
    for (key, manifests) in by_object {
        for (index, later) in manifests.iter().enumerate() {
            let meets = |earlier: &&&Manifest| {
                deletes(earlier) == deletes(later) && can_meet(earlier, later, &contexts)
            };
            if let Some(earlier) = manifests[..index].iter().find(meets) {
                let message = format!(
                    "{} is in {}, too: both are applied, in order",
                    key.reference(),
                    earlier.file
                );
                report.add(later, "metadata.name", FindingCode::DuplicateObject, message);
            }
        }
    }
}

fn deletes(manifest: &Manifest) -> bool {
    manifest.is_annotated_true(DELETE)
}

/// What a manifest deletes, no other one may create: not the object, nothing in the namespace, no
/// object of the kind.
fn check_deletions(
    manifests: &[Manifest],
    contexts: &[Context],
    report: &mut FindingCollector<'_>,
) {
    for deleting in manifests.iter().filter(|manifest| deletes(manifest)) {
        let goes = |created: &&Manifest| {
            !deletes(created)
                && goes_with(created, deleting)
                && can_meet(created, deleting, contexts)
        };
        if let Some(created) = manifests.iter().find(goes) {
            let message = format!(
                "{} would be deleted, and {} is created by {}",
                deleting.key.reference(),
                created.key.reference(),
                created.file
            );
            report.add(deleting, "metadata.name", FindingCode::DeletesCreated, message);
        }
    }
}

fn goes_with(created: &Manifest, deleting: &Manifest) -> bool {
    if created.key == deleting.key {
        return true;
    }
    match (deleting.key.group.as_str(), deleting.key.kind.as_str()) {
        ("", "Namespace") => created.key.namespace == deleting.key.name,
        _ => {
            let defined = deleting.definition.as_ref();
            defined.is_some_and(|definition| definition.kind == created.key.group_kind())
        }
    }
}

/// Every profile of the payload with every feature set; the default profile stands for any other one.
fn contexts(manifests: &[Manifest]) -> Vec<Context> {
    let keys = manifests.iter().flat_map(|manifest| manifest.annotations.keys());
    let mut profiles: BTreeSet<&str> =
        keys.filter_map(|key| key.strip_prefix(INCLUDE_PREFIX)).collect();
    if manifests.iter().any(is_for_any_profile) {
        profiles.insert(DEFAULT_PROFILE);
    }
    let with_sets = |profile| FEATURE_SETS.map(|set| Context::new(profile, set));
    profiles.into_iter().flat_map(with_sets).collect()
}

/// Whether some cluster includes both manifests.
fn can_meet(left: &Manifest, right: &Manifest, contexts: &[Context]) -> bool {
    let contradicts = |left: &Manifest, right: &Manifest| {
        let (wanted, unwanted) = (gates(left, false), gates(right, true));
        wanted.intersection(&unwanted).next().is_some()
    };
    let both = |context| {
        decide(left, context) == Decision::Included && decide(right, context) == Decision::Included
    };
    !contradicts(left, right) && !contradicts(right, left) && contexts.iter().any(both)
}

/// The feature gates that a manifest needs on, or those it needs off.
fn gates(manifest: &Manifest, off: bool) -> BTreeSet<&str> {
    let value = manifest.annotations.get(FEATURE_GATE).map_or("", String::as_str);
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .filter(|name| name.starts_with('-') == off)
        .map(|name| name.trim_start_matches('-'))
        .collect()
}
