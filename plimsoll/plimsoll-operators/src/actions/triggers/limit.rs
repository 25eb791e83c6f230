//! Rate limits of EventActions: how many Actions were made of late.

use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::duration;
use plimsoll_api::olm::action::{EventActionSpec, EventActionStatus, RateLimit};

/// The maximum number of Actions of a limit, as the definition has it: the status has the time of each.
const COUNT_MAX: usize = 100;

/// A rate limit, and the Actions that count for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    count: usize,
    period: String,
    /// When they were made, the first one in front.
    pub(super) times: Vec<Timestamp>,
}

impl Limit {
    /// Returns the limit of an EventAction; `None` if it has none.
    ///
    /// # Errors
    ///
    /// When its period is no duration.
    pub(super) fn of(
        spec: &EventActionSpec,
        status: &EventActionStatus,
        now: Timestamp,
    ) -> Result<Option<Self>, String> {
        let Some(RateLimit { count, period }) = &spec.rate_limit else { return Ok(None) };
        let duration =
            duration::parse(period).map_err(|why| format!("spec.rateLimit.period: {why}"))?;
        if duration.is_zero() {
            return Err(format!("spec.rateLimit.period is {period}: write for example 1h"));
        }
        let count = usize::try_from(*count).unwrap_or(COUNT_MAX).min(COUNT_MAX);
        let times = status.recent_times.iter().copied();
        let mut times: Vec<Timestamp> = times.filter(|it| counts(*it, duration, now)).collect();
        times.drain(..times.len().saturating_sub(COUNT_MAX));
        Ok(Some(Self { count, period: period.clone(), times }))
    }

    /// Returns why no further Action may be made; `None` if one may.
    pub(super) fn exceeded(&self) -> Option<String> {
        let Self { count, period, times } = self;
        (times.len() >= *count).then(|| {
            format!(
                "the limit of {count} in {period} is reached: allow more in spec.rateLimit, or request the \
                 Action by hand"
            )
        })
    }
}

/// Returns whether an Action that was made at a time counts. A time in the future is due to a wrong clock and does not.
fn counts(time: Timestamp, period: Duration, now: Timestamp) -> bool {
    time <= now && time.checked_add(period).map_or(true, |end| end > now)
}

#[cfg(test)]
mod tests {
    //! Limits, and the Actions that count.

    use super::*;
    use crate::actions::tests::at;

    /// Checks whether another Action may be made at 12:00 after those of some times.
    #[track_caller]
    fn check(count: u32, period: &str, times: &[&str], expected: Result<bool, &str>) {
        let period = period.to_owned();
        let spec = EventActionSpec {
            rate_limit: Some(RateLimit { count, period }),
            ..EventActionSpec::default()
        };
        let times = times.iter().map(|it| at(&format!("2026-01-01T{it}:00Z")));
        let status =
            EventActionStatus { recent_times: times.collect(), ..EventActionStatus::default() };
        let limit = Limit::of(&spec, &status, at("2026-01-01T12:00:00Z"));
        let found = limit.map(|it| it.is_some_and(|it| it.exceeded().is_none()));
        assert_eq!(found, expected.map_err(str::to_owned), "{status:?}");
    }

    #[test]
    fn actions_count_for_the_period() {
        check(1, "1h", &[], Ok(true));
        check(1, "1h", &["11:30"], Ok(false));
        check(1, "1h", &["11:00"], Ok(true));
        check(2, "1h", &["10:59", "11:01"], Ok(true));
        check(2, "1h30m", &["10:59", "11:01"], Ok(false));
        check(1, "1h", &["13:00"], Ok(true));
        check(1, "100000000h", &["00:00"], Ok(false));
        check(1, "0s", &["12:00"], Err("spec.rateLimit.period is 0s: write for example 1h"));
        let why = "spec.rateLimit.period: `soon` is not a duration; use units, such as 90s, 40m, 1h30m or 2d";
        check(1, "soon", &[], Err(why));
    }

    #[test]
    fn the_times_that_are_kept_are_bounded() {
        let now = at("2026-01-01T12:00:00Z");
        let (count, period) = (u32::MAX, "1h".to_owned());
        let rate_limit = Some(RateLimit { count, period });
        let spec = EventActionSpec { rate_limit, ..EventActionSpec::default() };
        let status =
            EventActionStatus { recent_times: vec![now; 1000], ..EventActionStatus::default() };
        let limit = Limit::of(&spec, &status, now).unwrap().unwrap();
        assert_eq!((limit.times.len(), limit.exceeded().is_some()), (COUNT_MAX, true));
    }
}
