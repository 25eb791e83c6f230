//! Decides what each simulated operator does: events in, actions out; no client and no clock.
//!
//! # The course of an operator
//!
//! 1. It waits until all workloads of its role have rolled out, and tells from their templates
//!    which release they belong to. Where several releases have the same (or it has no workloads),
//!    the version that the ClusterVersion desires decides.
//! 2. If that is another release than the one it reports, it is on its way: Progressing, with the
//!    versions it reported before.
//! 3. After the delay it reports the versions of the release, and that all is as expected.
//!
//! A ClusterOperator that already reports the versions of a release was simulated before: a restart
//! resumes there. Until the ClusterOperators and the ClusterVersion have been listed once, nothing
//! is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::ClusterOperatorStatus;

use super::faults::{Fault, ScriptedFault};
use super::operator_status::{self, ActiveFaults};
use super::roles::{OperatorRole, ReleaseRole, Roles};
use super::template_fingerprint::TemplateFingerprint;

/// How long to wait after a report could not be written.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Something that happened in the cluster.
#[derive(Debug)]
pub(super) enum ClusterEvent {
    /// A workload is there, or changed.
    Workload {
        /// Which.
        key: ObjectKey,
        /// Its pod template.
        template: TemplateFingerprint,
        /// Whether its present generation has rolled out.
        rolled_out: bool,
    },
    /// A workload is gone.
    WorkloadGone(ObjectKey),
    /// A ClusterOperator is there, or changed.
    Operator {
        /// Its name.
        name: String,
        /// What it reports.
        status: ClusterOperatorStatus,
    },
    /// A ClusterOperator is gone.
    OperatorGone(String),
    /// The names of all ClusterOperators; the others are gone.
    OperatorsListed(Vec<String>),
    /// The version that the ClusterVersion desires; known to be none if there is none.
    Desired(Option<String>),
    /// A report was written, and this is the status now; or it could not be.
    Reported {
        /// Name of the operator.
        name: String,
        /// The status that the server returned.
        status: Option<ClusterOperatorStatus>,
    },
}

/// Something to do.
#[derive(Debug, PartialEq)]
pub(super) enum SimulatorAction {
    /// Write an operator's status.
    Report {
        /// Name of the ClusterOperator.
        name: String,
        /// Whether it has to be created first.
        create: bool,
        /// The status to write.
        status: ClusterOperatorStatus,
    },
    /// Create the namespaces and kinds that no manifest creates.
    CreateFixtures,
}

/// The state machine of all simulated operators. Times are spans since its start.
#[derive(Debug)]
pub(super) struct Simulator {
    roles: Roles,
    faults: Vec<ScriptedFault>,
    delay: Duration,
    workloads: BTreeMap<ObjectKey, ObservedWorkload>,
    states: BTreeMap<String, OperatorState>,
    desired: Option<String>,
    operators_listed: bool,
    version_listed: bool,
    fixtures: FixtureState,
}

#[derive(Debug)]
struct ObservedWorkload {
    template: TemplateFingerprint,
    rolled_out: bool,
}

#[derive(Debug, Default)]
struct OperatorState {
    /// What the ClusterOperator reports; `None` if there is none.
    live: Option<ClusterOperatorStatus>,
    rollout: RolloutState,
    /// A report is being written.
    writing: bool,
    /// Not to write again before.
    pause: Option<Duration>,
    /// When it first was degraded.
    degraded_since: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RolloutState {
    /// Nothing to report yet.
    #[default]
    Waiting,
    /// On the way to a release.
    Moving { from: Option<usize>, to: usize, due: Duration },
    /// At a release.
    At(usize),
}

/// When the namespaces and kinds are created that no manifest creates: the delay after the first
/// workload of an operator has rolled out, since it is operators that create them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FixtureState {
    Waiting,
    Due(Duration),
    Done,
}

impl Simulator {
    pub(super) fn new(roles: Roles, faults: Vec<ScriptedFault>, delay: Duration) -> Self {
        let fixtures = if roles.is_without_workloads() {
            FixtureState::Due(delay)
        } else {
            FixtureState::Waiting
        };
        let states =
            roles.operators.keys().map(|name| (name.clone(), OperatorState::default())).collect();
        Self {
            roles,
            faults,
            delay,
            workloads: BTreeMap::new(),
            states,
            desired: None,
            operators_listed: false,
            version_listed: false,
            fixtures,
        }
    }

    /// Records what happened.
    pub(super) fn observe(&mut self, event: ClusterEvent, now: Duration) {
        match event {
            ClusterEvent::Workload { key, template, rolled_out } => {
                if self.roles.has_workload(&key) {
                    if rolled_out && self.fixtures == FixtureState::Waiting {
                        self.fixtures = FixtureState::Due(now + self.delay);
                    }
                    self.workloads.insert(key, ObservedWorkload { template, rolled_out });
                }
            }
            ClusterEvent::WorkloadGone(key) => {
                self.workloads.remove(&key);
            }
            ClusterEvent::Operator { name, status } => {
                if let Some(state) = self.states.get_mut(&name) {
                    state.live = Some(status);
                }
            }
            ClusterEvent::OperatorGone(name) => {
                if let Some(state) = self.states.get_mut(&name) {
                    state.live = None;
                }
            }
            ClusterEvent::OperatorsListed(names) => {
                self.operators_listed = true;
                for (_, state) in self.states.iter_mut().filter(|(name, _)| !names.contains(name)) {
                    state.live = None;
                }
            }
            ClusterEvent::Desired(version) => {
                self.version_listed = true;
                self.desired = version;
            }
            ClusterEvent::Reported { name, status } => {
                if let Some(state) = self.states.get_mut(&name) {
                    state.writing = false;
                    state.pause = status.is_none().then_some(now + RETRY_PAUSE);
                    if status.is_some() {
                        state.live = status;
                    }
                }
            }
        }
    }

    /// Returns what is to be done now.
    pub(super) fn actions(&mut self, now: Duration, time: Timestamp) -> Vec<SimulatorAction> {
        let mut actions = Vec::new();
        if let FixtureState::Due(due) = self.fixtures
            && due <= now
        {
            self.fixtures = FixtureState::Done;
            actions.push(SimulatorAction::CreateFixtures);
        }
        if !self.operators_listed || !self.version_listed {
            return actions;
        }
        let mut states = std::mem::take(&mut self.states);
        for (name, state) in &mut states {
            let role = self.roles.operators.get(name).expect("each operator has a role");
            state.rollout = self.next_rollout(name, role, state, now);
            actions.extend(self.report(name, role, state, now, time));
        }
        self.states = states;
        actions
    }

    /// Returns when there may be something to do although nothing happens.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let fixtures = match self.fixtures {
            FixtureState::Due(due) => Some(due),
            FixtureState::Waiting | FixtureState::Done => None,
        };
        let rollouts = self.states.values().filter_map(|state| match state.rollout {
            RolloutState::Moving { due, .. } => Some(due),
            RolloutState::Waiting | RolloutState::At(_) => None,
        });
        let pauses = self.states.values().filter_map(|state| state.pause);
        let faults = self.faults.iter().flat_map(|fault| {
            let end = match (fault.fault, self.states.get(&fault.operator)) {
                (Fault::Degraded { lasts }, Some(state)) => {
                    state.degraded_since.map(|since| since + lasts)
                }
                _ => None,
            };
            [Some(fault.after), end].into_iter().flatten()
        });
        rollouts.chain(fixtures).chain(pauses).chain(faults).filter(|due| *due > now).min()
    }

    fn next_rollout(
        &self,
        name: &str,
        role: &OperatorRole,
        state: &OperatorState,
        now: Duration,
    ) -> RolloutState {
        let before = match (state.rollout, &state.live) {
            (RolloutState::Waiting, Some(live)) => match role.reported_by(live) {
                Some(release) => RolloutState::At(release),
                None => RolloutState::Waiting,
            },
            (rollout, _) => rollout,
        };
        let from = match before {
            RolloutState::Waiting => None,
            RolloutState::At(release) => Some(release),
            RolloutState::Moving { from, .. } => from,
        };
        let Some(target) = self.followed_release(role, from) else {
            return before;
        };
        let moving = match before {
            RolloutState::At(release) if release == target => return before,
            RolloutState::Moving { to, .. } if to == target => before,
            RolloutState::Moving { from: Some(release), .. } if release == target => {
                return RolloutState::At(release);
            }
            _ => RolloutState::Moving { from, to: target, due: now + self.delay },
        };
        let RolloutState::Moving { due, .. } = moving else {
            return moving;
        };
        let stuck = self.active_faults(name, target, now).any(|fault| fault == Fault::VersionStuck);
        if due <= now && !stuck { RolloutState::At(target) } else { moving }
    }

    /// The release whose workloads run, if they have all rolled out.
    fn followed_release(&self, role: &OperatorRole, current: Option<usize>) -> Option<usize> {
        let running = role.0.iter().filter(|(_, part)| {
            let mut keys = part.workloads.keys();
            keys.all(|key| self.workloads.get(key).is_some_and(|live| live.rolled_out))
        });
        let running: Vec<(usize, &ReleaseRole)> =
            running.map(|(&release, part)| (release, part)).collect();
        let matching: Vec<usize> = running
            .iter()
            .filter(|(_, part)| {
                part.workloads
                    .iter()
                    .all(|(key, template)| template.matches(&self.workloads[key].template))
            })
            .map(|&(release, _)| release)
            .collect();
        // No template matches: something was injected into all of them. The ClusterVersion decides.
        let (candidates, sure) = if matching.is_empty() {
            (running.iter().map(|&(release, _)| release).collect(), role.0.len() == 1)
        } else {
            (matching, true)
        };
        let desired = candidates
            .iter()
            .copied()
            .find(|&release| self.desired.as_ref() == Some(&self.roles.releases[release]));
        desired
            .or_else(|| current.filter(|release| candidates.contains(release)))
            .or_else(|| candidates.first().copied().filter(|_| sure))
    }

    fn active_faults(
        &self,
        name: &str,
        release: usize,
        now: Duration,
    ) -> impl Iterator<Item = Fault> {
        self.faults
            .iter()
            .filter(move |fault| fault.operator == name && fault.after <= now)
            .filter(move |fault| {
                fault.release.as_ref().is_none_or(|only| *only == self.roles.releases[release])
            })
            .map(|fault| fault.fault)
    }

    fn report(
        &self,
        name: &str,
        role: &OperatorRole,
        state: &mut OperatorState,
        now: Duration,
        time: Timestamp,
    ) -> Option<SimulatorAction> {
        let (reported, moving_to) = match state.rollout {
            RolloutState::Waiting => return None,
            RolloutState::Moving { from, to, .. } => (from, Some(to)),
            RolloutState::At(release) => (Some(release), None),
        };
        let release = moving_to.or(reported)?;
        let mut active = ActiveFaults::default();
        for fault in self.active_faults(name, release, now) {
            match fault {
                Fault::NeverAvailable => active.unavailable = true,
                Fault::NotUpgradeable => active.not_upgradeable = true,
                Fault::VersionStuck => active.stuck = true,
                Fault::Degraded { lasts } => {
                    let since = *state.degraded_since.get_or_insert(now);
                    active.degraded = now < since + lasts;
                }
            }
        }
        if state.writing || state.pause.is_some_and(|pause| now < pause) {
            return None;
        }
        let part = &role.0[&release];
        // An operator that has nothing to run is only there if its ClusterOperator is.
        if state.live.is_none() && part.workloads.is_empty() {
            return None;
        }
        let input = operator_status::ReportInput {
            reported: reported.map(|release| &role.0[&release]),
            role: part,
            moving_to: moving_to.map(|release| self.roles.releases[release].as_str()),
            faults: active,
        };
        let status = operator_status::status(&input, state.live.as_ref(), time)?;
        state.writing = true;
        state.pause = None;
        Some(SimulatorAction::Report {
            name: name.to_owned(),
            create: state.live.is_none(),
            status,
        })
    }
}

impl OperatorRole {
    /// The release whose versions a status reports.
    fn reported_by(&self, status: &ClusterOperatorStatus) -> Option<usize> {
        self.0
            .iter()
            .find(|(_, part)| !part.versions.is_empty() && part.versions == status.versions)
            .map(|(&release, _)| release)
    }
}

#[cfg(test)]
mod tests;
