//! Decides what each stand-in does: events in, acts out; no client and no clock.
//!
//! # An operator's play
//!
//! 1. It waits until all workloads of its part have rolled out, and tells from their look which
//!    release they belong to. Where several releases look the same (or it has no workloads), the
//!    version that the ClusterVersion desires decides.
//! 2. If that is another release than the one it reports, it is on its way: Progressing, with the
//!    versions it reported before.
//! 3. After the delay it reports the versions of the release, and that all is as expected.
//!
//! A ClusterOperator that already reports the versions of a release was played before: a restart
//! goes on from there. Until the ClusterOperators and the ClusterVersion have been listed once,
//! nobody acts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::ClusterOperatorStatus;

use super::cast::{Cast, Part, Role};
use super::faults::{Fault, Faults};
use super::look::Look;
use super::report::{self, Trouble};

/// How long to wait after a report could not be written.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Something that happened in the cluster.
#[derive(Debug)]
pub(super) enum Event {
    /// A workload is there, or changed.
    Workload {
        /// Which.
        key: ObjectKey,
        /// How it looks.
        look: Look,
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
    /// All ClusterOperators have been told; those that were not are gone.
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
pub(super) enum Act {
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
    Furnish,
}

/// Times are spans since the start of the stand-ins.
#[derive(Debug)]
pub(super) struct Director {
    cast: Cast,
    faults: Faults,
    delay: Duration,
    workloads: BTreeMap<ObjectKey, Live>,
    actors: BTreeMap<String, Actor>,
    desired: Option<String>,
    operators_listed: bool,
    version_listed: bool,
    furnishing: Furnishing,
}

#[derive(Debug)]
struct Live {
    look: Look,
    rolled_out: bool,
}

#[derive(Debug, Default)]
struct Actor {
    /// What the ClusterOperator reports; `None` if there is none.
    live: Option<ClusterOperatorStatus>,
    stage: Stage,
    /// A report is being written.
    writing: bool,
    /// Not to write again before.
    pause: Option<Duration>,
    /// When it first was degraded.
    degraded_since: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
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
enum Furnishing {
    Waiting,
    Due(Duration),
    Done,
}

impl Director {
    pub(super) fn new(cast: Cast, faults: Faults, delay: Duration) -> Self {
        let furnishing =
            if cast.is_without_workloads() { Furnishing::Due(delay) } else { Furnishing::Waiting };
        let actors = cast.operators.keys().map(|name| (name.clone(), Actor::default())).collect();
        Self {
            cast,
            faults,
            delay,
            workloads: BTreeMap::new(),
            actors,
            desired: None,
            operators_listed: false,
            version_listed: false,
            furnishing,
        }
    }

    /// Takes note of what happened.
    pub(super) fn observe(&mut self, event: Event, now: Duration) {
        match event {
            Event::Workload { key, look, rolled_out } => {
                if self.cast.has_workload(&key) {
                    if rolled_out && self.furnishing == Furnishing::Waiting {
                        self.furnishing = Furnishing::Due(now + self.delay);
                    }
                    self.workloads.insert(key, Live { look, rolled_out });
                }
            }
            Event::WorkloadGone(key) => {
                self.workloads.remove(&key);
            }
            Event::Operator { name, status } => {
                if let Some(actor) = self.actors.get_mut(&name) {
                    actor.live = Some(status);
                }
            }
            Event::OperatorGone(name) => {
                if let Some(actor) = self.actors.get_mut(&name) {
                    actor.live = None;
                }
            }
            Event::OperatorsListed(names) => {
                self.operators_listed = true;
                for (_, actor) in self.actors.iter_mut().filter(|(name, _)| !names.contains(name)) {
                    actor.live = None;
                }
            }
            Event::Desired(version) => {
                self.version_listed = true;
                self.desired = version;
            }
            Event::Reported { name, status } => {
                if let Some(actor) = self.actors.get_mut(&name) {
                    actor.writing = false;
                    actor.pause = status.is_none().then_some(now + RETRY_PAUSE);
                    if status.is_some() {
                        actor.live = status;
                    }
                }
            }
        }
    }

    /// What is to be done now.
    pub(super) fn act(&mut self, now: Duration, time: Timestamp) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Furnishing::Due(due) = self.furnishing
            && due <= now
        {
            self.furnishing = Furnishing::Done;
            acts.push(Act::Furnish);
        }
        if !self.operators_listed || !self.version_listed {
            return acts;
        }
        let mut actors = std::mem::take(&mut self.actors);
        for (name, actor) in &mut actors {
            let role = self.cast.operators.get(name).expect("each actor has a role");
            actor.stage = self.next_stage(name, role, actor, now);
            acts.extend(self.report(name, role, actor, now, time));
        }
        self.actors = actors;
        acts
    }

    /// When there may be something to do although nothing happens.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let furnishing = match self.furnishing {
            Furnishing::Due(due) => Some(due),
            Furnishing::Waiting | Furnishing::Done => None,
        };
        let stages = self.actors.values().filter_map(|actor| match actor.stage {
            Stage::Moving { due, .. } => Some(due),
            Stage::Waiting | Stage::At(_) => None,
        });
        let pauses = self.actors.values().filter_map(|actor| actor.pause);
        let faults = self.faults.0.iter().flat_map(|scripted| {
            let end = match (scripted.fault, self.actors.get(&scripted.operator)) {
                (Fault::Degraded { lasts }, Some(actor)) => {
                    actor.degraded_since.map(|since| since + lasts)
                }
                _ => None,
            };
            [Some(scripted.after), end].into_iter().flatten()
        });
        stages.chain(furnishing).chain(pauses).chain(faults).filter(|due| *due > now).min()
    }

    fn next_stage(&self, name: &str, role: &Role, actor: &Actor, now: Duration) -> Stage {
        let before = match (actor.stage, &actor.live) {
            (Stage::Waiting, Some(live)) => match role.spoken_in(live) {
                Some(release) => Stage::At(release),
                None => Stage::Waiting,
            },
            (stage, _) => stage,
        };
        let from = match before {
            Stage::Waiting => None,
            Stage::At(release) => Some(release),
            Stage::Moving { from, .. } => from,
        };
        let Some(target) = self.followed_release(role, from) else {
            return before;
        };
        let moving = match before {
            Stage::At(release) if release == target => return before,
            Stage::Moving { to, .. } if to == target => before,
            Stage::Moving { from: Some(release), .. } if release == target => {
                return Stage::At(release);
            }
            _ => Stage::Moving { from, to: target, due: now + self.delay },
        };
        let Stage::Moving { due, .. } = moving else {
            return moving;
        };
        let stuck = self.active_faults(name, target, now).any(|fault| fault == Fault::VersionStuck);
        if due <= now && !stuck { Stage::At(target) } else { moving }
    }

    /// The release whose workloads run, if they have all rolled out.
    fn followed_release(&self, role: &Role, current: Option<usize>) -> Option<usize> {
        let running = role.0.iter().filter(|(_, part)| {
            let mut keys = part.workloads.keys();
            keys.all(|key| self.workloads.get(key).is_some_and(|live| live.rolled_out))
        });
        let running: Vec<(usize, &Part)> =
            running.map(|(&release, part)| (release, part)).collect();
        let alike: Vec<usize> = running
            .iter()
            .filter(|(_, part)| {
                part.workloads.iter().all(|(key, look)| look.is_seen_in(&self.workloads[key].look))
            })
            .map(|&(release, _)| release)
            .collect();
        // None looks alike: something was injected into all of them. Then the ClusterVersion tells.
        let (candidates, sure) = if alike.is_empty() {
            (running.iter().map(|&(release, _)| release).collect(), role.0.len() == 1)
        } else {
            (alike, true)
        };
        let desired = candidates
            .iter()
            .copied()
            .find(|&release| self.desired.as_ref() == Some(&self.cast.releases[release]));
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
            .0
            .iter()
            .filter(move |scripted| scripted.operator == name && scripted.after <= now)
            .filter(move |scripted| {
                scripted.release.as_ref().is_none_or(|only| *only == self.cast.releases[release])
            })
            .map(|scripted| scripted.fault)
    }

    fn report(
        &self,
        name: &str,
        role: &Role,
        actor: &mut Actor,
        now: Duration,
        time: Timestamp,
    ) -> Option<Act> {
        let (reported, moving_to) = match actor.stage {
            Stage::Waiting => return None,
            Stage::Moving { from, to, .. } => (from, Some(to)),
            Stage::At(release) => (Some(release), None),
        };
        let release = moving_to.or(reported)?;
        let mut trouble = Trouble::default();
        for fault in self.active_faults(name, release, now) {
            match fault {
                Fault::NeverAvailable => trouble.unavailable = true,
                Fault::NotUpgradeable => trouble.not_upgradeable = true,
                Fault::VersionStuck => trouble.stuck = true,
                Fault::Degraded { lasts } => {
                    let since = *actor.degraded_since.get_or_insert(now);
                    trouble.degraded = now < since + lasts;
                }
            }
        }
        if actor.writing || actor.pause.is_some_and(|pause| now < pause) {
            return None;
        }
        let part = &role.0[&release];
        // An operator that has nothing to run is only there if its ClusterOperator is.
        if actor.live.is_none() && part.workloads.is_empty() {
            return None;
        }
        let play = report::Play {
            reported: reported.map(|release| &role.0[&release]),
            part,
            moving_to: moving_to.map(|release| self.cast.releases[release].as_str()),
            trouble,
        };
        let status = report::status(&play, actor.live.as_ref(), time)?;
        actor.writing = true;
        actor.pause = None;
        Some(Act::Report { name: name.to_owned(), create: actor.live.is_none(), status })
    }
}

impl Role {
    /// The release whose versions a status reports.
    fn spoken_in(&self, status: &ClusterOperatorStatus) -> Option<usize> {
        self.0
            .iter()
            .find(|(_, part)| !part.versions.is_empty() && part.versions == status.versions)
            .map(|(&release, _)| release)
    }
}

#[cfg(test)]
mod tests;
