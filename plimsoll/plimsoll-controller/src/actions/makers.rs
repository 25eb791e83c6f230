//! The objects that make Actions: RetryActions, CronActions and EventActions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionRequester, ActionSpec, CronActionSpec, CronActionStatus,
    EventActionSpec, EventActionStatus, EventSourceKind, OWNER_LABEL, RetryActionSpec,
    RetryActionStatus,
};
use plimsoll_api::{
    ACTION, ApiKind, CRON_ACTION, ConditionStatus, EVENT_ACTION, RETRY_ACTION, Reason,
    whole_seconds,
};
use plimsoll_operators::actions::lifecycle::ActionObject;
use plimsoll_operators::actions::retry::{self, Attempt, RetryDecision};
use plimsoll_operators::actions::triggers::{self, MadeAction};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::selection::Selection;

/// The kinds that make Actions.
pub(super) const KINDS: [ApiKind; 3] = [RETRY_ACTION, CRON_ACTION, EVENT_ACTION];

/// The spec and the status, by kind.
#[derive(Debug, Clone)]
enum Content {
    Retry(RetryActionSpec, RetryActionStatus),
    Cron(CronActionSpec, CronActionStatus),
    Event(EventActionSpec, EventActionStatus),
}

/// An object that makes Actions.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) kind: ApiKind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) revision: String,
    /// The objects that an EventAction selects; `None` if it selects none.
    pub(super) selection: Option<Selection>,
    created: Timestamp,
    generation: i64,
    content: Content,
}

/// The state in which EventActions look for changes: the content of each object, by name. A field
/// is `None` if the state is not known.
pub(super) struct EventContent<'a> {
    pub(super) catalogs: Option<&'a BTreeMap<String, String>>,
    pub(super) operators: Option<BTreeMap<String, String>>,
    pub(super) release: Option<BTreeMap<String, String>>,
    /// The content of the selected objects, or the reason why it is not known.
    pub(super) selected: Option<Result<&'a BTreeMap<String, String>, String>>,
}

/// The decision about an object that makes Actions.
#[derive(Debug, Default)]
pub(super) struct MakerDecision {
    /// Name of the Action to make; `None` for none.
    pub(super) make: Option<String>,
    /// Names of Actions to cancel.
    pub(super) cancel: Vec<String>,
    /// Names of Actions to delete.
    pub(super) delete: Vec<String>,
    /// The status to write after the changes; `None` if it is unchanged.
    pub(super) status: Option<Value>,
    /// The time of the next decision; `None` if it depends on changes alone.
    pub(super) wake_at: Option<Timestamp>,
}

impl Maker {
    /// Reads an object of one of the kinds that make Actions.
    pub(super) fn read(kind: ApiKind, object: &Value) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let content = match kind {
            RETRY_ACTION => read(object).map(|(spec, status)| Content::Retry(spec, status)),
            CRON_ACTION => read(object).map(|(spec, status)| Content::Cron(spec, status)),
            _ => read(object).map(|(spec, status)| Content::Event(spec, status)),
        };
        let (namespace, content) = (text(&metadata["namespace"]), content?);
        let selection = match &content {
            Content::Event(spec, _) => spec
                .on
                .object
                .clone()
                .map(|objects| Selection { namespace: namespace.clone(), objects }),
            Content::Retry(..) | Content::Cron(..) => None,
        };
        Ok(Self {
            kind,
            namespace,
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            revision: text(&metadata["resourceVersion"]),
            created: text(&metadata["creationTimestamp"]).parse().unwrap_or_default(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            selection,
            content,
        })
    }

    /// Returns whether it is an EventAction for changes of a kind.
    pub(super) fn looks_for(&self, kind: EventSourceKind) -> bool {
        matches!(&self.content, Content::Event(spec, _) if spec.on.kind == kind)
    }

    /// Decides what to do, based on the Actions that were made so far.
    pub(super) fn decide(
        &self,
        made: &[&ActionObject],
        content: &EventContent<'_>,
        now: Timestamp,
    ) -> MakerDecision {
        match &self.content {
            Content::Retry(spec, status) => self.retry(spec, status, made, now),
            Content::Cron(spec, status) => {
                let decision =
                    triggers::cron(&self.name, self.created, spec, status, &listed(made), now);
                MakerDecision {
                    make: decision.make,
                    cancel: decision.cancel,
                    delete: decision.delete,
                    status: changed(status, &decision.status),
                    wake_at: decision.wake_at,
                }
            }
            Content::Event(spec, status) => {
                let content = match spec.on.kind {
                    EventSourceKind::Catalog => content.catalogs.map(Ok),
                    EventSourceKind::Operator => content.operators.as_ref().map(Ok),
                    EventSourceKind::ClusterVersion => content.release.as_ref().map(Ok),
                    EventSourceKind::Object => content.selected.clone(),
                };
                let Some(content) = content else { return MakerDecision::default() };
                let (name, uid, made) = (&self.name, &self.uid, listed(made));
                let decision = triggers::event(name, uid, spec, status, content, &made, now);
                MakerDecision {
                    make: decision.make,
                    delete: decision.delete,
                    status: changed(status, &decision.status),
                    ..MakerDecision::default()
                }
            }
        }
    }

    fn retry(
        &self,
        spec: &RetryActionSpec,
        status: &RetryActionStatus,
        made: &[&ActionObject],
        now: Timestamp,
    ) -> MakerDecision {
        let is_ended = |it: &MetaCondition| {
            it.type_ == ACTION_SUCCEEDED && it.status != ConditionStatus::Unknown
        };
        if status.conditions.iter().any(is_ended) {
            return MakerDecision::default();
        }
        let attempt = |it: &&ActionObject| Attempt {
            state: it.status.state,
            ended: it.status.completion_time,
        };
        let attempts: Vec<Attempt> = made.iter().map(attempt).collect();
        let (name, uid) = (&self.name, &self.uid);
        let decision = retry::decide(name, uid, spec, status.failed, &attempts, now);
        let failed = attempts.iter().filter(|it| it.state.is_final()).count();
        let last = made.iter().max_by_key(|it| it.order());
        let why = last
            .and_then(|it| it.status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED))
            .map(|it| it.message.clone())
            .unwrap_or_default();
        let mut next = RetryActionStatus {
            failed: status.failed.max(count(failed)),
            ..RetryActionStatus::default()
        };
        let mut make = None;
        let (is_true, reason, message) = match decision {
            RetryDecision::Attempt(name) => {
                make = Some(name);
                let number = next.failed + 1;
                (
                    ConditionStatus::Unknown,
                    Reason::ActionRunning,
                    format!("attempt {number} begins"),
                )
            }
            RetryDecision::Wait(at) => {
                next.next_attempt_time = Some(at);
                (
                    ConditionStatus::Unknown,
                    Reason::ActionRunning,
                    format!("the last attempt failed: {why}"),
                )
            }
            RetryDecision::Running => {
                let number = attempts.len();
                (
                    ConditionStatus::Unknown,
                    Reason::ActionRunning,
                    format!("attempt {number} is under way"),
                )
            }
            RetryDecision::Succeeded => {
                next.succeeded = 1;
                next.failed = status.failed.max(count(failed.saturating_sub(1)));
                (ConditionStatus::True, Reason::ActionSucceeded, "an attempt succeeded".to_owned())
            }
            RetryDecision::Failed => {
                let failed = next.failed;
                let message = format!("{failed} attempts failed; the last one: {why}");
                (ConditionStatus::False, Reason::BackoffLimitExceeded, message)
            }
        };
        let before = status
            .conditions
            .iter()
            .find(|it| it.type_ == ACTION_SUCCEEDED && it.status == is_true);
        next.conditions = vec![MetaCondition {
            type_: ACTION_SUCCEEDED.to_owned(),
            status: is_true,
            observed_generation: Some(self.generation),
            last_transition_time: before
                .map_or_else(|| whole_seconds(now), |it| it.last_transition_time),
            reason: reason.to_string(),
            message,
        }];
        MakerDecision {
            make,
            wake_at: next.next_attempt_time,
            status: changed(status, &next),
            ..MakerDecision::default()
        }
    }

    /// Returns the Action to make, with the given name.
    pub(super) fn action(&self, name: &str) -> Value {
        let (template, requester) = self.template();
        let mut spec = json!(template);
        spec["requester"] = json!(requester);
        json!({
            "apiVersion": ACTION.api_version(),
            "kind": ACTION.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": { OWNER_LABEL: self.name },
                "ownerReferences": [{
                    "apiVersion": self.kind.api_version(),
                    "kind": self.kind.kind,
                    "name": self.name,
                    "uid": self.uid,
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        })
    }

    /// Returns the user in whose name its Actions are requested; `None` if the spec names no user.
    pub(super) fn requester(&self) -> Option<&ActionRequester> {
        self.template().1
    }

    fn template(&self) -> (&ActionSpec, Option<&ActionRequester>) {
        match &self.content {
            Content::Retry(spec, _) => (&spec.template, spec.requester.as_ref()),
            Content::Cron(spec, _) => (&spec.template, spec.requester.as_ref()),
            Content::Event(spec, _) => (&spec.template, spec.requester.as_ref()),
        }
    }
}

fn read<S: DeserializeOwned, T: DeserializeOwned + Default>(
    object: &Value,
) -> Result<(S, T), String> {
    let spec = S::deserialize(&object["spec"]).map_err(|error| format!("spec: {error}"))?;
    let status = match &object["status"] {
        Value::Null => T::default(),
        status => T::deserialize(status).map_err(|error| format!("status: {error}"))?,
    };
    Ok((spec, status))
}

fn listed(made: &[&ActionObject]) -> Vec<MadeAction> {
    let listed = made.iter().map(|it| MadeAction {
        name: it.name.clone(),
        state: it.status.state,
        created: it.created,
        ended: it.status.completion_time,
    });
    listed.collect()
}

/// Returns a status to write; `None` if it is unchanged.
fn changed<T: PartialEq + serde::Serialize>(before: &T, after: &T) -> Option<Value> {
    (before != after).then(|| json!(after))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
