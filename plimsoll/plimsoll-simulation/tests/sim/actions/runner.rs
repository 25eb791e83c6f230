//! The run of the requests of a seed in virtual time, with what goes wrong in a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_api::olm::action::OWNER_LABEL;
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{OperatorsView, WindowController};
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use plimsoll_source::catalog::CatalogRoots;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::{CIRCLE, EVENT_ACTIONS, event_actions};
use super::requests::{
    ADMINISTRATOR, APPROVER_GROUP, APPROVERS, DecidedPlan, Request, TENANT, requester,
};
use super::schedule::{WINDOW_MINUTES, WINDOW_PERIOD};
use super::{
    ACTIONS, ActionsResult, CLEAN, CONVERGENCE_TIME, DecisionOnPlan, WINDOWS, is_ended, unseeing,
};
use crate::processes::Processes;
use crate::record::{ADD_ONS, INSTALLED};
use crate::scenario::{Action as Incident, Scenario};

/// The time that the cluster may take once nothing goes wrong any more, in seconds.
const PATIENCE: u64 = 20 * 60;
/// The time that a watch may take to begin again once nothing goes wrong any more, in seconds: it waits
/// longer after each failure.
const WATCHES_AGAIN: u64 = 60;
/// The time without writes after Operators have converged.
const QUIET_TIME: Duration = Duration::from_secs(60);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/olm.io/v1/actionpolicies";
const RETRY: &str = "/namespaces/default/retryactions/again";
/// The group of users who may not approve.
const OTHER_GROUP: &str = "dev";
const MERGE: &str = "application/merge-patch+json";

/// The processes of a scenario, and what was requested of them.
pub(super) struct Runner {
    processes: Processes,
    began: Instant,
    requested: usize,
    touched: usize,
    backup: Option<Vec<u8>>,
    deleted: Vec<(Duration, String)>,
    allowed: Vec<(Duration, bool)>,
    decided: Vec<DecisionOnPlan>,
    is_clock_set: bool,
    /// The number of decisions that the backup has.
    decided_before: usize,
}

impl Runner {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            processes: Processes::new(scenario.seed).reading_current(&["configmaps"]),
            began: Instant::now(),
            requested: 0,
            touched: 0,
            backup: None,
            deleted: Vec::new(),
            allowed: Vec::new(),
            decided: Vec::new(),
            is_clock_set: false,
            decided_before: 0,
        }
    }

    pub(super) async fn run(
        mut self,
        scenario: &Scenario,
        requests: &[(u64, Request)],
    ) -> ActionsResult {
        let mut stop = self.simulate_operators(scenario);
        let mut incidents = scenario.actions.iter().peekable();
        let mut requests = requests.iter().peekable();
        let (mut objects, mut served_since) = (objects(), None);
        let mut ended = None;
        for second in 0..scenario.faulty_until + PATIENCE {
            if second == scenario.faulty_until {
                self.processes.end_faults();
                self.allow(true).await;
            }
            while let Some((_, incident)) = incidents.next_if(|(at, _)| *at <= second) {
                if self.act(incident) {
                    // Whoever restores a server restarts what watched it, and has what is missing created.
                    stop.cancel();
                    stop = self.simulate_operators(scenario);
                    objects = self::objects();
                    self.allowed.push((self.began.elapsed(), true));
                }
            }
            self.keep_running(scenario);
            while let Some((path, object)) = objects.first() {
                let kind = "application/json";
                match self.processes.send("POST", path, kind, object).await {
                    201 | 409 => drop(objects.remove(0)),
                    _ => break,
                }
            }
            if objects.is_empty() {
                let since = *served_since.get_or_insert_with(|| {
                    self.allowed.push((self.began.elapsed(), true));
                    second
                });
                while let Some((_, request)) = requests.next_if(|(at, _)| since + at <= second) {
                    self.request(request).await;
                }
                if second > scenario.faulty_until && second % 5 == 0 {
                    let is_seen = second > scenario.faulty_until + WATCHES_AGAIN;
                    let suspended = json!({ "spec": { "suspend": true } });
                    self.processes.send("PATCH", CLEAN, MERGE, &suspended).await;
                    for by in &APPROVERS[..2] {
                        let of = DecidedPlan::Shown;
                        self.request(&Request::Decide { by, is_approval: true, of }).await;
                    }
                    if requests.peek().is_none() && is_seen && self.has_ended().await {
                        ended = Some(self.began.elapsed());
                        break;
                    }
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(CONVERGENCE_TIME + QUIET_TIME).await;
        stop.cancel();
        self.result(ended).await
    }

    fn simulate_operators(&self, scenario: &Scenario) -> CancellationToken {
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            delay: scenario.delay,
            clock: Arc::new(self.processes.clock),
            ..SimulationOptions::default()
        };
        let client = kube::Client::new(self.processes.gateway.clone(), "default");
        tokio::spawn(simulated_operators::run(client, options, stop.clone()));
        stop
    }

    /// Has something go wrong; returns whether the server went back to an earlier state.
    fn act(&mut self, incident: &Incident) -> bool {
        match incident {
            Incident::BackUp => {
                self.backup = Some(self.processes.state());
                self.decided_before = self.decided.len();
            }
            Incident::Restart { from_backup } => {
                let backup = from_backup.then(|| self.backup.take()).flatten();
                let is_rollback = backup.is_some();
                self.processes.restart(backup);
                if is_rollback {
                    let forgotten = self.decided.iter_mut().skip(self.decided_before);
                    let now = self.began.elapsed();
                    forgotten.for_each(|it| it.forgotten = it.forgotten.or(Some(now)));
                }
                return is_rollback;
            }
            _ => {
                self.is_clock_set |= matches!(incident, Incident::SetClock(_));
                self.processes.act(incident);
            }
        }
        false
    }

    /// Deletes what is at a path as a client.
    async fn delete(&mut self, path: String) {
        let status = self.processes.send("DELETE", &path, "application/json", &json!({})).await;
        if matches!(status, 200 | 202) {
            self.deleted.push((self.began.elapsed(), path));
        }
    }

    /// Gives up the Actions that are executed, or deletes them.
    async fn stop_running(&mut self, is_deletion: bool) {
        let cancelled = json!({ "spec": { "cancelled": true } });
        for (name, action) in self.listed(ACTIONS).await {
            if action["status"]["state"] != "Running" || !name.starts_with("action-") {
                continue;
            }
            let path = format!("{ACTIONS}/{name}");
            if is_deletion {
                self.delete(path).await;
            } else {
                self.processes.send("PATCH", &path, MERGE, &cancelled).await;
            }
        }
    }

    async fn request(&mut self, request: &Request) {
        let kind = "application/json";
        match request {
            Request::Action { class, package, by_policy } => {
                let user = if *by_policy { TENANT } else { ADMINISTRATOR };
                let mut spec = json!({ "actionClass": class, "requester": requester(user) });
                match *class {
                    "operator-install" => spec["installDependencies"] = (!by_policy).into(),
                    "operator-update" => spec["parameters"] = json!({ "latest": true }),
                    "operator-delete" => spec["parameters"] = json!({ "cascade": !by_policy }),
                    _ => {}
                }
                if !package.is_empty() && *class != "operator-update" {
                    spec["package"] = (*package).into();
                }
                let name = format!("action-{}", self.requested);
                self.requested += 1;
                let mut action = json!({
                    "apiVersion": "olm.io/v1",
                    "kind": "Action",
                    "metadata": { "name": name },
                    "spec": spec,
                });
                if *package == "tide" {
                    // It is what begins the circle.
                    action["metadata"]["labels"] = json!({ OWNER_LABEL: CIRCLE[0].1 });
                }
                let status = self.processes.send("POST", ACTIONS, kind, &action).await;
                assert_eq!(status, 201, "{action}");
            }
            Request::Allow(is_allowed) => self.allow(*is_allowed).await,
            Request::Decide { by, is_approval, of } => self.decide(by, *is_approval, *of).await,
            Request::Cancel(number) => {
                let path = format!("{ACTIONS}/action-{number}");
                let patch = json!({ "spec": { "cancelled": true } });
                self.processes.send("PATCH", &path, MERGE, &patch).await;
            }
            Request::Stop { is_deletion } => self.stop_running(*is_deletion).await,
            Request::DeleteOperator(name) => self.delete(format!("{INSTALLED}/{name}")).await,
            Request::CancelRetry => {
                let path = format!("{ADD_ONS}{RETRY}");
                let patch = json!({ "spec": { "cancelled": true } });
                self.processes.send("PATCH", &path, MERGE, &patch).await;
            }
            Request::Touch => {
                self.touched += 1;
                let patch = json!({ "data": { "touched": self.touched.to_string() } });
                let path = format!("{CONFIG_MAPS}/followed");
                assert_eq!(self.processes.send("PATCH", &path, MERGE, &patch).await, 200);
            }
        }
    }

    /// Decides on the plans that wait for that, in the name of a user.
    async fn decide(&mut self, by: &str, is_approval: bool, of: DecidedPlan) {
        let digest =
            |it: &Value| it["status"]["planDigest"].as_str().unwrap_or_default().to_owned();
        let mut waiting = self.listed(ACTIONS).await;
        waiting.retain(|_, it| {
            it["status"]["state"] == "WaitingForApproval" && !digest(it).is_empty()
        });
        let digests: BTreeSet<String> = waiting.values().map(digest).collect();
        for (name, action) in waiting {
            let other = || {
                let other = digests.iter().find(|it| **it != digest(&action));
                other.cloned().unwrap_or_else(|| "sha256:0".to_owned())
            };
            let plan = if of == DecidedPlan::Shown { digest(&action) } else { other() };
            let group = if APPROVERS.contains(&by) { APPROVER_GROUP } else { OTHER_GROUP };
            let word = if is_approval { "Approved" } else { "Rejected" };
            let decision =
                json!({ "plan": plan, "approver": by, "groups": [group], "decision": word });
            let given = action["spec"]["approvals"].as_array().cloned().unwrap_or_default();
            let others = given.into_iter().filter(|it| it["approver"] != by);
            let all: Vec<Value> = others.chain([decision]).collect();
            let patch = json!({ "spec": { "approvals": all } });
            let path = format!("{ACTIONS}/{name}");
            let at = self.began.elapsed();
            let user = Some((by, group));
            let status = self.processes.send_as(user, "PATCH", &path, MERGE, &patch).await;
            let expected = if APPROVERS.contains(&by) { [200, 404] } else { [403, 403] };
            assert!(expected.contains(&status), "a decision of {by} is answered with {status}");
            let by = by.to_owned();
            self.decided.push(DecisionOnPlan {
                at,
                action: name,
                plan,
                by,
                is_approval,
                forgotten: None,
            });
        }
    }

    /// Allows the tenant tide, or not any more.
    async fn allow(&mut self, is_allowed: bool) {
        match is_allowed {
            true => {
                let policy = policy("tide", &json!({ "packages": ["tide"] }));
                self.allowed.push((self.began.elapsed(), true));
                self.processes.send("POST", POLICIES, "application/json", &policy).await
            }
            false => {
                let path = format!("{POLICIES}/tide");
                let status = self.processes.send("DELETE", &path, MERGE, &json!({})).await;
                self.allowed.push((self.began.elapsed(), false));
                status
            }
        };
    }

    fn keep_running(&mut self, scenario: &Scenario) {
        self.processes.keep_running(scenario, |start| {
            let (view, _) = watch::channel(OperatorsView::default());
            let windows = WindowController {
                client: start.client.clone(),
                clock: Arc::clone(&start.clock),
                leadership: start.leadership.clone(),
            };
            let controller = OperatorController {
                client: start.client,
                clock: start.clock,
                settings: OperatorSettings {
                    leadership: start.leadership,
                    roots: CatalogRoots::new(["/".into()]),
                    cache: None,
                    actions: Some(ActionSettings::default()),
                    queries: None,
                },
                view,
            };
            async move {
                let stop = CancellationToken::new();
                tokio::try_join!(controller.run(stop.clone()), windows.run(stop)).map(drop)
            }
        });
    }

    async fn listed(&self, path: &str) -> BTreeMap<String, Value> {
        let mut list = self.processes.recorder.read(path).await;
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        items.into_iter().map(|it| (name(&it), it)).collect()
    }

    /// Returns whether every Action has ended, and what generates them has nothing more to do.
    async fn has_ended(&self) -> bool {
        let actions = self.listed(ACTIONS).await;
        let recorder = &self.processes.recorder;
        let retry = recorder.read(&format!("{ADD_ONS}{RETRY}")).await;
        let followed = recorder.read(&format!("{CONFIG_MAPS}/followed")).await;
        let event_actions = self.listed(EVENT_ACTIONS).await;
        unseeing(&followed, &actions, &event_actions).is_empty()
            && actions.values().all(is_ended)
            && retry["status"]["conditions"][0]["status"] != "Unknown"
            && retry["status"]["conditions"][0]["status"].is_string()
    }

    async fn result(self, ended: Option<Duration>) -> ActionsResult {
        let recorder = &self.processes.recorder;
        let followed = recorder.read(&format!("{CONFIG_MAPS}/followed")).await;
        ActionsResult {
            writes: recorder.writes(),
            actions: self.listed(ACTIONS).await,
            followed: (followed, self.touched),
            event_actions: self.listed(EVENT_ACTIONS).await,
            retry: recorder.read(&format!("{ADD_ONS}{RETRY}")).await,
            deleted: self.deleted,
            allowed: self.allowed,
            decided: self.decided,
            is_clock_set: self.is_clock_set,
            ended,
        }
    }
}

fn policy(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "olm.io/v1",
        "kind": "ActionPolicy",
        "metadata": { "name": name },
        "spec": {
            "subjects": [{ "kind": "User", "name": TENANT }],
            "classes": ["operator-install"],
            "enforce": rules,
        },
    })
}

/// Returns the objects that exist before anything is requested, with the paths to create them at.
fn objects() -> Vec<(String, Value)> {
    let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
    let catalog = json!({
        "apiVersion": "olm.io/v1",
        "kind": "Catalog",
        "metadata": { "name": "examples" },
        "spec": { "source": { "type": "Directory", "path": examples.to_string_lossy() } },
    });
    let generator = |kind: &str, name: &str, mut spec: Value, template: Value| {
        spec["template"] = template;
        spec["requester"] = requester(ADMINISTRATOR);
        let metadata = json!({ "name": name });
        json!({ "apiVersion": "olm.io/v1", "kind": kind, "metadata": metadata, "spec": spec })
    };
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "followed", "labels": { "follow": "me" } },
    });
    let answer = json!({ "actionClass": "resolution", "package": "ledger" });
    let clean = json!({
        "schedule": "* * * * *", "concurrencyPolicy": "Forbid", "maintenanceWindow": "often",
    });
    let clean = generator("CronAction", "clean", clean, answer);
    let install = json!({ "actionClass": "operator-install", "package": "tide" });
    let again = generator("RetryAction", "again", json!({ "backoffLimit": 2 }), install);
    let times = json!({
        "schedule": format!("*/{WINDOW_PERIOD} * * * *"),
        "duration": format!("{WINDOW_MINUTES}m"),
    });
    let window = json!({
        "apiVersion": "olm.io/v1",
        "kind": "MaintenanceWindow",
        "metadata": { "name": "often" },
        "spec": { "windows": [times] },
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "approver" },
        "rules": [{
            "apiGroups": ["olm.io"], "resources": ["actions"], "verbs": ["get", "patch", "approve"],
        }],
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "approvers" },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "approver" },
        "subjects": [{ "apiGroup": group, "kind": "Group", "name": APPROVER_GROUP }],
    });
    let in_namespace = |plural: &str| format!("{ADD_ONS}/namespaces/default/{plural}");
    let mut all = vec![
        (format!("{rbac}/clusterroles"), role),
        (format!("{rbac}/clusterrolebindings"), binding),
        (format!("{ADD_ONS}/catalogs"), catalog),
        (POLICIES.to_owned(), policy("tide", &json!({ "packages": ["tide"] }))),
        (
            POLICIES.to_owned(),
            policy(
                "ledger",
                &json!({
                    "packages": ["ledger"], "requiresApproval": true, "approvalCount": 2,
                    "approvers": [{ "kind": "Group", "name": APPROVER_GROUP }],
                }),
            ),
        ),
        (CONFIG_MAPS.to_owned(), config_map),
        (WINDOWS.to_owned(), window),
        (in_namespace("cronactions"), clean),
        (in_namespace("retryactions"), again),
    ];
    all.extend(event_actions().into_iter().map(|(name, spec, template)| {
        (EVENT_ACTIONS.to_owned(), generator("EventAction", name, spec, template))
    }));
    all
}
