//! The admission webhooks of a cluster, in the order in which they are called.
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::authorizer::AuthorizationCache;
use super::conditions::Conditions;
use super::expressions::{Declared, Scope, environment};
use super::matching::Criteria;
use super::review::{self, AdmissionResponse};
use super::{AdmissionChain, policies};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::semantics::webhook::replay::WebhookCall;
use crate::semantics::webhook::{Endpoint, review_version};
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::StorageId;

/// The optional variables of match conditions of webhooks.
pub(super) const DECLARED: Declared =
    Declared { params: false, authorizer: true, patch_types: false };

/// The default timeout of a webhook, in seconds.
const TIMEOUT_SECONDS: u64 = 10;

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct AdmissionWebhook {
    /// The name of the configuration and the index in it.
    pub(super) id: String,
    /// The name of the configuration.
    pub(super) configuration: String,
    /// The name of the webhook.
    pub(super) name: String,
    source: Value,
}

/// All webhooks of mutating or validating configurations, ordered by configuration name and index.
///
/// Upstream: k8s.io/apiserver/pkg/admission/configuration/mutating_webhook_manager.go: getMutatingWebhookConfigurations
pub(super) fn all(cluster: &Cluster, storage: &StorageId) -> Vec<AdmissionWebhook> {
    let mut hooks = Vec::new();
    for stored in cluster.store.list(storage, None) {
        let mut configuration = stored.decode();
        let Some(listed) = configuration["webhooks"].as_array_mut() else {
            continue;
        };
        for (index, source) in listed.iter_mut().map(Value::take).enumerate() {
            hooks.push(AdmissionWebhook {
                id: format!("{}/{index}", stored.key.name),
                configuration: stored.key.name.to_string(),
                name: source["name"].as_str().unwrap_or_default().to_owned(),
                source,
            });
        }
    }
    hooks
}

/// The outcome of a webhook call.
pub(super) enum WebhookOutcome {
    /// The webhook responded.
    AdmissionResponse(AdmissionResponse),
    /// The call failed, and the failure policy ignores that.
    FailedOpen,
}

impl AdmissionWebhook {
    /// Whether the webhook is called again if another one changed the object after it.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.source["reinvocationPolicy"] == "IfNeeded"
    }

    /// The resource by which a write matches the webhook; none if it does not match.
    ///
    /// # Errors
    /// When a selector or a match condition cannot be evaluated.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go: ShouldCallHook
    pub(super) fn matched(
        &self,
        chain: &AdmissionChain,
        cluster: &Cluster,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Arc<ApiResource>>> {
        let criteria = Criteria { source: &self.source, rules: "rules" };
        let Some(resource) = criteria.matched(cluster, attributes, object)? else {
            return Ok(None);
        };
        if self.source["matchConditions"].as_array().is_none_or(Vec::is_empty) {
            return Ok(Some(resource));
        }
        let conditions = Conditions::read(&environment(DECLARED, None), &self.source);
        let ledger = Arc::<AuthorizationCache>::default();
        let bindings =
            policies::bindings(cluster, context, attributes, object, &resource, &ledger)?;
        let held = loop {
            let held = conditions.hold(&Scope::new(bindings.clone(), &[]));
            if !ledger.look_up(&chain.authorizer, cluster, &context.user) {
                break held;
            }
        };
        match held {
            Ok(holds) => Ok(holds.then_some(resource)),
            Err(why) => {
                Err(ApiError::forbidden(attributes.resource.subject(), &attributes.name, &why))
            }
        }
    }

    /// Calls the webhook; the objects in `shown` are in the version by which the write matched.
    ///
    /// # Errors
    /// When there is no response yet, or the call failed and the failure policy is `Fail`.
    pub(super) fn call(
        &self,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        shown: &review::ReviewSubject<'_>,
        round: usize,
    ) -> Result<WebhookOutcome> {
        if attributes.dry_run
            && !matches!(self.source["sideEffects"].as_str(), Some("None" | "NoneOnDryRun"))
        {
            return Err(ApiError::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                self.name
            )));
        }
        match self.reviewed(context, attributes, shown, round)? {
            Ok(reviewed) => Ok(WebhookOutcome::AdmissionResponse(reviewed)),
            Err(why) if self.source["failurePolicy"] == "Ignore" => {
                tracing::warn!(webhook = self.name, why, "failed to call webhook, failing open");
                Ok(WebhookOutcome::FailedOpen)
            }
            Err(why) => Err(ApiError::new(
                StatusReason::InternalError,
                format!("Internal error occurred: failed calling webhook {:?}: {why}", self.name),
            )
            .with_causes([crate::status::StatusCause {
                reason: String::new(),
                message: format!("failed calling webhook {:?}: {why}", self.name),
                field: String::new(),
            }])),
        }
    }

    fn reviewed(
        &self,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        shown: &review::ReviewSubject<'_>,
        round: usize,
    ) -> Result<std::result::Result<AdmissionResponse, String>> {
        let seconds = self.source["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS);
        let endpoint =
            match Endpoint::read(&self.source["clientConfig"], Duration::from_secs(seconds)) {
                Ok(endpoint) => Arc::new(endpoint),
                Err(why) => return Ok(Err(format!("could not get REST client: {why}"))),
            };
        let version = review_version(&self.source["admissionReviewVersions"]);
        let call = WebhookCall {
            caller: format!("{round} {} {}", self.id, self.name),
            endpoint,
            review: review::write(context, attributes, shown, version),
        };
        Ok(match context.replay.call(call)? {
            Ok(response) => review::read(&response, version, shown.mutating)
                .map_err(|why| format!("received invalid webhook response: {why}")),
            Err(why) => Err(format!("failed to call webhook: {why}")),
        })
    }
}
