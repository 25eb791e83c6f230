//! Revisions of an Operator, stored in OperatorRevisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::olm::{
    BundleProperty, BundleReference, CertificateProvider, DELETION_FINALIZER, OPERATOR_LABEL,
    OperatorRevisionSpec, ReadinessRule, RevisionObject, RevisionPart, SIGNATURE_ANNOTATION,
};
use plimsoll_api::{GroupKind, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::hash::manifest_hash;
use plimsoll_content::inclusion::capability_names;
use plimsoll_content::kinds::cluster_kinds;
use plimsoll_plan::plan::Plan;
use plimsoll_resolve::{Bundle, ClusterFacts};
use serde_json::{Value, json};

use crate::installed_bundle;
use crate::revision_key::RevisionKey;
use crate::rollout::conversion::conversion_service;
use crate::rollout::{Phase, rollout};

/// The number of revisions of an Operator that are kept.
pub const REVISIONS_KEPT: usize = 5;
/// The maximum size of the objects in one part of a revision, in bytes, so that the rest of its
/// OperatorRevision also fits into the limit of etcd.
const PART_SIZE_MAX: usize = 900 << 10;

/// The content of a revision.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionContent {
    /// The bundle that it is made of.
    pub bundle: BundleReference,
    /// The properties of the bundle in its catalog.
    pub properties: Vec<BundleProperty>,
    /// The namespace to install the operator in.
    pub namespace: String,
    /// The configuration that the objects are rendered with; `None` for none.
    pub config: Option<Value>,
    /// The provider of certificates that the objects are rendered for.
    pub certificates: CertificateProvider,
    /// The rules of the Operator on which the objects are ready, which they have as annotations.
    pub ready_when: Vec<ReadinessRule>,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<Value>,
}

/// An OperatorRevision that the cluster has.
#[derive(Debug, Clone)]
pub(super) struct WrittenRevision {
    pub(super) uid: String,
    /// The name of its Operator, which may be deleted.
    pub(super) operator: String,
    /// The uid of the Operator that controls it; empty without one.
    pub(super) owner: String,
    /// The number of its revision; `None` if it is not known, or the controller did not make it.
    pub(super) number: Option<u32>,
    /// The uid of the Operator that the controller made it for; `None` if the controller did not make it.
    pub(super) made_for: Option<String>,
    /// Whether it has our finalizer.
    pub(super) is_held: bool,
    /// Whether it is being deleted.
    pub(super) is_terminating: bool,
}

/// A revision that the cluster has.
#[derive(Debug, Clone)]
pub(super) struct KeptRevision {
    /// The parts, each an OperatorRevision, by number.
    parts: BTreeMap<u32, KeptPart>,
    of: u32,
    pub(super) bundle: BundleReference,
    pub(super) namespace: String,
    pub(super) config: Option<Value>,
    pub(super) certificates: CertificateProvider,
    pub(super) ready_when: Vec<ReadinessRule>,
    properties: Vec<BundleProperty>,
    /// The capabilities that are not enabled and that omitted objects need.
    omitted: BTreeSet<String>,
    /// The accepted risks of applying it, as sentences; empty for a revision that a previous process made.
    pub(super) risks: Vec<String>,
    /// The definitions as the cluster had them when its objects were inspected; `None` if that is to be done
    /// before it is rolled out.
    pub(super) live: Option<Vec<Manifest>>,
}

#[derive(Debug, Clone)]
struct KeptPart {
    name: String,
    manifests: Vec<Manifest>,
}

impl KeptRevision {
    /// Reads a part of a revision.
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
            certificates: spec.certificates,
            ready_when: spec.ready_when.clone(),
            properties: spec.properties.clone(),
            omitted: spec.omitted_capabilities.iter().cloned().collect(),
            risks: Vec::new(),
            live: None,
        })
    }

    /// Adds the parts of another revision with the same number.
    pub(super) fn merge(&mut self, other: Self) {
        self.parts.extend(other.parts);
        self.of = other.of;
        (self.bundle, self.namespace) = (other.bundle, other.namespace);
        (self.config, self.properties) = (other.config, other.properties);
        (self.certificates, self.ready_when) = (other.certificates, other.ready_when);
        self.omitted = other.omitted;
    }

    /// Removes a part, by the name of its OperatorRevision. Returns whether no part is left.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        self.parts.retain(|_, part| part.name != name);
        self.parts.is_empty()
    }

    /// Returns whether all of its parts exist.
    pub(super) fn is_complete(&self) -> bool {
        (1..=self.of).all(|number| self.parts.contains_key(&number))
    }

    /// Returns whether it is up to date for a configuration, a provider of certificates, rules on what is ready
    /// and the enabled capabilities. While these are not known, omitted objects are not added.
    pub(super) fn is_made_for(
        &self,
        config: Option<&Value>,
        certificates: CertificateProvider,
        ready_when: &[ReadinessRule],
        facts: Option<&ClusterFacts>,
    ) -> bool {
        let enabled = facts.and_then(|it| it.capabilities.as_deref()).unwrap_or_default();
        self.config.as_ref() == config
            && self.certificates == certificates
            && self.ready_when == ready_when
            && !enabled.iter().any(|it| self.omitted.contains(it))
    }

    /// Returns the names of its OperatorRevisions.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.values().map(|part| part.name.as_str())
    }

    /// Returns its objects, in the order in which they are applied.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.parts.values().flat_map(|part| &part.manifests)
    }

    /// Returns whether the phases of its definitions depend on those in the cluster.
    pub(super) fn has_conversions(&self) -> bool {
        self.manifests().any(|it| conversion_service(it).is_some())
    }

    /// Returns the plan that rolls it out, or maintains it if it is applied. `live` has the definitions as they
    /// are in the cluster; `None` if it is applied, or has no conversions.
    pub(super) fn plan(&self, live: Option<&[Manifest]>) -> Plan {
        let objects = self.manifests().cloned();
        match live {
            Some(live) => rollout(&self.bundle, objects, live),
            None => rollout(&self.bundle, objects, self.manifests()),
        }
    }

    /// Returns its content as that of a revision in preparation.
    pub(super) fn draft(&self) -> RevisionDraft {
        let object = |it: &Manifest| DraftObject { manifest: it.clone(), object: it.object() };
        RevisionDraft {
            bundle: self.bundle.clone(),
            namespace: self.namespace.clone(),
            objects: self.manifests().map(object).collect(),
            config: self.config.clone(),
            certificates: self.certificates,
            ready_when: self.ready_when.clone(),
            properties: self.properties.clone(),
            omitted: self.omitted.clone(),
        }
    }

    /// Returns the bundle for the resolver. `package` is the name of the Operator.
    pub(super) fn resolver_bundle(&self, package: &str) -> Bundle {
        installed_bundle(&self.bundle.name, package, &self.properties)
    }

    /// Returns the kinds that it defines.
    pub(super) fn defined(&self) -> impl Iterator<Item = GroupKind> {
        self.manifests().filter_map(|it| Some(it.definition.as_ref()?.kind.clone()))
    }
}

/// A revision in preparation, with parsed objects.
#[derive(Debug, Clone)]
pub(super) struct RevisionDraft {
    pub(super) bundle: BundleReference,
    pub(super) namespace: String,
    pub(super) objects: Vec<DraftObject>,
    config: Option<Value>,
    certificates: CertificateProvider,
    ready_when: Vec<ReadinessRule>,
    properties: Vec<BundleProperty>,
    omitted: BTreeSet<String>,
}

/// An object of a revision in preparation.
#[derive(Debug, Clone)]
pub(super) struct DraftObject {
    pub(super) manifest: Manifest,
    object: Value,
}

impl RevisionDraft {
    /// Reads the content of a revision.
    ///
    /// # Errors
    ///
    /// When an object is invalid; the message says which and why.
    pub(super) fn read(content: RevisionContent) -> Result<Self, String> {
        let RevisionContent {
            bundle,
            properties,
            namespace,
            config,
            certificates,
            ready_when,
            mut objects,
        } = content;
        objects.iter_mut().for_each(normalize);
        let manifests = manifests("", &objects)?;
        let draft = |(manifest, object)| DraftObject { manifest, object };
        let objects = manifests.into_iter().zip(objects).map(draft).collect();
        let omitted = BTreeSet::new();
        Ok(Self {
            bundle,
            namespace,
            objects,
            config,
            certificates,
            ready_when,
            properties,
            omitted,
        })
    }

    /// Omits objects that need capabilities which are not enabled, by the annotation that manifests of
    /// releases have. Installed objects are kept. Without a ClusterVersion, nothing is omitted.
    pub(super) fn filter(
        &mut self,
        facts: Option<&ClusterFacts>,
        is_installed: impl Fn(&ObjectKey) -> bool,
    ) {
        let Some(enabled) = facts.and_then(|it| it.capabilities.as_ref()) else { return };
        self.objects.retain(|it| {
            let needed = capability_names(&it.manifest.annotations);
            let missing = needed.into_iter().filter(|name| !enabled.iter().any(|it| it == name));
            let missing: Vec<String> = missing.map(str::to_owned).collect();
            let stays = missing.is_empty() || is_installed(&it.manifest.key);
            if !stays {
                self.omitted.extend(missing);
            }
            stays
        });
    }

    /// Returns the definitions among its objects.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &Value> {
        let definitions = self.objects.iter().filter(|it| it.manifest.definition.is_some());
        definitions.map(|it| &it.object)
    }

    /// Returns the revision with a number, and its OperatorRevisions to write, each with its name. `owner` is
    /// the uid of the Operator, and `key` signs them; without one, they are not recognized later.
    pub(super) fn numbered(
        self,
        operator: &str,
        owner: &str,
        number: u32,
        key: Option<&RevisionKey>,
    ) -> (KeptRevision, Vec<(String, Value)>) {
        let parts = split(self.objects);
        let of = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let mut kept = KeptRevision {
            parts: BTreeMap::new(),
            of,
            bundle: self.bundle,
            namespace: self.namespace,
            config: self.config,
            certificates: self.certificates,
            ready_when: self.ready_when,
            properties: self.properties,
            omitted: self.omitted,
            risks: Vec::new(),
            live: None,
        };
        let mut written = Vec::new();
        for (part_number, part) in (1..).zip(parts) {
            let name = match of {
                1 => format!("{operator}-{number}"),
                _ => format!("{operator}-{number}-{part_number}"),
            };
            let file: Arc<str> = name.as_str().into();
            let (mut manifests, mut objects) = (Vec::new(), Vec::new());
            for (document, DraftObject { manifest, object }) in part.into_iter().enumerate() {
                let phase = Phase::of(&manifest.key.group_kind()).as_str().to_owned();
                objects.push(RevisionObject { phase, object });
                manifests.push(Manifest { file: Arc::clone(&file), document, ..manifest });
            }
            let spec = OperatorRevisionSpec {
                operator: operator.to_owned(),
                revision: number,
                part: RevisionPart { number: part_number, of },
                digest: manifest_hash(manifests.iter().map(|it| &it.raw)),
                bundle: kept.bundle.clone(),
                properties: kept.properties.clone(),
                namespace: kept.namespace.clone(),
                config: kept.config.clone(),
                certificates: kept.certificates,
                ready_when: kept.ready_when.clone(),
                omitted_capabilities: kept.omitted.iter().cloned().collect(),
                objects,
            };
            let spec = json!(spec);
            let signature = key.map(|it| it.signature(&name, owner, &spec)).unwrap_or_default();
            let object = json!({
                "apiVersion": OPERATOR_REVISION.api_version(),
                "kind": OPERATOR_REVISION.kind,
                "metadata": {
                    "name": name,
                    "labels": { OPERATOR_LABEL: operator },
                    "annotations": { SIGNATURE_ANNOTATION: signature },
                    "finalizers": [DELETION_FINALIZER],
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
            kept.parts.insert(part_number, KeptPart { name: name.clone(), manifests });
            written.push((name, object));
        }
        (kept, written)
    }
}

/// Returns existing definitions as manifests; those that cannot be read are left out.
pub(super) fn live_definitions(definitions: &[Value]) -> Vec<Manifest> {
    let read = |it: &Value| Manifest::read("".into(), 0, it).ok();
    definitions.iter().filter_map(read).collect()
}

pub(super) fn manifests<'a>(
    file: &str,
    objects: impl IntoIterator<Item = &'a Value>,
) -> Result<Vec<Manifest>, String> {
    let read = |(index, object): (usize, &Value)| {
        Manifest::read(file.into(), index, object)
            .map_err(|error| format!("object {}: {error}", index + 1))
    };
    let mut manifests: Vec<Manifest> =
        objects.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let cluster_kinds = cluster_kinds(&manifests);
    for manifest in &mut manifests {
        manifest.key.normalize(&cluster_kinds);
    }
    Ok(manifests)
}

/// Splits objects into as few parts as the API server accepts; without objects, there is one part.
fn split(objects: Vec<DraftObject>) -> Vec<Vec<DraftObject>> {
    let mut parts = vec![Vec::new()];
    let mut size = 0;
    for object in objects {
        let length = object.manifest.raw.unpack().len();
        if size > 0 && size + length > PART_SIZE_MAX {
            parts.push(Vec::new());
            size = 0;
        }
        size += length;
        if let Some(part) = parts.last_mut() {
            part.push(object);
        }
    }
    parts
}

/// Normalizes numbers as the API server does: it returns 1.0 as 1, and the digest must be the same.
pub(super) fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|it| number.is_f64() && it.fract() == 0.0);
            // Up to here, all integers are exact as floating-point numbers.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(whole) = whole.filter(|it| it.abs() <= EXACT) {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(fields) => fields.values_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
