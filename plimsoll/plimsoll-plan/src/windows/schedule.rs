//! Schedules in cron format with a time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// The fields of a schedule, which are those of a CronJob.
const FIELDS: [&str; 5] = ["minute", "hour", "day of the month", "month", "day of the week"];

/// A schedule in cron format with a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    /// Whether its hours are all hours: then those that pass count, and not those of the clock.
    is_of_all_hours: bool,
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
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
        let cron = parser.build().parse(schedule).map_err(|error| {
            let has_all_fields = schedule.split_whitespace().count() == FIELDS.len();
            let why = || format!("write {}, such as 50 16 * * 5", FIELDS.join(", "));
            let why = if has_all_fields { error.to_string() } else { why() };
            format!("`{schedule}` is no schedule: {why}")
        })?;
        let zone = match time_zone {
            "" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| {
                format!("`{name}` is no time zone; write one such as Europe/Madrid")
            })?,
        };
        let is_of_all_hours = schedule.eq_ignore_ascii_case("@hourly")
            || schedule.split_whitespace().nth(1) == Some("*");
        let parsed = Self { cron, zone, is_of_all_hours };
        match parsed.after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(parsed),
            None => Err(format!("`{schedule}` is never: there is no such day")),
        }
    }

    /// Returns the first time after a moment; `None` if there is none.
    pub fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let local = moment.to_zoned(self.zone.clone());
        if self.is_of_all_hours {
            let next = self.cron.find_next_occurrence(&local, false).ok()?;
            return Some(next.timestamp());
        }
        // What the clock shows is searched as if it were never changed.
        let mut shown = local.datetime();
        loop {
            let from = shown.to_zoned(TimeZone::UTC).ok()?;
            shown = self.cron.find_next_occurrence(&from, false).ok()?.datetime();
            // A clock that was set back shows it again: that was before.
            let time = self.first_shown(shown)?;
            if time > moment {
                return Some(time);
            }
        }
    }

    /// Returns when a clock of the time zone first shows a time, or one after it if it never does.
    fn first_shown(&self, shown: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
            AmbiguousOffset::Gap { before, .. } => {
                let second = SignedDuration::from_secs(1);
                let passed = before.to_timestamp(shown).ok()?.checked_add(second).ok()?;
                Some(self.zone.preceding(passed).next()?.timestamp())
            }
        }
    }

    /// Returns the latest time that is after `after` and not after `until`; `None` if there is none.
    pub fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let due = |moment| self.after(moment).filter(|it| *it <= until);
        let mut latest = due(after)?;
        // None is due after `end`, nor after any later moment.
        let mut end = until.as_second();
        while latest.as_second() < end {
            let middle = latest.as_second() + (end - latest.as_second()) / 2;
            match Timestamp::from_second(middle).ok().and_then(due) {
                Some(later) => latest = later,
                None => end = middle,
            }
        }
        Some(latest)
    }
}

#[cfg(test)]
mod tests;
