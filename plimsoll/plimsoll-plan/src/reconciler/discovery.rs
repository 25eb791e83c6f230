//! When to ask the API server again whether it serves a group version.
//!
//! The API server does not announce that it serves a new kind. A watch shows when the definition
//! that brings the kind is established, so the group version is polled soon after each such change;
//! otherwise it is polled with exponential backoff, in case an extension API server brings the
//! kind. One request is in flight at a time, for the group version that is due the longest, so that
//! a server busy establishing kinds is not loaded further.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Uptime;

/// Delay after a definition of the group changed: the server needs a moment to serve the kind, and
/// a payload's definitions come by the dozen.
pub const DELAY_MIN: Duration = Duration::from_millis(20);
/// Longest delay between two requests for the same group version.
pub const DELAY_MAX: Duration = Duration::from_secs(10);

/// An API group, empty for the core group, and one of its versions.
pub type GroupVersion = (String, String);

/// When a group version is polled next.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    at: Uptime,
    /// The delay after the next answer; doubles with each.
    delay: Duration,
}

/// The group versions that some step of the plan waits for.
#[derive(Debug, Clone, Default)]
pub struct DiscoveryPoller {
    waiting: BTreeMap<GroupVersion, Schedule>,
    /// The group version of the request in flight, whether a step still waits for it or not.
    in_flight: Option<GroupVersion>,
}

impl DiscoveryPoller {
    /// Replaces the set of group versions that steps wait for; the schedule of those that stay is
    /// kept.
    pub fn want(&mut self, wanted: &BTreeSet<GroupVersion>, now: Uptime) {
        self.waiting.retain(|version, _| wanted.contains(version));
        for version in wanted {
            self.waiting
                .entry(version.clone())
                .or_insert_with(|| Schedule { at: now + DELAY_MIN, delay: DELAY_MIN * 2 });
        }
    }

    /// A definition of this group changed: its versions are polled soon, and the backoff starts
    /// again.
    pub fn definition_changed(&mut self, group: &str, now: Uptime) {
        for (_, schedule) in self.waiting.iter_mut().filter(|((of, _), _)| of == group) {
            schedule.at = schedule.at.min(now + DELAY_MIN);
            schedule.delay = DELAY_MIN * 2;
        }
    }

    /// The group version to ask for now, which is in flight from then on; `None` when none is due
    /// or another one is in flight.
    pub fn next_request(&mut self, now: Uptime) -> Option<GroupVersion> {
        let (version, _) = self.next().filter(|(_, schedule)| schedule.at <= now)?;
        self.in_flight = Some(version.clone());
        self.in_flight.clone()
    }

    /// The request in flight was answered, failed or timed out.
    pub fn answered(&mut self, version: &GroupVersion, now: Uptime) {
        self.in_flight = None;
        if let Some(schedule) = self.waiting.get_mut(version) {
            schedule.at = now + schedule.delay;
            schedule.delay = (schedule.delay * 2).min(DELAY_MAX);
        }
    }

    /// When to call [`Self::next_request`]; `None` when nothing is waited for or a request is in
    /// flight.
    pub fn wake_at(&self) -> Option<Uptime> {
        self.next().map(|(_, schedule)| schedule.at)
    }

    fn next(&self) -> Option<(&GroupVersion, &Schedule)> {
        let waiting = self.waiting.iter().filter(|_| self.in_flight.is_none());
        waiting.min_by_key(|(_, schedule)| schedule.at)
    }
}

#[cfg(test)]
mod tests;
