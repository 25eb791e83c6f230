//! The permissions that a controller needs for some releases, and no others: derived from what their
//! manifests make it do, and from its own objects.

mod actions;
mod operators;
mod resolver;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::{ApiResource, GroupVersionKind};
use plimsoll_api::{
    CLUSTER_OPERATOR, CLUSTER_VERSION, FEATURE_GATE, GroupKind, MAINTENANCE_WINDOW, OPERATOR,
    RELEASE_PROGRESS, crd,
};
use plimsoll_content::immutable::is_replaced;
use plimsoll_content::inclusion::{Context, DEFAULT_FEATURE_SET, Decision, decide};
use plimsoll_content::{Manifest, Payload};
use plimsoll_plan::plan::{CREATE_ONLY, DELETE};
use serde_json::Value;

use crate::lease::{LEASE_NAME, WINDOWS_LEASE_NAME};
use crate::webhook::Reviewer;
use crate::webhook::capabilities::CapabilityReviewer;

pub use actions::action_permissions;
pub use operators::operator_permissions;
pub use resolver::{resolver_client_permissions, resolver_permissions};

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 2] = ["create", "patch"];

/// What permissions are needed for.
#[derive(Debug, Clone, Default)]
pub struct Purpose {
    /// Cluster profile that manifests must include.
    pub profile: String,
    /// Feature set of the cluster; `None` for any, as its FeatureGate has it.
    pub feature_set: Option<String>,
    /// Whether administrators may prune orphans.
    pub prune: bool,
    /// Whether the capability webhook is served.
    pub webhook: bool,
}

/// Permissions, by where they hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    /// In the whole cluster: what is watched is watched in all namespaces at once.
    pub cluster: Vec<PolicyRule>,
    /// In the namespace of the lease, `kube-system`.
    pub lease_namespace: Vec<PolicyRule>,
}

/// The permissions for releases: to install each, and to update from one to another.
///
/// Capabilities make no difference, since they may be enabled at any time. Kinds that no release
/// defines are assumed to be built into Kubernetes.
pub fn permissions(payloads: &[&Payload], purpose: &Purpose) -> Permissions {
    let mut needs = Needs::of_itself(purpose);
    let plurals = plurals(payloads);
    for payload in payloads {
        let context = match &purpose.feature_set {
            Some(set) => payload.context(&purpose.profile, set),
            None => Context {
                feature_set: None,
                feature_gates: None,
                ..payload.context(&purpose.profile, DEFAULT_FEATURE_SET)
            },
        };
        let included =
            payload.manifests.iter().filter(|it| decide(it, &context) == Decision::Included);
        for manifest in included {
            needs.manifest(manifest, &plurals, purpose.prune);
        }
    }
    let mut lease_namespace = in_lease_namespace(&[LEASE_NAME, WINDOWS_LEASE_NAME]);
    if purpose.webhook {
        lease_namespace.push(certificate_rule::<CapabilityReviewer>());
    }
    Permissions { cluster: needs.rules(), lease_namespace }
}

/// Verbs by group and resource, and verbs about names.
#[derive(Default)]
struct Needs {
    verbs: BTreeMap<(String, String), BTreeSet<&'static str>>,
    /// By group, resource and verb: the names, of which an empty one stands for all.
    named: BTreeMap<(String, String, &'static str), BTreeSet<String>>,
}

impl Needs {
    /// Returns what the controller needs whatever the release.
    fn of_itself(purpose: &Purpose) -> Self {
        let mut needs = Self::default();
        needs.add("", "namespaces", &READ);
        for verbs in [&READ[..], &WRITE] {
            needs.add("apiextensions.k8s.io", "customresourcedefinitions", verbs);
            needs.add(CLUSTER_VERSION.group, CLUSTER_VERSION.plural, verbs);
            needs.add(RELEASE_PROGRESS.group, RELEASE_PROGRESS.plural, verbs);
        }
        needs.add(CLUSTER_OPERATOR.group, CLUSTER_OPERATOR.plural, &READ);
        needs.add(OPERATOR.group, OPERATOR.plural, &READ);
        needs.windows();
        if purpose.feature_set.is_none() {
            needs.add(FEATURE_GATE.group, FEATURE_GATE.plural, &READ);
        }
        for kind in [CLUSTER_VERSION, RELEASE_PROGRESS] {
            needs.add(kind.group, &format!("{}/status", kind.plural), &["patch"]);
        }
        needs.add("events.k8s.io", "events", &WRITE);
        needs.webhook::<CapabilityReviewer>(purpose.webhook);
        needs
    }

    /// Adds what the controller of MaintenanceWindows takes, whose definition others install as well.
    fn windows(&mut self) {
        self.add(MAINTENANCE_WINDOW.group, MAINTENANCE_WINDOW.plural, &READ);
        let status = format!("{}/status", MAINTENANCE_WINDOW.plural);
        self.add(MAINTENANCE_WINDOW.group, &status, &["patch"]);
    }

    /// Adds what it takes to register a webhook, or only to remove what an earlier process registered.
    fn webhook<R: Reviewer>(&mut self, is_served: bool) {
        let verbs: &[&'static str] =
            if is_served { &["get", "create", "patch", "delete"] } else { &["get", "delete"] };
        for (kind, name) in R::CONFIGURATIONS {
            for verb in verbs {
                self.name(kind.group, kind.plural, verb, name);
            }
        }
    }

    fn add(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        let key = (group.to_owned(), resource.to_owned());
        self.verbs.entry(key).or_default().extend(verbs);
    }

    fn name(&mut self, group: &str, resource: &str, verb: &'static str, name: &str) {
        let key = (group.to_owned(), resource.to_owned(), verb);
        self.named.entry(key).or_default().insert(name.to_owned());
    }

    /// Adds what a manifest makes the controller do.
    fn manifest(
        &mut self,
        manifest: &Manifest,
        plurals: &BTreeMap<GroupKind, String>,
        prune: bool,
    ) {
        let key = &manifest.key;
        let plural = plurals.get(&key.group_kind()).cloned().unwrap_or_else(|| {
            let gvk = GroupVersionKind::gvk(&key.group, &manifest.version, &key.kind);
            ApiResource::from_gvk(&gvk).plural
        });
        self.add(&key.group, &plural, &READ);
        let deletes = manifest.annotations.contains_key(DELETE);
        if deletes || prune || is_replaced(manifest) {
            self.add(&key.group, &plural, &["delete"]);
        }
        if deletes {
            return;
        }
        self.add(&key.group, &plural, &WRITE);
        if key.group == CLUSTER_OPERATOR.group && key.kind == CLUSTER_OPERATOR.kind {
            self.add(&key.group, &format!("{plural}/status"), &["patch"]);
        }
        // What is posted has no name in the URL that a rule could be about.
        let posted = manifest.annotations.contains_key(CREATE_ONLY);
        let name = if posted { "" } else { &key.name };
        self.access(&key.group_kind(), &plural, name, &manifest.object());
    }

    /// Adds what it takes to write a role or a binding, beyond writing it. Without a name it may be any.
    fn access(&mut self, kind: &GroupKind, plural: &str, name: &str, object: &Value) {
        if kind.group != RBAC {
            return;
        }
        match kind.kind.as_str() {
            "Role" | "ClusterRole" => self.name(RBAC, plural, "escalate", name),
            "RoleBinding" | "ClusterRoleBinding" => {
                let to = |field: &str| object["roleRef"][field].as_str().unwrap_or_default();
                let resource = if to("kind") == "Role" { "roles" } else { "clusterroles" };
                self.name(RBAC, resource, "bind", to("name"));
            }
            _ => {}
        }
    }

    /// As rules: resources of a group with the same verbs share one.
    fn rules(self) -> Vec<PolicyRule> {
        let mut shared: BTreeMap<(String, BTreeSet<&'static str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in self.verbs {
            shared.entry((group, verbs)).or_default().push(resource);
        }
        let plain = shared
            .into_iter()
            .map(|((group, verbs), resources)| rule(&group, resources, verbs, None));
        let mut by_names: BTreeMap<(String, String, BTreeSet<String>), BTreeSet<&'static str>> =
            BTreeMap::new();
        for ((group, resource, verb), names) in self.named {
            let names = if names.contains("") { BTreeSet::new() } else { names };
            by_names.entry((group, resource, names)).or_default().insert(verb);
        }
        let named = by_names.into_iter().map(|((group, resource, names), verbs)| {
            let names = (!names.is_empty()).then(|| names.into_iter().collect());
            rule(&group, vec![resource], verbs, names)
        });
        plain.chain(named).collect()
    }
}

fn rule<'a>(
    group: &str,
    resources: Vec<String>,
    verbs: impl IntoIterator<Item = &'a str>,
    names: Option<Vec<String>>,
) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        resource_names: names,
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        ..PolicyRule::default()
    }
}

/// Returns the rule for keeping the certificate of a webhook.
fn certificate_rule<R: Reviewer>() -> PolicyRule {
    secret_rule(R::SECRET)
}

/// Returns the rule for keeping a Secret.
fn secret_rule(name: &str) -> PolicyRule {
    let verbs = ["get", "create", "patch"];
    rule("", vec!["secrets".to_owned()], verbs, Some(vec![name.to_owned()]))
}

fn in_lease_namespace(names: &[&str]) -> Vec<PolicyRule> {
    let group = "coordination.k8s.io";
    let names = names.iter().map(|it| (*it).to_owned()).collect();
    let leases = || vec!["leases".to_owned()];
    vec![
        rule(group, leases(), ["create"], None),
        rule(group, leases(), ["get", "update"], Some(names)),
    ]
}

/// The resources of the kinds that definitions of ours or of the releases make.
fn plurals(payloads: &[&Payload]) -> BTreeMap<GroupKind, String> {
    let manifests = payloads.iter().flat_map(|payload| &payload.manifests);
    let definitions = manifests
        .filter(|manifest| manifest.key.kind == "CustomResourceDefinition")
        .map(Manifest::object);
    let definitions = crd::manifests().into_iter().chain(definitions);
    definitions.filter_map(|it| definition_plural(&it)).collect()
}

/// The kind that a definition makes, and its resource.
fn definition_plural(object: &Value) -> Option<(GroupKind, String)> {
    let spec = &object["spec"];
    let kind = GroupKind::new(spec["group"].as_str()?, spec["names"]["kind"].as_str()?);
    Some((kind, spec["names"]["plural"].as_str()?.to_owned()))
}
