//! Objects whose manifest differs from that of an earlier release in a field that no update changes.

use std::collections::BTreeMap;

use plimsoll_api::ObjectKey;

use super::FindingCollector;
use crate::Manifest;
use crate::annotations::{CREATE_ONLY, DELETE};
use crate::diagnostic::FindingCode;
use crate::immutable::{changed_fields, refused};

/// Checks the manifests of a payload against those of an earlier one. An object with several manifests, for
/// several profiles, may become any that one of the earlier ones may become.
pub(super) fn check(before: &[Manifest], after: &[Manifest], report: &mut FindingCollector<'_>) {
    let mut earlier: BTreeMap<&ObjectKey, Vec<&Manifest>> = BTreeMap::new();
    for manifest in before.iter().filter(|it| is_applied(it)) {
        earlier.entry(&manifest.key).or_default().push(manifest);
    }
    let applied = after.iter().filter(|it| is_applied(it) && !is_created_once(it));
    for manifest in applied {
        let there = earlier.get(&manifest.key).map(Vec::as_slice).unwrap_or_default();
        let changed = there.iter().map(|it| (*it, changed_fields(it, manifest)));
        let Some((before, fields)) = changed.min_by_key(|(_, fields)| fields.len()) else {
            continue;
        };
        let Some(why) = refused(before, manifest, &fields) else { continue };
        let message = format!("{}: {why}", manifest.key.reference());
        report.add(manifest, &fields[0], FindingCode::ImmutableField, message);
    }
}

fn is_applied(manifest: &Manifest) -> bool {
    manifest.may_be_included() && !manifest.annotations.contains_key(DELETE)
}

fn is_created_once(manifest: &Manifest) -> bool {
    let value = manifest.annotations.get(CREATE_ONLY);
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
