//! Durations as `kubectl` shows them: two units at most, and fewer the longer it is.
use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A unit of time, as it is shown.
#[derive(Clone, Copy)]
struct Unit {
    seconds: i64,
    letter: char,
}

const SECONDS: Unit = Unit { seconds: 1, letter: 's' };
const MINUTES: Unit = Unit { seconds: MINUTE, letter: 'm' };
const HOURS: Unit = Unit { seconds: HOUR, letter: 'h' };
const DAYS: Unit = Unit { seconds: DAY, letter: 'd' };
const YEARS: Unit = Unit { seconds: YEAR, letter: 'y' };

/// The time since an RFC 3339 timestamp.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.map(str::parse::<Timestamp>) {
        Some(Ok(time)) => format_seconds(now.as_second() - time.as_second()),
        Some(Err(_)) | None => "<unknown>".to_owned(),
    }
}

/// A duration.
///
/// Upstream: k8s.io/apimachinery/pkg/util/duration/duration.go: HumanDuration
pub(super) fn format_seconds(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    match seconds {
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => in_units(seconds, MINUTES, SECONDS),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => in_units(seconds, HOURS, MINUTES),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => in_units(seconds, DAYS, HOURS),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => in_units(seconds, YEARS, DAYS),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// A duration in a large unit, and what is left of it in a small one.
fn in_units(seconds: i64, large: Unit, small: Unit) -> String {
    let whole = seconds / large.seconds;
    let rest = seconds % large.seconds / small.seconds;
    if rest == 0 {
        format!("{whole}{}", large.letter)
    } else {
        format!("{whole}{}{rest}{}", large.letter, small.letter)
    }
}
