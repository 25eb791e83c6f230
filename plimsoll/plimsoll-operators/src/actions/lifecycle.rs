//! Lifecycle of an Action: its next step, and the status that reports it.
//!
//! `PENDING` leads to `RUNNING`, through `APPROVAL` if a policy requires it, and then to a final state. The
//! plan is in the status before its execution starts, so that a new leader executes the same plan.

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionApproval, ActionRequester, ActionSpec, ActionState, ActionStatus,
    ChangeOperation, ChangeState, PlannedChange,
};
use plimsoll_api::{
    ApiKind, CATALOG, CLUSTER_VERSION, ConditionStatus, OPERATOR, Reason, whole_seconds,
};
use plimsoll_content::hash::sha256;
use serde::Deserialize as _;
use serde_json::Value;

use super::ActionFailure;
use super::attributes::{EffectiveAction, NamedClass};
use super::plan::ActionPlan;
use super::planning::{AUTOREMOVE, DELETE, INSTALL, RESOLUTION, UPDATE, is_of_release};
use super::policy::{Grant, NamedPolicy, PolicyRequest, PolicyVerdict, judge};
use super::preconditions::violations;
use crate::conditions::{ConditionDraft, condition};

/// The controller name of the classes that this program serves.
pub const CONTROLLER: &str = "olm.io/plimsoll";
/// The maximum length of a query's result in a status, in bytes.
const RESULT_LENGTH_MAX: usize = 64 * 1024;
/// The maximum length of a condition message that Kubernetes accepts, in bytes.
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;

/// An Action as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionObject {
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object; empty if it has none.
    pub uid: String,
    /// The creation time.
    pub created: Timestamp,
    /// The resourceVersion.
    pub revision: String,
    /// The generation of its spec.
    pub generation: i64,
    /// The uid of the RetryAction, CronAction or EventAction that created it; empty if none did.
    pub owner: String,
    /// The requested spec.
    pub spec: ActionSpec,
    /// The status.
    pub status: ActionStatus,
}

impl ActionObject {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// When it does not have the form of an Action.
    pub fn read(object: &Value) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners.into_iter().find(|it| it["controller"] == true);
        let status = match &object["status"] {
            Value::Null => ActionStatus::default(),
            status => {
                ActionStatus::deserialize(status).map_err(|error| format!("status: {error}"))?
            }
        };
        Ok(Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            created: text(&metadata["creationTimestamp"]).parse().unwrap_or_default(),
            revision: text(&metadata["resourceVersion"]),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            owner: owner.map(|it| text(&it["uid"])).unwrap_or_default(),
            spec: ActionSpec::deserialize(&object["spec"])
                .map_err(|error| format!("spec: {error}"))?,
            status,
        })
    }

    /// Returns the sort key of Actions: the creation time, then namespace and name.
    pub fn order(&self) -> (Timestamp, &str, &str) {
        (self.created, &self.namespace, &self.name)
    }

    /// Returns the status for a report, with its state and the condition of success.
    pub fn reported(&self, report: Report, now: Timestamp) -> ActionStatus {
        let Report { mut status, state, reason, message } = report;
        let succeeded = match state {
            ActionState::Succeeded => ConditionStatus::True,
            ActionState::Failed | ActionState::Cancelled => ConditionStatus::False,
            ActionState::Pending | ActionState::Approval | ActionState::Running => {
                ConditionStatus::Unknown
            }
        };
        let message = limited(&message, MESSAGE_LENGTH_MAX);
        let draft = ConditionDraft { type_: ACTION_SUCCEEDED, status: succeeded, reason, message };
        let succeeded = condition(draft, &self.status.conditions, self.generation, now);
        status.conditions.retain(|it| it.type_ != ACTION_SUCCEEDED);
        status.conditions.insert(0, succeeded);
        status.requester.clone_from(&self.spec.requester);
        status.state = state;
        if state.is_final() && status.completion_time.is_none() {
            status.completion_time = Some(whole_seconds(now));
        }
        status
    }
}

/// A state to report in the status of an Action.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The status, except for the state and the condition of success.
    pub status: ActionStatus,
    /// The state to report.
    pub state: ActionState,
    /// The reason for the state.
    pub reason: Reason,
    /// The message for users.
    pub message: String,
}

impl Report {
    /// Creates the report of a failure.
    pub fn failed(status: ActionStatus, failure: ActionFailure) -> Self {
        let ActionFailure { reason, message, answer: _ } = failure;
        Self { status, state: ActionState::Failed, reason, message }
    }

    /// Creates the report of an Action whose plan is executed.
    pub fn running(status: ActionStatus) -> Self {
        Self {
            status,
            state: ActionState::Running,
            reason: Reason::ActionRunning,
            message: "the plan is executed".to_owned(),
        }
    }

    /// Creates the report of an Action that waits.
    pub fn pending(status: ActionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, state: ActionState::Pending, reason, message: message.into() }
    }
}

/// The next step for an Action.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep<'a> {
    /// Nothing: it has ended, another controller serves its class, or the class was deleted during execution.
    Nothing,
    /// Write a status.
    Report(Box<Report>),
    /// Judge it by policies and plan it.
    Decide(&'a NamedClass),
    /// Execute its plan.
    Execute(&'a NamedClass),
}

/// Returns the next step for an Action.
pub fn next_step<'a>(action: &ActionObject, classes: &'a [NamedClass]) -> NextStep<'a> {
    let ActionObject { spec, status, .. } = action;
    if status.state.is_final() {
        return NextStep::Nothing;
    }
    let class = NamedClass::find(classes, &spec.action_class);
    let is_begun = status.state == ActionState::Running;
    if class.is_some_and(|it| it.spec.controller != CONTROLLER) || (class.is_none() && is_begun) {
        return NextStep::Nothing;
    }
    let report = |report: Report| NextStep::Report(Box::new(report));
    if spec.cancelled && !is_begun {
        return report(Report {
            status: status.clone(),
            state: ActionState::Cancelled,
            reason: Reason::ActionCancelled,
            message: "it was cancelled before it began".to_owned(),
        });
    }
    let Some(class) = class else {
        let message = format!("there is no ActionClass {}", spec.action_class);
        return report(Report::pending(status.clone(), Reason::ActionClassNotFound, message));
    };
    if spec.requester.is_none() {
        let failure = ActionFailure::new(
            Reason::InvalidAction,
            "spec.requester is missing: it is set when an Action is created, and has no default",
        );
        return report(Report::failed(status.clone(), failure));
    }
    if is_begun { NextStep::Execute(class) } else { NextStep::Decide(class) }
}

/// The permissions of a user to make changes directly, without an Action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectPermissions {
    /// Whether the user may create Operators.
    pub create: bool,
    /// Whether the user may patch Operators.
    pub patch: bool,
    /// Whether the user may delete Operators.
    pub delete: bool,
    /// Whether the user may list Catalogs.
    pub list: bool,
    /// Whether the user may patch the ClusterVersion.
    pub patch_release: bool,
}

impl DirectPermissions {
    /// The kinds and verbs to check, in order.
    pub const CHECKS: [(ApiKind, &'static str); 5] = [
        (OPERATOR, "create"),
        (OPERATOR, "patch"),
        (OPERATOR, "delete"),
        (CATALOG, "list"),
        (CLUSTER_VERSION, "patch"),
    ];

    /// Returns the permissions for the answers to [`DirectPermissions::CHECKS`].
    pub fn of([create, patch, delete, list, patch_release]: [bool; 5]) -> Self {
        Self { create, patch, delete, list, patch_release }
    }

    /// Returns whether the user may do what a class does and, if there is a plan, make all of its changes.
    fn may(self, class: &str, plan: Option<&ActionPlan>) -> bool {
        let of_class = match class {
            INSTALL => self.create,
            UPDATE => self.patch,
            DELETE | AUTOREMOVE => self.delete,
            RESOLUTION => self.list,
            class => is_of_release(class) && self.patch_release,
        };
        let mut changes = plan.iter().flat_map(|it| &it.changes);
        of_class
            && changes.all(|it| match it.operation {
                ChangeOperation::Create => self.create,
                ChangeOperation::Update => self.patch,
                ChangeOperation::Delete => self.delete,
                ChangeOperation::UpdateRelease | ChangeOperation::EnableCapability => {
                    self.patch_release
                }
                ChangeOperation::Await => true,
            })
    }
}

/// The inputs of a decision on an Action.
#[derive(Debug, Clone, Copy)]
pub struct ActionDecision<'a> {
    /// The Action to decide on.
    pub action: &'a ActionObject,
    /// The class of the Action.
    pub class: &'a NamedClass,
    /// All policies, by name.
    pub policies: &'a [NamedPolicy],
    /// The number of other Actions in the namespace that come before it and have not ended.
    pub active: usize,
    /// The permissions of the requester.
    pub by_hand: DirectPermissions,
    /// The current time.
    pub now: Timestamp,
}

/// A decision on a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanDecision {
    /// Report a status; the plan is executed if the state is `RUNNING`.
    Report(Box<Report>),
    /// Plan again with these attributes: the policy that grants the plan sets different ones.
    PlanAgain(Box<EffectiveAction>),
}

impl ActionDecision<'_> {
    fn judge(&self, plan: Option<&ActionPlan>, policies: &[NamedPolicy]) -> PolicyVerdict {
        let unknown = ActionRequester::default();
        judge(
            &PolicyRequest {
                namespace: &self.action.namespace,
                requester: self.action.spec.requester.as_ref().unwrap_or(&unknown),
                spec: &self.action.spec,
                class: self.class,
                active: self.active,
                may_directly: Some(self.by_hand.may(&self.class.name, plan)),
                plan,
                now: self.now,
            },
            policies,
        )
    }

    /// Judges the Action by policies before there is a plan.
    pub fn verdict(&self) -> PolicyVerdict {
        self.judge(None, self.policies)
    }

    /// Returns the attributes to plan with.
    ///
    /// # Errors
    ///
    /// The report of the failure, when no policy grants the Action, whatever its plan.
    pub fn admit(&self) -> Result<EffectiveAction, Box<Report>> {
        let PolicyVerdict { decisions, granted } = self.verdict();
        granted.map(|grant| grant.action).map_err(|failure| {
            let status = ActionStatus { policies: decisions, ..ActionStatus::default() };
            Box::new(Report::failed(status, failure))
        })
    }

    /// Decides on a plan that was made with `attributes`. `waits_for` returns the other Action that a plan
    /// waits for, as text.
    pub fn decide(
        &self,
        attributes: &EffectiveAction,
        plan: Result<ActionPlan, ActionFailure>,
        waits_for: impl FnOnce(&ActionPlan) -> Option<String>,
    ) -> PlanDecision {
        let report = |report: Report| PlanDecision::Report(Box::new(report));
        let mut status =
            ActionStatus { effective_spec: attributes.listed(), ..ActionStatus::default() };
        let mut plan = match plan {
            Ok(plan) => plan,
            Err(failure) => {
                status.policies = self.judge(None, self.policies).decisions;
                if self.class.name == RESOLUTION {
                    answer(&mut status, failure.answer());
                }
                return report(Report::failed(status, failure));
            }
        };
        let PolicyVerdict { decisions, granted } = self.judge(Some(&plan), self.policies);
        if let Ok(grant) = &granted {
            plan.request_exactly(grant.exact_versions, grant.exact_catalogs);
        }
        status.policies = decisions;
        status.plan_digest = plan.digest();
        status.plan.clone_from(&plan.changes);
        status.explanation.clone_from(&plan.explanation);
        let Grant { action: granted, requires_approval, .. } = match granted {
            Ok(grant) => grant,
            Err(failure) => return report(Report::failed(status, failure)),
        };
        if granted != *attributes {
            return PlanDecision::PlanAgain(Box::new(granted));
        }
        let broken = violations(&plan, &self.action.spec.preconditions, self.now);
        if let Some(first) = broken.first() {
            let messages: Vec<&str> = broken.iter().map(|it| it.message.as_str()).collect();
            let failure = ActionFailure::new(first.reason, messages.join("; "));
            return report(Report::failed(status, failure));
        }
        let succeeded = |status, reason, message: String| {
            report(Report { status, state: ActionState::Succeeded, reason, message })
        };
        if self.class.name == RESOLUTION {
            status.plan_digest = String::new();
            answer(&mut status, &plan.result);
            let message = "the answer is in status.result".to_owned();
            return succeeded(status, Reason::ActionSucceeded, message);
        }
        if granted.is_set("dryRun") {
            let message = "nothing is changed: spec.dryRun is true".to_owned();
            return succeeded(status, Reason::DryRun, message);
        }
        if plan.changes.is_empty() {
            return succeeded(status, Reason::ActionSucceeded, "there is nothing to do".to_owned());
        }
        if requires_approval && let Some((reason, message)) = self.unapproved(&status.plan_digest) {
            return report(Report { status, state: ActionState::Approval, reason, message });
        }
        if let Some(other) = waits_for(&plan) {
            let message = format!("waits for {other}");
            return report(Report::pending(status, Reason::WaitingForAction, message));
        }
        status.start_time = Some(whole_seconds(self.now));
        report(Report::running(status))
    }

    /// Returns the reason and message if a plan is not approved; `None` if it is.
    fn unapproved(&self, digest: &str) -> Option<(Reason, String)> {
        match &self.action.spec.approval {
            Some(ActionApproval { plan, .. }) if plan == digest => None,
            Some(ActionApproval { plan, approver }) => Some((
                Reason::PlanChanged,
                format!(
                    "{approver} approved plan {plan}, and now it is {digest}: approve that one"
                ),
            )),
            None => {
                Some((Reason::ApprovalRequired, format!("plan {digest} waits for an approval")))
            }
        }
    }

    /// Checks whether the remaining changes of a plan may still be executed. Preconditions and limits on
    /// active Actions only apply before the execution starts.
    ///
    /// # Errors
    ///
    /// When no policy grants it any more.
    pub fn admit_further(&self) -> Result<(), ActionFailure> {
        let mut policies = self.policies.to_vec();
        for rules in policies.iter_mut().filter_map(|it| it.spec.enforce.as_mut()) {
            rules.preconditions = Default::default();
            rules.max_active = None;
        }
        let changes = self.action.status.plan.clone();
        let plan = ActionPlan { changes, ..ActionPlan::default() };
        self.judge(Some(&plan), &policies).granted.map(|_| ())
    }
}

/// Returns the Action that must end before another one starts, because both write the same Operator or the
/// ClusterVersion: one that is running, or that is pending and was created before. `None` if there is none.
pub fn waits_for<'a>(
    action: &ActionObject,
    plan: &ActionPlan,
    others: impl IntoIterator<Item = &'a ActionObject>,
) -> Option<String> {
    others.into_iter().find_map(|other| {
        let goes_before = match other.status.state {
            ActionState::Running => true,
            ActionState::Pending => other.order() < action.order() && !other.spec.cancelled,
            ActionState::Approval => false,
            ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
        };
        if other.uid == action.uid || !goes_before {
            return None;
        }
        let is_changed =
            |it: &&PlannedChange| plan.changes.iter().any(|own| own.operator == it.operator);
        let ActionObject { namespace, name, .. } = other;
        let shared = other.status.plan.iter().find(is_changed)?;
        Some(format!("Action {namespace}/{name}, which changes {}", shared.subject()))
    })
}

/// Returns the number of other Actions in the namespace that come before an Action and have not ended.
pub fn active<'a>(
    action: &ActionObject,
    others: impl IntoIterator<Item = &'a ActionObject>,
) -> usize {
    let goes_before = |other: &&ActionObject| {
        other.namespace == action.namespace
            && other.uid != action.uid
            && match other.status.state {
                ActionState::Running | ActionState::Approval => true,
                ActionState::Pending => other.order() < action.order(),
                ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
            }
    };
    others.into_iter().filter(goes_before).count()
}

/// Marks the changes of a plan that were not written yet as failed.
pub fn give_up(status: &mut ActionStatus, failure: &ActionFailure) {
    for change in &mut status.plan {
        if change.state == ChangeState::Planned && change.operation != ChangeOperation::Await {
            change.state = ChangeState::Failed;
            change.reason = failure.reason.to_string();
            change.message.clone_from(&failure.message);
        }
    }
}

/// Records the result of a query, with the digest of the complete result.
fn answer(status: &mut ActionStatus, text: &str) {
    status.result_digest = sha256([text.as_bytes()]);
    status.result = limited(text, RESULT_LENGTH_MAX);
}

/// Truncates a text to a number of bytes; a truncated text ends with a note.
fn limited(text: &str, length_max: usize) -> String {
    if text.len() <= length_max {
        return text.to_owned();
    }
    let note = format!("\n(cut off: it has {} bytes)", text.len());
    let mut end = length_max.saturating_sub(note.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{note}", &text[..end])
}

#[cfg(test)]
mod tests;
