//! Timestamps and durations in their text forms.
//!
//! Upstream: github.com/google/cel-go/common/types/timestamp.go: Timestamp
//! Upstream: github.com/google/cel-go/common/types/duration.go: Duration
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;
/// The years 1 to 9999, in seconds since 1970.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

/// The date and time in a zone. The library's own moments end a day before the year 9999 does.
pub(crate) fn local_time(at: i128, zone: &TimeZone) -> Option<DateTime> {
    let clamped = at.clamp(Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    let offset = zone.to_offset(Timestamp::from_nanosecond(clamped).ok()?).seconds();
    let second = i128::from(SECOND);
    let local = at + i128::from(offset) * second;
    let seconds = i64::try_from(local.div_euclid(second)).ok()?;
    let nanoseconds = i64::try_from(local.rem_euclid(second)).ok()?;
    let span =
        SignedDuration::from_secs(seconds).checked_add(SignedDuration::from_nanos(nanoseconds))?;
    jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(span).ok()
}

pub(crate) fn in_range(at: i128) -> bool {
    let seconds = at.div_euclid(i128::from(SECOND));
    (i128::from(SECONDS_MIN)..=i128::from(SECONDS_MAX)).contains(&seconds)
}

/// The point in time so many seconds after 1970 began.
pub(crate) fn from_seconds(seconds: i64) -> Option<i128> {
    Some(i128::from(seconds) * i128::from(SECOND)).filter(|at| in_range(*at))
}

/// A point in time in RFC 3339's notation; Go's reader insists on capital letters and on seconds.
pub(crate) fn parse_timestamp(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 20
        && text.is_ascii()
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && bytes.get(17..19) != Some(b"60");
    if !shape {
        return None;
    }
    let zone_at = text[19..].find(['Z', '+', '-'])? + 19;
    let (local, zone) = text.split_at(zone_at);
    let fraction = &local[19..];
    let digits = fraction.strip_prefix('.').unwrap_or_default();
    let plain = fraction.is_empty()
        || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !plain {
        return None;
    }
    let offset = zone_seconds(zone)?;
    let local: DateTime = local[..19].parse().ok()?;
    let start = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let seconds = local.duration_since(start).as_secs() - offset;
    let nanoseconds: i128 = format!("{digits:0<9}").get(..9)?.parse().ok()?;
    let at = i128::from(seconds) * i128::from(SECOND) + nanoseconds;
    in_range(at).then_some(at)
}

/// The seconds east of Greenwich that `Z` or `+02:00` says.
fn zone_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|value| plain && *value <= most)
    };
    let seconds = number(hours, 24)? * 3600 + number(minutes, 60)? * 60;
    Some(if zone.starts_with('-') { -seconds } else { seconds })
}

/// A point in time as `string()` writes it.
pub(crate) fn timestamp_text(at: i128) -> String {
    match local_time(at, &TimeZone::UTC) {
        Some(local) => format!("{local}Z"),
        None => format!("{at}"),
    }
}

/// A duration as `string()` writes it: in seconds.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let seconds = (nanoseconds / SECOND) as f64 + (nanoseconds % SECOND) as f64 / SECOND as f64;
    format!("{seconds}s")
}
