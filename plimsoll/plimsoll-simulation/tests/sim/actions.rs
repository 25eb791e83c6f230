//! Actions: a seed decides who requests what, which policies allow it meanwhile, and what goes wrong. Each
//! Action is executed at most once, never without a policy, and says what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_api::olm::action::{CREATED_BY_ANNOTATION, OWNER_LABEL};
use plimsoll_controller::OperatorsView;
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::processes::Processes;
use crate::record::{ADD_ONS, Write};
use crate::scenario::{Action as Incident, Scenario};
use crate::shrink;

/// How long the cluster may take once nothing goes wrong any more, in seconds.
const PATIENCE: u64 = 20 * 60;
/// How long a watch may take to begin again once nothing goes wrong any more, in seconds: it waits longer
/// after each failure.
const WATCHES_AGAIN: u64 = 60;
/// How long Operators may go on changing once all Actions ended.
const SETTLES: Duration = Duration::from_secs(5 * 60);
/// How long nothing may be written then.
const RESTS: Duration = Duration::from_secs(60);
/// How long a write may follow the question whether it is allowed: requests time out by then.
const ON_ITS_WAY: Duration = Duration::from_secs(90);
/// Of how many seeds one is run: Actions are planned from a catalog, which takes longer.
pub(crate) const SHARE: u64 = 10;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OPERATORS: &str = "/apis/olm.io/v1/operators";
const ACTIONS: &str = "/apis/olm.io/v1/namespaces/default/actions";
const POLICIES: &str = "/apis/olm.io/v1/actionpolicies";
const RETRY: &str = "/namespaces/default/retryactions/again";
const FOLLOWS: &str = "/namespaces/default/eventactions/follow";
const MERGE: &str = "application/merge-patch+json";

/// What somebody does at a moment.
#[derive(Debug, Clone, PartialEq)]
enum Request {
    /// Requests an Action: of a class, about a package; as somebody who needs policies, or not.
    Action { class: &'static str, package: &'static str, by_policy: bool },
    /// Takes the policy back that allows tide, or gives it again.
    Allow(bool),
    /// Approves whatever waits for that, as it is shown.
    Approve,
    /// Gives up the Action of this number.
    Cancel(usize),
    /// Changes the object that an EventAction follows.
    Touch,
}

/// Who may request what without a policy, and who may not.
const ADMINISTRATOR: &str = "system:admin";
const TENANT: &str = "alice";

fn requester(user: &str) -> Value {
    let groups: &[&str] = if user == ADMINISTRATOR { &["system:masters"] } else { &[] };
    json!({ "username": user, "groups": groups })
}

/// The requests of a seed, with the seconds.
fn requests(seed: u64) -> Vec<(u64, Request)> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xac71_0115);
    let mut requests = Vec::new();
    for _ in 0..random.u8(3..8) {
        let by_policy = random.u8(..5) < 2;
        let class = match random.u8(..6) {
            0 => "operator-delete",
            1 => "operator-update",
            2 => "autoremove",
            _ => "operator-install",
        };
        let package = match class {
            "autoremove" => "",
            _ => ["lantern", "ledger", "tide"][random.usize(..3)],
        };
        requests.push((random.u64(0..80), Request::Action { class, package, by_policy }));
    }
    for _ in 0..random.u8(..3) {
        requests.push((random.u64(0..90), Request::Allow(random.bool())));
    }
    for _ in 0..random.u8(1..4) {
        requests.push((random.u64(10..110), Request::Approve));
    }
    if random.bool() {
        requests.push((random.u64(0..90), Request::Cancel(random.usize(..3))));
    }
    for _ in 0..random.u8(..5) {
        requests.push((random.u64(0..100), Request::Touch));
    }
    requests.sort_by_key(|(at, _)| *at);
    requests
}

/// What came of it.
struct ActionsResult {
    writes: Vec<Write>,
    /// The Actions at the end, by name.
    actions: BTreeMap<String, Value>,
    /// The object that is followed, how often it was changed, and what follows it.
    followed: (Value, usize, Value),
    retry: Value,
    /// When tide was allowed, or not any more.
    allowed: Vec<(Duration, bool)>,
    /// When a plan was approved: by name of the Action.
    approved: Vec<(Duration, String, String)>,
    /// When all had ended; `None` if it did not come to that.
    ended: Option<Duration>,
}

/// Runs the requests of a seed, with what goes wrong in a scenario.
fn run(scenario: &Scenario) -> ActionsResult {
    fastrand::seed(scenario.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let result = runtime.block_on(async { Runner::new(scenario).run(scenario).await });
    runtime.shutdown_background();
    result
}

struct Runner {
    processes: Processes,
    began: Instant,
    requested: usize,
    touched: usize,
    allowed: Vec<(Duration, bool)>,
    approved: Vec<(Duration, String, String)>,
}

impl Runner {
    fn new(scenario: &Scenario) -> Self {
        Self {
            processes: Processes::new(scenario.seed).reading_current(&["configmaps"]),
            began: Instant::now(),
            requested: 0,
            touched: 0,
            allowed: Vec::new(),
            approved: Vec::new(),
        }
    }

    async fn run(mut self, scenario: &Scenario) -> ActionsResult {
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            delay: scenario.delay,
            clock: Arc::new(self.processes.clock),
            ..SimulationOptions::default()
        };
        let client = kube::Client::new(self.processes.gateway.clone(), "default");
        tokio::spawn(simulated_operators::run(client, options, stop.clone()));
        let mut incidents = scenario.actions.iter().peekable();
        let requests = requests(scenario.seed);
        let mut requests = requests.iter().peekable();
        let (mut objects, mut served_since) = (objects(), None);
        let mut ended = None;
        for second in 0..scenario.faulty_until + PATIENCE {
            if second == scenario.faulty_until {
                self.processes.end_faults();
                self.allow(true).await;
            }
            while let Some((_, incident)) = incidents.next_if(|(at, _)| *at <= second) {
                if matches!(incident, Incident::Restart { .. }) {
                    self.processes.restart(None);
                } else {
                    self.processes.act(incident);
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
                    let path = format!("{ADD_ONS}/namespaces/default/cronactions/clean");
                    let suspended = json!({ "spec": { "suspend": true } });
                    self.processes.send("PATCH", &path, MERGE, &suspended).await;
                    self.request(&Request::Approve).await;
                    if requests.peek().is_none() && is_seen && self.has_ended().await {
                        ended = Some(self.began.elapsed());
                        break;
                    }
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(SETTLES + RESTS).await;
        stop.cancel();
        self.result(ended).await
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
                let action = json!({
                    "apiVersion": "olm.io/v1",
                    "kind": "Action",
                    "metadata": { "name": name },
                    "spec": spec,
                });
                let status = self.processes.send("POST", ACTIONS, kind, &action).await;
                assert_eq!(status, 201, "{action}");
            }
            Request::Allow(is_allowed) => self.allow(*is_allowed).await,
            Request::Approve => {
                for (name, action) in self.listed(ACTIONS).await {
                    let plan = action["status"]["planDigest"].as_str().unwrap_or_default();
                    if action["status"]["state"] != "APPROVAL" || plan.is_empty() {
                        continue;
                    }
                    let approval = json!({ "plan": plan, "approver": ADMINISTRATOR });
                    let patch = json!({ "spec": { "approval": approval } });
                    let path = format!("{ACTIONS}/{name}");
                    self.approved.push((self.began.elapsed(), name, plan.to_owned()));
                    let status = self.processes.send("PATCH", &path, MERGE, &patch).await;
                    assert!(matches!(status, 200 | 404), "an approval is answered with {status}");
                }
            }
            Request::Cancel(number) => {
                let path = format!("{ACTIONS}/action-{number}");
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
            let controller = OperatorController {
                client: start.client,
                clock: start.clock,
                settings: OperatorSettings {
                    leadership: start.leadership,
                    cache: None,
                    actions: Some(ActionSettings::default()),
                },
                view,
            };
            controller.run(CancellationToken::new())
        });
    }

    async fn listed(&self, path: &str) -> BTreeMap<String, Value> {
        let mut list = self.processes.recorder.read(path).await;
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        items.into_iter().map(|it| (name(&it), it)).collect()
    }

    /// Whether every Action has ended, and what makes them has nothing more to do.
    async fn has_ended(&self) -> bool {
        let actions = self.listed(ACTIONS).await;
        let recorder = &self.processes.recorder;
        let retry = recorder.read(&format!("{ADD_ONS}{RETRY}")).await;
        let follows = recorder.read(&format!("{ADD_ONS}{FOLLOWS}")).await;
        let followed = recorder.read(&format!("{CONFIG_MAPS}/followed")).await;
        let is_seen = is_seen(&followed, &follows);
        is_seen
            && actions.values().all(is_ended)
            && retry["status"]["conditions"][0]["status"] != "Unknown"
            && retry["status"]["conditions"][0]["status"].is_string()
    }

    async fn result(self, ended: Option<Duration>) -> ActionsResult {
        let recorder = &self.processes.recorder;
        let follows = recorder.read(&format!("{ADD_ONS}{FOLLOWS}")).await;
        let followed = recorder.read(&format!("{CONFIG_MAPS}/followed")).await;
        ActionsResult {
            writes: recorder.writes(),
            actions: self.listed(ACTIONS).await,
            followed: (followed, self.touched, follows),
            retry: recorder.read(&format!("{ADD_ONS}{RETRY}")).await,
            allowed: self.allowed,
            approved: self.approved,
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

/// What is there before anything is requested, with where it is created.
fn objects() -> Vec<(String, Value)> {
    let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
    let catalog = json!({
        "apiVersion": "olm.io/v1",
        "kind": "Catalog",
        "metadata": { "name": "examples" },
        "spec": { "source": { "type": "Directory", "path": examples.to_string_lossy() } },
    });
    let made = |kind: &str, name: &str, mut spec: Value, template: Value| {
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
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "selector": { "follow": "me" } });
    let answer = || json!({ "actionClass": "resolution", "package": "ledger" });
    let follow = made(
        "EventAction",
        "follow",
        json!({ "on": { "kind": "Object", "object": object } }),
        answer(),
    );
    let clean = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" });
    let clean = made("CronAction", "clean", clean, answer());
    let install = json!({ "actionClass": "operator-install", "package": "tide" });
    let again = made("RetryAction", "again", json!({ "backoffLimit": 2 }), install);
    let in_namespace = |plural: &str| format!("{ADD_ONS}/namespaces/default/{plural}");
    vec![
        (format!("{ADD_ONS}/catalogs"), catalog),
        (POLICIES.to_owned(), policy("tide", &json!({ "packages": ["tide"] }))),
        (
            POLICIES.to_owned(),
            policy("ledger", &json!({ "packages": ["ledger"], "requiresApproval": true })),
        ),
        (CONFIG_MAPS.to_owned(), config_map),
        (in_namespace("eventactions"), follow),
        (in_namespace("cronactions"), clean),
        (in_namespace("retryactions"), again),
    ]
}

/// What does not hold, in sentences.
fn violations(result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let done: Vec<&Write> =
        result.writes.iter().filter(|it| matches!(it.status, 200..=202)).collect();
    for (name, action) in &result.actions {
        found.extend(of_action(name, action, &done, result));
    }
    for write in &done {
        found.extend(unrequested(write, result));
    }
    found.extend(of_makers(&done, result));
    match result.ended {
        None => {
            let open = result.actions.iter().filter(|(_, it)| !is_ended(it));
            let open = open.map(|(name, it)| format!("{name}: {}", it["status"]));
            let open: Vec<String> = open.collect();
            let follows = &result.followed.2["status"];
            found.push(format!(
                "not everything has ended: {follows} {} {}",
                result.retry["status"],
                open.join("\n  ")
            ));
        }
        Some(ended) => {
            let about_actions = format!("{ADD_ONS}/namespaces/");
            let is_late = |it: &&&Write| {
                it.path.starts_with(&about_actions) && it.at > ended
                    || it.path.starts_with(ADD_ONS) && it.at > ended + SETTLES
            };
            found.extend(done.iter().filter(is_late).map(|it| {
                format!("{} {} at {:?}; all had ended at {ended:?}", it.method, it.path, it.at)
            }));
        }
    }
    found
}

/// What an Action says of itself, compared with what was done for it.
fn of_action(name: &str, action: &Value, done: &[&Write], result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let status = &action["status"];
    let state = status["state"].as_str().unwrap_or_default();
    let condition = &status["conditions"][0];
    let uid = action["metadata"]["uid"].as_str().unwrap_or_default();
    if !matches!(state, "SUCCEEDED" | "FAILED" | "CANCELLED") {
        found.push(format!("{name} is {state}: {}", condition["message"]));
    }
    if condition["reason"].as_str().is_none_or(str::is_empty) {
        found.push(format!("{name} is {state} without a reason"));
    }
    let is_creation = |it: &&&Write| {
        it.method == "POST"
            && it.path == OPERATORS
            && it.sent["metadata"]["annotations"][CREATED_BY_ANNOTATION] == *uid
    };
    let created: Vec<&&Write> = done.iter().filter(is_creation).collect();
    let plan = status["plan"].as_array().map(Vec::as_slice).unwrap_or_default();
    for write in &created {
        let operator = &write.sent["metadata"]["name"];
        let of = |it: &&Value| it["operation"] == "Create" && it["operator"] == *operator;
        let planned = plan.iter().find(of);
        let is_admitted = |it: &Value| {
            !(it["state"] == "Planned" || it["state"] == "Failed" && it["reason"] == "PolicyDenied")
        };
        // Of a process that is dead nobody can know what it still sends.
        if !planned.is_some_and(is_admitted) && !write.is_late {
            found.push(format!("{name} created {operator} and does not say so: {status}"));
        }
        found.extend(forbidden(name, action, write, result));
    }
    for change in plan {
        let of = |it: &&&Write| it.sent["metadata"]["name"] == change["operator"];
        let times = created.iter().filter(|it| of(it)).count();
        if change["operation"] == "Create" && times > 1 {
            found.push(format!("{name} created {} {times} times", change["operator"]));
        }
        let is_done = matches!(change["state"].as_str(), Some("Written" | "Completed"));
        if change["operation"] == "Create" && is_done && times == 0 {
            found.push(format!("{name} did not create {}", change["operator"]));
        }
        if state == "SUCCEEDED"
            && change["state"] != "Completed"
            && action["spec"]["dryRun"] != true
        {
            found.push(format!("{name} succeeded without {change}"));
        }
    }
    found
}

/// Whether a creation was not allowed when it was written.
fn forbidden(name: &str, action: &Value, write: &Write, result: &ActionsResult) -> Option<String> {
    if action["spec"]["requester"]["username"] != TENANT || write.is_late {
        return None;
    }
    let begin = write.at.saturating_sub(ON_ITS_WAY);
    match action["spec"]["package"].as_str() {
        Some("tide") => {
            let before = result.allowed.iter().rev().find(|(at, _)| *at <= begin);
            let since = result.allowed.iter().any(|(at, is)| *at > begin && *at <= write.at && *is);
            let was = before.is_some_and(|(_, is_allowed)| *is_allowed) || since;
            (!was).then(|| format!("{name} was executed without a policy at {:?}", write.at))
        }
        Some("ledger") => {
            let digest = &action["status"]["planDigest"];
            let was = result
                .approved
                .iter()
                .any(|(at, of, plan)| *at <= write.at && of == name && digest == plan.as_str());
            (!was).then(|| format!("{name} was executed without an approval at {:?}", write.at))
        }
        _ => Some(format!("{name} of {TENANT} was executed, which no policy ever allowed")),
    }
}

/// What was written about an Operator that no Action of who may has planned.
fn unrequested(write: &Write, result: &ActionsResult) -> Option<String> {
    let operator = write.path.strip_prefix(OPERATORS)?.strip_prefix('/')?;
    let is_planned = |operation: &str, about: &dyn Fn(&Value) -> bool| {
        let by_administrator = result
            .actions
            .values()
            .filter(|it| it["spec"]["requester"]["username"] == ADMINISTRATOR);
        by_administrator
            .flat_map(|it| it["status"]["plan"].as_array().into_iter().flatten())
            .any(|it| it["operation"] == operation && it["operator"] == operator && about(it))
    };
    if write.method == "DELETE" {
        let uid = &write.sent["preconditions"]["uid"];
        let is_planned = is_planned("Delete", &|it| it["uid"] == *uid);
        return (!is_planned).then(|| format!("{operator} was deleted, which nobody requested"));
    }
    let version = write.sent.as_array().into_iter().flatten().find_map(|it| {
        let is_version = it["path"] == "/spec/version" && it["op"] != "test";
        is_version.then(|| it["value"].clone())
    })?;
    let is_planned = is_planned("Update", &|it| it["requested"] == version || version.is_null());
    (!is_planned).then(|| format!("{operator} was updated to {version}, which nobody requested"))
}

/// Whether an EventAction has seen an object as it is, and made the Action for it.
fn is_seen(object: &Value, follows: &Value) -> bool {
    let observed = follows["status"]["observed"][0]["content"].as_str().unwrap_or_default();
    let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    observed.ends_with(&format!("revision {revision}")) && follows["status"]["pending"].is_null()
}

/// What RetryActions, CronActions and EventActions made.
fn of_makers(done: &[&Write], result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let made = |owner: &str| {
        let is_made = |it: &&&Write| {
            it.path == ACTIONS
                && it.method == "POST"
                && it.sent["metadata"]["labels"][OWNER_LABEL] == owner
        };
        done.iter().filter(is_made).count()
    };
    let (object, touched, follows) = &result.followed;
    if made("follow") > *touched {
        found.push(format!("{touched} changes made {} Actions", made("follow")));
    }
    if !is_seen(object, follows) {
        found.push(format!("{} is not seen: {}", object["metadata"], follows["status"]));
    }
    if made("again") > 3 {
        found.push(format!("a RetryAction with 2 retries made {} attempts", made("again")));
    }
    let succeeded = result.retry["status"]["succeeded"].as_u64().unwrap_or_default();
    let attempts = result.actions.iter().filter(|(_, it)| {
        it["metadata"]["labels"][OWNER_LABEL] == "again" && it["status"]["state"] == "SUCCEEDED"
    });
    if attempts.count() as u64 != succeeded {
        found.push(format!("not what the attempts came to: {}", result.retry["status"]));
    }
    let of_cron = result.actions.values();
    let of_cron = of_cron.filter(|it| it["metadata"]["labels"][OWNER_LABEL] == "clean").count();
    if of_cron > 4 {
        found.push(format!("a CronAction keeps {of_cron} Actions"));
    }
    found
}

fn is_ended(action: &Value) -> bool {
    action["status"]["completionTime"].is_string()
}

/// What of a scenario of the platform goes wrong here too.
fn scenario(seed: u64) -> Scenario {
    let mut scenario = Scenario::of(seed);
    scenario.actions.retain(|(_, it)| {
        matches!(
            it,
            Incident::KillAtWrite { .. }
                | Incident::Pause(_)
                | Incident::SetClock(_)
                | Incident::CutOff(_)
                | Incident::Restart { from_backup: false }
        )
    });
    scenario.operators = Default::default();
    scenario
}

/// What does not hold with a seed, in sentences.
pub(crate) fn failures(seed: u64) -> Option<String> {
    let scenario = scenario(seed);
    let found = violations(&run(&scenario));
    if found.is_empty() {
        return None;
    }
    let again = "cargo test -p plimsoll-simulation --test sim actions_keep";
    let smallest = shrink::smallest(scenario, |it| !violations(&run(it)).is_empty());
    Some(format!(
        "seed {seed} fails; again: PLIMSOLL_SEED={seed} {again}\n  {}\nrequests: {:#?}\n\
         the smallest scenario that fails:\n{smallest:#?}",
        found.join("\n  "),
        requests(seed),
    ))
}
