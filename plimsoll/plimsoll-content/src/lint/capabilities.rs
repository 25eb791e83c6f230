//! Capabilities that do not exist, that are not used, or that cannot work: alone, or because only
//! part of what belongs to them is annotated.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;

use super::FindingCollector;
use crate::capability::{ANNOTATION, is_declaration, meant};
use crate::diagnostic::FindingCode;
use crate::inclusion::capability_names;
use crate::{Manifest, Payload};

pub(super) fn check(payload: &Payload, report: &mut FindingCollector<'_>) {
    let field = format!("metadata.annotations.{ANNOTATION}");
    for manifest in &payload.manifests {
        for name in capability_names(&manifest.annotations) {
            if payload.capabilities.capability(name).is_none() {
                let similar = meant(payload.capabilities.similar(name));
                let message =
                    format!("unknown capability {name:?}: no cluster can enable it{similar}");
                report.add(manifest, &field, FindingCode::UnknownCapability, message);
            }
        }
    }
    for manifest in payload.manifests.iter().filter(|manifest| is_declaration(manifest)) {
        declared(manifest, payload, report);
    }
    parts(&payload.manifests, report);
}

/// Looks at what a manifest declares.
fn declared(manifest: &Manifest, payload: &Payload, report: &mut FindingCollector<'_>) {
    let registry = &payload.capabilities;
    let here = |file: &Option<std::sync::Arc<str>>| file.as_deref() == Some(&*manifest.file);
    let used: BTreeSet<&str> =
        payload.manifests.iter().flat_map(|it| capability_names(&it.annotations)).collect();
    for capability in registry.capabilities().filter(|it| here(&it.declared)) {
        if !used.contains(capability.name.as_str()) {
            let message = format!("no manifest belongs to capability {}", capability.name);
            report.add(manifest, "spec.capabilities", FindingCode::UnusedCapability, message);
        }
    }
    for set in registry.sets().iter().filter(|it| here(&it.declared)) {
        for name in &set.capabilities {
            // The published sets are what they are.
            let published = registry.capability(name).is_none_or(|it| it.declared.is_none());
            let missing = registry.missing_for(name, &set.capabilities);
            if published || missing.is_empty() {
                continue;
            }
            let missing: Vec<&str> = missing.into_iter().collect();
            let set = &set.name;
            let message =
                format!("set {set} has {name} but not what it requires: {}", missing.join(", "));
            report.add(manifest, "spec.sets", FindingCode::CapabilityRequirement, message);
        }
    }
}

type Names<'a> = BTreeSet<&'a str>;

/// Finds objects that stay when a capability is disabled that their namespace or their kind
/// belongs to: they can never be applied.
fn parts(manifests: &[Manifest], report: &mut FindingCollector<'_>) {
    let mut namespaces: BTreeMap<&str, Names<'_>> = BTreeMap::new();
    let mut kinds: BTreeMap<GroupKind, Names<'_>> = BTreeMap::new();
    for manifest in manifests.iter().filter(|it| it.may_be_included()) {
        let names: Names<'_> = capability_names(&manifest.annotations).into_iter().collect();
        match manifest.key.kind.as_str() {
            "Namespace" if manifest.key.group.is_empty() => {
                both(namespaces.entry(&manifest.key.name), names);
            }
            _ => {
                if let Some(definition) = &manifest.definition {
                    both(kinds.entry(definition.kind.clone()), names);
                }
            }
        }
    }
    for manifest in manifests.iter().filter(|it| it.may_be_included()) {
        let own: Names<'_> = capability_names(&manifest.annotations).into_iter().collect();
        let namespace = namespaces.get(manifest.key.namespace.as_str());
        let kind = kinds.get(&manifest.key.group_kind());
        for (needed, what) in [(namespace, "its namespace"), (kind, "its kind")] {
            let missing: Vec<&str> =
                needed.into_iter().flatten().filter(|name| !own.contains(*name)).copied().collect();
            if !missing.is_empty() {
                let message = format!(
                    "{what} is only there with {}: add that to {}",
                    missing.join("+"),
                    ANNOTATION,
                );
                report.add(manifest, "metadata.annotations", FindingCode::CapabilityPart, message);
            }
        }
    }
}

/// Keeps what all definitions of the same thing have in common: one of them may be enough.
fn both<'a, K: Ord>(entry: std::collections::btree_map::Entry<'_, K, Names<'a>>, names: Names<'a>) {
    entry.and_modify(|common| common.retain(|name| names.contains(name))).or_insert(names);
}
