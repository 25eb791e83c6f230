//! The webhooks of a cluster, in the order in which they are asked.
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

/// What the conditions of webhooks may use.
pub(super) const DECLARED: Declared = Declared { params: false, authorizer: true };

/// How long a webhook may take that does not say so itself.
const TIMEOUT_SECONDS: u64 = 10;

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// Name of the configuration and number in it.
    pub(super) id: String,
    /// The configuration.
    pub(super) configuration: String,
    /// Its own name.
    pub(super) name: String,
    source: Value,
}

/// All webhooks of one of the two kinds: by the name of their configuration, then in its order.
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

/// What became of a webhook's call.
pub(super) enum Outcome {
    /// It answered.
    Reviewed(Reviewed),
    /// It could not be asked, and that is no reason to refuse the write.
    FailedOpen,
}

impl Hook {
    /// Whether the same webhook is asked again when another one changed the object after it.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.source["reinvocationPolicy"] == "IfNeeded"
    }

    /// The resource under which a write is shown to the webhook; none if it is not.
    ///
    /// # Errors
    /// When that cannot be told.
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

    /// Asks the webhook about a write; `resource` is the one under which it was matched, and
    /// `object` and `old` are in its version.
    ///
    /// # Errors
    /// When the webhook has to be asked first, or cannot be asked and that is a reason to refuse.
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

    /// The version of reviews that the webhook prefers of those that there are.
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
