//! The kinds that kube-apiserver serves by itself, from generated data.
//!
//! `cargo xtask codegen openapi` writes the data. It is compressed, one section for each
//! group-version; a section is unpacked when one of its kinds is first used, so that starting
//! up costs one small index.

mod documents;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod walk;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

pub use documents::{Document, document, documents};

use crate::Schema;
use crate::builtin_data::{META_SECTION, section, section_name, section_names};
pub use crate::builtin_data::{Resource, Subresource, kubernetes_version, resources};
use crate::schema::{Arena, Builder, Flavor, node::NodeId};

/// The types of a group-version.
struct GroupVersion {
    arena: Arc<Arena>,
    kinds: BTreeMap<String, NodeId>,
}

/// The schema of a built-in kind; nothing if there is no such kind.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Schema> {
    let types = group_version(&section_name(group, version))?;
    let root = *types.kinds.get(kind)?;
    Some(Schema { arena: Arc::clone(&types.arena), root, metadata_rules: None, expressions: None })
}

/// The schema of `autoscaling/v1` `Scale`, which no resource has as its kind, but many as a subresource.
pub fn scale_schema() -> &'static Schema {
    static SCALE: OnceLock<Schema> = OnceLock::new();
    SCALE.get_or_init(|| {
        let definitions = section("apps/v1").unwrap_or_default();
        let mut builder = Builder::new(&definitions, Flavor::BuiltIn);
        let root = builder.named("io.k8s.api.autoscaling.v1.Scale");
        Schema { arena: Arc::new(builder.finish()), root, metadata_rules: None, expressions: None }
    })
}

/// The OpenAPI v3 `components.schemas` of a group-version, without descriptions.
pub fn openapi_definitions(group: &str, version: &str) -> Option<Value> {
    section(&section_name(group, version))
}

fn group_version(name: &str) -> Option<&'static GroupVersion> {
    static CACHE: OnceLock<BTreeMap<String, OnceLock<GroupVersion>>> = OnceLock::new();
    let cache =
        CACHE.get_or_init(|| section_names().map(|name| (name.clone(), OnceLock::new())).collect());
    let slot = cache.get(name).filter(|_| name != META_SECTION)?;
    Some(slot.get_or_init(|| read_group_version(name)))
}

/// Reads a section: every definition that names the kind it stands for becomes a root. Kinds such
/// as `DeleteOptions` belong to many groups; all that matters is that this section has them.
fn read_group_version(name: &str) -> GroupVersion {
    let definitions = section(name).unwrap_or_default();
    let (group, version) = name.split_once('/').unwrap_or(("", name));
    let mut builder = Builder::new(&definitions, Flavor::BuiltIn);
    let mut kinds = BTreeMap::new();
    for (definition, schema) in definitions.as_object().into_iter().flatten() {
        let roots = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        for root in roots.into_iter().flatten() {
            let is =
                |key: &str, wanted: &str| root.get(key).and_then(Value::as_str) == Some(wanted);
            let kind = root.get("kind").and_then(Value::as_str);
            if let Some(kind) = kind.filter(|_| is("group", group) && is("version", version)) {
                kinds.insert(kind.to_owned(), builder.named(definition));
            }
        }
    }
    GroupVersion { arena: Arc::new(builder.finish()), kinds }
}
