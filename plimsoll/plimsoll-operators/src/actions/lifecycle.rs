//! Lifecycle of an Action: its next step, and the status that reports it.
//!
//! `Pending` leads to `Running`, through `WaitingForApproval` if a policy requires it, and then to a final state. The
//! plan is in the status before its execution starts, so that a new leader executes the same plan.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ActionRequester, ActionState, ActionStatus, ChangeOperation, ChangeState, EffectiveAttribute,
};
use plimsoll_api::olm::policy::{ActionPolicySpec, PolicyRules};
use plimsoll_api::{ApiKind, CATALOG, CLUSTER_VERSION, OPERATOR, Reason, whole_seconds};
use plimsoll_content::hash::text_sha256;

use super::approvals::ApprovalState;
use super::attributes::{EffectiveAction, NamedClass};
use super::by_hand::command_in;
use super::check::length_failure;
use super::classes::is_built_in;
use super::plan::ActionPlan;
use super::planning::{AUTOREMOVE, DELETE, INSTALL, RESOLUTION, UPDATE, is_of_release};
use super::policy::{Grant, NamedPolicy, PolicyRequest, PolicyVerdict, is_about, judge};
use super::preconditions::violations;
use super::report::{ActionObject, Report, limited};
use super::{ActionFailure, TEXT_LENGTH_MAX, cut};
use plimsoll_plan::windows::MaintenanceWindows;

/// The maximum length of a query's result in a status, in bytes.
pub const RESULT_LENGTH_MAX: usize = 64 * 1024;
/// The maximum length of the message of a change that was given up, in bytes: each change of a plan
/// has it.
const MESSAGE_LENGTH_MAX: usize = 1024;
/// The maximum length of all lines of an explanation in a status, in bytes.
const EXPLANATION_LENGTH_MAX: usize = 64 * 1024;

/// The next step for an Action.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep<'a> {
    /// Nothing: it has ended or is deleted, another controller serves its class, or there is no
    /// such class, though its status says that it is executed.
    Nothing,
    /// Write a status.
    Report(Box<Report>),
    /// Judge it by policies and plan it.
    Decide(&'a NamedClass),
    /// Execute its plan.
    Execute(&'a NamedClass),
    /// End it without another change: it was cancelled or deleted while its plan was executed.
    Stop,
    /// Remove the finalizer: it has ended, or it is deleted before it began.
    Release,
}

/// Returns the next step for an Action.
pub fn next_step<'a>(action: &ActionObject, classes: &'a [NamedClass]) -> NextStep<'a> {
    let ActionObject { spec, status, .. } = action;
    let released = if action.has_finalizer() { NextStep::Release } else { NextStep::Nothing };
    if status.state.is_final() {
        return released;
    }
    let class = NamedClass::find(classes, &spec.action_class);
    if class.is_some_and(|it| !it.is_ours()) {
        return NextStep::Nothing;
    }
    let is_begun = status.state == ActionState::Running;
    match (is_begun, class) {
        // Another client wrote the status, and it may have set the finalizer as well.
        (true, None) if !is_built_in(&spec.action_class) => {
            return if action.is_deleting { released } else { NextStep::Nothing };
        }
        // What was written is recorded by who executes it: without a finalizer, that was not this program.
        (true, None) if !action.has_finalizer() => return NextStep::Nothing,
        (true, _) if action.is_stopped() => return NextStep::Stop,
        (true, None) => return NextStep::Nothing,
        (false, _) if action.is_deleting => return released,
        _ => {}
    }
    let report = |report: Report| NextStep::Report(Box::new(report));
    if spec.cancelled && !is_begun {
        return report(Report::cancelled(status.clone(), "it was cancelled before it began"));
    }
    let Some(class) = class else {
        let message = format!("there is no ActionClass {}", spec.action_class);
        return report(Report::pending(status.clone(), Reason::ActionClassNotFound, message));
    };
    if let Some(failure) = length_failure(spec).filter(|_| !is_begun) {
        return report(Report::failed(status.clone(), failure));
    }
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

    /// Returns the one of [`DirectPermissions::CHECKS`] that tells whether a user may do what a class does, before there
    /// is a plan; `None` if no permission is enough.
    pub fn check_of(class: &str) -> Option<usize> {
        match class {
            INSTALL => Some(0),
            UPDATE => Some(1),
            DELETE | AUTOREMOVE => Some(2),
            RESOLUTION => Some(3),
            class => is_of_release(class).then_some(4),
        }
    }

    /// Returns whether the user may do what a class does and, if there is a plan, make all of its changes.
    fn may(self, class: &str, plan: Option<&ActionPlan>) -> bool {
        let Self { create, patch, delete, list, patch_release } = self;
        let answers = [create, patch, delete, list, patch_release];
        let of_class = Self::check_of(class).is_some_and(|at| answers[at]);
        let mut changes = plan.iter().flat_map(|it| &it.changes);
        of_class
            && changes.all(|it| match it.operation {
                ChangeOperation::Create => self.create,
                ChangeOperation::Update => self.patch,
                // Fields of its spec are set before the deletion.
                ChangeOperation::Delete => self.delete && (it.spec_fields.is_none() || self.patch),
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
    /// The MaintenanceWindows that the Action and the policies name.
    pub windows: &'a MaintenanceWindows,
    /// The number of other Actions in the namespace that come before it and have not ended.
    pub active: usize,
    /// The Operators that Actions of the namespace have created, or are about to.
    pub created: &'a BTreeSet<String>,
    /// The labels of the namespace.
    pub labels: &'a BTreeMap<String, String>,
    /// The permissions of the requester.
    pub by_hand: DirectPermissions,
    /// The current time.
    pub now: Timestamp,
}

/// A decision on a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanDecision {
    /// Report a status; the plan is executed if the state is `Running`.
    Report(Box<Report>),
    /// Plan again with these attributes: the policy that grants the plan sets different ones.
    PlanAgain(Box<EffectiveAction>),
}

impl ActionDecision<'_> {
    fn judge(
        &self,
        plan: Option<&ActionPlan>,
        planned: &[EffectiveAttribute],
        digest: Option<&str>,
        policies: &[NamedPolicy],
    ) -> PolicyVerdict {
        let unknown = ActionRequester::default();
        let request = PolicyRequest { plan, planned, digest, ..self.request(&unknown, plan) };
        judge(&request, policies)
    }

    /// Returns what policies judge; `unknown` stands for a requester that is not set.
    fn request<'r>(
        &'r self,
        unknown: &'r ActionRequester,
        plan: Option<&'r ActionPlan>,
    ) -> PolicyRequest<'r> {
        PolicyRequest {
            namespace: &self.action.namespace,
            labels: self.labels,
            requester: self.action.spec.requester.as_ref().unwrap_or(unknown),
            spec: &self.action.spec,
            class: self.class,
            active: self.active,
            created: self.created,
            may_directly: Some(self.by_hand.may(&self.class.name, plan)),
            plan,
            planned: &[],
            digest: None,
            windows: self.windows,
            now: self.now,
        }
    }

    /// Judges the Action by policies before there is a plan.
    pub fn verdict(&self) -> PolicyVerdict {
        self.judge(None, &[], None, self.policies)
    }

    /// Returns the attributes to plan with.
    ///
    /// # Errors
    ///
    /// The report of the failure, when no policy grants the Action, whatever its plan.
    pub fn admit(&self) -> Result<EffectiveAction, Box<Report>> {
        let PolicyVerdict { decisions, granted } = self.verdict();
        granted.map(|grant| grant.action).map_err(|failure| {
            let status = ActionStatus { policies: decisions, ..self.unplanned() };
            Box::new(Report::failed(status, failure))
        })
    }

    /// Returns a status without a plan. It keeps how often the execution of an earlier plan was begun.
    pub fn unplanned(&self) -> ActionStatus {
        ActionStatus { attempts: self.action.status.attempts, ..ActionStatus::default() }
    }

    /// Returns whether the Action, or a policy that applies to it, demands that bundles bring no new permissions in all
    /// namespaces.
    pub fn looks_for_permissions(&self) -> bool {
        let unknown = ActionRequester::default();
        let request = self.request(&unknown, None);
        let demands = |it: &PolicyRules| it.preconditions.no_new_cluster_permissions;
        let is_demanding = |NamedPolicy { spec, .. }: &NamedPolicy| {
            let ActionPolicySpec { enforce, warn, audit, .. } = spec;
            [enforce, warn, audit].into_iter().flatten().any(demands) && is_about(spec, &request)
        };
        self.action.spec.preconditions.no_new_cluster_permissions
            || self.policies.iter().any(is_demanding)
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
        let mut status = ActionStatus { effective_spec: attributes.listed(), ..self.unplanned() };
        let mut plan = match plan {
            Ok(plan) => plan,
            Err(failure) => {
                status.policies = self.judge(None, &[], None, self.policies).decisions;
                if self.class.name == RESOLUTION {
                    answer(&mut status, failure.answer());
                }
                let mut failed = Report::failed(status, failure);
                if let Some(details) = &mut failed.status.failure {
                    details.command = command_in(self.class, attributes);
                }
                return report(failed);
            }
        };
        let PolicyVerdict { decisions, granted } =
            self.judge(Some(&plan), &status.effective_spec, None, self.policies);
        if let Ok(grant) = &granted {
            plan.grant(grant.exact);
        }
        status.policies = decisions;
        status.plan_digest = plan.digest();
        status.plan.clone_from(&plan.changes);
        status.explanation = explained(&plan.explanation);
        let Grant { action: granted, approval, .. } = match granted {
            Ok(grant) => grant,
            Err(failure) => return report(Report::failed(status, failure)),
        };
        if granted != *attributes {
            return PlanDecision::PlanAgain(Box::new(granted));
        }
        if let Some(failure) = self.violation(&plan) {
            return report(Report::failed(status, failure));
        }
        if self.class.name == RESOLUTION {
            status.plan_digest = String::new();
            answer(&mut status, &plan.result);
            return report(Report::succeeded(status, "the answer is in status.result"));
        }
        if granted.is_set("dryRun") {
            let succeeded = Report::succeeded(status, "nothing is changed: spec.dryRun is true");
            return report(Report { reason: Reason::DryRun, ..succeeded });
        }
        if plan.changes.is_empty() {
            return report(Report::succeeded(status, "there is nothing to do"));
        }
        let state = approval.map(|it| it.state(&self.action.spec, &status.plan_digest));
        match state.unwrap_or(ApprovalState::Approved) {
            ApprovalState::Approved => {}
            ApprovalState::Rejected(failure) => return report(Report::failed(status, failure)),
            ApprovalState::Missing(ActionFailure { reason, message, .. }) => {
                let state = ActionState::WaitingForApproval;
                return report(Report { status, state, reason, message });
            }
        }
        if let Some(other) = waits_for(&plan) {
            let message = format!("waits for {other}");
            return report(Report::pending(status, Reason::WaitingForAction, message));
        }
        status.start_time = Some(whole_seconds(self.now));
        status.attempts += 1;
        report(Report::running(status))
    }

    /// Returns the failure of the preconditions that a plan violates, about the first of them; `None` if it
    /// violates none.
    fn violation(&self, plan: &ActionPlan) -> Option<ActionFailure> {
        let found = violations(plan, &self.action.spec.preconditions, self.windows, self.now);
        let messages: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
        let message = messages.join("; ");
        found.into_iter().next().map(|first| ActionFailure { message, ..first })
    }

    /// Checks whether the remaining changes of a plan may still be executed. Preconditions and limits on
    /// active Actions only apply before the execution starts.
    ///
    /// # Errors
    ///
    /// When no policy grants it any more, or those that do require an approval that the plan does
    /// not have.
    pub fn admit_further(&self) -> Result<(), ActionFailure> {
        let mut policies = self.policies.to_vec();
        for rules in policies.iter_mut().filter_map(|it| it.spec.enforce.as_mut()) {
            rules.preconditions = Default::default();
            rules.max_active = None;
            rules.max_operators = None;
        }
        let ActionStatus { plan: changes, plan_digest, effective_spec, .. } = &self.action.status;
        let plan = ActionPlan { changes: changes.clone(), ..ActionPlan::default() };
        let verdict = self.judge(Some(&plan), effective_spec, Some(plan_digest), &policies);
        let grant = verdict.granted?;
        let is_by_hand = self.by_hand.may(&self.class.name, Some(&plan));
        let is_as_planned = grant.is_planned(effective_spec) && plan.is_exact(grant.exact);
        if !is_by_hand && !is_as_planned {
            let message = "policies ask for other attributes, versions, catalogs or channels than the plan was \
                           made with";
            return Err(ActionFailure::new(Reason::PlanChanged, message));
        }
        match grant.approval.map(|it| it.state(&self.action.spec, plan_digest)) {
            None | Some(ApprovalState::Approved) => Ok(()),
            Some(ApprovalState::Missing(failure) | ApprovalState::Rejected(failure)) => {
                Err(failure)
            }
        }
    }
}

/// Returns the lines of an explanation that a status has room for.
fn explained(lines: &[String]) -> Vec<String> {
    let (mut shown, mut room) = (Vec::new(), EXPLANATION_LENGTH_MAX);
    for line in lines {
        let line = cut(line, TEXT_LENGTH_MAX);
        if line.len() > room {
            shown.push(format!("and {} more lines", lines.len() - shown.len()));
            break;
        }
        room -= line.len();
        shown.push(line);
    }
    shown
}

/// Marks the changes of a plan that were not written yet as failed, each with the beginning of the
/// message.
pub fn give_up(status: &mut ActionStatus, failure: &ActionFailure) {
    let message = limited(&failure.message, MESSAGE_LENGTH_MAX);
    for change in &mut status.plan {
        if change.state == ChangeState::Planned && change.operation != ChangeOperation::Await {
            change.state = ChangeState::Failed;
            change.unwritten = true;
            change.reason = failure.reason.to_string();
            change.message.clone_from(&message);
        }
    }
}

/// Records the result of a query, with the digest of the complete result. The status has the
/// beginning of one that is too long for it: the controller keeps all of it in ActionParts.
fn answer(status: &mut ActionStatus, text: &str) {
    status.result_digest = text_sha256(text);
    status.result = limited(text, RESULT_LENGTH_MAX);
}

#[cfg(test)]
mod tests;
