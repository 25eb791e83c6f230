//! The kinds that kube-apiserver serves by itself, from generated data.
//!
//! `cargo xtask codegen openapi` writes the data. It is compressed, one section for each
//! group-version; a section is unpacked when one of its kinds is first asked for, so that starting
//! up costs one small index.

mod documents;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

pub use documents::{Document, document, documents};

use crate::Schema;
use crate::schema::{Arena, Builder, Flavor, node::NodeId};

static DATA: &[u8] = include_bytes!("../data/kubernetes.bin");
/// The section of the types that every custom resource uses.
const META_SECTION: &str = "meta";

/// A resource of the API: one line of discovery.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Resource name in URLs.
    pub plural: String,
    /// Name of one object of it, for people.
    pub singular: String,
    /// Abbreviations that kubectl accepts.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Supported verbs, sorted.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
}

/// A subresource such as `status` or `scale`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subresource {
    /// Its name in URLs.
    pub name: String,
    /// Group of its kind.
    pub group: String,
    /// Version of its kind.
    pub version: String,
    /// Kind it reads and writes.
    pub kind: String,
    /// Supported verbs, sorted.
    pub verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Index {
    version: String,
    resources: Vec<Resource>,
    /// Offset and length of each section in what follows the index.
    sections: BTreeMap<String, (usize, usize)>,
}

/// The types of a group-version.
struct GroupVersion {
    arena: Arc<Arena>,
    kinds: BTreeMap<String, NodeId>,
}

/// The index and where the sections begin.
fn index() -> &'static (Index, usize) {
    static INDEX: OnceLock<(Index, usize)> = OnceLock::new();
    INDEX.get_or_init(|| {
        let length = DATA[..4].iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
        let start = 4 + length;
        let index = unpack(&DATA[4..start]);
        (serde_json::from_value(index).expect("the generated index is well formed"), start)
    })
}

fn unpack(packed: &[u8]) -> Value {
    let mut text = Vec::new();
    flate2::read::DeflateDecoder::new(packed)
        .read_to_end(&mut text)
        .expect("the generated data is well compressed");
    serde_json::from_slice(&text).expect("the generated data is JSON")
}

fn section(name: &str) -> Option<Value> {
    let (index, start) = index();
    let (offset, length) = *index.sections.get(name)?;
    Some(unpack(&DATA[start + offset..start + offset + length]))
}

fn section_name(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The Kubernetes version of the data, such as `v1.37.1`.
pub fn kubernetes_version() -> &'static str {
    &index().0.version
}

/// All built-in resources in discovery order; of one group the preferred version comes first.
pub fn resources() -> &'static [Resource] {
    &index().0.resources
}

/// The schema of a built-in kind.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Schema> {
    let types = group_version(&section_name(group, version))?;
    let root = *types.kinds.get(kind)?;
    Some(Schema { arena: Arc::clone(&types.arena), root, metadata_rules: None, expressions: None })
}

/// The schema of `autoscaling/v1` `Scale`, which is nobody's kind but many kinds' subresource.
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

/// The types of `metadata`, which custom resources share.
pub(crate) fn meta_definitions() -> &'static Value {
    static META: OnceLock<Value> = OnceLock::new();
    META.get_or_init(|| section(META_SECTION).expect("the generated data has the metadata types"))
}

fn group_version(name: &str) -> Option<&'static GroupVersion> {
    static CACHE: OnceLock<BTreeMap<String, OnceLock<GroupVersion>>> = OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        index().0.sections.keys().map(|name| (name.clone(), OnceLock::new())).collect()
    });
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
