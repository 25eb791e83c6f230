//! Service accounts, and what they may do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names::with_hash;
use super::{Installation, metadata};
use crate::bundle::RegistryContent;
use crate::csv::{ClusterServiceVersion, PolicyRule, StrategyPermission};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The service account that every namespace has.
const DEFAULT_ACCOUNT: &str = "default";

fn account(permission: &StrategyPermission) -> &str {
    if permission.service_account.is_empty() {
        DEFAULT_ACCOUNT
    } else {
        &permission.service_account
    }
}

/// The service accounts that permissions name and that the bundle does not bring itself, by name.
pub(super) fn service_accounts(
    content: &RegistryContent,
    installation: &Installation<'_>,
) -> Vec<Value> {
    let csv = &content.csv;
    let all = csv.permissions.iter().chain(&csv.cluster_permissions);
    let mut names: BTreeSet<&str> = all.map(account).collect();
    names.remove(DEFAULT_ACCOUNT);
    for brought in content.others.iter().filter(|it| it.kind() == "ServiceAccount") {
        names.remove(brought.name());
    }
    let object = |name| {
        let metadata = metadata(name, installation.namespace());
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata })
    };
    names.into_iter().map(object).collect()
}

/// A role and its binding in each namespace that is watched, unless those are all.
pub(super) fn roles(csv: &ClusterServiceVersion, installation: &Installation<'_>) -> Vec<Value> {
    if installation.watches_all() {
        return Vec::new();
    }
    let targets = installation.targets.iter();
    let pairs = targets.flat_map(|target| csv.permissions.iter().map(move |it| (target, it)));
    pairs
        .flat_map(|(target, permission)| {
            let (role, binding) = ("Role", "RoleBinding");
            pair([role, binding], csv, permission, target, installation)
        })
        .collect()
}

/// A cluster role and its binding for each permission in the whole cluster. When all namespaces are
/// watched these are all permissions, and those of namespaces come with reading namespaces.
pub(super) fn cluster_roles(
    csv: &ClusterServiceVersion,
    installation: &Installation<'_>,
) -> Vec<Value> {
    let kinds = ["ClusterRole", "ClusterRoleBinding"];
    let mut permissions = csv.cluster_permissions.clone();
    if installation.watches_all() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let namespaces = PolicyRule {
            verbs: Some(texts(&["get", "list", "watch"])),
            api_groups: texts(&[""]),
            resources: texts(&["namespaces"]),
            resource_names: Vec::new(),
            non_resource_urls: Vec::new(),
        };
        permissions.extend(csv.permissions.iter().cloned().map(|mut permission| {
            permission.rules.get_or_insert_default().push(namespaces.clone());
            permission
        }));
    }
    let permissions = permissions.iter();
    permissions.flat_map(|permission| pair(kinds, csv, permission, "", installation)).collect()
}

/// A role and its binding.
fn pair(
    [role, binding]: [&str; 2],
    csv: &ClusterServiceVersion,
    permission: &StrategyPermission,
    namespace: &str,
    installation: &Installation<'_>,
) -> [Value; 2] {
    let account = account(permission);
    let name = with_hash(&format!("{}-{account}", csv.name), permission);
    let metadata = metadata(&name, namespace);
    let api_version = format!("{RBAC}/v1");
    [
        json!({
            "apiVersion": &api_version,
            "kind": role,
            "metadata": &metadata,
            "rules": &permission.rules,
        }),
        json!({
            "apiVersion": &api_version,
            "kind": binding,
            "metadata": &metadata,
            "roleRef": { "apiGroup": RBAC, "kind": role, "name": &name },
            "subjects": [{
                "kind": "ServiceAccount",
                "name": account,
                "namespace": installation.namespace(),
            }],
        }),
    ]
}
