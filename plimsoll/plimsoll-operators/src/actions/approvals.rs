//! Approvals of plans: which of them count, and whether a plan has enough.

use std::collections::BTreeSet;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ActionApproval, ActionRequester, ActionSpec, ApprovalDecision};
use plimsoll_api::olm::policy::{PolicyRules, PolicySubject};

use super::subjects::{is_subject, subject_text};
use super::{ActionFailure, enumerated};

/// The approvals that a policy demands of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// The number of users who have to approve it, at least one.
    pub count: usize,
    /// Whose approvals count; none for those of all users.
    pub approvers: Vec<PolicySubject>,
}

/// Whether a plan has the approvals that a policy demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// It has.
    Approved,
    /// Some are missing.
    Missing(ActionFailure),
    /// It was rejected by a user whose approval would count.
    Rejected(ActionFailure),
}

impl ApprovalRule {
    /// Returns what a policy demands; `None` if it demands no approval.
    pub fn of(rules: &PolicyRules) -> Option<Self> {
        let count = rules.approval_count.unwrap_or(1).max(1);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let approvers = rules.approvers.clone();
        rules.is_approval_required().then_some(Self { count, approvers })
    }

    /// Returns whether a plan with a digest has the approvals. An approval counts if it is of this plan, of another
    /// user than the requester, and of one of the approvers; each user counts once.
    pub fn state(&self, spec: &ActionSpec, digest: &str) -> ApprovalState {
        let counts = |it: &&ActionApproval| self.counts(it, spec.requester.as_ref());
        let of_plan = || spec.approvals.iter().filter(|it| it.plan == digest);
        let is_approved = |it: &ActionApproval| it.decision == ApprovalDecision::Approved;
        if let Some(rejection) = of_plan().filter(counts).find(|it| !is_approved(it)) {
            let ActionApproval { approver, reason, .. } = rejection;
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let message = format!("{approver} rejected plan {digest}{why}");
            return ApprovalState::Rejected(ActionFailure::new(Reason::PlanRejected, message));
        }
        let approvers: BTreeSet<&str> =
            of_plan().filter(counts).map(|it| it.approver.as_str()).collect();
        if approvers.len() >= self.count {
            return ApprovalState::Approved;
        }
        let is_void = |it: &&ActionApproval| it.plan != digest && is_approved(it);
        let void = spec.approvals.iter().filter(counts).find(is_void);
        if let Some(ActionApproval { approver, plan, .. }) = void
            && approvers.is_empty()
        {
            let message = format!(
                "{approver} approved plan {plan}, and now it is {digest}: approve that one"
            );
            return ApprovalState::Missing(ActionFailure::new(Reason::PlanChanged, message));
        }
        let mut message = format!("plan {digest} needs {}", self.demand());
        if !approvers.is_empty() {
            let names: Vec<String> = approvers.into_iter().map(str::to_owned).collect();
            message.push_str(&format!(", and has that of {}", enumerated(&names)));
        }
        let others: Vec<String> =
            of_plan().filter(|it| !counts(it)).map(|it| it.approver.clone()).collect();
        if !others.is_empty() {
            message.push_str(&format!("; that of {} does not count", enumerated(&others)));
        }
        let void = spec.approvals.iter().filter(counts).filter(is_void);
        let void: BTreeSet<&str> = void
            .map(|it| it.approver.as_str())
            .filter(|it| of_plan().all(|now| now.approver != *it))
            .collect();
        if !void.is_empty() {
            let names: Vec<String> = void.into_iter().map(str::to_owned).collect();
            message.push_str(&format!("; {} approved another plan", enumerated(&names)));
        }
        ApprovalState::Missing(ActionFailure::new(Reason::ApprovalRequired, message))
    }

    /// Returns whether what a user says of a plan counts.
    pub fn counts(&self, approval: &ActionApproval, requester: Option<&ActionRequester>) -> bool {
        let ActionApproval { approver, groups, .. } = approval;
        let user = ActionRequester { username: approver.clone(), groups: groups.clone() };
        requester.is_some_and(|it| it.username != *approver)
            && (self.approvers.is_empty() || self.approvers.iter().any(|it| is_subject(it, &user)))
    }

    /// Returns what is demanded, such as `2 approvals of group sre or user carol`.
    pub fn demand(&self) -> String {
        let number = match self.count {
            1 => "an approval".to_owned(),
            count => format!("{count} approvals"),
        };
        let names: Vec<String> = self.approvers.iter().map(subject_text).collect();
        match names.is_empty() {
            true => number,
            false => format!("{number} of {}", names.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests;
