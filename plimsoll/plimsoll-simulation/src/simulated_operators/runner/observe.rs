//! The events of watches, as the simulator and the packages see them.

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{CLUSTER_VERSION_NAME, GroupKind, ObjectKey};
use serde_json::Value;

use super::writes::patch_status;
use super::{
    Runner, WatchSource, WatchedKind, WriteResult, api_in, status_of, whole, workload_resource,
};
use crate::simulated_operators::packages::{self, Operand, PackageEvent};
use crate::simulated_operators::simulator::ClusterEvent;
use crate::simulated_operators::template_fingerprint::TemplateFingerprint;
use crate::simulated_operators::watches::{WatchEvent, is_established};
use crate::simulated_operators::workload::{WorkloadKind, rolled_out, simulated_status};

/// The maximum number of writes to the status of one generation of a workload. More are needed only if
/// another controller manages it.
const WRITES_PER_GENERATION_MAX: u32 = 4;

impl Runner {
    /// Handles an event of a watch.
    pub(super) fn observe(&mut self, source: WatchSource, event: WatchEvent) {
        let event = match (source, event) {
            (WatchSource::Workloads(kind), WatchEvent::Applied(object)) => {
                self.observe_workload(kind, &object)
            }
            (WatchSource::Workloads(kind), WatchEvent::Deleted(object)) => {
                let key = workload_key(kind, &object);
                self.writes_by_workload.remove(&key);
                self.observe_package(PackageEvent::DeploymentGone(key.clone()));
                ClusterEvent::WorkloadGone(key)
            }
            (WatchSource::Workloads(_), WatchEvent::Listed(_)) => return,
            (WatchSource::Definitions, event) => return self.observe_definition(event),
            (WatchSource::Operands(kind), event) => return self.observe_operand(&kind, event),
            (WatchSource::Operators, WatchEvent::Applied(object)) => ClusterEvent::Operator {
                name: object.metadata.name.clone().unwrap_or_default(),
                status: status_of(&object),
            },
            (WatchSource::Operators, WatchEvent::Deleted(object)) => {
                ClusterEvent::OperatorGone(object.metadata.name.unwrap_or_default())
            }
            (WatchSource::Operators, WatchEvent::Listed(names)) => {
                ClusterEvent::OperatorsListed(names)
            }
            (WatchSource::Versions, WatchEvent::Applied(object)) => {
                if object.metadata.name.as_deref() != Some(CLUSTER_VERSION_NAME) {
                    return;
                }
                let version = object.data["status"]["desired"]["version"].as_str();
                ClusterEvent::Desired(version.map(str::to_owned))
            }
            (WatchSource::Versions, WatchEvent::Deleted(_)) => ClusterEvent::Desired(None),
            (WatchSource::Versions, WatchEvent::Listed(names)) => {
                if names.iter().any(|name| name == CLUSTER_VERSION_NAME) {
                    return;
                }
                ClusterEvent::Desired(None)
            }
        };
        self.simulator.observe(event, self.start.elapsed());
    }

    fn observe_workload(&mut self, kind: WorkloadKind, object: &DynamicObject) -> ClusterEvent {
        let key = workload_key(kind, object);
        let value = whole(object);
        let labels = object.metadata.labels.as_ref();
        let package = labels.and_then(|labels| labels.get(OPERATOR_LABEL));
        if let Some(package) = package.filter(|_| kind == WorkloadKind::Deployment) {
            self.observe_package(PackageEvent::Deployment {
                key: key.clone(),
                package: package.clone(),
                versions: packages::versions(&value),
                generation: object.metadata.generation.unwrap_or(0),
                rolled_out: rolled_out(kind, &value),
            });
        } else if let Some(patch) = simulated_status(kind, &value, self.time())
            && self.may_write(&key, &value)
        {
            let api = api_in(&self.client, &key.namespace, &workload_resource(kind));
            let name = key.name.clone();
            self.write(async move {
                patch_status(&api, &name, &patch).await;
                WriteResult::Other
            });
        }
        ClusterEvent::Workload {
            template: TemplateFingerprint::of(&value),
            rolled_out: rolled_out(kind, &value),
            key,
        }
    }

    fn observe_package(&mut self, event: PackageEvent) {
        self.packages.observe(event, self.start.elapsed());
    }

    /// Watches the objects of a kind as long as it is served.
    fn observe_definition(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Applied(definition) => {
                let Some((resource, package)) = defined(&definition) else { return };
                let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
                self.observe_package(PackageEvent::Definition { kind: kind.clone(), package });
                let watched = self.watched_kinds.get(&kind).map(|it| &it.resource.version);
                if watched == Some(&resource.version) {
                    return;
                }
                let source = WatchSource::Operands(kind.clone());
                let watch = self.begin_watch(resource.clone(), "", std::future::ready(()), source);
                let watched = self.watched_kinds.insert(kind, WatchedKind { resource, watch });
                if let Some(before) = watched {
                    before.watch.abort();
                }
            }
            WatchEvent::Deleted(definition) => {
                let names = &definition.data["spec"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let kind =
                    GroupKind { group: text(&names["group"]), kind: text(&names["names"]["kind"]) };
                if let Some(watched) = self.watched_kinds.remove(&kind) {
                    watched.watch.abort();
                }
                self.observe_package(PackageEvent::DefinitionGone(kind));
            }
            WatchEvent::Listed(_) => {}
        }
    }

    fn observe_operand(&mut self, kind: &GroupKind, event: WatchEvent) {
        match event {
            WatchEvent::Applied(object) => {
                let operand = Operand {
                    resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
                    is_deleting: object.metadata.deletion_timestamp.is_some(),
                    finalizers: object.metadata.finalizers.clone().unwrap_or_default(),
                };
                let key = operand_key(kind, &object);
                self.observe_package(PackageEvent::Operand { key, operand });
            }
            WatchEvent::Deleted(object) => {
                self.observe_package(PackageEvent::OperandGone(operand_key(kind, &object)));
            }
            WatchEvent::Listed(_) => {}
        }
    }

    /// Counts a write to a workload; returns false if another controller keeps changing its status.
    fn may_write(&mut self, key: &ObjectKey, object: &Value) -> bool {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let entry = self.writes_by_workload.entry(key.clone()).or_insert((generation, 0));
        if entry.0 != generation {
            *entry = (generation, 0);
        }
        entry.1 += 1;
        if entry.1 == WRITES_PER_GENERATION_MAX + 1 {
            tracing::warn!(object = %key, "another controller writes its status; no longer simulated");
        }
        entry.1 <= WRITES_PER_GENERATION_MAX
    }
}

fn workload_key(kind: WorkloadKind, object: &DynamicObject) -> ObjectKey {
    let (group, _, kind) = kind.names();
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

fn operand_key(kind: &GroupKind, object: &DynamicObject) -> ObjectKey {
    ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

/// Returns the kind that an established definition defines, in the version that objects are stored in, and the
/// Operator that it belongs to.
fn defined(definition: &DynamicObject) -> Option<(ApiResource, String)> {
    let package = definition.metadata.labels.as_ref()?.get(OPERATOR_LABEL)?.clone();
    let spec = &definition.data["spec"];
    let served = |it: &&Value| it["served"] == true && it["storage"] == true;
    let version = spec["versions"].as_array()?.iter().find(served)?["name"].as_str()?;
    let (group, names) = (spec["group"].as_str()?, &spec["names"]);
    let gvk = GroupVersionKind::gvk(group, version, names["kind"].as_str()?);
    let resource = ApiResource::from_gvk_with_plural(&gvk, names["plural"].as_str()?);
    is_established(Some(definition)).then_some((resource, package))
}
