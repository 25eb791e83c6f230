//! The admission of Actions: the requester of an Action is recorded and cannot be forged, requests
//! that do not fit their class are rejected, and only users whom a policy allows can request Actions
//! of a guarded class.
//!
//! A class is guarded if an ActionPolicy names it.
//!
//! What is set for every user, and what is forbidden to every user, is in admission policies, which
//! API servers evaluate themselves ([`policies::requester_policies`], [`policies::action_policies`]).
//! For API servers that do not serve policies that set anything, a mutating webhook sets the
//! requester where a request has none; while it cannot be reached, those requests are rejected. A
//! validating webhook checks all requests against the schemas of their classes, and decides on
//! requests for guarded classes; while it cannot be reached, API servers reject requests for guarded
//! classes, and those for other classes are checked when they are executed.

mod guard;
mod requester;

use std::collections::BTreeSet;
use std::sync::Once;

use kube::Client;
use plimsoll_api::olm::action::{ActionRequester, ActionSpec};
use plimsoll_api::{ACTION, ApiKind, policies};
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

/// A request for an Action, either directly or as the template of another kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdmissionRequest {
    /// Kind of the object: `Action`, or a kind with a template for Actions.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object; empty if it is generated.
    pub name: String,
    /// The user in whose name the Action is requested. Policies are evaluated for this user.
    pub requester: ActionRequester,
    /// The user who sends the request: the requester, or a user who may request in the name of
    /// others.
    pub user: ActionRequester,
    /// The spec of the Action.
    pub action: ActionSpec,
    /// The schedule of a CronAction and its time zone; `None` for other kinds.
    pub schedule: Option<(String, String)>,
    /// The filter of an EventAction; empty for other kinds, or if it has none.
    pub filter: String,
    /// Whether the request is a dry run, so that nothing is stored.
    pub dry_run: bool,
    /// Whether the class is guarded. Other requests are only checked against their class.
    pub is_guarded: bool,
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Denial {
    /// No policy allows it to whom it is requested for.
    #[default]
    Forbidden,
    /// It does not fit its class, whoever sends it.
    Invalid,
    /// What the decision depends on is not known yet: the same request may be allowed later.
    Unavailable,
}

impl Denial {
    /// Returns the status code and the reason of the answer, as the Kubernetes API has them.
    fn status(self) -> (u16, &'static str) {
        match self {
            Self::Forbidden => (403, "Forbidden"),
            Self::Invalid => (422, "Invalid"),
            Self::Unavailable => (503, "ServiceUnavailable"),
        }
    }
}

/// The decision about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why it is denied, of one that is not allowed.
    pub denial: Denial,
    /// The reason for a denial; empty if the request is allowed.
    pub message: String,
    /// Warnings for the user who sends the request.
    pub warnings: Vec<String>,
    /// Annotations of the audit event. API servers prefix their keys with the name of the webhook.
    pub audit: Vec<(String, String)>,
}

/// Applies the admission policies of Actions. Returns those that the API server serves, with their
/// bindings.
///
/// They have to exist before the definitions of Actions, so that no Action can be requested without
/// them.
///
/// # Errors
///
/// When the API server rejects a policy, or when `stop` is cancelled.
pub async fn install_policies(
    client: &Client,
    stop: &CancellationToken,
) -> Result<Vec<Value>, Error> {
    let writer = Writer::new(client.clone());
    retry_until_ok(stop, || apply_policies(&writer)).await
}

/// Applies the admission policies of Actions, without retries.
pub(crate) async fn apply_policies(writer: &Writer) -> Result<Vec<Value>, Error> {
    static NOT_SERVED: Once = Once::new();
    let mut applied = policies::action_policies();
    for object in &applied {
        apply_policy(writer, object).await?;
    }
    for object in policies::requester_policies() {
        match apply_policy(writer, &object).await {
            Ok(()) => applied.push(object),
            // What is applied is created if it is missing, so it is the kind that is not found.
            Err(Error::InstallPolicy { source: kube::Error::Api(status), .. })
                if status.code == 404 =>
            {
                NOT_SERVED.call_once(|| {
                    tracing::warn!(
                        "the API server does not serve MutatingAdmissionPolicies: the webhook or \
                         the client has to set spec.requester of Actions"
                    );
                });
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(applied)
}

async fn apply_policy(writer: &Writer, object: &Value) -> Result<(), Error> {
    let Some((kind, name)) = policies::kind_and_name(object) else { return Ok(()) };
    let failed = |source| Error::InstallPolicy { name: name.to_owned(), source };
    writer.apply_own(&api_resource(kind), name, object).await.map_err(failed)
}

/// Removes the webhook configurations that an earlier process with [`ActionWebhooks`] has left,
/// since no process serves these webhooks any more.
///
/// # Errors
///
/// When the API server rejects the removal, or when `stop` is cancelled.
pub async fn remove(client: &Client, stop: &CancellationToken) -> Result<(), Error> {
    let writer = &Writer::new(client.clone());
    retry_until_ok(stop, || webhook::remove::<Registered>(client, writer)).await
}

/// The webhooks of Actions.
#[derive(Debug, Clone)]
pub struct ActionWebhooks<F> {
    /// The address to listen on, and how API servers reach it.
    pub settings: WebhookSettings,
    /// The guarded classes, by name and alias. Requests for other classes are allowed while the
    /// webhooks cannot be reached.
    pub guarded: watch::Receiver<BTreeSet<String>>,
    /// The function that decides on a request.
    pub decide: F,
}

impl<F, D> ActionWebhooks<F>
where
    F: Fn(AdmissionRequest) -> D + Clone + Send + Sync + 'static,
    D: Future<Output = Decision> + Send + 'static,
{
    /// Serves the webhooks until `stop` is cancelled, and registers them with the API servers.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on, or when the certificate or a configuration cannot be
    /// created.
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

/// The reviewer of requests for Actions.
#[derive(Clone)]
pub(crate) struct ActionReviewer<F> {
    guarded: watch::Receiver<BTreeSet<String>>,
    decide: F,
}

/// The type that stands for every [`ActionReviewer`] where only the registration matters: all of
/// them register the same webhooks.
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
            guard::PATH | guard::CHECK_PATH => {
                Some(match guard::read(request, path == guard::PATH) {
                    Ok(asked) => guard::answer((self.decide)(asked).await),
                    Err(refused) => guard::answer(refused),
                })
            }
            _ => None,
        }
    }

    async fn changed(&mut self) {
        if self.guarded.changed().await.is_err() {
            // The sender is gone, so the guarded classes do not change any more.
            std::future::pending().await
        }
    }
}

/// Returns the rule of a webhook for some kinds.
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

/// Returns the user who sends a request.
fn user(request: &Value) -> ActionRequester {
    ActionRequester::deserialize(&request["userInfo"]).unwrap_or_default()
}
