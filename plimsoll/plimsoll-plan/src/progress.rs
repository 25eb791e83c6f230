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

pub mod pause;
mod pausing;
mod problem;
mod ranges;
pub mod timeline;
mod track;
mod world;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::{Effect, GroupKind, ObjectKey, Reason, Verdict};

use crate::plan::mode::Mode;
use crate::plan::{Action, GroupVersionKind, Plan, Readiness, Step};

pub use problem::{
    ATTEMPTS_UNREPORTED, OBSTACLE_TOLERATED, Problem, ProblemState, TRANSIENT_UNREPORTED,
    UNAVAILABLE_TOLERATED,
};
pub use ranges::{format_ranges, parse_ranges};
pub use track::{Mark, TRACE_RESOLUTION, Trace, Transience, TryError};
pub use world::{NamespaceState, Scope, StepBlocker, World};

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

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step was executed.
    Executed {
        /// The step.
        step: usize,
        /// How it went.
        outcome: StepOutcome,
    },
    /// A watch showed an object, or that it is gone.
    Observed {
        /// The object.
        key: ObjectKey,
        /// What it showed.
        mark: Mark,
    },
    /// All objects of a kind are going to be listed.
    ListExpected(GroupKind),
    /// A watch has shown all objects of a kind that exist.
    Listed(GroupKind),
    /// The health of an object was seen.
    Health {
        /// The object.
        key: ObjectKey,
        /// Its revision.
        revision: u64,
        /// What it says.
        verdict: Verdict,
    },
    /// A kind is served.
    KindServed(GroupVersionKind, Scope),
    /// A namespace exists in a state, or does not.
    Namespace(String, Option<NamespaceState>),
    /// The rare full pass: everything is applied once more.
    Sweep,
}

/// How an execution went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// The object is as the manifest wants it.
    Applied(Mark),
    /// The API server was asked to delete the object.
    Deleted(Deleted),
    /// Something that it needs is not there after all.
    Blocked(StepBlocker),
    /// It failed.
    Failed(TryError),
}

/// What an API server made of a request to delete an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// There was no such object.
    Absent,
    /// It is gone.
    Gone,
    /// It goes when its finalizers are done.
    Going,
}

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
    /// An answer to a write of an object named an earlier revision than was known of it.
    is_rolled_back: bool,
    /// When steps were last started. What was due then and was not started waits for an event.
    last_start: Timestamp,
    /// The run level that is not to begin, nor any after it.
    paused_before: Option<u32>,
    /// The steps that an earlier process recorded as done and this one has not executed.
    taken_up: BTreeSet<usize>,
}

impl Progress {
    /// Begins a plan from nothing.
    pub fn new(plan: Arc<Plan>, world: World, now: Timestamp) -> Self {
        let mut steps_of: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
        for (index, step) in plan.steps.iter().enumerate() {
            steps_of.entry(watch_key(step)).or_default().push(index);
        }
        let mut progress = Self {
            mode: plan.mode,
            tracks: plan.steps.iter().map(|_| Track::new(now)).collect(),
            nodes: vec![NodeProgress::default(); plan.graph.nodes.len()],
            order: order(&plan, plan.mode, 0),
            steps_of,
            world,
            running: 0,
            passes: 0,
            sweeps: 0,
            repairs: 0,
            is_rolled_back: false,
            last_start: Timestamp::MIN,
            paused_before: None,
            taken_up: BTreeSet::new(),
            plan,
        };
        progress.advance(now);
        progress
    }

    /// Takes up a plan where an earlier process left it: `done` steps count as done and are
    /// checked by the watches instead of being executed again.
    ///
    /// The record is no proof: anybody who may write ReleaseProgress can have written it. So gates
    /// pass only when their ClusterOperators report the release, and one that does not contradicts the
    /// whole record. What a complete plan took up without proof is applied once more.
    pub fn resume(mut self, done: &[usize], now: Timestamp) -> Self {
        for &index in done {
            let Some(track) = self.tracks.get_mut(index) else { continue };
            if track.is_proven() {
                // What this process knows of it is newer than the record.
                continue;
            }
            if track.observed.is_some_and(|mark| mark.trace == Trace::Gone) {
                // What a watch showed to be gone meanwhile is to be applied.
                continue;
            }
            match self.plan.steps[index].action {
                Action::Gate => {
                    track.reached = true;
                    track.is_claimed = true;
                }
                Action::Apply | Action::CreateOnly | Action::Delete | Action::Refuse(_) => {
                    track.enter(State::Done(None), now);
                    self.taken_up.insert(index);
                }
            }
        }
        self.advance(now);
        self
    }

    /// The cluster contradicts the record of an earlier process: nothing of it counts any more, and
    /// the plan begins anew but for what this process has done itself.
    fn reject_record(&mut self, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let is_taken_up = self.taken_up.contains(&index);
            let track = &mut self.tracks[index];
            if is_taken_up && matches!(track.state, State::Done(_) | State::Due) {
                track.reached = false;
                track.enter(State::Pending, now);
            } else if track.is_claimed {
                track.reached = false;
                track.is_claimed = false;
            }
        }
        self.taken_up.clear();
        self.nodes = vec![NodeProgress::default(); self.plan.graph.nodes.len()];
    }

    /// Takes up a plan after another one in the same process: steps whose manifest is unchanged
    /// and done stay done, with what is known of their objects; gates do if the release is the same.
    /// What was done and is being put right counts as done, and is put right at once.
    pub fn succeed(mut self, before: &Self, now: Timestamp) -> Self {
        self.repairs = before.repairs;
        self.sweeps = before.sweeps;
        let same_release = before.plan.release == self.plan.release;
        for (index, step) in self.plan.steps.iter().enumerate() {
            let Some(old) = before.step_of(&watch_key(step)) else {
                continue;
            };
            let old_track = &before.tracks[old];
            let track = &mut self.tracks[index];
            track.health = old_track.health.clone();
            let same = before.plan.steps[old].manifest.raw == step.manifest.raw;
            let is_back = step.action == Action::Delete
                && old_track
                    .observed
                    .is_some_and(|mark| mark.trace != Trace::Gone && !mark.is_terminating);
            let means_the_same = step.action != Action::Gate || same_release;
            if !same || is_back || !means_the_same {
                continue;
            }
            if old_track.reached && old_track.is_claimed {
                // What an earlier process recorded is still to be shown.
                track.reached = true;
                track.is_claimed = true;
            }
            if old_track.is_proven() {
                if before.taken_up.contains(&old) {
                    self.taken_up.insert(index);
                }
                track.applied = old_track.applied;
                track.expect_list();
                track.reached = true;
                let is_done = matches!(old_track.state, State::Done(_));
                track.enter(if is_done { State::Done(None) } else { State::Due }, now);
            }
        }
        self.advance(now);
        self
    }

    /// The deletion of these objects was refused to an earlier process: it is tried again in every
    /// mode, and holds up nothing (DEL-4).
    pub fn retry_deletions(&mut self, refused: &BTreeSet<ObjectKey>) {
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            if step.action == Action::Delete && refused.contains(&step.manifest.key) {
                track.attempts = track.attempts.max(1);
                track.reached = true;
                if matches!(track.state, State::Done(_)) {
                    track.state = State::Due;
                }
            }
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

    fn pending(&self) -> usize {
        self.tracks.iter().filter(|track| track.state == State::Pending).count()
    }

    fn is_due(&self, index: usize, now: Timestamp) -> bool {
        match &self.tracks[index].state {
            State::Due | State::Blocked(_) => true,
            State::Retry { at } => *at <= now,
            State::Pending | State::Running | State::Waiting(_) | State::Done(_) => false,
        }
    }

    /// Starts a step unless something it needs is missing or nothing is to be done.
    fn try_start(&mut self, index: usize, now: Timestamp) -> bool {
        let step = &self.plan.steps[index];
        let track = &mut self.tracks[index];
        // Only an update deletes; a refused deletion is tried on until it succeeds, and what was
        // deleted and is applied by a late write of ours is deleted again.
        let is_tried_on =
            step.action == Action::Delete && (track.attempts > 0 || track.deletion.is_some());
        // A deferred step lets the steps after it begin, and what need not be deleted is done: not
        // for want of an answer.
        if (self.mode == Mode::Updating || is_tried_on) && self.world.is_unsure(step) {
            return false;
        }
        let blocker = self.world.blocker(step);
        if step.action == Action::Delete {
            // What is not served, or whose namespace is gone or going, is gone or goes with it.
            if blocker.is_some() || (self.mode != Mode::Updating && !is_tried_on) {
                track.enter(State::Done(None), now);
                return false;
            }
        }
        if let Action::Refuse(message) = &step.action {
            let verdict = Verdict::Waiting {
                effect: Effect::Fail,
                reason: Reason::UpdatePayloadFailed,
                message: message.clone(),
            };
            track.enter(State::Waiting(verdict), now);
            return false;
        }
        if let Some(blocker) = blocker {
            track.enter(State::Blocked(blocker), now);
            return false;
        }
        let exists = track.observed.is_some_and(|mark| mark.trace != Trace::Gone);
        if step.action == Action::CreateOnly && exists {
            track.applied = track.observed;
            track.enter(State::Done(None), now);
            return false;
        }
        track.start(now);
        track.enter(State::Running, now);
        self.running += 1;
        true
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
                    if matches!(self.tracks[index].state, State::Waiting(_) | State::Done(_)) {
                        self.judge_health(index, now);
                    }
                }
            }
            Event::KindServed(kind, scope) => {
                self.world.serve(kind.clone(), scope);
                self.judge_served(&kind, now);
            }
            Event::Namespace(name, state) => self.world.set_namespace(&name, state),
            Event::Sweep => self.sweep(now),
        }
        self.advance(now);
    }

    /// Whether a watch showed last that the object of a step is gone.
    pub fn is_gone(&self, step: usize) -> bool {
        self.tracks[step].observed.is_some_and(|mark| mark.trace == Trace::Gone)
    }

    fn step_of(&self, key: &ObjectKey) -> Option<usize> {
        self.steps_of.get(key).and_then(|steps| steps.last()).copied()
    }

    fn executed(&mut self, index: usize, outcome: StepOutcome, now: Timestamp) {
        self.running = self.running.saturating_sub(1);
        self.taken_up.remove(&index);
        match outcome {
            StepOutcome::Applied(mark) => {
                self.is_rolled_back |= mark.revision < self.tracks[index].started_at_revision;
                self.tracks[index].wrote(mark, now);
                self.tracks[index].attempts = 0;
                self.tracks[index].error = None;
                self.judge(index, now);
                self.repair_if_drifted(index, now);
            }
            StepOutcome::Deleted(deleted) => {
                let track = &mut self.tracks[index];
                track.attempts = 0;
                track.error = None;
                track.deletion = Some(deleted);
                // What a watch showed before is no object that came back.
                track.observed = track.observed.filter(|mark| mark.trace == Trace::Gone);
                track.enter(State::Done(None), now);
            }
            StepOutcome::Blocked(blocker) => {
                match &blocker {
                    StepBlocker::KindNotServed(kind) => self.world.withdraw(kind),
                    StepBlocker::NamespaceMissing(name) => self.world.set_namespace(name, None),
                    StepBlocker::NamespaceTerminating(name) => {
                        self.world.set_namespace(name, Some(NamespaceState::Terminating));
                    }
                }
                self.tracks[index].error = None;
                self.tracks[index].enter(State::Blocked(blocker), now);
            }
            StepOutcome::Failed(error) => {
                let track = &mut self.tracks[index];
                track.attempts += 1;
                let doublings = track.attempts.saturating_sub(1).min(10);
                let delay = (RETRY_DELAY_MIN * 2u32.pow(doublings)).min(RETRY_DELAY_MAX);
                let at = now + delay.max(error.asked_delay());
                track.enter(State::Retry { at }, now);
                // A refused deletion holds up nothing (DEL-4).
                track.reached |= self.plan.steps[index].action == Action::Delete
                    && error.transience == Transience::Lasting;
                track.error = Some(error);
            }
        }
    }

    fn observed(&mut self, index: usize, mark: Mark, now: Timestamp) {
        let create_only = self.plan.steps[index].action == Action::CreateOnly;
        let track = &mut self.tracks[index];
        if track.observed.is_some_and(|before| before.revision > mark.revision) {
            return;
        }
        track.observed = Some(mark);
        if !track.is_executed() {
            return;
        }
        if self.plan.steps[index].action == Action::Delete {
            if mark.trace == Trace::Gone && track.deletion.is_some() {
                track.deletion = Some(Deleted::Gone);
            }
            self.repair_if_drifted(index, now);
            return;
        }
        let ours = matches!(mark.trace, Trace::Ours(_));
        if create_only && mark.trace != Trace::Gone {
            track.applied = Some(mark);
        } else if track.applied.is_none() {
            // Done by an earlier process: what is there now is the baseline, if it is ours.
            track.applied = Some(if ours { mark } else { Mark::new(0, Trace::Ours(0)) });
        }
        self.repair_if_drifted(index, now);
    }

    /// The objects of a kind are going to be listed: at least as our writes have left them.
    fn expect_list(&mut self, kind: &GroupKind) {
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            if step.manifest.key.group_kind() == *kind {
                track.expect_list();
            }
        }
    }

    /// Steps done by an earlier process, or under an earlier plan, whose object a complete listing did
    /// not show are due; and those whose object is older than our write before it left it: the API
    /// server was restored from a backup.
    fn listed(&mut self, kind: &GroupKind, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let step = &self.plan.steps[index];
            let track = &mut self.tracks[index];
            if step.action == Action::Delete || step.manifest.key.group_kind() != *kind {
                continue;
            }
            let unseen = track.observed.is_none() && track.written.is_none();
            let is_older = track.is_listed_older();
            let is_executed = matches!(track.state, State::Waiting(_) | State::Done(_));
            if is_executed && (unseen || is_older) {
                track.enter(State::Due, now);
            }
        }
    }

    fn repair_if_drifted(&mut self, index: usize, now: Timestamp) {
        let track = &mut self.tracks[index];
        let is_deletion = self.plan.steps[index].action == Action::Delete;
        let has_drifted = match is_deletion {
            true => track.has_reappeared(),
            false => track.has_drifted(),
        };
        if !track.is_executed() || !has_drifted {
            self.confirm(index, now);
            return;
        }
        let rested = track.repaired.is_none_or(|at| now > at + REPAIRS_FORGOTTEN);
        track.repairs = if rested { 1 } else { track.repairs + 1 };
        track.repaired = Some(now);
        self.repairs += u64::from(!is_deletion);
        let excess = track.repairs.saturating_sub(REPAIRS_AT_ONCE);
        if excess == 0 {
            track.enter(State::Due, now);
        } else {
            let delay = (RETRY_DELAY_MIN * 2u32.pow(excess.min(10))).min(RETRY_DELAY_MAX);
            let error = TryError {
                reason: Reason::UpdatePayloadResourceConflict,
                cause: format!(
                    "another client changed fields of this resource {} times within a minute",
                    track.repairs
                ),
                transience: Transience::Transient,
                retry_after: None,
            };
            track.enter(State::Retry { at: now + delay }, now);
            track.error = Some(error);
        }
    }

    /// Applies an object once more of which a watch has shown a change that the trace does not
    /// explain.
    fn confirm(&mut self, index: usize, now: Timestamp) {
        let is_applied = matches!(self.plan.steps[index].action, Action::Apply | Action::Gate);
        let track = &mut self.tracks[index];
        if let Some(at) = track.confirm_at()
            && is_applied
            && matches!(track.state, State::Done(_))
        {
            track.enter(State::Retry { at }, now);
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        self.sweeps += 1;
        if self.mode == Mode::Reconciling {
            self.order = order(&self.plan, self.mode, self.sweeps);
        }
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            let swept = matches!(step.action, Action::Apply);
            if swept && matches!(track.state, State::Done(_)) {
                track.enter(State::Due, now);
            }
        }
    }

    /// Decides what an executed step waits for.
    fn judge(&mut self, index: usize, now: Timestamp) {
        let step = &self.plan.steps[index];
        match step.readiness {
            Readiness::Applied => self.tracks[index].enter(State::Done(None), now),
            Readiness::Served => {
                let state = match step.serves.iter().find(|k| self.world.scope(k).is_none()) {
                    None => State::Done(None),
                    Some(kind) => State::Waiting(not_served(kind)),
                };
                self.tracks[index].enter(state, now);
            }
            Readiness::RolledOut | Readiness::Gate => self.judge_health(index, now),
        }
    }

    fn judge_served(&mut self, kind: &GroupVersionKind, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let waiting = matches!(self.tracks[index].state, State::Waiting(_));
            if waiting && self.plan.steps[index].serves.contains(kind) {
                self.judge(index, now);
            }
        }
    }

    fn judge_health(&mut self, index: usize, now: Timestamp) {
        let step = &self.plan.steps[index];
        let track = &mut self.tracks[index];
        let written = track.applied.map_or(0, |mark| mark.revision);
        let verdict = match (step.readiness, &track.health) {
            (Readiness::Gate, Some((_, verdict))) => verdict.clone(),
            (Readiness::RolledOut, Some((revision, verdict))) if *revision >= written => {
                verdict.clone()
            }
            (Readiness::RolledOut, _) => not_seen(step),
            (Readiness::Gate, None) => Verdict::Waiting {
                effect: Effect::None,
                reason: Reason::ClusterOperatorNotAvailable,
                message: format!(
                    "Cluster operator {} has not reported yet",
                    step.manifest.key.name
                ),
            },
            (Readiness::Applied | Readiness::Served, _) => return,
        };
        if track.is_claimed && step.readiness == Readiness::Gate && track.health.is_some() {
            // It passed its gate once if it reports the release, whatever became of it since.
            let is_behind = matches!(
                verdict,
                Verdict::Waiting {
                    reason: Reason::ClusterOperatorUpdating
                        | Reason::UpdatePayloadResourceNotFound
                        | Reason::ClusterOperatorNoVersions,
                    ..
                }
            );
            if is_behind {
                track.enter(State::Waiting(verdict), now);
                self.reject_record(now);
            } else {
                track.is_claimed = false;
                track.enter(State::Done(None), now);
            }
            return;
        }
        if self.mode != Mode::Reconciling && matches!(track.state, State::Done(_)) {
            // It is passed for good. What it has to report is what was seen last.
            match verdict {
                Verdict::Ready => track.state = State::Done(None),
                Verdict::ReadyWith { reason, message } => {
                    track.state = State::Done(Some((reason, message)));
                }
                Verdict::Waiting { .. } => {}
            }
            return;
        }
        let state = match verdict {
            Verdict::Ready => State::Done(None),
            Verdict::ReadyWith { reason, message } => State::Done(Some((reason, message))),
            Verdict::Waiting { effect: Effect::None, .. }
                if self.mode == Mode::Reconciling && step.readiness == Readiness::RolledOut =>
            {
                // A rollout that another client started is not a failure to reconcile.
                State::Done(None)
            }
            verdict @ Verdict::Waiting { .. } => State::Waiting(verdict),
        };
        track.enter(state, now);
        self.confirm(index, now);
    }

    /// Lets chains begin and steps come to their turn; ends the pass when all is done.
    fn advance(&mut self, now: Timestamp) {
        let plan = Arc::clone(&self.plan);
        let mut changed = true;
        while changed {
            changed = false;
            for (node_index, node) in plan.graph.nodes.iter().enumerate() {
                if self.nodes[node_index].complete {
                    continue;
                }
                if !self.nodes[node_index].begun {
                    if self.is_held(node.level)
                        || !node.after.iter().all(|&before| self.nodes[before].cleared)
                    {
                        continue;
                    }
                    self.nodes[node_index].begun = true;
                    self.begin_gates(&node.tasks, now);
                }
                self.advance_chain(node_index, &node.tasks, now);
                let progress = &mut self.nodes[node_index];
                progress.complete = node.tasks.iter().all(|&index| self.tracks[index].is_proven());
                let is_deferred_or_done = |index: &usize| {
                    matches!(self.tracks[*index].state, State::Blocked(_))
                        || self.tracks[*index].is_proven()
                };
                if !progress.cleared && node.tasks.iter().all(is_deferred_or_done) {
                    progress.cleared = true;
                    changed = true;
                }
            }
        }
        let complete = self.nodes.iter().all(|progress| progress.complete);
        if complete && self.passes == 0 {
            self.passes = 1;
            self.enter_reconciling(now);
        }
    }

    fn begin_gates(&mut self, tasks: &[usize], now: Timestamp) {
        for &index in tasks {
            let gate = self.plan.steps[index].readiness == Readiness::Gate;
            if gate && self.tracks[index].state == State::Pending {
                self.tracks[index].enter(State::Due, now);
            }
        }
    }

    fn advance_chain(&mut self, node_index: usize, tasks: &[usize], now: Timestamp) {
        while let Some(&index) = tasks.get(self.nodes[node_index].cursor) {
            if self.tracks[index].state == State::Pending {
                self.tracks[index].enter(State::Due, now);
            }
            if !self.is_passed(index) {
                let track = &self.tracks[index];
                let is_gate = self.plan.steps[index].readiness == Readiness::Gate;
                let is_waiting = matches!(track.state, State::Waiting(_));
                if is_gate && is_waiting && track.health.is_some() {
                    self.apply_taken_up(tasks, now);
                }
                return;
            }
            self.nodes[node_index].cursor += 1;
        }
    }

    /// Applies what an earlier process recorded as done of a chain whose operator does not report the
    /// release: the record may be wrong, and the operator would wait for ever.
    fn apply_taken_up(&mut self, tasks: &[usize], now: Timestamp) {
        for &index in tasks {
            let is_applied = self.plan.steps[index].action == Action::Apply;
            let is_done = matches!(self.tracks[index].state, State::Done(_));
            if is_applied && is_done && self.taken_up.remove(&index) {
                self.tracks[index].enter(State::Due, now);
            }
        }
    }

    /// Whether the next step of the chain may begin.
    fn is_passed(&self, index: usize) -> bool {
        let track = &self.tracks[index];
        match &track.state {
            _ if self.mode != Mode::Updating => true,
            State::Done(_) | State::Blocked(_) => true,
            State::Pending | State::Due | State::Running => track.is_proven(),
            // A refused deletion holds up nothing, nor does a write that confirms another.
            State::Retry { .. } => {
                let is_deletion = self.plan.steps[index].action == Action::Delete;
                track.is_proven() && (is_deletion || track.error.is_none())
            }
            State::Waiting(_) => false,
        }
    }

    /// From now on nothing is softened: what was passed is judged again.
    fn enter_reconciling(&mut self, now: Timestamp) {
        self.mode = Mode::Reconciling;
        for index in std::mem::take(&mut self.taken_up) {
            let is_applied = self.plan.steps[index].action == Action::Apply;
            if is_applied && matches!(self.tracks[index].state, State::Done(_)) {
                self.tracks[index].enter(State::Due, now);
            }
        }
        for index in 0..self.tracks.len() {
            let has_health =
                matches!(self.plan.steps[index].readiness, Readiness::RolledOut | Readiness::Gate);
            if has_health && matches!(self.tracks[index].state, State::Done(_)) {
                self.judge_health(index, now);
            }
        }
    }
}

/// While updating, the plan's order; while reconciling, one that differs from pass to pass. But for
/// updating, what others may need comes first: namespaces, then definitions, whose kinds take a
/// moment to be served.
fn order(plan: &Plan, mode: Mode, attempt: u32) -> Arc<[usize]> {
    let rank = |index: &usize| {
        let step = &plan.steps[*index];
        if mode == Mode::Updating {
            0
        } else if step.manifest.key.kind == "Namespace" {
            1
        } else if step.readiness == Readiness::Served {
            2
        } else {
            3
        }
    };
    let mut order: Vec<usize> = match mode {
        Mode::Initializing | Mode::Updating => (0..plan.steps.len()).collect(),
        Mode::Reconciling => plan.reconciling_order(attempt),
    };
    order.sort_by_key(rank);
    order.into()
}

/// The key under which watches show the object of a step: cluster-scoped kinds come without the
/// namespace that some manifests give them.
fn watch_key(step: &Step) -> ObjectKey {
    step.manifest.key.clone()
}

fn not_served(kind: &GroupVersionKind) -> Verdict {
    Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::CustomResourceDefinitionNotEstablished,
        message: format!("{kind} is not served yet"),
    }
}

fn not_seen(step: &Step) -> Verdict {
    Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::WorkloadProgressing,
        message: format!(
            "{} \"{}\" has not been observed since it was applied",
            step.manifest.key.kind,
            step.manifest.key.namespaced_name()
        ),
    }
}
