//! Schedules in cron format with a time zone, and maintenance windows.

use std::str::FromStr as _;

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_api::duration;
use plimsoll_api::olm::action::MaintenanceWindow;

/// The maximum number of times of a schedule that are searched for the latest one that is due.
const MISSED_MAX: usize = 10_000;

/// A schedule in cron format with a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

impl Schedule {
    /// Parses a schedule; an empty time zone means UTC.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as a sentence without a full stop.
    pub fn parse(schedule: &str, time_zone: &str) -> Result<Self, String> {
        if schedule.contains("TZ=") {
            return Err(format!("`{schedule}` names a time zone: write it to timeZone"));
        }
        let cron = Cron::from_str(schedule)
            .map_err(|error| format!("`{schedule}` is no schedule: {error}"))?;
        let zone = match time_zone {
            "" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| {
                format!("`{name}` is no time zone; write one such as Europe/Madrid")
            })?,
        };
        Ok(Self { cron, zone })
    }

    /// Returns the first time after a moment; `None` if there is none.
    pub fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let from = moment.to_zoned(self.zone.clone());
        self.cron.find_next_occurrence(&from, false).ok().map(|it| it.timestamp())
    }

    /// Returns the latest time that is after `after` and not after `until`; `None` if there is none.
    pub fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let first = self.after(after).filter(|it| *it <= until)?;
        let from = until.to_zoned(self.zone.clone());
        let latest = self.cron.find_previous_occurrence(&from, true).ok();
        latest.map(|it| it.timestamp()).filter(|it| *it >= first).or_else(|| {
            // The backward search can fail where a time of day occurs twice: search forwards.
            let mut latest = first;
            for _ in 0..MISSED_MAX {
                match self.after(latest).filter(|it| *it <= until) {
                    Some(next) => latest = next,
                    None => break,
                }
            }
            Some(latest)
        })
    }
}

/// Returns whether a maintenance window is open: `Ok` if it is; `Err` with the time at which it opens if not,
/// or `None` if it never does.
///
/// # Errors
///
/// What is wrong with the window, as a sentence without a full stop.
pub fn is_open(
    window: &MaintenanceWindow,
    now: Timestamp,
) -> Result<Result<(), Option<Timestamp>>, String> {
    let schedule = Schedule::parse(&window.schedule, &window.time_zone)?;
    let lasts = duration::parse(&window.duration)?;
    if lasts.is_zero() {
        return Err(format!("the duration `{}` is empty", window.duration));
    }
    let since = now.saturating_sub(lasts).unwrap_or(Timestamp::MIN);
    Ok(match schedule.latest(since, now) {
        Some(_) => Ok(()),
        None => Err(schedule.after(now)),
    })
}

#[cfg(test)]
mod tests;
