//! Catalogs: when they are read, and their statuses.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_api::olm::{CatalogAvailability, CatalogSource, CatalogSpec, CatalogStatus};
use plimsoll_api::{ConditionStatus, Reason};
use plimsoll_plan::reconciler::Uptime;
use serde::Deserialize;
use serde_json::Value;

use super::OperatorReconciler;
use super::events::{CatalogContent, Moment, OperatorEffect, OperatorKind};
use super::parse::{self, InvalidSpec};
use super::track::STATUS_RETRY;
use crate::conditions::{ConditionDraft, INVALID, capitalized, condition};

/// The interval between checks of a catalog without `spec.pollInterval`.
const POLL_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest interval between checks: without a pause, they would take all of a processor.
const POLL_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The maximum delay before a catalog that could not be read is read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The state of a Catalog.
#[derive(Debug, Clone, Default)]
pub(super) struct TrackedCatalog {
    uid: String,
    resource_version: String,
    generation: i64,
    /// The requested spec; the last valid one while `invalid` is set.
    spec: CatalogSpec,
    /// Whether a spec could be read, now or before.
    is_spec_known: bool,
    /// The poll interval; `None` if the spec does not set it.
    interval: Option<Duration>,
    /// The reason that the spec cannot be read; `None` if it can.
    invalid: Option<InvalidSpec>,
    reported: CatalogStatus,
    /// The content that was read last; `None` before the first success.
    content: Option<CatalogContent>,
    /// The time at which the content was read; `None` before the first success.
    read: Option<jiff::Timestamp>,
    /// The digest of what the process before read of this source; empty if it read nothing.
    last: String,
    /// The reason that the last read failed; `None` if it succeeded.
    failure: Option<String>,
    is_reading: bool,
    /// The ticket of the read that was requested last of this source; 0 before the first.
    ticket: u64,
    was_read: bool,
    next: Option<Uptime>,
    is_status_write_pending: bool,
    is_report_due: bool,
    /// The time at which a failed write of the status is retried; `None` if none failed.
    status_at: Option<Uptime>,
}

impl TrackedCatalog {
    /// Returns whether a first read was attempted, or the catalog is not to be read.
    pub(super) fn was_read(&self) -> bool {
        self.was_read || self.spec.availability == CatalogAvailability::Unavailable
    }

    /// Returns the source of the content.
    pub(super) fn source(&self) -> &CatalogSource {
        &self.spec.source
    }

    pub(super) fn is_served(&self) -> bool {
        self.content.is_some() && self.spec.availability == CatalogAvailability::Available
    }

    pub(super) fn weight(&self) -> i64 {
        self.spec.weight
    }

    pub(super) fn wake_at(&self) -> Option<Uptime> {
        let status = self.status_at.filter(|_| !self.is_status_write_pending);
        [self.next.filter(|_| !self.is_reading), status].into_iter().flatten().min()
    }

    fn interval(&self) -> Duration {
        let interval = self.interval.unwrap_or(POLL_INTERVAL).max(POLL_INTERVAL_MIN);
        match self.failure {
            Some(_) => interval.min(RETRY_INTERVAL),
            None => interval,
        }
    }

    /// Returns the reason that it is not served; `None` if it is.
    fn unavailable(&self) -> Option<String> {
        if let Some(invalid) = self.invalid.as_ref().filter(|_| !self.is_served()) {
            return Some(format!("its spec cannot be read: {invalid}"));
        }
        if self.spec.availability == CatalogAvailability::Unavailable {
            return Some("its spec.availability is Unavailable".to_owned());
        }
        match (&self.content, &self.failure) {
            (Some(_), _) => None,
            (None, Some(failure)) => Some(failure.clone()),
            (None, None) => Some("it is being read".to_owned()),
        }
    }

    fn status(&self, moment: Moment) -> CatalogStatus {
        let content = self.content.clone().unwrap_or_default();
        let serving = match self.unavailable() {
            None => {
                let counts = format!(
                    "{} packages and {} bundles are served",
                    content.packages, content.bundles
                );
                (ConditionStatus::True, Reason::AsExpected, counts)
            }
            Some(why) => (ConditionStatus::False, Reason::CatalogUnavailable, capitalized(&why)),
        };
        let is_read = self.content.is_some();
        let mut progressing = match &self.failure {
            _ if self.is_reading && !is_read => being_read(),
            Some(failure) => {
                let kept = if self.is_served() { "; what was read last is served" } else { "" };
                let message = format!("The content cannot be read: {failure}{kept}");
                (ConditionStatus::False, Reason::CatalogUnavailable, message)
            }
            None if is_read => {
                (ConditionStatus::False, Reason::AsExpected, "The content was read".to_owned())
            }
            None if !self.is_spec_known && self.invalid.is_some() => {
                let message = "The content is not read: the spec cannot be read".to_owned();
                (ConditionStatus::False, Reason::InvalidSpec, message)
            }
            None if self.spec.availability == CatalogAvailability::Unavailable => {
                let message = "The content is not read: spec.availability is Unavailable";
                (ConditionStatus::False, Reason::CatalogUnavailable, message.to_owned())
            }
            None => being_read(),
        };
        if self.interval.is_some_and(|it| it < POLL_INTERVAL_MIN) {
            progressing.2.push_str("; spec.pollInterval is less than 1s, and counts as 1s");
        }
        let condition = |type_, (status, reason, message): (_, _, _)| {
            let reported = ConditionDraft { type_, status, reason, message };
            condition(reported, &self.reported.conditions, self.generation, moment.time)
        };
        let otherwise = (!self.is_spec_known).then_some("it is not read until this is corrected");
        CatalogStatus {
            observed_generation: self.generation,
            conditions: [("Serving", serving), ("Progressing", progressing)]
                .into_iter()
                .chain(self.invalid.as_ref().map(|it| (INVALID, it.reported(otherwise))))
                .map(|(type_, reported)| condition(type_, reported))
                .collect(),
            digest: if is_read { content.digest } else { self.last.clone() },
            last_read_time: self.read,
            packages: content.packages,
            bundles: content.bundles,
            defects: content.defects,
        }
    }
}

/// Returns `Progressing` before the first content is read.
fn being_read() -> (ConditionStatus, Reason, String) {
    (ConditionStatus::True, Reason::RollingOut, "The content is being read".to_owned())
}

/// Returns the catalogs that are not served, with the reason.
pub(super) fn unavailable(catalogs: &BTreeMap<String, TrackedCatalog>) -> BTreeMap<String, String> {
    let named = catalogs.iter().filter_map(|(name, it)| Some((name.clone(), it.unavailable()?)));
    named.collect()
}

impl OperatorReconciler {
    /// Handles a Catalog that a watch showed; `None` if it was deleted.
    pub(super) fn catalog_changed(&mut self, name: &str, object: Option<&Value>, moment: Moment) {
        let Some(value) = object else {
            self.catalogs.remove(name);
            self.output.undecided.extend(self.operators.keys().cloned());
            return;
        };
        let metadata = &value["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let parsed = parse::catalog(value);
        let uid = text("uid");
        if self.catalogs.get(name).is_some_and(|known| known.uid != uid) {
            self.catalogs.remove(name);
        }
        let is_new = !self.catalogs.contains_key(name);
        let catalog = self.catalogs.entry(name.to_owned()).or_default();
        catalog.uid = uid;
        catalog.resource_version = text("resourceVersion");
        catalog.generation = metadata["generation"].as_i64().unwrap_or_default();
        catalog.reported = Deserialize::deserialize(&value["status"]).unwrap_or_default();
        catalog.is_report_due = true;
        let (spec, interval) = match parsed {
            Ok(parsed) => {
                (catalog.invalid, catalog.is_spec_known) = (None, true);
                parsed
            }
            Err(invalid) => {
                catalog.invalid = Some(invalid);
                let unknown = CatalogSpec {
                    availability: CatalogAvailability::Unavailable,
                    ..CatalogSpec::default()
                };
                (if is_new { unknown } else { catalog.spec.clone() }, catalog.interval)
            }
        };
        let is_moved = is_new || catalog.spec.source != spec.source;
        let is_ranked_otherwise =
            catalog.spec.weight != spec.weight || catalog.spec.availability != spec.availability;
        let is_polled_otherwise = catalog.interval != interval
            || (catalog.spec.availability != spec.availability
                && spec.availability == CatalogAvailability::Available);
        (catalog.spec, catalog.interval) = (spec, interval);
        if is_moved {
            // The content is that of another source, and so is what is being read.
            (catalog.is_reading, catalog.ticket) = (false, 0);
            catalog.content = None;
            catalog.failure = None;
            catalog.was_read = false;
            catalog.last = String::new();
        }
        if is_new && catalog.reported.observed_generation == catalog.generation {
            catalog.last.clone_from(&catalog.reported.digest);
            catalog.read = catalog.reported.last_read_time;
        }
        if is_moved || is_polled_otherwise {
            catalog.next = Some(moment.uptime);
        }
        if is_moved || is_ranked_otherwise {
            self.output.undecided.extend(self.operators.keys().cloned());
        }
    }

    /// Returns whether the answer to a request to read a catalog is still expected. It is not if the catalog
    /// was created again since, or has another source.
    pub fn is_catalog_expected(&self, name: &str, ticket: u64) -> bool {
        self.catalogs.get(name).is_some_and(|it| it.ticket == ticket)
    }

    /// Returns the digest of what the process before read of a catalog, as long as this one has read nothing of
    /// it.
    pub fn last_catalog_digest(&self, name: &str) -> Option<&str> {
        let catalog = self.catalogs.get(name).filter(|it| it.content.is_none())?;
        Some(&*catalog.last).filter(|it| !it.is_empty())
    }

    /// Records what the process before read of a catalog, which is served until its source is read.
    pub fn restore_catalog(&mut self, name: &str, content: CatalogContent) {
        if let Some(catalog) = self.catalogs.get_mut(name) {
            catalog.content = Some(content);
            self.output.undecided.extend(self.operators.keys().cloned());
        }
    }

    /// Records the content of a catalog, or the reason that it could not be read.
    pub(super) fn catalog_read(
        &mut self,
        name: &str,
        ticket: u64,
        content: Result<Option<CatalogContent>, String>,
        moment: Moment,
    ) {
        let is_expected = self.is_catalog_expected(name, ticket);
        let Some(catalog) = self.catalogs.get_mut(name).filter(|_| is_expected) else { return };
        let was_served = catalog.is_served();
        let was_read = std::mem::replace(&mut catalog.was_read, true);
        catalog.is_reading = false;
        match content {
            Ok(content) => {
                catalog.failure = None;
                if let Some(mut content) = content {
                    let unchanged = std::mem::take(&mut content.unchanged);
                    catalog.content = Some(content);
                    catalog.read = Some(moment.time);
                    let changed = self.operators.keys().filter(|it| !unchanged.contains(*it));
                    self.output.undecided.extend(changed.cloned());
                }
            }
            Err(failure) => catalog.failure = Some(failure),
        }
        catalog.next = Some(moment.uptime + catalog.interval());
        catalog.is_report_due = true;
        if catalog.is_served() != was_served || !was_read {
            self.output.undecided.extend(self.operators.keys().cloned());
        }
    }

    /// Requests reads of the catalogs whose poll interval is over.
    pub(super) fn read_catalogs(&mut self, moment: Moment) {
        for (name, catalog) in &mut self.catalogs {
            let is_due = catalog.next.is_some_and(|at| at <= moment.uptime);
            let is_available = catalog.spec.availability == CatalogAvailability::Available;
            if is_due && is_available && !catalog.is_reading {
                catalog.is_reading = true;
                catalog.ticket = self.output.ticket();
                let (name, ticket) = (name.clone(), catalog.ticket);
                let source: CatalogSource = catalog.spec.source.clone();
                self.output.effects.push(OperatorEffect::ReadCatalog { name, ticket, source });
            } else if is_due {
                catalog.next = None;
            }
        }
    }

    /// Returns whether the content of a catalog is known. A catalog that was created again, or has another
    /// source, must be read even if the content is the same.
    pub fn is_catalog_known(&self, name: &str) -> bool {
        self.catalogs.get(name).is_some_and(|it| it.content.is_some())
    }

    /// Writes the statuses of catalogs that changed.
    pub(super) fn report_catalogs(&mut self, moment: Moment) {
        for (name, catalog) in &mut self.catalogs {
            let is_due = catalog.status_at.is_some_and(|at| at <= moment.uptime);
            if !(catalog.is_report_due || is_due) || catalog.is_status_write_pending {
                continue;
            }
            (catalog.is_report_due, catalog.status_at) = (false, None);
            let status = catalog.status(moment);
            if status == catalog.reported {
                continue;
            }
            catalog.is_status_write_pending = true;
            self.output.effects.push(OperatorEffect::WriteStatus {
                kind: OperatorKind::Catalog,
                name: name.clone(),
                status: serde_json::to_value(&status).unwrap_or_default(),
                resource_version: catalog.resource_version.clone(),
            });
        }
    }

    /// Handles the result of writing the status of a catalog.
    pub(super) fn catalog_status_written(&mut self, name: &str, is_written: bool, moment: Moment) {
        if let Some(catalog) = self.catalogs.get_mut(name) {
            catalog.is_status_write_pending = false;
            if !is_written {
                catalog.status_at = Some(moment.uptime + STATUS_RETRY);
            }
        }
    }
}

#[cfg(test)]
mod tests;
