//! The permissions that a controller of Operators needs: for its own objects, and for those of bundles.
//!
//! What a bundle's roles allow the controller must hold too, or be allowed to escalate; so its
//! permissions follow from the bundles that are to be installed.

use std::collections::BTreeMap;

use kube::core::{ApiResource, GroupVersionKind};
use plimsoll_api::{
    CATALOG, CLUSTER_OPERATOR, CLUSTER_VERSION, GroupKind, OPERATOR, OPERATOR_REVISION, policies,
};
use plimsoll_bundle::{CA_ANNOTATION, SERVING_ANNOTATION};
use serde_json::Value;

use super::{Needs, Permissions, READ, WRITE, definition_plural, in_lease_namespace, secret_rule};
use crate::operators::revisions;

/// Name of the lease of the controller of Operators.
const LEASE: &str = "plimsoll-operators";

/// The permissions to install bundles, to upgrade from one to another, and to delete them; each is given
/// by the objects that it renders to. Without any, those that the controller itself needs.
///
/// Kinds that no bundle defines are assumed to be built into Kubernetes. Those of cert-manager are included for
/// bundles that need certificates, since `spec.certificates` may be changed at any time.
pub fn operator_permissions(bundles: &[Vec<Value>]) -> Permissions {
    let mut needs = of_itself();
    let objects = || bundles.iter().flatten();
    let plurals: BTreeMap<GroupKind, String> = objects().filter_map(definition_plural).collect();
    for object in objects() {
        needs.bundle_object(object, &plurals);
    }
    for (kind, plural) in &plurals {
        // Users' objects: deleted with the Operator, and written when the version changes that they are
        // stored in.
        needs.add(&kind.group, plural, &READ);
        needs.add(&kind.group, plural, &["delete", "patch"]);
    }
    let mut lease_namespace = in_lease_namespace(&[LEASE]);
    lease_namespace.push(secret_rule(revisions::SECRET));
    Permissions { cluster: needs.rules(), lease_namespace }
}

fn of_itself() -> Needs {
    let mut needs = Needs::default();
    for (kind, verbs) in [
        (OPERATOR, &["patch"][..]),
        (OPERATOR_REVISION, &["create", "patch", "delete"]),
        (CATALOG, &[]),
    ] {
        needs.add(kind.group, kind.plural, &READ);
        needs.add(kind.group, kind.plural, verbs);
    }
    for kind in [OPERATOR, CATALOG] {
        needs.add(kind.group, &format!("{}/status", kind.plural), &["patch"]);
    }
    for (group, resource) in
        [("", "namespaces"), ("apiextensions.k8s.io", "customresourcedefinitions")]
    {
        needs.add(group, resource, &READ);
        needs.add(group, resource, &WRITE);
        needs.add(group, resource, &["delete"]);
    }
    // Versions in which no object is stored any more are dropped.
    needs.add("apiextensions.k8s.io", "customresourcedefinitions/status", &["patch"]);
    needs.policies(&policies::operator_policies());
    // Facts that bundles may require.
    needs.add("", "nodes", &["list", "watch"]);
    needs.add(CLUSTER_VERSION.group, CLUSTER_VERSION.plural, &READ);
    needs.add("events.k8s.io", "events", &WRITE);
    // A namespace is only deleted if nothing is in it.
    needs.add("*", "*", &["list"]);
    needs
}

impl Needs {
    /// Adds what it takes to apply admission policies, and to see when they are changed.
    pub(super) fn policies(&mut self, objects: &[Value]) {
        for (kind, name) in objects.iter().filter_map(policies::kind_and_name) {
            self.add(kind.group, kind.plural, &["list", "watch"]);
            for verb in WRITE {
                self.name(kind.group, kind.plural, verb, name);
            }
        }
    }

    /// Adds what an object of a bundle makes the controller do.
    fn bundle_object(&mut self, object: &Value, plurals: &BTreeMap<GroupKind, String>) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api_version = text("/apiVersion").unwrap_or_default();
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let kind = text("/kind").unwrap_or_default();
        let plural = plurals.get(&GroupKind::new(group, kind)).cloned().unwrap_or_else(|| {
            ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)).plural
        });
        self.add(group, &plural, &READ);
        self.add(group, &plural, &WRITE);
        self.add(group, &plural, &["delete"]);
        if object["metadata"]["annotations"][SERVING_ANNOTATION].is_string() {
            for resource in ["issuers", "certificates"] {
                for verbs in [&READ[..], &WRITE, &["delete"]] {
                    self.add("cert-manager.io", resource, verbs);
                }
            }
        }
        if object["metadata"]["annotations"][CA_ANNOTATION].is_string() {
            // A renewed certificate is put into what calls the service, which is replaced whole.
            self.add(group, &plural, &["update"]);
        }
        if group == CLUSTER_OPERATOR.group && kind == CLUSTER_OPERATOR.kind {
            // Its related objects are filled in.
            self.add(group, &format!("{plural}/status"), &["patch"]);
        }
        let name = text("/metadata/name").unwrap_or_default();
        self.access(&GroupKind::new(group, kind), &plural, name, object);
    }
}

#[cfg(test)]
mod tests;
