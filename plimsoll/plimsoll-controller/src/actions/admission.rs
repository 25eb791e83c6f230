//! The admission of Actions: who requests them is set and cannot be forged, and a guarded class is only
//! requested by whom its policies let.
//!
//! What nobody may do is in admission policies, which API servers evaluate themselves
//! ([`policies::action_policies`]). A mutating webhook only spares users naming themselves: when it cannot
//! be reached, a request without a requester is refused by those. A validating webhook asks for a decision
//! about requests of guarded classes, and refuses them when it cannot be reached.

mod guard;
mod requester;

use std::collections::BTreeSet;

use kube::Client;
use plimsoll_api::olm::action::{ActionRequester, ActionSpec};
use plimsoll_api::{ACTION, ApiKind, CRON_ACTION, EVENT_ACTION, RETRY_ACTION, policies};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::retry_until_ok;
use crate::clock::SharedClock;
use crate::error::Error;
use crate::resources::api_resource;
use crate::webhook::{self, ClientConfig, MUTATING, Reviewer, VALIDATING, WebhookSettings};
use crate::write::Writer;

/// Name of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration.
const CONFIGURATION: &str = "plimsoll-actions";
/// Kinds that have a template of Actions.
const MAKERS: [ApiKind; 3] = [RETRY_ACTION, CRON_ACTION, EVENT_ACTION];

/// A request for an Action of a guarded class, now or, as the template of another kind, later.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdmissionRequest {
    /// Kind of the object: `Action`, or the one that has it as a template.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object; empty if it is generated.
    pub name: String,
    /// In whose name it is requested, which is to be judged.
    pub requester: ActionRequester,
    /// Who sends it: the requester, or somebody who may request in the name of others.
    pub user: ActionRequester,
    /// The Action.
    pub action: ActionSpec,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

/// What is decided about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is let pass.
    pub allowed: bool,
    /// Why it is not; empty if it is.
    pub message: String,
    /// What its sender is warned of.
    pub warnings: Vec<String>,
    /// Keys and values for the audit log, which adds the name of the webhook to the keys.
    pub audit: Vec<(String, String)>,
}

/// Applies the admission policies of Actions. They belong there before the definitions of Actions: nobody
/// should be able to request one without them.
///
/// # Errors
///
/// When the API server rejects one, or with `stop`.
pub async fn install_policies(client: &Client, stop: &CancellationToken) -> Result<(), Error> {
    let writer = Writer::new(client.clone());
    retry_until_ok(stop, || apply_policies(&writer)).await
}

/// Applies the admission policies of Actions once.
pub(crate) async fn apply_policies(writer: &Writer) -> Result<(), Error> {
    for object in &policies::action_policies() {
        let Some((kind, name)) = policies::kind_and_name(object) else { continue };
        let failed = |source| Error::InstallPolicy { name: name.to_owned(), source };
        writer.apply_own(&api_resource(kind), name, object).await.map_err(failed)?;
    }
    Ok(())
}

/// Removes what an earlier process with [`ActionWebhooks`] left: nobody answers any more.
///
/// # Errors
///
/// When the API server rejects it, or with `stop`.
pub async fn remove(client: &Client, stop: &CancellationToken) -> Result<(), Error> {
    let writer = &Writer::new(client.clone());
    retry_until_ok(stop, || webhook::remove::<Registered>(client, writer)).await
}

/// The webhooks of Actions.
#[derive(Debug, Clone)]
pub struct ActionWebhooks<F> {
    /// Where to listen, and how API servers get there.
    pub settings: WebhookSettings,
    /// The guarded classes, by their names and aliases. Requests of others are not decided about.
    pub guarded: watch::Receiver<BTreeSet<String>>,
    /// Decides about a request of a guarded class.
    pub decide: F,
}

impl<F, D> ActionWebhooks<F>
where
    F: Fn(AdmissionRequest) -> D + Clone + Send + Sync + 'static,
    D: Future<Output = Decision> + Send + 'static,
{
    /// Serves the webhooks and registers them with the API servers; ends with `stop`.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on, or the certificate or a configuration cannot be made.
    pub async fn start(
        self,
        client: &Client,
        clock: SharedClock,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let writer = Writer::new(client.clone());
        let reviewer = ActionReviewer { guarded: self.guarded, decide: self.decide };
        webhook::start(client, &writer, &self.settings, clock, reviewer, stop).await
    }
}

/// Answers reviews of Actions.
#[derive(Clone)]
pub(crate) struct ActionReviewer<F> {
    guarded: watch::Receiver<BTreeSet<String>>,
    decide: F,
}

/// A reviewer that stands for any: all are registered alike.
pub(crate) type Registered = ActionReviewer<fn(AdmissionRequest) -> std::future::Ready<Decision>>;

impl<F, D> Reviewer for ActionReviewer<F>
where
    F: Fn(AdmissionRequest) -> D + Clone + Send + Sync + 'static,
    D: Future<Output = Decision> + Send + 'static,
{
    const NAME: &'static str = "action";
    const SECRET: &'static str = "plimsoll-action-webhook";
    const CONFIGURATIONS: &'static [(ApiKind, &'static str)] =
        &[(MUTATING, CONFIGURATION), (VALIDATING, CONFIGURATION)];

    fn webhooks(&self, kind: ApiKind, config: &ClientConfig) -> Vec<Value> {
        if kind == MUTATING {
            return vec![requester::webhook(config)];
        }
        guard::webhooks(&self.guarded.borrow(), config)
    }

    async fn review(&self, path: &str, request: &Value) -> Option<Value> {
        match path {
            requester::PATH => Some(requester::answer(request)),
            guard::PATH => Some(match guard::read(request) {
                Ok(asked) => guard::answer((self.decide)(asked).await),
                Err(refused) => guard::answer(refused),
            }),
            _ => None,
        }
    }

    async fn changed(&mut self) {
        if self.guarded.changed().await.is_err() {
            // Nobody is left who could change them.
            std::future::pending().await
        }
    }
}

/// A rule of a webhook about some kinds.
fn rule(operations: &[&str], kinds: &[ApiKind]) -> Value {
    let resources: Vec<&str> = kinds.iter().map(|kind| kind.plural).collect();
    json!({
        "apiGroups": [ACTION.group],
        "apiVersions": [ACTION.version],
        "operations": operations,
        "resources": resources,
        "scope": "Namespaced",
    })
}

/// Who sends a request.
fn user(request: &Value) -> ActionRequester {
    ActionRequester::deserialize(&request["userInfo"]).unwrap_or_default()
}
