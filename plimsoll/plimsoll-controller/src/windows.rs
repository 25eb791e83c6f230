//! The controller of MaintenanceWindows, which installs their definition and writes their statuses.
//!
//! It runs beside the controllers of releases and of Actions, which both name MaintenanceWindows, under a Lease of
//! its own: each status has one writer, whichever of the two run.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::olm::window::MaintenanceWindowStatus;
use plimsoll_api::{ConditionStatus, MAINTENANCE_WINDOW, NamespacedName, Reason, crd};
use plimsoll_operators::conditions::{ConditionDraft, condition};
use plimsoll_plan::windows::{MaintenanceWindows, WindowState};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::{self, retry_until_ok};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::lease::{self, Leadership, WINDOWS_LEASE_NAME};
use crate::listing_watch::{ListingWatch, WatchedObject as _};
use crate::reinstall::{self, Installed};
use crate::relay::Relay;
use crate::resources::{self, api_resource};
use crate::write::{Writer, chain};

/// The number of observations that can be queued.
const OBSERVATIONS_QUEUED: usize = 64;
/// The delay before a status that could not be written is written again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The delay after which the time of day is looked at again at the latest: the clock may be set.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// The type of the condition of a MaintenanceWindow that tells whether it can be read.
const ACCEPTED: &str = "Accepted";

/// The controller of MaintenanceWindows.
pub struct WindowController {
    /// The client of the cluster.
    pub client: Client,
    /// The clock that gives the time of day.
    pub clock: SharedClock,
    /// Who may write.
    pub leadership: Leadership,
}

/// The current state of a MaintenanceWindow, `None` if it was deleted; or the end of a list.
enum Observation {
    Window(NamespacedName, Option<Box<Value>>),
    Listed,
}

/// The states of all MaintenanceWindows.
#[derive(Debug, Default)]
struct WindowStates {
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
struct ChangedWindow {
    name: String,
    revision: String,
    status: MaintenanceWindowStatus,
}

/// The statuses of all MaintenanceWindows at a moment.
#[derive(Debug, Default)]
struct WindowReview {
    /// The statuses that are not what they should be.
    changed: Vec<ChangedWindow>,
    /// When the next one changes; `None` if none does.
    changes_at: Option<Timestamp>,
}

impl WindowStates {
    /// Handles what the watch delivers.
    fn observed(&mut self, observation: Observation) {
        match observation {
            Observation::Window(id, object) => self.observe(&id.name, object.as_deref()),
            Observation::Listed => {}
        }
    }

    /// Writes a status; returns whether nothing is left to do until the watch delivers something.
    async fn write(&mut self, writer: &Writer, change: ChangedWindow) -> bool {
        let ChangedWindow { name, revision, status } = change;
        let resource = api_resource(MAINTENANCE_WINDOW);
        match writer.write_status_in("", &resource, &name, &json!(status), &revision).await {
            Ok(written) => {
                self.observe(&name, Some(&written.into_value()));
                true
            }
            // The watch delivers the change.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(error, name, "a status could not be written; trying again");
                false
            }
        }
    }

    /// Records the current state of a MaintenanceWindow; `object` is `None` if it was deleted.
    fn observe(&mut self, name: &str, object: Option<&Value>) {
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
        self.windows.insert_object(name, object);
        let observed = WindowObject {
            revision: revision.to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            status: MaintenanceWindowStatus::deserialize(&object["status"]).ok(),
        };
        self.objects.insert(name.to_owned(), observed);
    }

    /// Returns what the statuses should be at a moment.
    fn review(&self, now: Timestamp) -> WindowReview {
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

impl WindowController {
    /// Runs the controller until it is stopped.
    ///
    /// # Errors
    ///
    /// When the API server rejects the definition, or when the Lease is lost.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let Self { client, clock, leadership } = self;
        let work =
            |client: Client, leading: CancellationToken| lead(client, clock.clone(), leading);
        lease::leading(client, clock.clone(), WINDOWS_LEASE_NAME, &leadership, &stop, work).await
    }
}

/// Runs the controller as the leader. It begins again when the storage of the API server was restored to an earlier
/// state.
async fn lead(client: Client, clock: SharedClock, stop: CancellationToken) -> Result<(), Error> {
    let writer = Writer::new(client.clone());
    let definitions = [crd::maintenance_windows()];
    while !stop.is_cancelled() {
        let round = stop.child_token();
        let install = || {
            let kinds = &[MAINTENANCE_WINDOW];
            bootstrap::install_definitions(&client, &writer, &definitions, kinds, &round)
        };
        retry_until_ok(&round, install).await?;
        let reinstall = || async {
            bootstrap::apply_definitions(&client, &writer, &definitions).await.map(drop)
        };
        let installed = vec![Installed::new(resources::definitions(), &definitions)];
        let kept = reinstall::keep(&client, installed, reinstall, &round);
        tokio::join!(write_statuses(&client, &writer, &clock, &round), kept);
    }
    Ok(())
}

/// Writes the statuses that are not what they should be, whenever a MaintenanceWindow changes, opens or closes.
async fn write_statuses(
    client: &Client,
    writer: &Writer,
    clock: &SharedClock,
    stop: &CancellationToken,
) {
    let (sender, mut observations) = mpsc::channel(OBSERVATIONS_QUEUED);
    let relay = Relay { sender, restored: stop.clone() };
    let mut watches = JoinSet::new();
    watches.spawn(watch(client.clone(), relay));
    let mut states = WindowStates::default();
    let mut delay = CLOCK_INTERVAL;
    loop {
        tokio::select! {
            // Branches are polled in order, so that simulations are repeatable.
            biased;
            () = stop.cancelled() => return,
            Some(observation) = observations.recv() => states.observed(observation),
            () = sleep(delay) => {}
        }
        while let Ok(observation) = observations.try_recv() {
            states.observed(observation);
        }
        let now = clock.now();
        let WindowReview { changed, changes_at } = states.review(now);
        let changes_in = changes_at.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        delay = changes_in.unwrap_or(CLOCK_INTERVAL).min(CLOCK_INTERVAL);
        for change in changed {
            if !states.write(writer, change).await {
                delay = delay.min(RETRY_INTERVAL);
            }
        }
    }
}

/// Watches the MaintenanceWindows until the receiver is dropped.
async fn watch(client: Client, relay: Relay<Observation>) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(MAINTENANCE_WINDOW));
    let shown = |object: Option<DynamicObject>, id: NamespacedName, _: u64| {
        vec![Observation::Window(id, object.map(|it| Box::new(it.into_value())))]
    };
    let listed = || Observation::Listed;
    relay.follow(ListingWatch::new(api, Config::default()), shown, listed).await;
}

/// Lists the MaintenanceWindows of a cluster.
///
/// # Errors
///
/// When the API server does not answer, or does not serve them.
pub(crate) async fn list(client: &Client) -> Result<MaintenanceWindows, kube::Error> {
    let mut windows = MaintenanceWindows::default();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(MAINTENANCE_WINDOW));
    for object in api.list(&ListParams::default()).await?.items {
        let object = object.into_value();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        windows.insert_object(name, &object);
    }
    Ok(windows)
}

#[cfg(test)]
mod tests {
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
        assert!(states.windows.find("nights").is_some_and(|it| it.is_err()));
        states.observe("nights", None);
        assert!(states.windows.find("nights").is_none());
        assert!(states.review(Timestamp::UNIX_EPOCH).changed.is_empty());
    }
}
