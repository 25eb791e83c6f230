//! Durations as `kubectl` shows them: two units at most, and fewer the longer it is.
use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

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
        _ if seconds < 10 * MINUTE => two(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, (large, large_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let rest = seconds % large / small;
    if rest == 0 {
        format!("{}{large_name}", seconds / large)
    } else {
        format!("{}{large_name}{rest}{small_name}", seconds / large)
    }
}
