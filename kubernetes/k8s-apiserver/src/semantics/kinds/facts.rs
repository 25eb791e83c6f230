//! Facts about kinds, from `data/kinds.tsv`, whose header says what they are.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::semantics::registry::{ApiResource, ResourceOrigin};

const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/kinds.tsv"));

/// How the registry of a built-in kind differs from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KindFacts {
    requires_revision: bool,
    creates_on_update: bool,
    has_generation: bool,
    returns_deleted_object: bool,
}

/// Under group and kind; parsed with the first write.
static FACTS: LazyLock<BTreeMap<&'static str, BTreeMap<&'static str, KindFacts>>> =
    LazyLock::new(|| {
        let mut facts: BTreeMap<&str, BTreeMap<&str, KindFacts>> = BTreeMap::new();
        for (kind, words) in rows() {
            let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
            let has = |fact: &str| words.split(' ').any(|word| word == fact);
            let found = KindFacts {
                requires_revision: has("conditional-update"),
                creates_on_update: has("create-on-update"),
                has_generation: has("generation"),
                returns_deleted_object: has("returns-deleted-object"),
            };
            facts.entry(group).or_default().insert(kind, found);
        }
        facts
    });

/// The kinds of the file and their facts.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    DATA.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

fn facts_of(resource: &ApiResource) -> KindFacts {
    let kinds = FACTS.get(resource.group.as_str());
    kinds.and_then(|kinds| kinds.get(resource.kind.as_str())).copied().unwrap_or_default()
}

/// Whether changes of an object are counted in `metadata.generation`.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/strategy.go: PrepareForCreate
pub(crate) fn has_generation(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => true,
        ResourceOrigin::BuiltIn => facts_of(resource).has_generation,
    }
}

/// Whether a put may create the object.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: RESTUpdateStrategy
pub(crate) fn may_create_on_update(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => facts_of(resource).creates_on_update,
    }
}

/// Whether a put may leave the resource version out.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: RESTUpdateStrategy
pub(crate) fn may_update_unconditionally(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => !facts_of(resource).requires_revision,
    }
}

/// Whether a delete is answered with the object.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: finalizeDelete
pub(crate) fn returns_deleted_object(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => facts_of(resource).returns_deleted_object,
    }
}

/// The fields that an endpoint resets, so that no manager comes to own them through it.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: ResetFieldsStrategy
pub(crate) fn reset_fields(resource: &ApiResource, subresource: &str) -> &'static [&'static str] {
    match (subresource, &resource.origin) {
        ("", _) if resource.has_status() => &["status"],
        ("", _) => &[],
        ("status", ResourceOrigin::Custom(_)) => &["spec", "metadata"],
        ("status", ResourceOrigin::BuiltIn) if resource.is("apps", "Deployment") => {
            &["spec", "metadata.labels"]
        }
        ("status", ResourceOrigin::BuiltIn) => &["spec"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_known() {
        const KNOWN: [&str; 4] =
            ["conditional-update", "create-on-update", "generation", "returns-deleted-object"];
        let words: Vec<&str> = rows().flat_map(|(_, words)| words.split(' ')).collect();
        assert!(words.iter().all(|word| KNOWN.contains(word)), "{words:?}");
        assert!(KNOWN.iter().all(|known| words.contains(known)));
        assert!(FACTS[""]["Pod"].has_generation);
    }
}
