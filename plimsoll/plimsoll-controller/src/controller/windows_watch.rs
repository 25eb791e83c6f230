//! The watch of the MaintenanceWindows, of which one may decide when updates begin. Their kind may be defined at
//! any time: nothing is requested of it before.

use std::sync::Arc;
use std::time::Duration;

use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::MAINTENANCE_WINDOW;
use plimsoll_plan::windows::MaintenanceWindows;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bootstrap;
use crate::error::Error;
use crate::listing_watch::{ListingWatch, WatchedObject as _};
use crate::observe::{self, ConfigObservation};
use crate::resources::api_resource;
use crate::windows;

/// The name of the definition of MaintenanceWindows.
const WINDOW_DEFINITION: &str = "maintenancewindows.olm.io";

/// Reads the MaintenanceWindows of a cluster: none if the kind is not served, and unknown if they may not be listed.
///
/// # Errors
///
/// When the server does not answer, or answers with another error than these.
pub async fn maintenance_windows(client: &Client) -> Result<MaintenanceWindows, Error> {
    match windows::list(client).await {
        Ok(windows) => Ok(windows),
        // It is forbidden whether or not there is such a kind.
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Ok(match bootstrap::is_served(client, MAINTENANCE_WINDOW).await? {
                true => MaintenanceWindows::unknown(&status.message),
                false => MaintenanceWindows::default(),
            })
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
            Ok(MaintenanceWindows::default())
        }
        Err(source) => Err(Error::ReadWindows { source }),
    }
}

/// How long MaintenanceWindows that may be listed and not watched count as they were listed.
const LIST_INTERVAL: Duration = Duration::from_secs(30);

/// Watches the MaintenanceWindows, until the receiver is gone.
async fn watch_windows(client: Client, sender: mpsc::Sender<ConfigObservation>) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(MAINTENANCE_WINDOW));
    let begin = || ListingWatch::new(api.clone(), watcher::Config::default());
    let mut events = begin();
    let (mut windows, mut listed) = <(MaintenanceWindows, MaintenanceWindows)>::default();
    let (mut is_forbidden, mut is_unwatched) = (false, false);
    loop {
        match events.next().await {
            Ok(Event::Init) => {
                listed = MaintenanceWindows::default();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed.insert_object(&object.name_any(), &object.into_value());
                continue;
            }
            Ok(Event::InitDone) => {
                windows = std::mem::take(&mut listed);
                is_forbidden = false;
            }
            Ok(Event::Apply(object)) => {
                windows.insert_object(&object.name_any(), &object.into_value());
            }
            Ok(Event::Delete(object)) => windows.remove(&object.name_any()),
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status)))
                if status.code == 403 =>
            {
                if !std::mem::replace(&mut is_unwatched, true) {
                    let message = &status.message;
                    tracing::warn!(message, "the MaintenanceWindows may not be watched");
                }
                // They are listed again and again instead.
                sleep(LIST_INTERVAL).await;
                events = begin();
                continue;
            }
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
                if status.code == 403 =>
            {
                if std::mem::replace(&mut is_forbidden, true) {
                    continue;
                }
                let message = &status.message;
                tracing::warn!(message, "the MaintenanceWindows may not be listed");
                windows = MaintenanceWindows::unknown(message);
            }
            Err(error) => {
                tracing::debug!(%error, "watching MaintenanceWindows failed; trying again");
                continue;
            }
        }
        let observation = ConfigObservation::Windows(Arc::new(windows.clone()));
        if sender.send(observation).await.is_err() {
            return;
        }
    }
}

/// Watches the MaintenanceWindows while their kind is defined; the watches end with this.
pub(super) struct WindowsWatch {
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
    windows: JoinSet<()>,
}

impl WindowsWatch {
    /// Watches the definition, in `watches`.
    pub(super) fn start(
        client: Client,
        sender: mpsc::Sender<ConfigObservation>,
        watches: &mut JoinSet<()>,
    ) -> Self {
        let observed = |is_served| ConfigObservation::WindowDefinition { is_served };
        let name = WINDOW_DEFINITION;
        watches.spawn(observe::watch_definition(client.clone(), name, observed, sender.clone()));
        Self { client, sender, windows: JoinSet::new() }
    }

    /// The definition shows whether the kind is served. Returns whether no MaintenanceWindows are left.
    pub(super) fn defined(&mut self, is_served: bool) -> bool {
        match (is_served, self.windows.is_empty()) {
            (true, true) => {
                let (client, sender) = (self.client.clone(), self.sender.clone());
                self.windows.spawn(watch_windows(client, sender));
                false
            }
            (true, false) => false,
            (false, _) => {
                self.windows = JoinSet::new();
                true
            }
        }
    }
}
