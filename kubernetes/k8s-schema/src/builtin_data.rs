//! The generated data of the built-in kinds: an index, and a section for each group-version.
//!
//! `cargo xtask codegen openapi` writes it from the OpenAPI documents of the module
//! `k8s.io/kubernetes`. Sections are compressed one by one, so that starting up costs one small index.
//!
//! Upstream: k8s.io/kubernetes/pkg/controlplane/instance.go: DefaultAPIResourceConfigSource
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

static DATA: &[u8] = include_bytes!("../data/kubernetes.bin");
/// The section of the types that every custom resource uses.
pub(crate) const META_SECTION: &str = "meta";

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

pub(crate) fn unpack(packed: &[u8]) -> Value {
    let mut text = Vec::new();
    flate2::read::DeflateDecoder::new(packed)
        .read_to_end(&mut text)
        .expect("the generated data is well compressed");
    serde_json::from_slice(&text).expect("the generated data is JSON")
}

/// The OpenAPI definitions of a section; nothing if there is no such section.
pub(crate) fn section(name: &str) -> Option<Value> {
    let (index, start) = index();
    let (offset, length) = *index.sections.get(name)?;
    Some(unpack(&DATA[start + offset..start + offset + length]))
}

/// The name of the section of a group-version.
pub(crate) fn section_name(group: &str, version: &str) -> String {
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

/// The names of all sections.
pub(crate) fn section_names() -> impl Iterator<Item = &'static String> {
    index().0.sections.keys()
}

/// The types of `metadata`, which custom resources share.
pub(crate) fn meta_definitions() -> &'static Value {
    static META: OnceLock<Value> = OnceLock::new();
    META.get_or_init(|| section(META_SECTION).expect("the generated data has the metadata types"))
}
