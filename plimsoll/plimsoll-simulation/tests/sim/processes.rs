//! The processes of a controller on an embedded server, and what goes wrong with them and between them
//! and the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_apiserver::faults::{AsOf, Fault, Faults, Refusal, Requests};
use k8s_apiserver::{ApiServer, Options};
use kube::Client;
use kube::client::Body;
use plimsoll_controller::{Clock, Error, Leadership};
use plimsoll_simulation::clock::{VirtualClock, start_time};
use serde_json::Value;
use tokio::task::JoinHandle;
use tower::{Layer as _, Service as _};

use crate::gateway::Gateway;
use crate::record::Recorder;
use crate::scenario::{Action, Scenario};

/// What may be read as it was some writes ago.
const STALE: [&str; 5] = [
    "namespaces",
    "configmaps",
    "deployments.apps",
    "clusteroperators.config.openshift.io",
    "customresourcedefinitions.apiextensions.k8s.io",
];

struct Process {
    number: usize,
    task: JoinHandle<Result<(), Error>>,
    faults: Faults,
    clock: Arc<ProcessClock>,
}

/// The clock of a process, which may be set.
struct ProcessClock {
    right: VirtualClock,
    /// By how many seconds it is fast.
    offset: AtomicI64,
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_secs(self.offset.load(Ordering::Relaxed));
        Clock::now(&self.right).saturating_add(offset).expect("it is not a calendar's unit")
    }

    fn is_virtual(&self) -> bool {
        self.right.is_virtual()
    }
}

/// The HTTP statuses of errors that a server, or something before it, answers with. Left out are
/// those that say that something is not there.
const STATUSES: [u16; 14] = [400, 401, 403, 405, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504];
/// Statuses that say that something is not there. Lists and watches are answered so although it is. Of
/// single objects it would be believed: a deletion rightly counts as done, and a record of progress that
/// is not there is begun anew.
const ABSENT: [u16; 2] = [404, 410];
/// The share of them that are answered with each, where requests are refused at all.
const ABSENT_SHARE: f64 = 0.02;
/// What servers ask for with Retry-After, in seconds.
const RETRY_AFTER: [u32; 3] = [1, 30, 86_400];

/// The processes of a controller, and the server that they work on.
pub(crate) struct Processes {
    pub(crate) clock: VirtualClock,
    pub(crate) gateway: Gateway,
    pub(crate) recorder: Recorder,
    /// Whether things may still go wrong.
    pub(crate) faulty: bool,
    /// Resources whose lists are never stale.
    current: &'static [&'static str],
    seed: u64,
    running: Vec<Process>,
    /// How many processes there have been.
    started: usize,
}

/// What a process is started with.
pub(crate) struct ProcessStart {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) leadership: Leadership,
}

impl Processes {
    /// An empty cluster without processes.
    pub(crate) fn new(seed: u64) -> Self {
        let clock = VirtualClock::from(start_time());
        let gateway = Gateway::new(ApiServer::new(options(clock, seed)));
        let recorder = Recorder::new(gateway.clone());
        Self {
            clock,
            gateway,
            recorder,
            faulty: true,
            current: &[],
            seed,
            running: Vec::new(),
            started: 0,
        }
    }

    /// The same, with lists of some resources as a server gives them that is asked for the most recent
    /// state, and keeps to that.
    pub(crate) fn reading_current(self, current: &'static [&'static str]) -> Self {
        Self { current, ..self }
    }

    /// From now on nothing goes wrong.
    pub(crate) fn end_faults(&mut self) {
        self.faulty = false;
        self.recorder.cancel_kill();
        self.running.iter().for_each(|process| process.faults.stop());
    }

    /// Has something go wrong with the processes or their connections; nothing else is done.
    pub(crate) fn act(&self, action: &Action) {
        match action {
            Action::KillAtWrite { count, last } => self.recorder.kill(*count, *last),
            Action::Pause(lasts) => self.recorder.pause(*lasts),
            Action::SetClock(by) => {
                if let Some(process) = self.running.first() {
                    process.clock.offset.store(*by, Ordering::Relaxed);
                }
            }
            Action::CutOff(lasts) => {
                if let Some(process) = self.running.first() {
                    self.gateway.cut_off(process.number, *lasts);
                }
            }
            Action::Stall(lasts) => {
                if let Some(process) = self.running.first() {
                    self.recorder.stall(process.number, *lasts);
                }
            }
            Action::EndWatches => self.gateway.end_watches(),
            _ => {}
        }
    }

    /// Everything that the server has stored.
    pub(crate) fn state(&self) -> Vec<u8> {
        let mut state = Vec::new();
        self.gateway.server().snapshot(&mut state).expect("it can be written to memory");
        state
    }

    /// Restarts the server with its last state, or with an earlier one.
    pub(crate) fn restart(&self, earlier: Option<Vec<u8>>) {
        let is_rollback = earlier.is_some();
        let state = earlier.unwrap_or_else(|| self.state());
        let options = options(self.clock, self.seed);
        let server = ApiServer::restore(&*state, options).expect("what was written can be read");
        self.gateway.replace(server, is_rollback);
    }

    /// Removes processes that ended or died and starts others, as a Deployment would.
    pub(crate) fn keep_running<F>(&mut self, scenario: &Scenario, start: impl Fn(ProcessStart) -> F)
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let recorder = &self.recorder;
        self.running.retain(|process| {
            let dead = recorder.is_dead(process.number);
            if dead {
                process.task.abort();
            }
            !dead && !process.task.is_finished()
        });
        let count = if scenario.leased { 2 } else { 1 };
        while self.running.len() < count {
            self.started += 1;
            let number = self.started;
            let faults =
                if self.faulty { faults(scenario, number, self.current) } else { Faults::none() };
            let server = faults.layer(self.recorder.of(number));
            let clock = ProcessClock { right: self.clock, offset: AtomicI64::new(0) };
            let clock = Arc::new(clock);
            let work = start(ProcessStart {
                client: Client::new(server, "default"),
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                leadership: match scenario.leased {
                    true => Leadership::Lease(format!("process-{number}")),
                    false => Leadership::Alone,
                },
            });
            let recorder = recorder.clone();
            let task = tokio::spawn(async move {
                let ended = work.await;
                // What it has left running ends with it.
                recorder.end(number);
                ended
            });
            self.running.push(Process { number, task, faults, clock });
        }
    }

    /// Sends a request as a client without faults; returns the HTTP status.
    pub(crate) async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> u16 {
        self.send_as(None, method, path, kind, body).await
    }

    /// Sends a request as a client without faults, in the name of a user of a group, or else of the administrator;
    /// returns the HTTP status.
    pub(crate) async fn send_as(
        &self,
        user: Option<(&str, &str)>,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> u16 {
        let mut request =
            http::Request::builder().method(method).uri(path).header("content-type", kind);
        if let Some((name, group)) = user {
            request = request.header("impersonate-user", name).header("impersonate-group", group);
        }
        let body = Body::from(body.to_string().into_bytes());
        let request = request.body(body).expect("it is a request");
        let answer = self.gateway.clone().call(request).await.expect("the server answers");
        answer.status().as_u16()
    }
}

fn options(clock: VirtualClock, seed: u64) -> Options {
    Options { clock: Arc::new(clock), seed, ..Options::default() }
}

/// Returns the faults between a process and the server.
fn faults(scenario: &Scenario, number: usize, current: &[&str]) -> Faults {
    let seed = scenario.seed ^ ((number as u64) << 32);
    let faults = match scenario.errors > 0.0 {
        true => Faults::seeded(seed, scenario.errors),
        false => Faults::none(),
    };
    if scenario.watches > 0.0 {
        let watches = || Requests::any().verb("watch");
        faults.add(watches().share(seed ^ 1, scenario.watches), Fault::WatchDuplicated);
        let lost = Fault::WatchExpired(Duration::from_secs(3));
        faults.add(watches().share(seed ^ 2, scenario.watches), lost);
    }
    if scenario.refusals > 0.0 {
        let share = scenario.refusals / STATUSES.len() as f64;
        for (salt, code) in (0x100..).zip(STATUSES) {
            let refusal = Refusal::new(code);
            let refusal = match RETRY_AFTER.get(usize::from(code) % 5) {
                Some(seconds) => refusal.retry_after(*seconds),
                None => refusal,
            };
            faults.add(Requests::any().share(seed ^ salt, share), Fault::Refused(refusal));
        }
    }
    for (salt, code) in (0x300..).zip(ABSENT).filter(|_| scenario.refusals > 0.0) {
        for verb in ["list", "watch"] {
            let reads = Requests::any().verb(verb).share(seed ^ salt, ABSENT_SHARE);
            faults.add(reads, Fault::Refused(Refusal::new(code)));
        }
    }
    if scenario.mangled > 0.0 {
        let share = scenario.mangled / 2.0;
        faults.add(Requests::any().share(seed ^ 0x200, share), Fault::AnswerTruncated);
        faults.add(Requests::any().share(seed ^ 0x201, share), Fault::AnswerCorrupted);
    }
    // What a process begins with, the ClusterVersion and ReleaseProgress, it asks for as it is now,
    // and servers keep to that. The rest may lag behind whatever is asked for.
    let stale = STALE.iter().enumerate().filter(|(_, it)| !current.contains(it));
    for (salt, resource) in stale.filter(|_| scenario.stale > 0.0) {
        let reads = Requests::any().verb("list").resource(resource);
        let reads = reads.share(seed ^ (3 + salt as u64), scenario.stale);
        faults.add(reads, Fault::Stale(AsOf::Behind(5)));
    }
    faults
}
