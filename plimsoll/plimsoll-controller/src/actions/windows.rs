//! The MaintenanceWindows of a cluster: when each is open, and what its status says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::olm::action::ActionPreconditions;
use plimsoll_api::olm::window::{MaintenanceWindowSpec, MaintenanceWindowStatus};
use plimsoll_api::{ConditionStatus, MAINTENANCE_WINDOW, Reason};
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::conditions::{ConditionDraft, condition};
use plimsoll_plan::windows::{MaintenanceWindows, WindowState};
use serde::Deserialize as _;
use serde_json::Value;

use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;

/// The type of the condition of a MaintenanceWindow that tells whether it can be read.
const ACCEPTED: &str = "Accepted";

/// The states of all MaintenanceWindows.
#[derive(Debug, Default)]
pub(super) struct WindowStates {
    objects: BTreeMap<String, WindowObject>,
    windows: MaintenanceWindows,
}

/// A MaintenanceWindow as it was observed last.
#[derive(Debug)]
struct WindowObject {
    revision: String,
    generation: i64,
    /// `None` if it has none, or one that cannot be read.
    status: Option<MaintenanceWindowStatus>,
}

/// A status to write.
#[derive(Debug)]
pub(super) struct ChangedWindow {
    pub(super) name: String,
    pub(super) revision: String,
    pub(super) status: MaintenanceWindowStatus,
}

/// The statuses of all MaintenanceWindows at a moment.
#[derive(Debug, Default)]
pub(super) struct WindowReview {
    /// The statuses that are not what they should be.
    pub(super) changed: Vec<ChangedWindow>,
    /// When the next one changes; `None` if none does.
    pub(super) changes_at: Option<Timestamp>,
}

impl WindowStates {
    /// Returns the windows that can be read.
    pub(super) fn windows(&self) -> &MaintenanceWindows {
        &self.windows
    }

    /// Records the current state of a MaintenanceWindow; `object` is `None` if it was deleted.
    pub(super) fn observe(&mut self, name: &str, object: Option<&Value>) {
        let Some(object) = object else {
            self.objects.remove(name);
            return self.windows.remove(name);
        };
        let metadata = &object["metadata"];
        let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
        let number = |revision: &str| revision.parse::<u64>().unwrap_or_default();
        let known = self.objects.get(name);
        if known.is_some_and(|it| number(revision) < number(&it.revision)) {
            // The watch shows later what was written.
            return;
        }
        add(&mut self.windows, name, object);
        let observed = WindowObject {
            revision: revision.to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            status: MaintenanceWindowStatus::deserialize(&object["status"]).ok(),
        };
        self.objects.insert(name.to_owned(), observed);
    }

    /// Returns what the statuses should be at a moment.
    pub(super) fn review(&self, now: Timestamp) -> WindowReview {
        let mut review = WindowReview::default();
        for (name, object) in &self.objects {
            let Some(times) = self.windows.find(name) else { continue };
            let verdict = times.map(|it| it.state(now));
            let changes_at = verdict.ok().and_then(|it| it.changes_at);
            review.changes_at = review.changes_at.into_iter().chain(changes_at).min();
            let status = object.reported(verdict, now);
            if object.status.as_ref() != Some(&status) {
                let (name, revision) = (name.clone(), object.revision.clone());
                review.changed.push(ChangedWindow { name, revision, status });
            }
        }
        review
    }
}

impl WindowObject {
    /// Returns the status of a MaintenanceWindow with a state, or with what is wrong with it.
    fn reported(
        &self,
        verdict: Result<WindowState, &str>,
        now: Timestamp,
    ) -> MaintenanceWindowStatus {
        let (status, reason, message) = match verdict {
            Ok(_) => (ConditionStatus::True, Reason::Accepted, "it can be read".to_owned()),
            Err(why) => (ConditionStatus::False, Reason::InvalidMaintenanceWindow, why.to_owned()),
        };
        let before = self.status.as_ref().map_or(&[][..], |it| &it.conditions);
        let draft = ConditionDraft { type_: ACCEPTED, status, reason, message };
        let WindowState { is_open, next_opening, next_closing, .. } = verdict.unwrap_or_default();
        MaintenanceWindowStatus {
            open: is_open,
            next_opening,
            next_closing,
            conditions: vec![condition(draft, before, self.generation, now)],
        }
    }
}

/// Adds a MaintenanceWindow, which may be one that cannot be read.
fn add(windows: &mut MaintenanceWindows, name: &str, object: &Value) {
    let spec = MaintenanceWindowSpec::deserialize(&object["spec"]);
    let spec = spec.map_err(|error| format!("spec: {error}"));
    windows.insert(name, spec.as_ref().map_err(String::clone));
}

/// Reads the MaintenanceWindows that an Action or a policy may name.
///
/// They are listed for each decision about one: a failure is final, and a watch may deliver a
/// MaintenanceWindow later than an Action that was created after it.
///
/// # Errors
///
/// When the API server does not answer.
pub(super) async fn read(
    client: &Client,
    action: &ActionObject,
    policies: &[NamedPolicy],
) -> Result<MaintenanceWindows, kube::Error> {
    let mut windows = MaintenanceWindows::default();
    if !are_named(action, policies) {
        return Ok(windows);
    }
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(MAINTENANCE_WINDOW));
    for object in api.list(&ListParams::default()).await?.items {
        let object = object.into_value();
        add(&mut windows, object["metadata"]["name"].as_str().unwrap_or_default(), &object);
    }
    Ok(windows)
}

/// Returns whether an Action or a policy names a MaintenanceWindow.
fn are_named(action: &ActionObject, policies: &[NamedPolicy]) -> bool {
    let rules = policies.iter().flat_map(|it| {
        let modes = [&it.spec.enforce, &it.spec.warn, &it.spec.audit];
        modes.into_iter().flatten().map(|rules| &rules.preconditions)
    });
    rules.chain([&action.spec.preconditions]).any(names_window)
}

/// Returns whether preconditions name a MaintenanceWindow.
fn names_window(preconditions: &ActionPreconditions) -> bool {
    preconditions.within_maintenance_window.as_ref().is_some_and(|it| !it.name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn window(revision: &str, windows: &Value, status: &Value) -> Value {
        json!({
            "metadata": { "name": "nights", "resourceVersion": revision, "generation": 2 },
            "spec": { "windows": windows },
            "status": status,
        })
    }

    #[test]
    fn the_status_is_written_once_for_each_change() {
        let mut states = WindowStates::default();
        let nights = json!([{ "schedule": "0 22 * * *", "duration": "4h" }]);
        let often = json!([{ "schedule": "often", "duration": "4h" }]);
        let mut status = Value::Null;
        let (evening, morning) = ("2026-01-01T22:00:00Z", "2026-01-02T02:00:00Z");
        let next_evening = "2026-01-02T22:00:00Z";
        for (number, (windows, now, changes_at, open, reason)) in [
            (&nights, "2026-01-01T12:00:00Z", evening, false, "Accepted"),
            (&nights, evening, morning, true, "Accepted"),
            (&nights, morning, next_evening, false, "Accepted"),
            (&often, morning, "", false, "InvalidMaintenanceWindow"),
            (&json!(1), morning, "", false, "InvalidMaintenanceWindow"),
        ]
        .into_iter()
        .enumerate()
        {
            let revision = (10 + number * 2).to_string();
            states.observe("nights", Some(&window(&revision, windows, &status)));
            let now = now.parse().expect("a time");
            let review = states.review(now);
            assert_eq!(review.changes_at, changes_at.parse().ok(), "{windows} {now}");
            assert_eq!(review.changed.len(), 1, "{windows} {now}");
            assert_eq!(review.changed[0].revision, revision);
            status = json!(review.changed[0].status);
            assert_eq!(status["open"], open, "{windows} {now}");
            assert_eq!(status["conditions"][0]["reason"], reason, "{windows} {now}");
            assert_eq!(status["conditions"][0]["observedGeneration"], 2);
            let next = (11 + number * 2).to_string();
            states.observe("nights", Some(&window(&next, windows, &status)));
            assert!(states.review(now).changed.is_empty(), "{windows} {now}");
            // What the watch shows later is older.
            states.observe("nights", Some(&window(&revision, windows, &Value::Null)));
            assert!(states.review(now).changed.is_empty(), "{windows} {now}");
        }
        assert!(states.windows().find("nights").is_some_and(|it| it.is_err()));
        states.observe("nights", None);
        assert!(states.windows().find("nights").is_none());
        assert!(states.review(Timestamp::UNIX_EPOCH).changed.is_empty());
    }
}
