//! Scenarios: what a seed does to a cluster, and what goes wrong meanwhile.

use std::time::Duration;

use plimsoll_simulation::simulated_operators::{Fault, Faults, ScriptedFault};

use crate::operators::AddOns;
use crate::record::LastWrite;
use crate::release::{DRIFTING, LEVELS, VERSIONS};

/// Something that is done to the cluster at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The controllers are handed the release of this index. With a store, it is requested.
    Release(usize),
    /// An update is requested that is rejected; there is a store.
    Ask(InvalidRequest),
    /// Updates are held before a run level, or the next one.
    Hold(Option<u32>),
    /// Updates are resumed.
    Resume,
    /// The optional capability is requested.
    Enable,
    /// The request is withdrawn.
    Disable,
    /// The process that leads dies of the write that is so many away.
    KillAtWrite { count: u64, last: LastWrite },
    /// The server does not answer for a while.
    Pause(Duration),
    /// The clock of the oldest process is set forward or back, in seconds.
    SetClock(i64),
    /// The oldest process does not reach the server for a while.
    CutOff(Duration),
    /// What the oldest process sends arrives a while later, when another one may lead.
    Stall(Duration),
    /// From now on the server ends its watches in order when it goes away; otherwise they break off.
    EndWatches,
    /// The state of the server is backed up.
    BackUp,
    /// The server restarts: with its last state, or with that of the backup.
    Restart { from_backup: bool },
    /// The settings of the last run level are taken out of management, or back into it.
    Override(bool),
    /// The deletion of what earlier releases left is requested.
    Prune,
    /// Another client changes the object of this number, or deletes it.
    Drift { item: usize, is_deletion: bool },
}

/// A requested update that is rejected, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidRequest {
    /// What was asked for is taken back.
    Nothing,
    /// For the first release, which is older than those after it.
    Backwards,
    /// For a release that cannot be loaded.
    Broken,
    /// For a release that the store does not have.
    Missing,
}

/// A course of events.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// When what is done, in seconds since the beginning; in order.
    pub(crate) actions: Vec<(u64, Action)>,
    /// Whether releases are asked for and come from a store, or are handed over.
    pub(crate) stored: bool,
    /// Whether two processes work with a lease, or one without.
    pub(crate) leased: bool,
    /// The share of requests that fail.
    pub(crate) errors: f64,
    /// The share of watches whose events come twice, and of those that lose theirs.
    pub(crate) watches: f64,
    /// The share of reads that are answered with an earlier state.
    pub(crate) stale: f64,
    /// The share of requests that are answered with an error of some HTTP status, some of them with
    /// a Retry-After of up to a day.
    pub(crate) refusals: f64,
    /// The share of answers that break off or cannot be read.
    pub(crate) mangled: f64,
    /// How long operators take.
    pub(crate) delay: Duration,
    /// What goes wrong with operators, while [`Scenario::faulty_until`] lasts.
    pub(crate) operators: Faults,
    /// When everything goes well again.
    pub(crate) faulty_until: u64,
    /// What is requested of Operators; `None` without a controller of them.
    pub(crate) add_ons: Option<AddOns>,
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut actions = requests(&mut random);
        actions.extend(interruptions(&mut random));
        let stored = random.bool();
        if stored {
            actions.extend(invalid_requests(&mut random));
        }
        actions.extend(hold(&mut random));
        let share = |random: &mut fastrand::Rng, most: f64| match random.bool() {
            true => random.f64() * most,
            false => 0.0,
        };
        let mut scenario = Self {
            seed,
            stored,
            leased: random.bool(),
            errors: share(&mut random, 0.2),
            watches: share(&mut random, 0.3),
            stale: share(&mut random, 0.3),
            refusals: 0.0,
            mangled: 0.0,
            delay: Duration::from_secs(random.u64(0..8)),
            operators: operators(&mut random),
            faulty_until: 70 + random.u64(10..50),
            actions,
            add_ons: None,
        };
        if random.bool() {
            scenario.refusals = share(&mut random, 0.1);
            scenario.mangled = share(&mut random, 0.1);
            scenario.actions.extend(outages(&mut random, stored));
        }
        scenario.actions.sort_by_key(|(at, _)| *at);
        scenario
    }
}

impl Scenario {
    /// Returns the faults of operators, of the release and of bundles.
    pub(crate) fn faults(&self) -> Faults {
        let packages = self.add_ons.as_ref().map(|it| it.faults.clone());
        Faults { packages: packages.unwrap_or_default(), ..self.operators.clone() }
    }

    /// The same with Operators.
    pub(crate) fn with_operators(seed: u64) -> Self {
        Self { add_ons: Some(AddOns::of(seed)), ..Self::of(seed) }
    }
}

/// Returns the updates that are requested, and when the optional capability is.
fn requests(random: &mut fastrand::Rng) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    let update = random.u64(5..40);
    actions.push((update, Action::Release(1)));
    if random.u8(..3) == 0 {
        actions.push((update + random.u64(0..25), Action::Release(2)));
    }
    if random.bool() {
        let at = random.u64(0..60);
        actions.push((at, Action::Enable));
        if random.bool() {
            actions.push((at + random.u64(1..30), Action::Disable));
        }
    }
    actions
}

/// Returns when processes die, and when the server does not answer.
fn interruptions(random: &mut fastrand::Rng) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    for _ in 0..random.u8(..4) {
        let count = random.u64(0..40);
        let last = match random.u8(..3) {
            0 => LastWrite::Lost,
            1 => LastWrite::Applied,
            _ => LastWrite::Late(Duration::from_millis(random.u64(..20_000))),
        };
        actions.push((random.u64(0..70), Action::KillAtWrite { count, last }));
    }
    if random.u8(..3) == 0 {
        let lasts = Duration::from_secs(random.u64(1..20));
        actions.push((random.u64(0..70), Action::Pause(lasts)));
    }
    actions
}

/// Returns requests that are rejected.
fn invalid_requests(random: &mut fastrand::Rng) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    for _ in 0..random.u8(..3) {
        let invalid = [
            InvalidRequest::Nothing,
            InvalidRequest::Backwards,
            InvalidRequest::Broken,
            InvalidRequest::Missing,
        ];
        let invalid = invalid[random.usize(..invalid.len())];
        actions.push((random.u64(0..70), Action::Ask(invalid)));
    }
    actions
}

/// Returns when updates are held before a run level, and when they are resumed.
fn hold(random: &mut fastrand::Rng) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    if random.u8(..3) == 0 {
        let at = random.u64(0..60);
        let levels = [None, Some(10), Some(20), Some(30)];
        actions.push((at, Action::Hold(levels[random.usize(..levels.len())])));
        if random.bool() {
            actions.push((at + random.u64(1..40), Action::Resume));
        }
    }
    actions
}

/// Returns what goes wrong around the processes: clocks, connections, the server's storage, and people who
/// change what is ours.
fn outages(random: &mut fastrand::Rng, stored: bool) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    for _ in 0..random.u8(..3) {
        let most = [30, 3600, 10 * 365 * 86_400][random.usize(..3)];
        actions.push((random.u64(0..90), Action::SetClock(random.i64(-most..most))));
    }
    if random.u8(..3) == 0 {
        let lasts = Duration::from_secs(random.u64(1..40));
        actions.push((random.u64(0..70), Action::CutOff(lasts)));
    }
    for _ in 0..random.u8(..3) {
        let drift = Action::Drift { item: random.usize(..DRIFTING), is_deletion: random.bool() };
        actions.push((random.u64(0..90), drift));
    }
    if random.u8(..3) == 0 {
        actions.push((random.u64(0..70), Action::Restart { from_backup: false }));
    }
    if random.u8(..3) == 0 {
        actions.push((random.u64(0..70), Action::Override(true)));
    }
    if random.u8(..3) == 0 {
        actions.push((random.u64(0..90), Action::Prune));
    }
    // An update that was requested with a store has to be requested again.
    if !stored && random.u8(..3) == 0 {
        let at = random.u64(20..60);
        actions.push((at, Action::BackUp));
        actions.push((at + random.u64(1..30), Action::Restart { from_backup: true }));
    }
    actions
}

fn operators(random: &mut fastrand::Rng) -> Faults {
    let mut faults = Vec::new();
    for _ in 0..random.u8(..3) {
        let (_, name) = LEVELS[random.usize(..LEVELS.len())];
        let fault = match random.u8(..3) {
            0 => Fault::NeverAvailable,
            1 => Fault::Degraded { lasts: Duration::from_secs(random.u64(1..120)) },
            _ => Fault::VersionStuck,
        };
        let after = Duration::from_secs(random.u64(0..60));
        let release = random.bool().then(|| VERSIONS[1].to_owned());
        faults.push(ScriptedFault { operator: name.to_owned(), fault, after, release });
    }
    Faults { operators: faults, packages: Vec::new() }
}
