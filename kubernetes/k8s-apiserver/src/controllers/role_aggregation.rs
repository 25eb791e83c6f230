//! Aggregated ClusterRoles: their rules are those of the roles that they select.
//!
//! Whenever a ClusterRole is written, those that select it by its labels are updated.
use std::collections::BTreeMap;

use k8s_schema::managed::{self, ManagerInfo};
use serde_json::{Value, json};

use crate::request::selector::LabelSelector;
use crate::semantics::cluster::{Cluster, ObjectChange};
use crate::semantics::registry::RBAC_GROUP;
use crate::storage::{ObjectKey, StorageId, Store, Stored};

/// The storage of ClusterRoles.
pub(crate) const STORAGE: &str = "clusterroles.rbac.authorization.k8s.io";

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const KIND: &str = "ClusterRole";
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The selectors of aggregated roles, by role name; read from the store on the first use.
#[derive(Debug, Default)]
pub(crate) struct AggregatedRoles(Option<BTreeMap<Box<str>, Vec<LabelSelector>>>);

impl AggregatedRoles {
    fn all(&mut self, store: &Store) -> &mut BTreeMap<Box<str>, Vec<LabelSelector>> {
        self.0.get_or_insert_with(|| {
            store
                .list(&StorageId::new(RBAC_GROUP, "clusterroles"), None)
                .map(|stored| (stored.key.name.clone(), selectors(&stored.decode())))
                .filter(|(_, selectors)| !selectors.is_empty())
                .collect()
        })
    }
}

/// Reacts to a write of a ClusterRole.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go: syncClusterRole
pub(crate) fn observe(
    aggregated: &mut AggregatedRoles,
    cluster: &mut Cluster,
    now: &str,
    change: &ObjectChange,
) {
    let name = &change.key.name;
    let aggregated = aggregated.all(&cluster.store);
    match &change.current {
        Some(current) => {
            let selectors = selectors(&current.decode());
            if selectors.is_empty() {
                aggregated.remove(name);
            } else {
                aggregated.insert(name.clone(), selectors);
            }
        }
        None => {
            aggregated.remove(name);
        }
    }
    let changed = [&change.previous, &change.current];
    let concerns = |selectors: &[LabelSelector]| {
        let changed = changed.iter().copied().flatten();
        changed.into_iter().any(|role| selectors.iter().any(|one| selects(one, role)))
    };
    let concerned: Vec<(Box<str>, Vec<LabelSelector>)> = aggregated
        .iter()
        .filter(|(gatherer, selectors)| *gatherer == name || concerns(selectors))
        .map(|(gatherer, selectors)| (gatherer.clone(), selectors.clone()))
        .collect();
    for (gatherer, selectors) in concerned {
        aggregate(cluster, now, &gatherer, &selectors);
    }
}

/// The selectors of a role; empty unless it is aggregated.
fn selectors(role: &Value) -> Vec<LabelSelector> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.into_iter().flatten().filter_map(LabelSelector::of_object).collect()
}

fn selects(selector: &LabelSelector, role: &Stored) -> bool {
    selector.matches(|key| role.label(key))
}

/// Sets the rules of an aggregated role to those of the roles that it selects, ordered by name.
fn aggregate(cluster: &mut Cluster, now: &str, name: &str, selectors: &[LabelSelector]) {
    let storage = StorageId::new(RBAC_GROUP, "clusterroles");
    let key = ObjectKey::new("", name);
    let Some(stored) = cluster.store.find(&storage, &key).cloned() else {
        return;
    };
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        for role in cluster.store.list(&storage, None) {
            if role.key == key || !selects(selector, role) {
                continue;
            }
            for rule in role.decode()["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let live = stored.decode_as(API_VERSION, KIND);
    if live["rules"].as_array().map_or(&[][..], Vec::as_slice) == rules {
        return;
    }
    let mut applied = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
    });
    if !rules.is_empty() {
        applied["rules"] = rules.into();
    }
    let Some(resource) = cluster.registry.find(RBAC_GROUP, "v1", "clusterroles").cloned() else {
        return;
    };
    let actor = ManagerInfo {
        manager: MANAGER,
        api_version: API_VERSION,
        subresource: "",
        now,
        reset_fields: &[],
    };
    match managed::server_side_apply(resource.schema(), Some(&live), &applied, &actor, true) {
        Ok(mut gathered) => {
            // Without rules to set, those of other managers stay.
            if gathered["rules"] == live["rules"] {
                return;
            }
            if gathered.get("rules").is_none() {
                gathered["rules"] = Value::Null;
            }
            cluster.put(&storage, &key, gathered, stored.schema_id);
        }
        Err(error) => tracing::warn!(%error, name, "failed to aggregate the rules of a role"),
    }
}
