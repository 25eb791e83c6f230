//! The lifecycle of an Action: what is to be done with it next, and what its status says then.
//!
//! `PENDING` leads to `RUNNING`, to `APPROVAL` first if a policy demands it, and to an end. What an Action
//! does is in its status before it is begun: a process that takes over executes the same plan.

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

/// Name of the controller of the classes that this program serves.
pub const CONTROLLER: &str = "olm.io/plimsoll";
/// Longest answer of a query in a status, in bytes.
const RESULT_LENGTH_MAX: usize = 64 * 1024;
/// Longest message of a condition that Kubernetes accepts, in bytes.
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;

/// An Action as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its resourceVersion.
    pub revision: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Uid of the RetryAction, CronAction or EventAction that made it; empty if none did.
    pub owner: String,
    /// What is requested.
    pub spec: ActionSpec,
    /// How far it is.
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

    /// What orders Actions: those that were created first go first.
    pub fn order(&self) -> (Timestamp, &str, &str) {
        (self.created, &self.namespace, &self.name)
    }

    /// The status with a state and what the condition of success says.
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

/// What a status is to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// All but the state and its condition.
    pub status: ActionStatus,
    /// The state.
    pub state: ActionState,
    /// Why it is in that state.
    pub reason: Reason,
    /// The same as sentences.
    pub message: String,
}

impl Report {
    /// What is known so far, and how it failed.
    pub fn failed(status: ActionStatus, failure: ActionFailure) -> Self {
        let ActionFailure { reason, message } = failure;
        Self { status, state: ActionState::Failed, reason, message }
    }

    /// What is known so far, and what it waits for.
    pub fn pending(status: ActionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, state: ActionState::Pending, reason, message: message.into() }
    }
}

/// What is to be done with an Action.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep<'a> {
    /// Nothing, or somebody else does it.
    Nothing,
    /// A status is written.
    Report(Box<Report>),
    /// It is judged and planned.
    Decide(&'a NamedClass),
    /// Its plan is executed.
    Execute(&'a NamedClass),
}

/// What is to be done with an Action.
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
            "spec.requester is missing: it is set when an Action is created, and nobody is guessed",
        );
        return report(Report::failed(status.clone(), failure));
    }
    if is_begun { NextStep::Execute(class) } else { NextStep::Decide(class) }
}

/// What somebody may do by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByHand {
    /// Whether one may create Operators.
    pub create: bool,
    /// Whether one may patch Operators.
    pub patch: bool,
    /// Whether one may delete Operators.
    pub delete: bool,
    /// Whether one may list Catalogs.
    pub list: bool,
    /// Whether one may patch the ClusterVersion.
    pub patch_release: bool,
}

impl ByHand {
    /// What is asked for each, in order: the kind and the verb.
    pub const CHECKS: [(ApiKind, &'static str); 5] = [
        (OPERATOR, "create"),
        (OPERATOR, "patch"),
        (OPERATOR, "delete"),
        (CATALOG, "list"),
        (CLUSTER_VERSION, "patch"),
    ];

    /// The answers to [`ByHand::CHECKS`].
    pub fn of([create, patch, delete, list, patch_release]: [bool; 5]) -> Self {
        Self { create, patch, delete, list, patch_release }
    }

    /// Whether one may do what a class does, or all of a plan of it.
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

/// What an Action is decided by.
#[derive(Debug, Clone, Copy)]
pub struct ActionDecision<'a> {
    /// The Action.
    pub action: &'a ActionObject,
    /// Its class.
    pub class: &'a NamedClass,
    /// All policies, by name.
    pub policies: &'a [NamedPolicy],
    /// Number of other Actions of the namespace that go before it and have not ended.
    pub active: usize,
    /// What the requester may do by hand.
    pub by_hand: ByHand,
    /// The moment.
    pub now: Timestamp,
}

/// What is decided on a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanDecision {
    /// Its status says this; the plan is executed if the state is `RUNNING`.
    Report(Box<Report>),
    /// The policy that grants the plan means another one: it is planned again, by these attributes.
    PlanAgain(Box<EffectiveAction>),
}

impl ActionDecision<'_> {
    fn judge(&self, plan: Option<&ActionPlan>, policies: &[NamedPolicy]) -> PolicyVerdict {
        let nobody = ActionRequester::default();
        judge(
            &PolicyRequest {
                namespace: &self.action.namespace,
                requester: self.action.spec.requester.as_ref().unwrap_or(&nobody),
                spec: &self.action.spec,
                class: self.class,
                active: self.active,
                may_by_hand: Some(self.by_hand.may(&self.class.name, plan)),
                plan,
                now: self.now,
            },
            policies,
        )
    }

    /// What policies say of it before there is a plan.
    pub fn verdict(&self) -> PolicyVerdict {
        self.judge(None, self.policies)
    }

    /// The attributes to plan by.
    ///
    /// # Errors
    ///
    /// When no policy grants the Action, whatever its plan: with what is reported.
    pub fn admit(&self) -> Result<EffectiveAction, Box<Report>> {
        let PolicyVerdict { decisions, granted } = self.verdict();
        granted.map(|grant| grant.action).map_err(|failure| {
            let status = ActionStatus { policies: decisions, ..ActionStatus::default() };
            Box::new(Report::failed(status, failure))
        })
    }

    /// Decides on a plan that was made by attributes. `waits_for` says for which other Action it waits.
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
                    answer(&mut status, &failure.message);
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
        report(Report {
            status,
            state: ActionState::Running,
            reason: Reason::ActionRunning,
            message: "the plan is executed".to_owned(),
        })
    }

    /// Why a plan is not approved; `None` if it is.
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

    /// Whether what is left of a plan may still be executed. What has to hold when it begins is of no
    /// concern any more.
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

/// The Action that has to end before another one begins, as both write the same Operators, or both the
/// ClusterVersion: one that is executed, or that waits and was created before. `None` if there is none.
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

/// Number of other Actions of the namespace that go before one and have not ended.
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

/// Gives up what of a plan was not written yet.
pub fn give_up(status: &mut ActionStatus, failure: &ActionFailure) {
    for change in &mut status.plan {
        if change.state == ChangeState::Planned && change.operation != ChangeOperation::Await {
            change.state = ChangeState::Failed;
            change.reason = failure.reason.to_string();
            change.message.clone_from(&failure.message);
        }
    }
}

/// Records the answer to a query, with the digest of all of it.
fn answer(status: &mut ActionStatus, text: &str) {
    status.result_digest = sha256([text.as_bytes()]);
    status.result = limited(text, RESULT_LENGTH_MAX);
}

/// A text of at most so many bytes; one that is longer is cut off, and says so at its end.
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
