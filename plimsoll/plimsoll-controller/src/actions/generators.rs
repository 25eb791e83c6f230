//! The objects that generate Actions: RetryActions, CronActions and EventActions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use plimsoll_api::olm::action::{
    ACTION_FINALIZER, ActionRequester, ActionSpec, CronActionSpec, CronActionStatus,
    EventActionSpec, EventActionStatus, EventSourceKind, EventType, MissedTimes, OWNER_LABEL,
    RetryActionSpec, RetryActionStatus, TRIGGERED_BY_ANNOTATION,
};
use plimsoll_api::{
    ACTION, ApiKind, CATALOG, CLUSTER_VERSION, CRON_ACTION, EVENT_ACTION, OPERATOR, RETRY_ACTION,
    Reason,
};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::actions::retry::{Attempt, RetryObject};
use plimsoll_operators::actions::triggers::{
    self, CronObject, EventObject, MadeAction, ObjectContent, Observations,
};
use plimsoll_operators::actions::{name_after_collisions, owner_label};
use plimsoll_plan::windows::MaintenanceWindows;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::selection::Selection;

/// The kinds that generate Actions.
pub(super) const GENERATORS: [ApiKind; 3] = [RETRY_ACTION, CRON_ACTION, EVENT_ACTION];

/// The message of an object without a requester.
const REQUESTER_MISSING: &str =
    "spec.requester is missing, so nothing is requested: change the spec, or create it again";

/// The spec and the status, by kind.
#[derive(Debug, Clone)]
enum Content {
    Retry(RetryActionSpec, RetryActionStatus),
    Cron(CronActionSpec, CronActionStatus),
    Event(Box<EventActionSpec>, EventActionStatus),
}

/// An object that generates Actions.
#[derive(Debug, Clone)]
pub(super) struct ActionGenerator {
    pub(super) kind: ApiKind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) revision: String,
    /// The objects that an EventAction selects; `None` if it selects none.
    pub(super) selection: Option<Selection>,
    created: Timestamp,
    generation: i64,
    /// Whether its deletion has begun: then nothing is made any more.
    is_deleted: bool,
    finalizers: Vec<String>,
    content: Content,
}

/// The decision about an object that generates Actions.
#[derive(Debug, Default)]
pub(super) struct GeneratorDecision {
    /// Name of the Action to create, if it is not taken; `None` for none.
    pub(super) create: Option<String>,
    /// Names of Actions to cancel.
    pub(super) cancel: Vec<String>,
    /// Names of Actions to delete.
    pub(super) delete: Vec<String>,
    /// Name of an Action that was made and is not observed; `None` if there is no such Action.
    pub(super) look_for: Option<String>,
    /// Whether the object itself is to be deleted.
    pub(super) is_outlived: bool,
    /// The status to write after the changes; `None` if it is unchanged.
    pub(super) status: Option<Value>,
    /// The time of the next decision; `None` if it depends on changes alone.
    pub(super) wake_at: Option<Timestamp>,
}

impl ActionGenerator {
    /// Reads an object of one of the kinds that generate Actions.
    pub(super) fn read(kind: ApiKind, object: &Value) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let content = match kind {
            RETRY_ACTION => read(object).map(|(spec, status)| Content::Retry(spec, status)),
            CRON_ACTION => read(object).map(|(spec, status)| Content::Cron(spec, status)),
            _ => read(object).map(|(spec, status)| Content::Event(Box::new(spec), status)),
        };
        let (namespace, content) = (text(&metadata["namespace"]), content?);
        let selection = match &content {
            Content::Event(spec, _) => spec
                .trigger
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
            is_deleted: metadata["deletionTimestamp"].is_string(),
            finalizers: Vec::deserialize(&metadata["finalizers"]).unwrap_or_default(),
            selection,
            content,
        })
    }

    /// Returns the finalizers to keep of an object that is being deleted and has ours, which is for
    /// Actions alone; `None` for any other.
    pub(super) fn kept_finalizers(&self) -> Option<Vec<String>> {
        let has_ours = self.finalizers.iter().any(|it| it == ACTION_FINALIZER);
        let others = || self.finalizers.iter().filter(|it| *it != ACTION_FINALIZER).cloned();
        (self.is_deleted && has_ours).then(|| others().collect())
    }

    /// Returns whether it is an EventAction for changes of a kind.
    pub(super) fn looks_for(&self, kind: EventSourceKind) -> bool {
        matches!(&self.content, Content::Event(spec, _) if spec.trigger.kind == kind)
    }

    /// Returns whether changes of Catalogs may make its Actions.
    pub(super) fn depends_on_catalogs(&self) -> bool {
        self.looks_for(EventSourceKind::Catalog) || self.looks_for_updates()
    }

    /// Returns whether it is an EventAction for updates of Operators that become available.
    pub(super) fn looks_for_updates(&self) -> bool {
        matches!(&self.content, Content::Event(spec, _) if spec.trigger.kind == EventSourceKind::Operator
            && spec.trigger.events.contains(&EventType::UpdateAvailable))
    }

    /// Returns the kind whose changes make its Actions; `None` if it is no EventAction.
    pub(super) fn source(&self) -> Option<EventSourceKind> {
        match &self.content {
            Content::Event(spec, _) => Some(spec.trigger.kind),
            Content::Retry(..) | Content::Cron(..) => None,
        }
    }

    /// Returns the names of the objects that have to be read before a decision.
    pub(super) fn needed(
        &self,
        contents: &Result<&BTreeMap<String, ObjectContent>, String>,
        now: Timestamp,
    ) -> Vec<String> {
        match &self.content {
            Content::Event(spec, status) if self.requester().is_some() && !self.is_deleted => {
                self.event_object(spec, status).needed(contents, now)
            }
            _ => Vec::new(),
        }
    }

    fn event_object<'a>(
        &'a self,
        spec: &'a EventActionSpec,
        status: &'a EventActionStatus,
    ) -> EventObject<'a> {
        let ActionGenerator { namespace, name, uid, .. } = self;
        EventObject { namespace, name, uid, spec, status }
    }

    /// Returns the kind of which an EventAction observes all objects; `None` if it selects objects,
    /// or is no EventAction.
    pub(super) fn followed(&self) -> Option<ApiKind> {
        let Content::Event(spec, _) = &self.content else { return None };
        match spec.trigger.kind {
            EventSourceKind::Catalog => Some(CATALOG),
            EventSourceKind::Operator => Some(OPERATOR),
            EventSourceKind::ClusterVersion => Some(CLUSTER_VERSION),
            EventSourceKind::Object => None,
        }
    }

    /// Decides what to do, based on the Actions that were generated so far and, of an EventAction, on what is known
    /// of the objects that it observes. `is_gone` tells that the Action to look for does not exist any more.
    pub(super) fn decide(
        &self,
        generated: &[&ActionObject],
        observations: Option<&Observations<'_>>,
        windows: &MaintenanceWindows,
        is_gone: bool,
        now: Timestamp,
    ) -> GeneratorDecision {
        if self.is_deleted {
            return GeneratorDecision::default();
        }
        match &self.content {
            Content::Retry(spec, status) => self.retry(spec, status, generated, is_gone, now),
            // Without a requester, it would be the controller that requests.
            Content::Cron(..) | Content::Event(..) if self.requester().is_none() => {
                let status = self.with_message(None, REQUESTER_MISSING);
                GeneratorDecision { status, ..GeneratorDecision::default() }
            }
            Content::Cron(spec, status) => {
                let Self { name, uid, created, .. } = self;
                let object = CronObject { name, uid, created: *created, spec, status };
                let decision = triggers::cron(&object, &listed(generated), windows, now);
                GeneratorDecision {
                    create: decision.make,
                    cancel: decision.cancel,
                    delete: decision.delete,
                    status: changed(status, &decision.status),
                    wake_at: decision.wake_at,
                    ..GeneratorDecision::default()
                }
            }
            Content::Event(spec, status) => {
                let Some(observations) = observations else { return GeneratorDecision::default() };
                let made = listed(generated);
                let decision = self.event_object(spec, status).decide(observations, &made, now);
                GeneratorDecision {
                    create: decision.make,
                    delete: decision.delete,
                    status: changed(status, &decision.status),
                    wake_at: decision.wake_at,
                    ..GeneratorDecision::default()
                }
            }
        }
    }

    fn retry(
        &self,
        spec: &RetryActionSpec,
        status: &RetryActionStatus,
        generated: &[&ActionObject],
        is_gone: bool,
        now: Timestamp,
    ) -> GeneratorDecision {
        let attempts: Vec<Attempt> = generated.iter().map(|it| attempt(it)).collect();
        let decision = self.retry_object(spec, status).decide(&attempts, is_gone, now);
        GeneratorDecision {
            status: changed(status, &decision.status),
            create: decision.make,
            cancel: decision.cancel.into_iter().collect(),
            delete: decision.delete,
            look_for: decision.look_for,
            is_outlived: decision.is_outlived,
            wake_at: decision.wake_at,
        }
    }

    fn retry_object<'a>(
        &'a self,
        spec: &'a RetryActionSpec,
        status: &'a RetryActionStatus,
    ) -> RetryObject<'a> {
        let ActionGenerator { name, uid, created, generation, .. } = self;
        let (created, generation) = (*created, *generation);
        RetryObject { name, uid, created, generation, spec, status }
    }

    /// Returns the Action to create, with the given name, or another one if that is taken.
    pub(super) fn action(&self, name: &str) -> Value {
        let name = name_after_collisions(name, &self.uid, self.collisions().unwrap_or_default());
        let (template, requester) = self.template();
        let mut spec = json!(template);
        spec["requester"] = json!(requester);
        let mut action = json!({
            "apiVersion": ACTION.api_version(),
            "kind": ACTION.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": { OWNER_LABEL: owner_label(&self.name) },
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
        });
        if let Content::Event(_, status) = &self.content
            && !status.pending_chain.is_empty()
        {
            let chain = status.pending_chain.join(",");
            action["metadata"]["annotations"] = json!({ TRIGGERED_BY_ANNOTATION: chain });
        }
        action
    }

    /// Returns whether an Action is one that it has generated: other clients may take the names.
    pub(super) fn has_made(&self, action: &DynamicObject) -> bool {
        let is_owner = |it: &OwnerReference| it.controller == Some(true) && it.uid == self.uid;
        let requester = Option::<ActionRequester>::deserialize(&action.data["spec"]["requester"]);
        let is_requested = self
            .requester()
            .is_some_and(|it| requester.is_ok_and(|found| found.as_ref() == Some(it)));
        is_requested && action.owner_references().iter().any(is_owner)
    }

    /// Returns the status that records that the name of the next Action is taken.
    pub(super) fn after_collision(&self) -> Value {
        let collision_count = Some(self.collisions().unwrap_or_default().saturating_add(1));
        match &self.content {
            Content::Retry(_, status) => {
                json!(RetryActionStatus { collision_count, ..status.clone() })
            }
            Content::Cron(_, status) => {
                json!(CronActionStatus { collision_count, ..status.clone() })
            }
            Content::Event(_, status) => {
                json!(EventActionStatus { collision_count, ..status.clone() })
            }
        }
    }

    /// Returns the status that records that the API server refuses the Action that a decision
    /// creates, with its message; `None` if it is unchanged. What made the Action due stays so, but
    /// for an attempt, which has failed.
    pub(super) fn after_refusal(
        &self,
        decision: &GeneratorDecision,
        message: &str,
        now: Timestamp,
    ) -> Option<Value> {
        let Content::Retry(spec, status) = &self.content else {
            let message = format!("an Action is refused: {message}");
            return self.with_message(decision.status.as_ref(), &message);
        };
        let refused = self.retry_object(spec, status).refused(message, now);
        changed(status, &refused.status)
    }

    /// Returns the status of a CronAction or an EventAction with a message and what else was
    /// decided, but that nothing was made; `None` if it is unchanged.
    fn with_message(&self, decided: Option<&Value>, message: &str) -> Option<Value> {
        let message = message.to_owned();
        match &self.content {
            Content::Retry(..) => None,
            Content::Cron(_, status) => {
                let decided = decided.and_then(|it| CronActionStatus::deserialize(it).ok());
                let (last_schedule_time, missed) =
                    (status.last_schedule_time, status.missed.clone());
                let decided = decided.unwrap_or_else(|| status.clone());
                let after = CronActionStatus { message, last_schedule_time, missed, ..decided };
                changed(status, &after)
            }
            Content::Event(_, status) => {
                changed(status, &EventActionStatus { message, ..status.clone() })
            }
        }
    }

    /// Returns the times of its schedule, or of changes, for which no Action was made according to another status,
    /// but those that the present one has.
    pub(super) fn newly_missed(&self, status: &Value) -> Vec<MissedTimes> {
        let (before, after) = match &self.content {
            Content::Retry(..) => return Vec::new(),
            Content::Cron(_, before) => {
                let after = CronActionStatus::deserialize(status).unwrap_or_default();
                (before.missed.clone().into_iter().collect(), after.missed.into_iter().collect())
            }
            Content::Event(_, before) => {
                let after = EventActionStatus::deserialize(status).unwrap_or_default();
                (before.skipped.clone(), after.skipped)
            }
        };
        let (before, after): (Vec<MissedTimes>, Vec<MissedTimes>) = (before, after);
        after.into_iter().filter(|it| !before.contains(it)).collect()
    }

    fn collisions(&self) -> Option<u32> {
        match &self.content {
            Content::Retry(_, status) => status.collision_count,
            Content::Cron(_, status) => status.collision_count,
            Content::Event(_, status) => status.collision_count,
        }
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

fn attempt(action: &ActionObject) -> Attempt {
    let condition = action.condition();
    Attempt {
        name: action.name.clone(),
        state: action.status.state,
        created: action.created,
        ended: action.status.completion_time,
        is_cancelled: action.spec.cancelled,
        is_rejected: condition.is_some_and(|it| it.reason == Reason::PlanRejected.as_str()),
        message: condition.map(|it| it.message.clone()).unwrap_or_default(),
    }
}

fn listed(generated: &[&ActionObject]) -> Vec<MadeAction> {
    let listed = generated.iter().map(|it| MadeAction {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn nightly(status: &Value) -> ActionGenerator {
        let object = json!({
            "metadata": { "name": "nightly", "namespace": "default", "uid": "1" },
            "spec": {
                "schedule": "0 3 * * *",
                "template": { "actionClass": "resolution" },
                "requester": { "username": "alice", "groups": ["dev"] },
            },
            "status": status,
        });
        ActionGenerator::read(CRON_ACTION, &object).expect("it can be read")
    }

    fn install(metadata: &Value, spec: &Value, status: &Value) -> ActionGenerator {
        let mut object = json!({
            "metadata": { "name": "install", "namespace": "default", "uid": "1" },
            "spec": {
                "backoffLimit": 3,
                "template": { "actionClass": "operator-install", "package": "foo", "version": "^1.2.x" },
                "requester": { "username": "alice", "groups": ["dev"] },
            },
            "status": status,
        });
        for (part, values) in [("metadata", metadata), ("spec", spec)] {
            for (name, value) in values.as_object().expect("an object") {
                object[part][name] = value.clone();
            }
        }
        ActionGenerator::read(RETRY_ACTION, &object).expect("it can be read")
    }

    fn decided(retry: &ActionGenerator, attempts: &[&ActionObject]) -> GeneratorDecision {
        retry.decide(
            attempts,
            None,
            &MaintenanceWindows::default(),
            false,
            "2026-01-02T03:00:00Z".parse().unwrap(),
        )
    }

    #[test]
    fn an_attempt_is_what_the_template_says_for_who_requested_it() {
        let retry = install(&json!({}), &json!({}), &Value::Null);
        let decision = decided(&retry, &[]);
        let action = retry.action(&decision.create.expect("one is made"));
        assert_eq!(action["spec"]["package"], "foo");
        assert_eq!(action["spec"]["version"], "^1.2.x");
        assert_eq!(action["spec"]["requester"], json!({ "username": "alice", "groups": ["dev"] }));
        assert_eq!(action["metadata"]["labels"], json!({ OWNER_LABEL: "install" }));
        let owner = &action["metadata"]["ownerReferences"][0];
        let expected = json!({
            "apiVersion": "olm.io/v1", "kind": "RetryAction", "name": "install", "uid": "1",
            "controller": true, "blockOwnerDeletion": true,
        });
        assert_eq!(*owner, expected);
        let status = decision.status.expect("it is recorded");
        assert_eq!(status["latestAttempt"], action["metadata"]["name"]);
        // The name in the status is the one that is used although another one is taken.
        let retry = install(&json!({}), &json!({}), &retry.after_collision());
        let decision = decided(&retry, &[]);
        let other = retry.action(&decision.create.expect("one is made"));
        assert_ne!(other["metadata"]["name"], action["metadata"]["name"]);
        let status = decision.status.expect("it is recorded");
        assert_eq!(status["latestAttempt"], other["metadata"]["name"]);
    }

    #[test]
    fn an_owner_whose_name_is_no_label_value_has_a_shortened_one() {
        let labels = |name: &str| {
            let retry = install(&json!({ "name": name }), &json!({}), &Value::Null);
            let action = retry.action(&decided(&retry, &[]).create.expect("one is made"));
            action["metadata"]["labels"][OWNER_LABEL].as_str().expect("it has one").to_owned()
        };
        let long = "long-".repeat(20);
        let (one, other) = (labels(&format!("{long}one")), labels(&format!("{long}other")));
        assert!(one.len() <= 63 && one.starts_with("long-"), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn nothing_is_made_once_a_deletion_has_begun() {
        let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        for (metadata, is_made) in [(json!({}), true), (deleted, false)] {
            let decision = decided(&install(&metadata, &json!({}), &Value::Null), &[]);
            assert_eq!(decision.create.is_some(), is_made, "{metadata}");
            assert_eq!(decision.status.is_some(), is_made, "{metadata}");
        }
    }

    #[test]
    fn an_attempt_is_cancelled_with_its_retry_action() {
        let retry = install(&json!({}), &json!({}), &Value::Null);
        let name = retry.action(&decided(&retry, &[]).create.expect("one is made"));
        let name = name["metadata"]["name"].as_str().expect("a name").to_owned();
        let retry = install(&json!({}), &json!({ "cancelled": true }), &Value::Null);
        for (is_cancelled, expected) in [(false, vec![name.clone()]), (true, Vec::new())] {
            let spec = ActionSpec { cancelled: is_cancelled, ..ActionSpec::default() };
            let attempt = ActionObject { name: name.clone(), spec, ..ActionObject::default() };
            assert_eq!(decided(&retry, &[&attempt]).cancel, expected);
        }
    }

    #[test]
    fn nothing_is_made_without_a_requester() {
        let (catalogs, objects) = (BTreeMap::new(), BTreeMap::new());
        let known = Observations { contents: Ok(&catalogs), objects: &objects };
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        for (kind, is_message) in [(RETRY_ACTION, false), (CRON_ACTION, true), (EVENT_ACTION, true)]
        {
            let template = json!({ "actionClass": "resolution" });
            let trigger = json!({ "kind": "Catalog" });
            let mut object = json!({
                "metadata": { "name": "a", "namespace": "default", "uid": "1" },
                "spec": { "schedule": "* * * * *", "template": template, "trigger": trigger },
                "status": { "pending": "a-1", "succeeded": 0, "failed": 0 },
            });
            let decided = |object: &Value| {
                let generator = ActionGenerator::read(kind, object).expect("it can be read");
                let made = serde_json::from_value(generator.action("a-1")).expect("an Action");
                (
                    generator.decide(&[], Some(&known), &MaintenanceWindows::default(), false, now),
                    generator.has_made(&made),
                )
            };
            let (decision, has_made) = decided(&object);
            assert_eq!((decision.create, has_made), (None, false), "{}", kind.kind);
            let status = decision.status.expect("it says so");
            let message = match is_message {
                true => &status["message"],
                false => &status["conditions"][0]["message"],
            };
            assert!(message.as_str().is_some_and(|it| it.starts_with("spec.requester is missing")));
            object["spec"]["requester"] = json!({ "username": "alice" });
            let (decision, has_made) = decided(&object);
            assert_eq!((decision.create.is_some(), has_made), (true, true), "{}", kind.kind);
        }
    }

    #[test]
    fn an_action_that_is_refused_stays_due_and_the_status_says_why() {
        let (catalogs, objects) = (BTreeMap::new(), BTreeMap::new());
        let known = Observations { contents: Ok(&catalogs), objects: &objects };
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let refused = |generator: &ActionGenerator| {
            let decision =
                generator.decide(&[], Some(&known), &MaintenanceWindows::default(), false, now);
            assert!(decision.create.is_some(), "it is due");
            generator.after_refusal(&decision, "no quota", now)
        };
        let status = refused(&nightly(&Value::Null)).expect("it is recorded");
        assert_eq!(status, json!({ "message": "an Action is refused: no quota" }));
        assert_eq!(refused(&nightly(&status)), None, "it says so already");
        let follow = |status: &Value| {
            let object = json!({
                "metadata": { "name": "follow", "namespace": "default", "uid": "1" },
                "spec": {
                    "trigger": { "kind": "Catalog" }, "template": { "actionClass": "resolution" },
                    "requester": { "username": "alice" },
                },
                "status": status,
            });
            ActionGenerator::read(EVENT_ACTION, &object).expect("it can be read")
        };
        let status = refused(&follow(&json!({ "pending": "a-1" }))).expect("it is recorded");
        let expected = json!({ "pending": "a-1", "message": "an Action is refused: no quota" });
        assert_eq!(status, expected);
        assert_eq!(refused(&follow(&status)), None, "it says so already");
        // An attempt counts as failed instead.
        let retry = install(&json!({}), &json!({}), &Value::Null);
        let status = refused(&retry).expect("it is counted");
        assert_eq!(status["failed"], 1);
        assert_eq!(status["latestAttempt"], Value::Null);
        assert!(status["nextAttemptTime"].is_string(), "{status}");
    }

    #[test]
    fn missed_times_are_announced_once_and_with_the_action_that_is_made() {
        let decided = |cron: &ActionGenerator, now: &str| {
            let decision = cron.decide(
                &[],
                None,
                &MaintenanceWindows::default(),
                false,
                now.parse().expect("a time"),
            );
            let status = decision.status.clone().unwrap_or_default();
            let missed = cron.newly_missed(&status).pop().map(|it| (it.reason, it.count));
            (decision, missed)
        };
        let cron = nightly(&json!({ "lastScheduleTime": "2026-01-01T03:00:00Z" }));
        let (decision, missed) = decided(&cron, "2026-01-04T04:00:00Z");
        assert_eq!(missed, Some(("ScheduleMissed".to_owned(), 2)));
        let refused = cron.after_refusal(&decision, "no quota", Timestamp::default());
        assert_eq!(refused.expect("it says so")["missed"], Value::Null, "none is made yet");
        let cron = nightly(&decision.status.expect("it is written"));
        assert_eq!(decided(&cron, "2026-01-05T04:00:00Z").1, None);
    }

    #[test]
    fn an_action_has_the_event_actions_that_led_to_it() {
        for (chain, expected) in [(&[][..], Value::Null), (&["a/x", "b/y"], json!("a/x,b/y"))] {
            let object = json!({
                "metadata": { "name": "follow", "namespace": "default", "uid": "1" },
                "spec": {
                    "trigger": { "kind": "Catalog" }, "template": { "actionClass": "resolution" },
                },
                "status": { "pending": "a-1", "pendingChain": chain },
            });
            let follow = ActionGenerator::read(EVENT_ACTION, &object).expect("it can be read");
            let action = follow.action("a-1");
            assert_eq!(action["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION], expected);
        }
    }

    #[test]
    fn an_action_of_another_client_does_not_count_as_made() {
        let cron = nightly(&Value::Null);
        let has_made = |field: &str, value: Value| {
            let mut action = cron.action("nightly-1");
            *action.pointer_mut(field).expect("the field is there") = value;
            cron.has_made(&serde_json::from_value(action).expect("an object"))
        };
        for (field, value, expected) in [
            ("/metadata/labels", json!({}), true),
            ("/metadata/ownerReferences", json!([]), false),
            ("/metadata/ownerReferences/0/uid", json!("2"), false),
            ("/metadata/ownerReferences/0/controller", json!(false), false),
            ("/spec/requester", json!({ "username": "mallory" }), false),
            ("/spec/requester", Value::Null, false),
        ] {
            assert_eq!(has_made(field, value), expected, "{field}");
        }
    }

    #[test]
    fn a_name_that_is_taken_is_recorded_and_another_one_used() {
        let mut names = Vec::new();
        let scheduled = "2026-01-01T03:00:00Z";
        let mut status = json!({ "lastScheduleTime": scheduled });
        for count in 1..=3 {
            let cron = nightly(&status);
            let name = |scheduled: &str| cron.action(scheduled)["metadata"]["name"].clone();
            assert_eq!(name("nightly-1"), name("nightly-1"));
            assert_ne!(name("nightly-1"), name("nightly-2"));
            names.push(name("nightly-1"));
            status = cron.after_collision();
            assert_eq!(status["collisionCount"], count);
            assert_eq!(status["lastScheduleTime"], scheduled, "it is still due");
        }
        assert_eq!(names[0], "nightly-1");
        assert!(names[1] != names[0] && names[1] != names[2] && names[0] != names[2], "{names:?}");
        let cron = nightly(&status);
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let decided = cron
            .decide(&[], None, &MaintenanceWindows::default(), false, now)
            .status
            .expect("it was due");
        assert_eq!(decided["collisionCount"], 3, "{decided}");
    }
}
