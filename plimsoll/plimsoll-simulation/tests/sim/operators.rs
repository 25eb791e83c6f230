//! Operators in a simulation beside a release. A seed determines what is requested of them, what
//! their catalog offers, and which of their objects other clients change; the faults of processes
//! and of the server are those of the scenario.

mod catalogs;
pub(crate) mod promises;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use plimsoll_simulation::simulated_operators::{PackageFault, PackageFaultKind};
use serde_json::{Value, json};

pub(crate) use self::catalogs::{CatalogContent, catalogs};
use crate::processes::Processes;
use crate::record::{ADD_ONS, INSTALLED as OPERATORS};

const CATALOG: &str = "/apis/olm.io/v1/catalogs/examples";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// The time without a write after which a cluster counts as quiet.
const QUIET: Duration = Duration::from_secs(90);
/// The time after the last fault for which a request for an operand is repeated, in seconds.
const OPERAND_RETRY_SECONDS: u64 = 120;
/// The packages of the example catalog, each with the API group and the resource of its operands.
pub(crate) const PACKAGES: [(&str, &str, &str); 3] = [
    ("lantern", "lantern.example.com", "beacons"),
    ("ledger", "ledger.example.com", "databases"),
    ("tide", "tide.example.com", "queues"),
];

/// The spec that is requested of an Operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedSpec {
    pub(crate) version: &'static str,
    pub(crate) is_any_version_followed: bool,
    pub(crate) is_rolled_back: bool,
    pub(crate) keeps_definitions: bool,
    pub(crate) workloads: &'static str,
    pub(crate) is_paused: bool,
    pub(crate) revision: Option<u32>,
}

/// A spec that accepts any version, follows the graph of the channel, and deletes everything with
/// the Operator.
impl Default for RequestedSpec {
    fn default() -> Self {
        Self {
            version: "",
            is_any_version_followed: false,
            is_rolled_back: false,
            keeps_definitions: false,
            workloads: "Delete",
            is_paused: false,
            revision: None,
        }
    }
}

impl RequestedSpec {
    fn of(random: &mut fastrand::Rng, package: &str) -> Self {
        let versions: &[&str] = match package {
            "lantern" => &["", "1.0.0", "1.1.1", "~1.1", "^2", "2.1.0-rc.1", ">=1.1"],
            "ledger" => &["", "1.4.0", "1.5.0", "^1", "2.0.0"],
            _ => &["", "0.3.0", "0.4.0"],
        };
        Self {
            version: versions[random.usize(..versions.len())],
            is_any_version_followed: random.u8(..3) == 0,
            is_rolled_back: random.bool(),
            keeps_definitions: random.u8(..4) == 0,
            workloads: ["Delete", "Delete", "Refuse", "Orphan"][random.usize(..4)],
            is_paused: random.u8(..8) == 0,
            revision: (random.u8(..8) == 0).then(|| random.u32(1..3)),
        }
    }

    fn value(self) -> Value {
        let mut spec = json!({
            "version": self.version,
            "upgradePolicy": if self.is_any_version_followed { "Any" } else { "Graph" },
            "rollback": if self.is_rolled_back { "Automatic" } else { "Manual" },
            "deletion": {
                "crds": if self.keeps_definitions { "Orphan" } else { "Delete" },
                "workloads": self.workloads,
            },
            "paused": self.is_paused,
            "progressDeadline": "2m",
        });
        if let Some(revision) = self.revision {
            spec["revision"] = revision.into();
        }
        spec
    }

    /// Returns whether the definitions of the package and all their objects are deleted with the
    /// Operator.
    pub(crate) fn deletes_operands(self) -> bool {
        !self.keeps_definitions && self.workloads == "Delete"
    }
}

/// A change that is made at some time. Packages are identified by their index in [`PACKAGES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// An Operator is created, or its spec is replaced.
    Apply(usize, RequestedSpec),
    /// An Operator is deleted.
    Delete(usize),
    /// The content of the catalog is replaced.
    Catalog(CatalogContent),
    /// An operand of a package is created.
    Operand(usize),
    /// The Deployment of the operator is changed or deleted by another client.
    Drift { package: usize, is_deletion: bool },
}

/// The requests and faults that a seed determines.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddOns {
    /// The requests in order, each with its time in seconds since the API is served.
    pub(crate) requests: Vec<(u64, Request)>,
    /// The faults of the operators that bundles install.
    pub(crate) faults: Vec<PackageFault>,
}

impl AddOns {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x0b5e_71e5);
        let mut requests = vec![(0, Request::Catalog(CatalogContent::Early))];
        for (package, (name, ..)) in PACKAGES.iter().enumerate() {
            for _ in 0..random.u8(1..4) {
                let spec = RequestedSpec::of(&mut random, name);
                requests.push((random.u64(0..80), Request::Apply(package, spec)));
            }
            if random.bool() {
                requests.push((random.u64(10..90), Request::Delete(package)));
            }
            if random.bool() {
                requests.push((random.u64(5..80), Request::Operand(package)));
            }
            if random.u8(..3) == 0 {
                let is_deletion = random.bool();
                requests.push((random.u64(10..90), Request::Drift { package, is_deletion }));
            }
        }
        for _ in 0..random.u8(1..4) {
            let content = [
                CatalogContent::Early,
                CatalogContent::Whole,
                CatalogContent::Whole,
                CatalogContent::WithoutLedger,
                CatalogContent::Broken,
                CatalogContent::Missing,
            ][random.usize(..6)];
            requests.push((random.u64(5..80), Request::Catalog(content)));
        }
        requests.sort_by_key(|(at, _)| *at);
        let mut faults = Vec::new();
        for (package, ..) in PACKAGES {
            if random.u8(..3) == 0 {
                let fault = match random.bool() {
                    true => PackageFaultKind::NeverAvailable,
                    false => PackageFaultKind::KeepsFinalizers,
                };
                let after = Duration::from_secs(random.u64(0..60));
                faults.push(PackageFault { package: package.into(), fault, after, version: None });
            }
        }
        Self { requests, faults }
    }
}

/// The result of a simulation with Operators.
pub(crate) struct AddOnsResult {
    /// The requests that were made, each with its time.
    pub(crate) requested: Vec<(Duration, Request)>,
    /// The Operators at the end, by name.
    pub(crate) operators: BTreeMap<String, Value>,
    /// The objects that exist at the end, by path. Includes the paths that were written for an
    /// Operator, and operands.
    pub(crate) found: BTreeMap<String, Value>,
    /// The times at which operands were created since the server was last restored to an earlier
    /// state, each with its package.
    pub(crate) created: Vec<(Duration, usize)>,
    /// The time at which everything was as requested and quiet; `None` if that did not happen.
    pub(crate) converged_at: Option<Duration>,
}

/// The runner of the requests.
pub(crate) struct AddOnsRunner {
    requests: VecDeque<(u64, Request)>,
    requested: Vec<(Duration, Request)>,
    /// The spec requested of each Operator; an Operator that was deleted has none.
    specs: BTreeMap<usize, RequestedSpec>,
    content: CatalogContent,
    operands: Vec<usize>,
    created: Vec<(Duration, usize)>,
    served_since: Option<u64>,
    /// The time until which a request for an operand is repeated, in seconds. Its kind may never be
    /// defined, if its Operator is not installed.
    retry_operands_until: u64,
}

impl AddOnsRunner {
    pub(crate) fn new(add_ons: &AddOns) -> Self {
        Self {
            requests: add_ons.requests.iter().cloned().collect(),
            requested: Vec::new(),
            specs: BTreeMap::new(),
            content: CatalogContent::Early,
            operands: Vec::new(),
            created: Vec::new(),
            served_since: None,
            retry_operands_until: u64::MAX,
        }
    }

    /// Makes the requests that are due, once the API is served. A request that fails is made again.
    pub(crate) async fn act(&mut self, processes: &Processes, second: u64) {
        if self.served_since.is_none() {
            let list = processes.recorder.read(OPERATORS).await;
            self.served_since = list["items"].is_array().then_some(second);
        }
        let Some(since) = self.served_since else { return };
        while let Some((at, request)) = self.requests.front() {
            if since + at > second {
                return;
            }
            let request = request.clone();
            let is_tried_again =
                !matches!(request, Request::Operand(_)) || second < self.retry_operands_until;
            if !self.request(processes, &request).await && is_tried_again {
                // Other requests that are due do not wait for this one.
                let (_, later) = self.requests.pop_front().expect("it is the first one");
                let place = self.requests.partition_point(|(at, _)| since + at <= second);
                self.requests.insert(place, (second + 1 - since, later));
                continue;
            }
            self.requests.pop_front();
            self.requested.push((processes.recorder.elapsed(), request));
        }
    }

    /// Ends the faults: the catalog offers all packages, and no Operator is paused any more.
    pub(crate) fn end_faults(&mut self, second: u64) {
        self.retry_operands_until = second + OPERAND_RETRY_SECONDS;
        let Some(since) = self.served_since else { return };
        let due = second - since;
        self.requests.push_back((due, Request::Catalog(CatalogContent::Whole)));
        for (package, spec) in self.specs.clone() {
            if spec.is_paused {
                let spec = RequestedSpec { is_paused: false, ..spec };
                self.requests.push_back((due, Request::Apply(package, spec)));
            }
        }
        self.requests.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    /// Requests the present specs, catalog and operands again after the server was restored to an
    /// earlier state.
    pub(crate) fn restored(&mut self, second: u64) {
        // The times of the remaining requests count from when the API is served again.
        let since = self.served_since.take().unwrap_or(second);
        let mut again = vec![Request::Catalog(self.content)];
        for package in 0..PACKAGES.len() {
            again.push(match self.specs.get(&package) {
                Some(spec) => Request::Apply(package, *spec),
                None => Request::Delete(package),
            });
        }
        self.created.clear();
        again.extend(std::mem::take(&mut self.operands).into_iter().map(Request::Operand));
        let later = std::mem::take(&mut self.requests);
        let later = later.into_iter().map(|(at, it)| ((since + at).saturating_sub(second), it));
        self.requests = again.into_iter().map(|it| (0, it)).chain(later).collect();
    }

    /// Makes a request; returns false if it has to be made again.
    async fn request(&mut self, processes: &Processes, request: &Request) -> bool {
        match request {
            Request::Apply(package, spec) => self.apply(processes, *package, *spec).await,
            Request::Delete(package) => {
                let path = format!("{OPERATORS}/{}", PACKAGES[*package].0);
                // The deletion of a paused Operator waits.
                let resumed = json!({ "spec": { "paused": false } });
                if !matches!(processes.send("PATCH", &path, MERGE, &resumed).await, 200 | 404) {
                    return false;
                }
                let status = processes.send("DELETE", &path, JSON, &json!({})).await;
                self.specs.remove(package);
                matches!(status, 200 | 202 | 404)
            }
            Request::Catalog(content) => {
                let path = content.path();
                let spec = json!({ "source": { "type": "Directory", "path": path } });
                let object = json!({
                    "apiVersion": "olm.io/v1",
                    "kind": "Catalog",
                    "metadata": { "name": "examples" },
                    "spec": spec,
                });
                self.content = *content;
                match processes.send("PATCH", CATALOG, MERGE, &json!({ "spec": spec })).await {
                    404 => {
                        let path = format!("{ADD_ONS}/catalogs");
                        processes.send("POST", &path, JSON, &object).await == 201
                    }
                    status => status == 200,
                }
            }
            Request::Operand(package) => {
                let (name, group, resource) = PACKAGES[*package];
                let kind = match name {
                    "lantern" => "Beacon",
                    "ledger" => "Database",
                    _ => "Queue",
                };
                let object = json!({
                    "apiVersion": format!("{group}/v1"),
                    "kind": kind,
                    "metadata": { "name": "one" },
                });
                let path = format!("/apis/{group}/v1/namespaces/default/{resource}");
                let status = processes.send("POST", &path, JSON, &object).await;
                if !self.operands.contains(package) {
                    self.operands.push(*package);
                }
                if status == 201 {
                    self.created.push((processes.recorder.elapsed(), *package));
                }
                // Without its Operator, the kind is not defined.
                matches!(status, 201 | 409) || !self.specs.contains_key(package)
            }
            Request::Drift { package, is_deletion } => {
                let name = PACKAGES[*package].0;
                let path = format!("/apis/apps/v1/namespaces/{name}/deployments/{name}-operator");
                let patch = json!({ "spec": { "replicas": 3 } });
                match is_deletion {
                    true => processes.send("DELETE", &path, JSON, &json!({})).await,
                    false => processes.send("PATCH", &path, MERGE, &patch).await,
                };
                true
            }
        }
    }

    async fn apply(&mut self, processes: &Processes, package: usize, spec: RequestedSpec) -> bool {
        let name = PACKAGES[package].0;
        let path = format!("{OPERATORS}/{name}");
        let live = processes.recorder.read(&path).await;
        let status = if live["metadata"]["deletionTimestamp"].is_string() {
            // The Operator is created once the earlier one is gone.
            0
        } else if live["metadata"]["uid"].is_string() {
            let patch = json!([{ "op": "add", "path": "/spec", "value": spec.value() }]);
            processes.send("PATCH", &path, "application/json-patch+json", &patch).await
        } else {
            let object = json!({
                "apiVersion": "olm.io/v1",
                "kind": "Operator",
                "metadata": { "name": name },
                "spec": spec.value(),
            });
            processes.send("POST", OPERATORS, JSON, &object).await
        };
        let is_done = matches!(status, 200 | 201);
        if is_done {
            self.specs.insert(package, spec);
        }
        is_done
    }

    /// Does what the status of an Operator asks for whose deletion does not proceed: deletes the
    /// operands if the deletion is refused because of them, and removes their finalizers if the
    /// operator that would do so is gone.
    async fn unblock_deletion(&mut self, processes: &Processes, operator: &Value) {
        let name = operator["metadata"]["name"].as_str().unwrap_or_default();
        let Some(package) = PACKAGES.iter().position(|(it, ..)| *it == name) else { return };
        let (_, group, resource) = PACKAGES[package];
        let path = format!("/apis/{group}/v1/namespaces/default/{resource}/one");
        if operator["spec"]["deletion"]["workloads"] == "Refuse" {
            processes.send("DELETE", &path, JSON, &json!({})).await;
            self.operands.retain(|it| *it != package);
            self.created.retain(|(_, it)| *it != package);
        }
        let deployment = operator["status"]["inventory"].as_array().into_iter().flatten();
        let deployment = deployment.filter(|it| it["kind"] == "Deployment");
        for key in deployment {
            let (namespace, name) = (key["namespace"].as_str(), key["name"].as_str());
            let (Some(namespace), Some(name)) = (namespace, name) else { continue };
            let deployment = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
            if processes.recorder.read(&deployment).await["metadata"]["uid"].is_null() {
                let freed = json!({ "metadata": { "finalizers": null } });
                processes.send("PATCH", &path, MERGE, &freed).await;
            }
        }
    }

    /// Returns whether every request was made, each Operator has been reconciled since its last
    /// change, and the cluster is quiet.
    pub(crate) async fn has_converged(&mut self, processes: &Processes) -> bool {
        let list = processes.recorder.read(OPERATORS).await;
        let operators = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        for operator in operators {
            if operator["metadata"]["deletionTimestamp"].is_string() {
                self.unblock_deletion(processes, operator).await;
            }
        }
        self.requests.is_empty()
            && operators
                .iter()
                .all(|it| it["status"]["observedGeneration"] == it["metadata"]["generation"])
            && processes.recorder.quiet_for() >= QUIET
    }

    pub(crate) async fn result(
        self,
        processes: &Processes,
        converged_at: Option<Duration>,
    ) -> AddOnsResult {
        let recorder = &processes.recorder;
        let list = recorder.read(OPERATORS).await;
        let operators =
            list["items"].as_array().into_iter().flatten().map(|it| {
                (it["metadata"]["name"].as_str().unwrap_or_default().to_owned(), it.clone())
            });
        let operators = operators.collect();
        let mut found = BTreeMap::new();
        for write in recorder.writes() {
            if promises::is_of_operator(&write) && !found.contains_key(&write.path) {
                let object = recorder.read(&write.path).await;
                if object["metadata"]["uid"].is_string() {
                    found.insert(write.path, object);
                }
            }
        }
        for (_, group, resource) in PACKAGES {
            let path = format!("/apis/{group}/v1/namespaces/default/{resource}/one");
            let object = recorder.read(&path).await;
            if object["metadata"]["uid"].is_string() {
                found.insert(path, object);
            }
        }
        AddOnsResult {
            requested: self.requested,
            operators,
            found,
            created: self.created,
            converged_at,
        }
    }
}
