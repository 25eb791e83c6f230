//! Revisions of an Operator: how their objects are kept in OperatorRevisions, and read again.

use std::collections::BTreeMap;

use plimsoll_api::olm::{
    BundleProperty, BundleReference, OPERATOR_LABEL, OperatorRevisionSpec, RevisionObject,
    RevisionPart,
};
use plimsoll_api::{GroupKind, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::hash::manifest_hash;
use plimsoll_resolve::{Bundle, Property, bundle_from_properties};
use serde_json::{Value, json};

use crate::operators::rollout::Phase;

/// Revisions of an Operator that are kept.
pub const REVISIONS_KEPT: usize = 5;
/// Most bytes of objects in one part of a revision: what is around them has room in an object of etcd.
const PART_SIZE_MAX: usize = 900 << 10;

/// What a revision is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionContent {
    /// The bundle.
    pub bundle: BundleReference,
    /// The properties of the bundle as its catalog has them.
    pub properties: Vec<BundleProperty>,
    /// The namespace that the operator is installed in.
    pub namespace: String,
    /// The configuration that the objects are made with; `None` for none.
    pub config: Option<Value>,
    /// The objects, in the order they are applied.
    pub objects: Vec<Value>,
}

/// A revision that the cluster has.
#[derive(Debug, Clone)]
pub(super) struct KeptRevision {
    /// The OperatorRevisions of its parts, by number of the part.
    parts: BTreeMap<u32, KeptPart>,
    of: u32,
    pub(super) bundle: BundleReference,
    pub(super) namespace: String,
    pub(super) config: Option<Value>,
    properties: Vec<BundleProperty>,
}

#[derive(Debug, Clone)]
struct KeptPart {
    name: String,
    manifests: Vec<Manifest>,
}

impl KeptRevision {
    /// Reads a part.
    ///
    /// # Errors
    ///
    /// When it was changed after it was made.
    pub(super) fn read(name: &str, spec: &OperatorRevisionSpec) -> Result<Self, String> {
        let manifests = manifests(name, spec.objects.iter().map(|it| &it.object))?;
        let found = manifest_hash(manifests.iter().map(|it| &it.raw));
        if found != spec.digest {
            return Err(format!(
                "its objects are not those that it was made with: their digest is {found}"
            ));
        }
        let part = KeptPart { name: name.to_owned(), manifests };
        Ok(Self {
            parts: BTreeMap::from([(spec.part.number, part)]),
            of: spec.part.of,
            bundle: spec.bundle.clone(),
            namespace: spec.namespace.clone(),
            config: spec.config.clone(),
            properties: spec.properties.clone(),
        })
    }

    /// Takes the parts of another one of the same number.
    pub(super) fn merge(&mut self, other: Self) {
        self.parts.extend(other.parts);
        self.of = other.of;
        (self.bundle, self.namespace) = (other.bundle, other.namespace);
        (self.config, self.properties) = (other.config, other.properties);
    }

    /// Forgets a part that is gone; whether nothing is left.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        self.parts.retain(|_, part| part.name != name);
        self.parts.is_empty()
    }

    /// Whether all of its parts are there.
    pub(super) fn is_complete(&self) -> bool {
        (1..=self.of).all(|number| self.parts.contains_key(&number))
    }

    /// The names of its OperatorRevisions.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.values().map(|part| part.name.as_str())
    }

    /// Its objects, in the order they are applied.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.parts.values().flat_map(|part| &part.manifests)
    }

    /// The bundle as the resolver knows it. `package` is the name of the Operator.
    pub(super) fn resolver_bundle(&self, package: &str) -> Bundle {
        let property =
            |it: &BundleProperty| Property { kind: it.type_.clone(), value: it.value.clone() };
        let properties: Vec<Property> = self.properties.iter().map(property).collect();
        bundle_from_properties(&self.bundle.name, package, &properties)
    }

    /// The kinds that it defines.
    pub(super) fn defined(&self) -> impl Iterator<Item = GroupKind> {
        self.manifests().filter_map(|it| Some(it.definition.as_ref()?.kind.clone()))
    }
}

/// The OperatorRevisions of a revision, each with its name, as they are written. `owner` is the uid of
/// the Operator.
///
/// # Errors
///
/// When something of the content is no object; the message says which and why.
pub(super) fn operator_revisions(
    (operator, owner): (&str, &str),
    number: u32,
    content: &RevisionContent,
) -> Result<Vec<(String, Value)>, String> {
    let manifests = manifests("", &content.objects)?;
    let parts = split(manifests);
    let of = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let revision = |(index, part): (usize, &Vec<Manifest>)| {
        let part_number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let name = match of {
            1 => format!("{operator}-{number}"),
            _ => format!("{operator}-{number}-{part_number}"),
        };
        let spec = OperatorRevisionSpec {
            operator: operator.to_owned(),
            revision: number,
            part: RevisionPart { number: part_number, of },
            digest: manifest_hash(part.iter().map(|it| &it.raw)),
            bundle: content.bundle.clone(),
            properties: content.properties.clone(),
            namespace: content.namespace.clone(),
            config: content.config.clone(),
            objects: part.iter().map(revision_object).collect(),
        };
        let object = json!({
            "apiVersion": OPERATOR_REVISION.api_version(),
            "kind": OPERATOR_REVISION.kind,
            "metadata": {
                "name": name,
                "labels": { OPERATOR_LABEL: operator },
                "ownerReferences": [{
                    "apiVersion": OPERATOR.api_version(),
                    "kind": OPERATOR.kind,
                    "name": operator,
                    "uid": owner,
                    "controller": true,
                }],
            },
            "spec": spec,
        });
        (name, object)
    };
    Ok(parts.iter().enumerate().map(revision).collect())
}

fn revision_object(manifest: &Manifest) -> RevisionObject {
    let phase = Phase::of(&manifest.key.group_kind()).as_str().to_owned();
    RevisionObject { phase, object: manifest.object() }
}

/// The keys of objects.
///
/// # Errors
///
/// When something is no object; the message says which and why.
pub(super) fn keys(objects: &[Value]) -> Result<Vec<(ObjectKey, String)>, String> {
    let manifests = manifests("", objects)?;
    Ok(manifests.into_iter().map(|it| (it.key, it.version)).collect())
}

fn manifests<'a>(
    file: &str,
    objects: impl IntoIterator<Item = &'a Value>,
) -> Result<Vec<Manifest>, String> {
    let read = |(index, object): (usize, &Value)| {
        Manifest::read(file.into(), index, object)
            .map_err(|error| format!("object {}: {error}", index + 1))
    };
    objects.into_iter().enumerate().map(read).collect()
}

/// Objects in as few parts as the API server accepts; one part if there are none.
fn split(manifests: Vec<Manifest>) -> Vec<Vec<Manifest>> {
    let mut parts = vec![Vec::new()];
    let mut size = 0;
    for manifest in manifests {
        let length = manifest.raw.unpack().len();
        if size > 0 && size + length > PART_SIZE_MAX {
            parts.push(Vec::new());
            size = 0;
        }
        size += length;
        if let Some(part) = parts.last_mut() {
            part.push(manifest);
        }
    }
    parts
}
