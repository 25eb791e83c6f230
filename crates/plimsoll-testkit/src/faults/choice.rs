//! Chance that is the same every time.

use std::time::Duration;

use super::Fault;

/// The longest that a watch lives once it is to be closed.
const WATCH_LIFE: Duration = Duration::from_millis(500);

/// What the request at `position` meets, if anything.
pub(super) fn choose(
    seed: u64,
    position: u64,
    share: f64,
    writes: bool,
    watch: bool,
) -> Option<Fault> {
    let mut random = Random::new(seed, position);
    if random.fraction() >= share {
        return None;
    }
    let life = WATCH_LIFE.mul_f64(random.fraction());
    let fault = match random.below(7) {
        0 if writes => Fault::Refused(409),
        1 => Fault::Refused(429),
        2 => Fault::Refused(500),
        3 => Fault::Refused(503),
        4 if !watch => Fault::AnswerLost,
        4 | 5 if watch => Fault::WatchClosed(life),
        0 | 6 if watch => Fault::WatchBroken(life),
        _ => Fault::ConnectionLost,
    };
    Some(fault)
}

/// The generator SplitMix64: small, and good enough to pick faults.
struct Random {
    state: u64,
}

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// A generator of its own for each position, so that requests do not depend on each other.
    fn new(seed: u64, position: u64) -> Self {
        let mut random = Self { state: seed };
        let base = random.next();
        Self { state: base ^ position.wrapping_mul(Self::STEP) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of at least 0 and less than 1.
    fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
    }

    /// A number less than `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
