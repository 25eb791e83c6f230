//! The admission webhooks of a cluster, in the order in which they are called.
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::authorizer::Ledger;
use super::conditions::Conditions;
use super::expressions::{Declared, Scope, environment};
use super::matching::Criteria;
use super::review::{self, Reviewed};
use super::{AdmissionChain, policies};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::Attributes;
use crate::semantics::context::Call;
use crate::semantics::registry::ApiResource;
use crate::semantics::webhook::Endpoint;
use crate::semantics::webhook::replay::Question;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::StorageId;

/// The optional variables of match conditions of webhooks.
pub(super) const DECLARED: Declared = Declared { params: false, authorizer: true };

/// The default timeout of a webhook, in seconds.
const TIMEOUT_SECONDS: u64 = 10;

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// The name of the configuration and the index in it.
    pub(super) id: String,
    /// The name of the configuration.
    pub(super) configuration: String,
    /// The name of the webhook.
    pub(super) name: String,
    source: Value,
}

/// All webhooks of mutating or validating configurations, ordered by configuration name and index.
pub(super) fn all(cluster: &Cluster, storage: &StorageId) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for stored in cluster.store.list(storage, None) {
        let mut configuration = stored.decode();
        let Some(listed) = configuration["webhooks"].as_array_mut() else {
            continue;
        };
        for (index, source) in listed.iter_mut().map(Value::take).enumerate() {
            hooks.push(Hook {
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
pub(super) enum Outcome {
    /// The webhook responded.
    Reviewed(Reviewed),
    /// The call failed, and the failure policy ignores that.
    FailedOpen,
}

impl Hook {
    /// Whether the webhook is called again if another one changed the object after it.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.source["reinvocationPolicy"] == "IfNeeded"
    }

    /// The resource by which a write matches the webhook; none if it does not match.
    ///
    /// # Errors
    /// When a selector or a match condition cannot be evaluated.
    pub(super) fn matched(
        &self,
        chain: &AdmissionChain,
        cluster: &Cluster,
        call: &mut Call,
        attributes: &Attributes<'_>,
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
        let ledger = Arc::<Ledger>::default();
        let bindings = policies::bindings(cluster, call, attributes, (object, &resource), &ledger)?;
        let held = loop {
            let held = conditions.hold(&Scope::new(bindings.clone(), &[]));
            if !ledger.look_up(&chain.authorizer, cluster, &call.user) {
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
    pub(super) fn ask(
        &self,
        call: &mut Call,
        attributes: &Attributes<'_>,
        shown: &review::Shown<'_>,
        round: usize,
    ) -> Result<Outcome> {
        if attributes.dry_run
            && !matches!(self.source["sideEffects"].as_str(), Some("None" | "NoneOnDryRun"))
        {
            return Err(ApiError::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                self.name
            )));
        }
        match self.reviewed(call, attributes, shown, round)? {
            Ok(reviewed) => Ok(Outcome::Reviewed(reviewed)),
            Err(why) if self.source["failurePolicy"] == "Ignore" => {
                tracing::warn!(webhook = self.name, why, "failed to call webhook, failing open");
                Ok(Outcome::FailedOpen)
            }
            Err(why) => Err(ApiError::new(
                StatusReason::InternalError,
                format!("Internal error occurred: failed calling webhook {:?}: {why}", self.name),
            )
            .with_causes([crate::status::Cause {
                reason: String::new(),
                message: format!("failed calling webhook {:?}: {why}", self.name),
                field: String::new(),
            }])),
        }
    }

    fn reviewed(
        &self,
        call: &mut Call,
        attributes: &Attributes<'_>,
        shown: &review::Shown<'_>,
        round: usize,
    ) -> Result<std::result::Result<Reviewed, String>> {
        let seconds = self.source["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS);
        let endpoint =
            match Endpoint::read(&self.source["clientConfig"], Duration::from_secs(seconds)) {
                Ok(endpoint) => Arc::new(endpoint),
                Err(why) => return Ok(Err(format!("could not get REST client: {why}"))),
            };
        let version = self.review_version();
        let question = Question {
            asker: format!("{round} {} {}", self.id, self.name),
            endpoint,
            review: review::write(call, attributes, shown, version),
        };
        Ok(match call.asking.ask(question)? {
            Ok(answered) => review::read(&answered, version, shown.mutating)
                .map_err(|why| format!("received invalid webhook response: {why}")),
            Err(why) => Err(format!("failed to call webhook: {why}")),
        })
    }

    /// The version of `AdmissionReview` that the webhook prefers.
    fn review_version(&self) -> &'static str {
        self.source["admissionReviewVersions"]
            .as_array()
            .into_iter()
            .flatten()
            .find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            })
            .unwrap_or("v1")
    }
}
