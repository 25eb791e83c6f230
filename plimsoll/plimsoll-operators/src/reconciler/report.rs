//! Reports about an Operator: its status, and events about changes of its conditions.

use std::time::Duration;

use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::{DependencyStatus, InstalledApi, OperatorStatus};
use plimsoll_api::{ConditionStatus, Effect, Reason};
use plimsoll_plan::reconciler::events::{EventDraft, Severity};
use plimsoll_plan::update::operators::platform_requirements;
use plimsoll_resolve::Api;
use plimsoll_resolve::requirement::{CheckedRequirement, Provider};

use super::events::{Moment, OperatorEffect, OperatorKind, WrittenPart};
use super::handler::OperatorHandler;
use super::track::{BlockCause, Preparation, STATUS_RETRY, TrackedOperator};
use crate::RequestedOperator;
use crate::conditions::{
    BundleContent, CONSTRAINTS_SATISFIED, ConditionDraft, DEPRECATED, INVALID, OperatorObservation,
    Rollout, condition, conditions, resolved_version,
};

/// The minimum interval between writes of the status of an Operator.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

impl OperatorHandler<'_> {
    /// Writes the status if it changed, and emits events about it.
    pub(super) fn report(&mut self) {
        let Some(request) = self.requested.get(self.name) else { return };
        let mut unavailable = self.cluster.objects.unavailable(self.name);
        if self.operator.object.deleted.is_some()
            && let Some((_, installed)) = self.operator.installed_revision()
        {
            unavailable.extend(self.cluster.objects.missing_workloads(installed));
        }
        let operator = &mut *self.operator;
        let Some(status) = operator.status(self.name, request, &unavailable, self.moment) else {
            return;
        };
        let drafts = condition_events(&operator.reported_conditions, &status.conditions);
        operator.reported_conditions.clone_from(&status.conditions);
        drafts.into_iter().for_each(|draft| self.emit(draft));
        let operator = &mut *self.operator;
        if status == operator.reported {
            operator.status_at = None;
            return;
        }
        let is_moving = operator.is_finalizer_write_pending && operator.object.deleted.is_none();
        if operator.is_status_write_pending || is_moving {
            // The response, or the object as it was written, is still to come.
            return;
        }
        if operator.status_at.is_some_and(|at| at > self.moment.uptime) {
            return;
        }
        operator.status_at = Some(self.moment.uptime + STATUS_INTERVAL);
        operator.is_status_write_pending = true;
        self.output.effects.push(OperatorEffect::WriteStatus {
            kind: OperatorKind::Operator,
            name: self.name.to_owned(),
            status: serde_json::to_value(&status).unwrap_or_default(),
            resource_version: operator.object.resource_version.clone(),
        });
    }

    /// Handles the result of writing a finalizer or the status.
    pub(super) fn written(&mut self, what: WrittenPart, is_written: bool) {
        let operator = &mut *self.operator;
        match what {
            WrittenPart::Status => {
                operator.is_status_write_pending = false;
                let delay = if is_written { STATUS_INTERVAL } else { STATUS_RETRY };
                operator.status_at = Some(self.moment.uptime + delay);
            }
            // The watch shows a finalizer that was written; a failed write is retried.
            WrittenPart::Finalizer if is_written => {}
            WrittenPart::Finalizer => {
                operator.is_finalizer_write_pending = false;
                operator.finalizer_at = Some(self.moment.uptime + STATUS_RETRY);
                if operator.object.deleted.is_none() {
                    // The status no longer waits for the finalizer.
                    self.mark_pending();
                }
                self.removal_unfinished();
            }
        }
    }
}

impl TrackedOperator {
    /// Returns the status to report; `None` before the first decision.
    fn status(
        &self,
        name: &str,
        request: &RequestedOperator,
        unavailable: &[String],
        moment: Moment,
    ) -> Option<OperatorStatus> {
        let mut decision = self.decision.clone()?;
        let block = self.refusal();
        let found = block.map(|(block, _)| block).or(self.set_block.as_ref());
        if let Some(block) = self.spec_block().or_else(|| found.cloned()) {
            decision.block(block);
        }
        let invalid = block.filter(|(_, cause)| *cause == BlockCause::Bundle);
        let bundle = self.bundle_content(invalid.map(|(block, _)| block));
        let mut rollout = self.rollout_state(moment);
        if let (Rollout::Failed { message, .. }, Some((block, _))) = (&mut rollout, block) {
            message.push_str(&format!("; {}", block.message));
        }
        let observation = OperatorObservation {
            name,
            generation: self.object.generation,
            installed: request.installed.as_ref(),
            decision: &decision,
            bundle: &bundle,
            rollout: &rollout,
            unavailable,
        };
        let mut conditions = conditions(&observation, &self.reported.conditions, moment.time);
        if let Some(deletion) = self.deletion_condition() {
            let (before, generation) = (&self.reported.conditions, self.object.generation);
            let deletion = condition(deletion, before, generation, moment.time);
            if let Some(it) = conditions.iter_mut().find(|it| it.type_ == deletion.type_) {
                *it = deletion;
            }
        }
        if let Some((status, reason, message)) = self.invalid() {
            let invalid = ConditionDraft { type_: INVALID, status, reason, message };
            let (before, generation) = (&self.reported.conditions, self.object.generation);
            conditions.push(condition(invalid, before, generation, moment.time));
        }
        let installed = self.installed_revision().map(|(_, revision)| revision);
        let bundle_of = request.installed.as_ref();
        let apis = bundle_of.map(|it| it.bundle.provides.as_slice()).unwrap_or_default();
        let requirements = decision.requirements.iter().chain(&decision.awaited);
        Some(OperatorStatus {
            observed_generation: self.object.generation,
            conditions,
            resolved_version: self.shown_version(),
            namespace: installed.map(|it| it.namespace.clone()).unwrap_or_default(),
            bundle: installed.map(|it| it.bundle.clone()),
            revision: installed.and(self.installed),
            dependencies: requirements.map(dependency_status).collect(),
            dependants: decision.dependants.clone(),
            orphaned: decision.is_orphaned,
            provided_apis: apis.iter().map(installed_api).collect(),
            platform: bundle_of.and_then(|it| platform_requirements(&it.bundle)),
            predecessors: self.reported.predecessors.clone(),
            inventory: installed
                .map(|it| it.manifests().map(|it| it.key.clone()).collect())
                .unwrap_or_default(),
            deletion: self.removal.as_ref().and_then(|it| it.progress().cloned()),
            history: self.history.clone(),
        })
    }

    /// Returns the status, reason and message of the condition that the spec of the Operator, or one of its
    /// OperatorRevisions, cannot be used; `None` if all can.
    fn invalid(&self) -> Option<(ConditionStatus, Reason, String)> {
        if let Some(invalid) = &self.object.invalid {
            return Some(invalid.reported(self.without_spec()));
        }
        let unusable = self.unusable.iter().map(|(name, why)| format!("{name}: {why}"));
        let unusable: Vec<String> = unusable.collect();
        (!unusable.is_empty()).then(|| {
            let message = format!("OperatorRevisions are not used: {}", unusable.join("; "));
            (ConditionStatus::True, Reason::InvalidSpec, message)
        })
    }

    /// Returns the requested and the installed version; as they were reported if the spec was never read.
    fn shown_version(&self) -> String {
        let installed = self.installed_revision().map(|(_, it)| &it.bundle);
        match self.spec_block() {
            Some(_) => self.reported.resolved_version.clone(),
            None => resolved_version(&self.object.spec.version, installed),
        }
    }

    /// Returns the state of the content of the bundle that is installed or about to be.
    fn bundle_content(&self, block: Option<&crate::OperatorBlock>) -> BundleContent {
        let wanted = self.preparation.as_ref().map(Preparation::wanted);
        if let (Some(block), Some(wanted)) = (block, wanted) {
            return BundleContent::Invalid {
                bundle: wanted.bundle.name.clone(),
                message: block.message.clone(),
            };
        }
        let rollout = self.rollout.as_ref().and_then(|it| self.revisions.get(&it.number));
        let installed = self.installed_revision().map(|(_, revision)| revision);
        match rollout.or(installed) {
            Some(revision) => BundleContent::Valid { bundle: revision.bundle.name.clone() },
            None => match &self.preparation {
                Some(
                    Preparation::Inspecting { wanted, .. } | Preparation::Writing { wanted, .. },
                ) => BundleContent::Valid { bundle: wanted.bundle.name.clone() },
                Some(Preparation::Failed {
                    wanted,
                    cause: BlockCause::Cluster | BlockCause::Member,
                    ..
                }) => BundleContent::Valid { bundle: wanted.bundle.name.clone() },
                // It is read again after a failure that was not due to its content.
                Some(Preparation::Reading { wanted, .. })
                    if matches!(
                        &self.last_block,
                        Some((_, BlockCause::Cluster | BlockCause::Member))
                    ) =>
                {
                    BundleContent::Valid { bundle: wanted.bundle.name.clone() }
                }
                _ => BundleContent::Unread,
            },
        }
    }

    fn rollout_state(&self, moment: Moment) -> Rollout {
        let Some(rollout) = self.rollout.as_ref().filter(|it| !it.is_complete) else {
            return Rollout::Idle;
        };
        let progress = rollout.execution.progress();
        let release = &progress.plan().release;
        let bundle = self.revisions.get(&rollout.number).map(|it| it.bundle.clone());
        let bundle = bundle.unwrap_or_else(|| plimsoll_api::olm::BundleReference {
            name: release.image.clone(),
            version: release.version.clone(),
            ..Default::default()
        });
        let problems = progress.problems(moment.steady);
        let failed = problems.iter().find(|it| it.effect == Some(Effect::Fail));
        match (&rollout.overdue, failed) {
            (Some(overdue), _) => Rollout::Failed { bundle, message: overdue.clone() },
            (None, Some(problem)) => Rollout::Failed { bundle, message: problem.message.clone() },
            (None, None) => Rollout::UnderWay {
                bundle,
                done: progress.done().len(),
                total: progress.plan().steps.len(),
                waits_for: problems.first().map(|it| it.message.clone()).unwrap_or_default(),
            },
        }
    }
}

fn dependency_status(requirement: &CheckedRequirement) -> DependencyStatus {
    let CheckedRequirement { text, provider, package, version, missing } = requirement;
    DependencyStatus {
        requirement: text.clone(),
        satisfied: provider.is_some(),
        operator: match provider {
            Some(Provider::Installed(package)) => package.clone(),
            Some(Provider::Itself | Provider::Cluster) | None => {
                package.clone().unwrap_or_default()
            }
        },
        version: version.as_ref().map(ToString::to_string).unwrap_or_default(),
        message: if provider.is_some() { String::new() } else { missing.clone() },
    }
}

fn installed_api(api: &Api) -> InstalledApi {
    let Api { group, version, kind } = api;
    InstalledApi { group: group.clone(), version: version.clone(), kind: kind.clone() }
}

/// Returns events about conditions that changed: one for each change, even after restarts.
fn condition_events(before: &[MetaCondition], after: &[MetaCondition]) -> Vec<EventDraft> {
    let mut drafts = Vec::new();
    for condition in after {
        let old = before.iter().find(|it| it.type_ == condition.type_);
        let is_same = old.is_some_and(|it| {
            // The message has the unmet requirements.
            it.status == condition.status
                && it.reason == condition.reason
                && (condition.type_ != CONSTRAINTS_SATISFIED || it.message == condition.message)
        });
        let is_stuck = condition.reason == Reason::OperandsStuck.as_str();
        let is_bad = match condition.type_.as_str() {
            "Degraded" | DEPRECATED | INVALID => condition.status == ConditionStatus::True,
            _ => condition.status == ConditionStatus::False || is_stuck,
        };
        // These repeat other conditions, or are expected.
        let is_expected = (matches!(condition.type_.as_str(), "Progressing" | "Available")
            && !is_stuck)
            || condition.reason == Reason::NotInstalled.as_str();
        let is_well_again = condition.type_ == CONSTRAINTS_SATISFIED && old.is_some();
        let is_notable =
            is_bad || is_well_again || condition.reason == Reason::InstallationSucceeded.as_str();
        if is_same || is_expected || !is_notable {
            continue;
        }
        let Some(reason) = Reason::ALL.iter().find(|it| it.as_str() == condition.reason) else {
            continue;
        };
        drafts.push(EventDraft {
            severity: if is_bad { Severity::Warning } else { Severity::Normal },
            reason: *reason,
            action: "Reconcile",
            note: condition.message.clone(),
            related: None,
        });
    }
    drafts
}

#[cfg(test)]
mod tests {
    //! Tests of events about conditions.

    use jiff::Timestamp;

    use super::*;

    fn conditions(text: &'static str) -> Vec<MetaCondition> {
        let condition = |text: &'static str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let [type_, status, reason, message] = words[..] else { unreachable!("{text}") };
            let status =
                if status == "True" { ConditionStatus::True } else { ConditionStatus::False };
            let reason = Reason::ALL.iter().find(|it| it.as_str() == reason).expect("a reason");
            let draft = ConditionDraft { type_, status, reason: *reason, message: message.into() };
            condition(draft, &[], 1, Timestamp::UNIX_EPOCH)
        };
        text.split(',').filter(|it| !it.trim().is_empty()).map(condition).collect()
    }

    #[test]
    fn each_change_is_emitted_once() {
        let check = |before: &'static str, after: &'static str, expected: &[&str]| {
            let drafts = condition_events(&conditions(before), &conditions(after));
            let reasons: Vec<&str> = drafts.iter().map(|it| it.reason.as_str()).collect();
            assert_eq!(reasons, expected, "{before:?} {after:?}");
        };
        let unmet = "ConstraintsSatisfied False UnmetDependency foo";
        let installed = "Installed True InstallationSucceeded foo";
        check("", installed, &["InstallationSucceeded"]);
        // A new process begins with the conditions that the Operator reports.
        check(installed, installed, &[]);
        check("", unmet, &["UnmetDependency"]);
        check(unmet, unmet, &[]);
        check(unmet, "ConstraintsSatisfied False UnmetDependency bar", &["UnmetDependency"]);
        check(unmet, "ConstraintsSatisfied True AsExpected foo", &["AsExpected"]);
        check("", "ConstraintsSatisfied True AsExpected foo", &[]);
        check("", "Available False NotInstalled foo", &[]);
    }
}
