//! Timestamps and durations.
//!
//! Upstream: github.com/google/cel-go/common/types/timestamp.go: timestampGetFullYear
//! Upstream: github.com/google/cel-go/common/types/timestamp.go: timeZone
//! Upstream: github.com/google/cel-go/common/types/duration.go: DurationGetHours
use jiff::tz::{Offset, TimeZone};

use super::{EvaluationResult, failed};
use crate::value::time::{SECOND, in_range, local_time};
use crate::{EvaluationError, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match arguments {
        [Value::Duration(nanoseconds)] => {
            let unit = match function {
                "getHours" => 3600 * SECOND,
                "getMinutes" => 60 * SECOND,
                "getSeconds" => SECOND,
                "getMilliseconds" => SECOND / 1000,
                _ => return None,
            };
            Some(Ok(Value::Int(nanoseconds / unit)))
        }
        [Value::Timestamp(at)] => part(function, *at, &TimeZone::UTC),
        [Value::Timestamp(at), Value::String(zone)] => match time_zone(zone) {
            Ok(zone) => part(function, *at, &zone),
            Err(message) => failed(message),
        },
        _ => None,
    }
}

fn part(function: &str, at: i128, zone: &TimeZone) -> Option<EvaluationResult> {
    let local = local_time(at, zone)?;
    let value = match function {
        "getFullYear" => i64::from(local.year()),
        "getMonth" => i64::from(local.month()) - 1,
        "getDayOfYear" => i64::from(local.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(local.day()) - 1,
        "getDate" => i64::from(local.day()),
        "getDayOfWeek" => i64::from(local.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(local.hour()),
        "getMinutes" => i64::from(local.minute()),
        "getSeconds" => i64::from(local.second()),
        "getMilliseconds" => i64::from(local.subsec_nanosecond()) / 1_000_000,
        _ => return None,
    };
    Some(Ok(Value::Int(value)))
}

/// `UTC`, `+02:00`, or the name of a zone.
fn time_zone(text: &str) -> Result<TimeZone, String> {
    let number = |part: &str| {
        part.parse::<i32>().map_err(|_| format!("strconv.Atoi: parsing {part:?}: invalid syntax"))
    };
    let Some((hours, minutes)) = text.split_once(':') else {
        if matches!(text, "" | "UTC") {
            return Ok(TimeZone::UTC);
        }
        return TimeZone::get(text).map_err(|_| format!("unknown time zone {text}"));
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if !(0..=59).contains(&minutes) {
        return Err(format!("timezone offset minutes out of range [0, 59]: {text}"));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let seconds = hours.saturating_mul(3600).saturating_add(sign * minutes * 60);
    Offset::from_seconds(seconds)
        .map(Offset::to_time_zone)
        .map_err(|_| format!("timezone offset out of range: {text}"))
}

/// The point in time so many nanoseconds later.
pub(super) fn shift(at: i128, nanoseconds: i128) -> EvaluationResult {
    let shifted = at.checked_add(nanoseconds).filter(|at| in_range(*at));
    shifted.map(Value::Timestamp).ok_or_else(|| EvaluationError::new("timestamp overflow"))
}
