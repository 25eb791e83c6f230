//! The state machine that executes a plan: given results and observations, it returns what to do next.
//!
//! Pure and synchronous. The shell passes results and observations ([`Progress::handle`]),
//! asks which steps to execute now ([`Progress::start`]) and when to ask again
//! ([`Progress::wake_at`]); [`Progress::problems`] says why anything waits.
//!
//! # Order
//!
//! The plan's graph holds nodes (chains of a level); a node begins when all nodes before it are
//! done, but for deferred steps. While **updating**, the steps of a chain are done one after the
//! other. While **initializing** or **reconciling**, nothing waits for its turn: installation is
//! free of order but for what a step really needs, and what others may need comes first,
//! namespaces and definitions. In every mode a step whose kind or namespace does not exist is
//! deferred: it holds up neither its chain nor what comes after, only the completion of the plan,
//! and is tried the moment that what it needs appears, which may well be a later step's doing.
//! ClusterOperators are created when their chain begins (CO-6) and gate at their place.
//!
//! # Guarantees
//!
//! A step that is done is not executed again unless its object drifted or a sweep was asked for:
//! waiting costs nothing. The count of done steps never falls. A step has at most one execution
//! in flight.
//!
//! # Drift
//!
//! Each write leaves a [`Mark`]: the object's revision and a digest of our managedFields entry.
//! A later revision with another digest means that another client changed a field of ours; anything
//! else about the object is not our business.
//!
//! A Job that has completed is done for good: charts have theirs deleted at once
//! (`ttlSecondsAfterFinished: 0`), and what it did for the release is not done twice. It is on record by
//! its object and the hash of its manifest, so that neither another plan nor another process runs it again.

mod chains;
mod completion;
mod drift;
mod event;
mod jobs;
mod outcome;
pub mod pause;
mod pausing;
mod problem;
mod ranges;
mod schedule;
mod takeover;
pub mod timeline;
mod track;
mod verdict;
mod world;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::progress::CompletedJob;

use crate::plan::mode::Mode;
use crate::plan::{Action, GroupVersionKind, Plan, Readiness};

pub use event::Event;
pub use outcome::StepOutcome;
pub use problem::{
    ATTEMPTS_UNREPORTED, OBSTACLE_TOLERATED, Problem, ProblemState, TRANSIENT_UNREPORTED,
    UNAVAILABLE_TOLERATED,
};
pub use ranges::{format_ranges, parse_ranges};
pub use track::{Deleted, Mark, TRACE_RESOLUTION, Trace, Transience, TryError};
pub use world::{NamespaceState, Scope, StepBlocker, World};

use schedule::order;
use track::{State, Track};

/// Executions in flight while initializing: enough to keep a kube-apiserver busy.
pub const CONCURRENCY_INITIALIZING: usize = 32;
/// Executions in flight while updating, as upstream.
pub const CONCURRENCY_UPDATING: usize = 16;
/// Executions in flight while reconciling: repairs are few and sweeps should not be felt.
pub const CONCURRENCY_RECONCILING: usize = 8;
/// First delay after a failure; doubles up to [`RETRY_DELAY_MAX`].
pub const RETRY_DELAY_MIN: Duration = Duration::from_millis(250);
/// Longest delay between two tries, unless the server asks for more.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(15);
/// Longest delay between two tries that a server gets if it asks for one. Servers that are busy ask
/// for seconds; more is a mistake of something on the way, and an update does not wait a day for it.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Repairs of one object in a row that are made at once; more are a fight and slow down.
pub const REPAIRS_AT_ONCE: u32 = 3;
/// How long a server may be busy with a definition; after that an administrator has to intervene.
pub const DEFINITION_ESTABLISHES: Duration = Duration::from_secs(30);
/// An object left alone for this long starts anew with repairs at once.
pub const REPAIRS_FORGOTTEN: Duration = Duration::from_secs(60);

/// A node of the graph under way.
#[derive(Debug, Clone, Default)]
struct NodeProgress {
    begun: bool,
    /// Position in the node's tasks of the first one not passed.
    cursor: usize,
    /// Nothing is left of it that holds up others.
    cleared: bool,
    /// All its steps were done.
    complete: bool,
}

/// A plan being carried out.
#[derive(Debug, Clone)]
pub struct Progress {
    plan: Arc<Plan>,
    mode: Mode,
    tracks: Vec<Track>,
    nodes: Vec<NodeProgress>,
    /// The steps in the order in which they are considered when slots are free.
    order: Arc<[usize]>,
    steps_of: BTreeMap<ObjectKey, Vec<usize>>,
    world: World,
    running: usize,
    passes: u32,
    /// How often everything was applied once more, under this plan and those that it took up.
    sweeps: u32,
    repairs: u64,
    /// The steps whose repair was counted since [`Self::take_repaired`] was called.
    repaired: Vec<usize>,
    /// An answer to a write of an object named an earlier revision than was known of it.
    is_rolled_back: bool,
    /// When steps were last started. What was due then and was not started waits for an event.
    last_start: Timestamp,
    /// The run level that is not to begin, nor any after it.
    paused_before: Option<u32>,
    /// The steps that an earlier process recorded as done and this one has not executed.
    taken_up: BTreeSet<usize>,
    /// The Jobs that completed, under this plan and those before it, oldest first; one for each object.
    completed_jobs: Vec<CompletedJob>,
}

impl Progress {
    /// Begins a plan from nothing.
    pub fn new(plan: Arc<Plan>, world: World, now: Timestamp) -> Self {
        let mut progress = Self {
            mode: plan.mode,
            tracks: plan.steps.iter().map(|_| Track::new(now)).collect(),
            nodes: vec![NodeProgress::default(); plan.graph.nodes.len()],
            order: order(&plan, plan.mode, 0),
            steps_of: steps_of(&plan),
            world,
            running: 0,
            passes: 0,
            sweeps: 0,
            repairs: 0,
            repaired: Vec::new(),
            is_rolled_back: false,
            last_start: Timestamp::MIN,
            paused_before: None,
            taken_up: BTreeSet::new(),
            completed_jobs: Vec::new(),
            plan,
        };
        progress.normalize_keys();
        progress.advance(now);
        progress
    }

    /// Identifies the objects of the plan as the server does, as far as it is known which kinds have
    /// namespaces.
    fn normalize_keys(&mut self) {
        let cluster_kinds = self.world.cluster_kinds();
        let steps = self.plan.steps.iter().map(|step| &step.manifest.key);
        let mut keys = steps.chain(self.plan.excluded.iter().map(|excluded| &excluded.key));
        let is_normal = |key: &ObjectKey| {
            key.namespace.is_empty() || !cluster_kinds.contains(&key.group_kind())
        };
        if !keys.all(is_normal) {
            Arc::make_mut(&mut self.plan).normalize_keys(&cluster_kinds);
            self.steps_of = steps_of(&self.plan);
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The rules in force: the plan's, then reconciling once it is complete.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What is known of the cluster.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Steps of the release that were done at least once. Deletions of orphans are not counted: the
    /// next process may have others to delete.
    pub fn done(&self) -> Vec<usize> {
        (0..self.plan.release_steps).filter(|&index| self.tracks[index].reached).collect()
    }

    /// Whether a step was done at least once.
    pub fn is_done(&self, step: usize) -> bool {
        self.tracks.get(step).is_some_and(|track| track.reached)
    }

    /// Whether nothing is being executed or due, and the server is not busy establishing what was
    /// just defined: all that is left waits for others.
    pub fn is_quiet(&self, now: Timestamp) -> bool {
        let mut steps = self.plan.steps.iter().zip(&self.tracks);
        self.running == 0
            && !steps.any(|(step, track)| match &track.state {
                State::Due => true,
                State::Waiting(_) => {
                    step.readiness == Readiness::Served
                        && now < track.since + DEFINITION_ESTABLISHES
                }
                _ => false,
            })
    }

    /// How often the whole plan was complete.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// The number of changes and deletions by other clients that were reverted, under this plan and
    /// those that it took up.
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// The steps whose objects another client changed or deleted, and that were repaired or are going to be,
    /// since the last call.
    pub fn take_repaired(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.repaired)
    }

    /// Whether the API server's storage went back to an earlier state, as the answer to a write
    /// showed: one that was restored from a backup. What is known of the cluster is of no use then.
    pub fn is_rolled_back(&self) -> bool {
        self.is_rolled_back
    }

    /// The kinds that something waits for: worth asking the server about.
    pub fn wanted_kinds(&self) -> Vec<GroupVersionKind> {
        let mut wanted = Vec::new();
        for (step, track) in self.plan.steps.iter().zip(&self.tracks) {
            match &track.state {
                State::Blocked(StepBlocker::KindNotServed(kind)) => wanted.push(kind.clone()),
                State::Waiting(_) => wanted.extend(
                    step.serves.iter().filter(|kind| self.world.scope(kind).is_none()).cloned(),
                ),
                State::Pending | State::Due | State::Running => {}
                State::Blocked(_) | State::Retry { .. } | State::Done(_) => {}
            }
        }
        wanted.sort();
        wanted.dedup();
        wanted
    }

    /// The steps to execute now; each counts as running until its outcome is reported.
    pub fn start(&mut self, now: Timestamp) -> Vec<usize> {
        self.last_start = now;
        let limit = match self.mode {
            Mode::Initializing => CONCURRENCY_INITIALIZING,
            Mode::Updating => CONCURRENCY_UPDATING,
            Mode::Reconciling => CONCURRENCY_RECONCILING,
        };
        let mut started = Vec::new();
        loop {
            let before = (started.len(), self.pending());
            for index in self.order.clone().iter().copied() {
                if self.running < limit && self.is_due(index, now) && self.try_start(index, now) {
                    started.push(index);
                }
            }
            self.advance(now);
            if before == (started.len(), self.pending()) {
                return started;
            }
        }
    }

    /// When to call [`Self::start`] again if nothing happens before.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.tracks
            .iter()
            .filter_map(|track| match &track.state {
                State::Retry { at } if *at > self.last_start => Some(*at),
                _ => None,
            })
            .min()
    }

    /// Takes note of what happened.
    pub fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Executed { step, outcome } => self.executed(step, outcome, now),
            Event::Observed { key, mark } => {
                for index in self.steps_of.get(&key).cloned().unwrap_or_default() {
                    self.observed(index, mark, now);
                }
            }
            Event::ListExpected(kind) => self.expect_list(&kind),
            Event::Listed(kind) => {
                if kind.group.is_empty() && kind.kind == "Namespace" {
                    self.world.namespaces_listed();
                }
                self.listed(&kind, now);
            }
            Event::Health { key, revision, verdict } => {
                for index in self.steps_of.get(&key).cloned().unwrap_or_default() {
                    self.tracks[index].health = Some((revision, verdict.clone()));
                    self.note_completion(index, now);
                    if matches!(self.tracks[index].state, State::Waiting(_) | State::Done(_)) {
                        self.judge_health(index, now);
                    }
                }
            }
            Event::KindServed(kind, scope) => {
                self.world.serve(kind.clone(), scope);
                if scope == Scope::Cluster {
                    self.normalize_keys();
                }
                self.judge_served(&kind, now);
            }
            Event::Namespace(name, state) => self.world.set_namespace(&name, state),
            Event::Sweep => self.sweep(now),
        }
        self.advance(now);
    }

    /// Whether the object of a step is ours as its watch shows it: no other owner takes over such an object.
    /// False for deletions, which are never decided by what a watch shows.
    pub fn is_shown_as_ours(&self, step: usize) -> bool {
        let is_deletion = self.plan.steps[step].action == Action::Delete;
        !is_deletion && self.tracks[step].is_shown_as_ours()
    }

    /// Whether watches show no object of a step.
    pub fn is_missing(&self, step: usize) -> bool {
        self.tracks[step].observed.is_none_or(|mark| mark.trace == Trace::Gone)
    }

    /// Whether a watch showed last that the object of a step is gone.
    pub fn is_gone(&self, step: usize) -> bool {
        self.tracks[step].observed.is_some_and(|mark| mark.trace == Trace::Gone)
    }
}

/// The steps of each object, as watches name it.
fn steps_of(plan: &Plan) -> BTreeMap<ObjectKey, Vec<usize>> {
    let mut steps_of: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
    for (index, step) in plan.steps.iter().enumerate() {
        steps_of.entry(step.manifest.key.clone()).or_default().push(index);
    }
    steps_of
}
