//! What a plan says beforehand is what happens, by the cluster's own account: its audit log.

#![expect(clippy::panic, reason = "how a test fails")]

mod rehearsals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::discovery::{Discovery, Scope};
use plimsoll_api::{CLUSTER_VERSION, ObjectKey};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_plan::forecast::{Forecast, StepChangeKind};
use plimsoll_plan::plan::Action;
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::dry_run;
use serde_json::{Value, json};

use crate::harness::{
    Harness, OperatorSetup, on_any_cluster, on_each_cluster, outside_payload, sample_payloads,
    until,
};
use crate::install::create_cluster_version;

/// The field manager of a request that marks a time in the audit log.
const AUDIT_MARK: &str = "mark";

/// A write of the controller to an object of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Write {
    key: ObjectKey,
    /// What the answer says: it was created, deleted, or written over.
    kind: StepChangeKind,
}

/// When the API server received a request that the audit log has.
fn received(event: &Value) -> &str {
    event["requestReceivedTimestamp"].as_str().unwrap_or_default()
}

/// Returns the present time by the clock of the audit log, which is that of the API server.
async fn audit_time(harness: &Harness) -> String {
    let parameters =
        PatchParams { field_manager: Some(AUDIT_MARK.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({}));
    let versions = harness.api(CLUSTER_VERSION);
    versions.patch("version", &parameters.dry_run(), &patch).await.expect("it may be tried");
    let mark = format!("fieldManager={AUDIT_MARK}");
    let is_mark = |event: &&Value| {
        event["requestURI"].as_str().is_some_and(|uri| uri.contains(mark.as_str()))
    };
    let marked = || async {
        let events = harness.cluster.audit();
        events.iter().find(is_mark).map(|it| received(it).to_owned())
    };
    until("the audit log has the mark", marked, Option::is_some).await.expect("it is marked")
}

/// The writes of the controller, in order, that the API server received after a time, as far as the audit
/// log has them; after no time for all. What it keeps for itself is left out.
async fn writes(harness: &Harness, since: &str) -> Vec<Write> {
    let discovery =
        Discovery::new(harness.client.clone()).run_aggregated().await.expect("discovery");
    let mut kinds = BTreeMap::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, _) in group.versioned_resources(version) {
                kinds.insert((resource.group, resource.plural), resource.kind);
            }
        }
    }
    let mut events = harness.cluster.audit();
    // A kube-apiserver writes its log after the answer, when the next request may be under way.
    events.retain(|event| received(event) > since);
    events.sort_by(|a, b| received(a).cmp(received(b)));
    events.iter().filter_map(|event| write(event, &kinds)).collect()
}

fn write(event: &Value, kinds: &BTreeMap<(String, String), String>) -> Option<Write> {
    let object = &event["objectRef"];
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let uri = event["requestURI"].as_str().unwrap_or_default();
    let (_, query) = uri.split_once('?').unwrap_or((uri, ""));
    let by_controller = query.split('&').any(|pair| pair == "fieldManager=plimsoll");
    let verb = event["verb"].as_str().unwrap_or_default();
    let dry = query.contains("dryRun");
    let own = ["clusterversions", "releaseprogresses", "leases", "events"];
    let resource = text("resource");
    if dry
        || !text("subresource").is_empty()
        || own.contains(&resource.as_str())
        || !(by_controller || verb == "delete")
    {
        return None;
    }
    let kind = match (verb, event["responseStatus"]["code"].as_u64()) {
        ("delete", Some(200)) => StepChangeKind::Deleted,
        ("patch" | "create", Some(201)) => StepChangeKind::Created,
        ("patch", Some(200)) => StepChangeKind::Changed,
        _ => return None,
    };
    let group = text("apiGroup");
    let key = ObjectKey {
        kind: kinds.get(&(group.clone(), resource))?.clone(),
        group,
        namespace: text("namespace"),
        name: text("name"),
    };
    Some(Write { key, kind })
}

/// The forecast of a live cluster.
pub(crate) async fn forecast(harness: &Harness, payload: &Payload) -> Forecast {
    let cluster = ClusterState::read(&harness.client).await.expect("there is a ClusterVersion");
    let now = Timestamp::now();
    let requested = cluster.target(DEFAULT_PROFILE, None, now);
    let forecast = dry_run::forecast(&harness.client, &cluster, payload, &requested, now);
    forecast.await.expect("the cluster answers").0
}

/// Compares what a plan said with what the audit log has: the same objects, in the order of their
/// levels. Gates are always asked for, whether anything about them changes or not.
fn assert_predicted(
    forecast: &Forecast,
    writes: &[Write],
    cluster_wide: &BTreeSet<(String, String)>,
) {
    let identity = |key: &ObjectKey| {
        let mut key = key.clone();
        if cluster_wide.contains(&(key.group.clone(), key.kind.clone())) {
            key.namespace.clear();
        }
        key
    };
    let mut levels = BTreeMap::new();
    for (number, level) in forecast.levels().into_iter().enumerate() {
        for step in level.components.into_iter().flat_map(|component| component.steps) {
            levels.insert(identity(&forecast.plan.steps[step].manifest.key), number);
        }
    }
    let gates: BTreeSet<ObjectKey> = forecast
        .plan
        .steps
        .iter()
        .filter(|step| step.action == Action::Gate)
        .map(|step| identity(&step.manifest.key))
        .collect();
    let predicted: BTreeMap<String, StepChangeKind> = forecast
        .effects()
        .map(|(step, change)| (identity(&step.manifest.key).to_string(), change.kind()))
        .collect();
    let steps = &forecast.plan.steps;
    let deferred: BTreeMap<ObjectKey, ObjectKey> = forecast
        .deferred
        .iter()
        .map(|(&step, &other)| (&steps[step].manifest.key, &steps[other].manifest.key))
        .map(|(key, other)| (identity(key), identity(other)))
        .collect();
    let mut happened = BTreeMap::new();
    let mut reached = 0;
    for write in writes {
        let key = named(identity(&write.key), &levels);
        let level = levels.get(&key).copied();
        let level = level.unwrap_or_else(|| panic!("{key} is not an object of the plan"));
        let first = !happened.contains_key(&key.to_string());
        // An object may be written once more when others have changed it; the order is that of
        // the first time.
        if let Some(other) = deferred.get(&key) {
            assert!(happened.contains_key(&other.to_string()), "{key} came before {other}");
        } else {
            assert!(!first || level >= reached, "{key} came after its level");
            reached = reached.max(level);
        }
        if first && (!gates.contains(&key) || predicted.contains_key(&key.to_string())) {
            happened.insert(key.to_string(), write.kind);
        }
    }
    assert_eq!(predicted, happened, "predicted and happened differ");
}

/// An audit log may not name what is created by an ordinary creation: it is the one object of the
/// plan of that kind and namespace.
fn named(key: ObjectKey, levels: &BTreeMap<ObjectKey, usize>) -> ObjectKey {
    let alike = |other: &&ObjectKey| {
        (&other.group, &other.kind, &other.namespace) == (&key.group, &key.kind, &key.namespace)
    };
    match levels.keys().find(alike) {
        Some(found) if key.name.is_empty() => found.clone(),
        _ => key,
    }
}

/// Kinds without namespaces, by group and kind.
async fn cluster_wide(harness: &Harness) -> BTreeSet<(String, String)> {
    let discovery =
        Discovery::new(harness.client.clone()).run_aggregated().await.expect("discovery");
    let mut found = BTreeSet::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if capabilities.scope == Scope::Cluster {
                found.insert((resource.group, resource.kind));
            }
        }
    }
    found
}

fn number(resource_version: Option<&str>) -> u64 {
    resource_version.and_then(|text| text.parse().ok()).expect("a number, as both servers have it")
}

/// The revision at which an object was last changed.
async fn revision(harness: &Harness, key: &ObjectKey) -> u64 {
    let discovery =
        Discovery::new(harness.client.clone()).run_aggregated().await.expect("discovery");
    let group = discovery.get(&key.group).expect("the group is served");
    let (resource, capabilities) = group.recommended_kind(&key.kind).expect("the kind is served");
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(harness.client.clone(), &resource),
        Scope::Namespaced => {
            Api::namespaced_with(harness.client.clone(), &key.namespace, &resource)
        }
    };
    let object = api.get(&key.name).await.expect("what was written is there");
    number(object.metadata.resource_version.as_deref())
}

/// Waits until the audit log has a write of each object that a plan changes: a kube-apiserver writes its log
/// after the answers.
async fn until_audited(harness: &Harness, forecast: &Forecast, since: &str) {
    let missing = || async {
        let writes = writes(harness, since).await;
        let is_audited = |key: &ObjectKey| {
            writes.iter().map(|write| &write.key).any(|it| {
                (&it.group, &it.kind) == (&key.group, &key.kind)
                    && (it.name.is_empty() || it.name == key.name)
            })
        };
        let keys = forecast.effects().map(|(step, _)| &step.manifest.key);
        keys.filter(|key| !is_audited(key)).map(ToString::to_string).collect::<Vec<String>>()
    };
    until("the audit log has what the plan says", missing, Vec::is_empty).await;
}

/// Plans an update, carries it out, and compares. A request that left its object as it was changed
/// nothing: a manifest may differ without effect.
async fn assert_plan_happens(harness: &mut Harness, next: &Arc<Payload>) {
    let forecast = forecast(harness, next).await;
    assert!(forecast.effects().count() > 0, "the releases differ");
    let since = audit_time(harness).await;
    let version = harness.api(CLUSTER_VERSION).list(&ListParams::default()).await.expect("a list");
    let before = number(version.metadata.resource_version.as_deref());
    let writes_before = writes(harness, "").await.len();
    harness.release(next);
    harness.completed(&next.release.version).await;
    assert!(writes_before > 0, "the audit log knows of the installation");
    until_audited(harness, &forecast, &since).await;
    let mut writes = writes(harness, &since).await;
    let same = |one: &ObjectKey, other: &ObjectKey| {
        (&one.group, &one.kind, &one.name) == (&other.group, &other.kind, &other.name)
    };
    let foreseen =
        |key: &ObjectKey| forecast.effects().any(|(step, _)| same(&step.manifest.key, key));
    let mut idle = BTreeSet::new();
    for write in writes.iter().filter(|write| !foreseen(&write.key)) {
        if write.kind == StepChangeKind::Changed && revision(harness, &write.key).await <= before {
            idle.insert(write.key.to_string());
        }
    }
    writes.retain(|write| !idle.contains(&write.key.to_string()));
    assert_predicted(&forecast, &writes, &cluster_wide(harness).await);
    assert_eq!(harness.progress().await["planHash"], forecast.plan.hash.as_str());
}

#[test]
fn the_plan_of_the_sample_is_what_the_audit_log_has_afterwards() {
    on_any_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let mut harness =
            Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&second)]).await;
        assert_plan_happens(&mut harness, &second).await;
        harness.stop().await;
    });
}

#[test]
fn the_plan_of_payloads_from_outside_is_what_the_audit_log_has_afterwards() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let Some(next) = outside_payload("PLIMSOLL_PAYLOAD_NEXT") else { return };
    on_each_cluster(|kind| {
        let (first, next) = (Arc::clone(&first), Arc::clone(&next));
        async move {
            let payloads = [Arc::clone(&first), Arc::clone(&next)];
            let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
            create_cluster_version(&harness, &json!({})).await;
            harness.control();
            harness.completed(&first.release.version).await;
            assert_plan_happens(&mut harness, &next).await;
            harness.stop().await;
        }
    });
}

#[test]
fn an_embedded_cluster_is_as_it_was_after_a_plan() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::installed(ClusterKind::Embedded, &payloads).await;
        harness.stop().await;
        let harness = harness.without_operators();
        let server = harness.cluster.server().expect("it is embedded").clone();
        let before = server.resource_version();
        forecast(&harness, &second).await;
        assert_eq!(server.resource_version(), before, "a dry run leaves no trace");
    });
}
