//! What a seed decides: what is done to a cluster, and what goes wrong meanwhile.

use std::time::Duration;

use plimsoll_simulation::standins::{Fault, Faults, ScriptedFault};

use crate::record::Last;
use crate::release::{LEVELS, VERSIONS};

/// Something that is done at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The controllers are handed the release of this index. With a store, somebody asks for it.
    Release(usize),
    /// Somebody asks for something that comes to nothing; there is a store.
    Ask(Vain),
    /// Somebody holds updates before a run level, or the next one.
    Hold(Option<u32>),
    /// Somebody lets updates go on.
    Resume,
    /// Somebody asks for the optional capability.
    Enable,
    /// Somebody tries to take it back.
    Disable,
    /// The process that leads dies of the write that is so many away.
    KillAtWrite { count: u64, last: Last },
    /// The server does not answer for a while.
    Pause(Duration),
}

/// A request that comes to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vain {
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
    pub(crate) deeds: Vec<(u64, Deed)>,
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
    /// How long operators take.
    pub(crate) delay: Duration,
    /// What goes wrong with operators, while [`Scenario::faulty_until`] lasts.
    pub(crate) operators: Faults,
    /// When everything goes well again.
    pub(crate) faulty_until: u64,
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut deeds = Vec::new();
        let update = chance.u64(5..40);
        deeds.push((update, Deed::Release(1)));
        if chance.u8(..3) == 0 {
            deeds.push((update + chance.u64(0..25), Deed::Release(2)));
        }
        if chance.bool() {
            let at = chance.u64(0..60);
            deeds.push((at, Deed::Enable));
            if chance.bool() {
                deeds.push((at + chance.u64(1..30), Deed::Disable));
            }
        }
        for _ in 0..chance.u8(..4) {
            let count = chance.u64(0..40);
            let last = match chance.u8(..3) {
                0 => Last::Lost,
                1 => Last::Heard,
                _ => Last::Late(Duration::from_millis(chance.u64(..20_000))),
            };
            deeds.push((chance.u64(0..70), Deed::KillAtWrite { count, last }));
        }
        if chance.u8(..3) == 0 {
            let lasts = Duration::from_secs(chance.u64(1..20));
            deeds.push((chance.u64(0..70), Deed::Pause(lasts)));
        }
        let stored = chance.bool();
        if stored {
            for _ in 0..chance.u8(..3) {
                let vain = [Vain::Nothing, Vain::Backwards, Vain::Broken, Vain::Missing];
                let vain = vain[chance.usize(..vain.len())];
                deeds.push((chance.u64(0..70), Deed::Ask(vain)));
            }
        }
        if chance.u8(..3) == 0 {
            let at = chance.u64(0..60);
            let levels = [None, Some(10), Some(20), Some(30)];
            deeds.push((at, Deed::Hold(levels[chance.usize(..levels.len())])));
            if chance.bool() {
                deeds.push((at + chance.u64(1..40), Deed::Resume));
            }
        }
        deeds.sort_by_key(|(at, _)| *at);
        let share = |chance: &mut fastrand::Rng, most: f64| match chance.bool() {
            true => chance.f64() * most,
            false => 0.0,
        };
        Self {
            seed,
            stored,
            leased: chance.bool(),
            errors: share(&mut chance, 0.2),
            watches: share(&mut chance, 0.3),
            stale: share(&mut chance, 0.3),
            delay: Duration::from_secs(chance.u64(0..8)),
            operators: operators(&mut chance),
            faulty_until: 70 + chance.u64(10..50),
            deeds,
        }
    }
}

fn operators(chance: &mut fastrand::Rng) -> Faults {
    let mut faults = Vec::new();
    for _ in 0..chance.u8(..3) {
        let (_, name) = LEVELS[chance.usize(..LEVELS.len())];
        let fault = match chance.u8(..3) {
            0 => Fault::NeverAvailable,
            1 => Fault::Degraded { lasts: Duration::from_secs(chance.u64(1..120)) },
            _ => Fault::VersionStuck,
        };
        let after = Duration::from_secs(chance.u64(0..60));
        let release = chance.bool().then(|| VERSIONS[1].to_owned());
        faults.push(ScriptedFault { operator: name.to_owned(), fault, after, release });
    }
    Faults(faults)
}
