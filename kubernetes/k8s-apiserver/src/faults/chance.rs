//! Random faults that are the same for the same seed.
use std::time::Duration;

use super::Fault;
use crate::ids::IdStream;

/// The longest time after which a watch is closed.
const WATCH_LIFE: Duration = Duration::from_millis(500);

/// The fault of the request at `position`; none for most.
pub(super) fn choose(
    seed: u64,
    position: u64,
    share: f64,
    is_write: bool,
    is_watch: bool,
) -> Option<Fault> {
    let mut stream = stream(seed, position);
    if fraction(&mut stream) >= share {
        return None;
    }
    let life = WATCH_LIFE.mul_f64(fraction(&mut stream));
    let fault = match stream.draw() % 7 {
        0 if is_write => Fault::refused(409),
        1 => Fault::refused(429),
        2 => Fault::refused(500),
        3 => Fault::refused(503),
        4 if !is_watch => Fault::AnswerLost,
        4 | 5 if is_watch => Fault::WatchClosed(life),
        0 | 6 if is_watch => Fault::WatchBroken(life),
        _ => Fault::ConnectionLost,
    };
    Some(fault)
}

/// Whether the request at `position` is one of a share.
pub(super) fn hits(seed: u64, position: u64, share: f64) -> bool {
    fraction(&mut stream(seed, position)) < share
}

/// The random numbers of a position, independent of other positions.
fn stream(seed: u64, position: u64) -> IdStream {
    let base = IdStream(seed).draw();
    IdStream(base ^ position.wrapping_mul(IdStream::STEP))
}

/// A number of at least 0 and less than 1.
fn fraction(stream: &mut IdStream) -> f64 {
    f64::from(u32::try_from(stream.draw() >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
}
