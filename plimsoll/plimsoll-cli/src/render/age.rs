//! How long ago something was, as kubectl writes it.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time since something: `45s`, `5m30s`, `20m`, `3h20m`, `5h`, `2d4h`, `30d`, `2y10d`, `9y`.
///
/// Upstream: k8s.io/apimachinery/pkg/util/duration/duration.go: HumanDuration
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - since.as_second();
    let two = |(unit, sign): (i64, char), (part, small): (i64, char)| {
        let rest = seconds % unit / part;
        match rest {
            0 => format!("{}{sign}", seconds / unit),
            rest => format!("{}{sign}{rest}{small}", seconds / unit),
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two((MINUTE, 'm'), (1, 's')),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two((HOUR, 'h'), (MINUTE, 'm')),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two((DAY, 'd'), (HOUR, 'h')),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two((YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_by_kubectl() {
        let check = |seconds: i64, expected: &str| {
            let since = Timestamp::UNIX_EPOCH;
            assert_eq!(age(since, Timestamp::from_second(seconds).unwrap()), expected);
        };
        check(-2, "<invalid>");
        check(-1, "0s");
        check(0, "0s");
        check(119, "119s");
        check(120, "2m");
        check(330, "5m30s");
        check(1200, "20m");
        check(3 * HOUR, "3h");
        check(3 * HOUR + 1200, "3h20m");
        check(9 * HOUR + 1200, "9h");
        check(2 * DAY + 4 * HOUR, "2d4h");
        check(30 * DAY, "30d");
        check(2 * YEAR + 10 * DAY, "2y10d");
        check(9 * YEAR, "9y");
    }
}
