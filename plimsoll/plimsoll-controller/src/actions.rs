//! The controller of Actions, which admits them and executes what [`plimsoll_operators::actions`]
//! decides.
//!
//! It runs beside the controller of Operators, under the same Lease, and gets from it the inventory
//! that plans are made from.

mod acceptance;
mod access;
pub mod admission;
mod change_writer;
mod classes;
mod control_loop;
mod generators;
pub(crate) mod inventory;
mod parts;
mod policies;
mod review;
mod selection;
mod windows;

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use plimsoll_api::{ACTION, ACTION_CLASS, ACTION_POLICY, MAINTENANCE_WINDOW, crd};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::access::ListedPolicies;
use self::admission::{ActionWebhooks, AdmissionRequest};
use self::control_loop::{ControlLoop, LoopSettings};
use self::generators::GENERATORS;
use self::inventory::InventoryClient;
use self::review::AdmissionRules;
use crate::bootstrap::{self, retry_until_ok};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::events::Recorder;
use crate::reinstall::{self, Installed};
use crate::resources::{self, api_resource};
use crate::view::OperatorsView;
use crate::webhook::WebhookSettings;
use crate::write::Writer;

/// The settings of the controller of Actions.
#[derive(Debug, Clone, Default)]
pub struct ActionSettings {
    /// The settings of the admission webhooks; `None` to run without them: requests without a
    /// requester are rejected, and policies are only evaluated when an Action is executed.
    pub webhook: Option<WebhookSettings>,
}

/// The controller that executes Actions.
pub(crate) struct ActionController {
    pub(crate) client: Client,
    pub(crate) clock: SharedClock,
    pub(crate) recorder: Recorder,
    pub(crate) settings: ActionSettings,
    pub(crate) inventory: InventoryClient,
    pub(crate) view: watch::Sender<OperatorsView>,
}

impl ActionController {
    /// Runs the controller until it is stopped.
    ///
    /// # Errors
    ///
    /// When the API server rejects an object that is installed at the start.
    pub(crate) async fn run(self, stop: &CancellationToken) -> Result<(), Error> {
        let Self { client, clock, recorder, settings, inventory, view } = self;
        // The policies come first: without them, a client could request an Action in the name of
        // another user.
        let policies = admission::install_policies(&client, stop).await?;
        let writer = Writer::new(client.clone());
        let definitions = crd::action_manifests();
        let kinds = [ACTION, ACTION_CLASS, ACTION_POLICY, MAINTENANCE_WINDOW];
        let kinds: Vec<_> = kinds.into_iter().chain(GENERATORS).collect();
        let install =
            || bootstrap::install_definitions(&client, &writer, &definitions, &kinds, stop);
        retry_until_ok(stop, install).await?;
        retry_until_ok(stop, || apply_classes(&writer)).await?;
        let (rules, current) = watch::channel(AdmissionRules::default());
        let (guarded, guarded_classes) = watch::channel(BTreeSet::new());
        match settings.webhook {
            Some(settings) => {
                let context = (client.clone(), writer.clone(), Arc::clone(&clock), view.clone());
                let listed = ListedPolicies::default();
                let decide = move |request: AdmissionRequest| {
                    let (client, writer, clock, view) = context.clone();
                    let (rules, listed) = (current.clone(), listed.clone());
                    review::review(client, writer, clock, rules, view, listed, request)
                };
                let webhooks = ActionWebhooks { settings, guarded: guarded_classes, decide };
                webhooks.start(&client, Arc::clone(&clock), stop).await?;
            }
            None => admission::remove(&client, stop).await?,
        }
        // That of MaintenanceWindow is kept by their own controller.
        let kept = definitions.split_last().map_or(&[][..], |(_, others)| others);
        let reinstall = || async {
            admission::apply_policies(&writer).await?;
            bootstrap::apply_definitions(&client, &writer, kept).await?;
            apply_classes(&writer).await
        };
        let kept = reinstall::keep(&client, installed(&policies, kept), reinstall, stop);
        let settings = LoopSettings {
            client: client.clone(),
            clock,
            recorder,
            inventory,
            rules,
            guarded,
            view,
        };
        tokio::join!(ControlLoop::start(settings, stop).run(stop), kept);
        Ok(())
    }
}

/// Returns the objects that the controller of Actions installs: admission policies, definitions and
/// classes.
fn installed(policies: &[Value], definitions: &[Value]) -> Vec<Installed> {
    let mut installed = Installed::policies(policies);
    installed.push(Installed::new(resources::definitions(), definitions));
    installed.push(Installed::new(api_resource(ACTION_CLASS), &plimsoll_api::classes::built_in()));
    installed
}

/// Applies the built-in classes.
async fn apply_classes(writer: &Writer) -> Result<(), Error> {
    let resource = api_resource(ACTION_CLASS);
    for class in &plimsoll_api::classes::built_in() {
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        let failed = |source| Error::InstallClass { name: name.to_owned(), source };
        writer.apply_own(&resource, name, class).await.map_err(failed)?;
    }
    Ok(())
}
