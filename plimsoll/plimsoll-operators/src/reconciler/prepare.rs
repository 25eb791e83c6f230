//! Preparation of a revision of the selected bundle: the bundle is read, the objects that it would apply are
//! inspected, and the revision is written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::olm::{CollisionProtection, CrdUpgradeSafety};
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_plan::reconciler::events;

use super::messages;
use super::revision::{KeptRevision, RevisionContent, RevisionDraft};
use super::track::{Preparation, RevisionInputs, TrackedOperator};
use super::{Findings, FoundObject, Moment, OperatorEffect, OperatorReconciler};
use crate::{OperatorAction, OperatorBlock, OperatorDecision};

/// The delay before a failed preparation is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The progress of a preparation.
pub(super) enum Step {
    /// The cluster has the revision.
    Ready { number: u32, risks: Vec<String> },
    /// The preparation is in progress, or blocked.
    Waits,
}

impl TrackedOperator {
    /// Records a decision, or a block if it cannot be carried out.
    pub(super) fn decided(&mut self, name: &str, decision: OperatorDecision) {
        let mut decision = decision;
        let block = match &decision.action {
            OperatorAction::RollBack { revision } => {
                let is_kept = self.revisions.get(revision).is_some_and(KeptRevision::is_complete);
                (!is_kept).then(|| messages::revision_not_kept(self, *revision))
            }
            OperatorAction::Upgrade(chosen) if self.was_rolled_back(&chosen.reference.name) => {
                Some(messages::rolled_back(name, &chosen.reference))
            }
            _ => None,
        };
        if let Some(block) = block {
            decision.action = OperatorAction::Blocked(block);
        }
        self.decision = Some(decision);
    }

    /// Returns a sentence for each Deployment of the installed revision whose selector another revision
    /// changes: selectors are immutable.
    fn replaced_workloads(&self, draft: &RevisionDraft) -> Vec<String> {
        let Some((_, installed)) = self.installed_revision() else { return Vec::new() };
        let of_kind = |it: &&Manifest| it.key.group == "apps" && it.key.kind == "Deployment";
        let before: BTreeMap<&ObjectKey, &Manifest> =
            installed.manifests().filter(of_kind).map(|it| (&it.key, it)).collect();
        let selector = |it: &Manifest| it.object()["spec"]["selector"].clone();
        let after = draft.objects.iter().map(|it| &it.manifest).filter(of_kind);
        let changed = after.filter(|after| {
            before.get(&after.key).is_some_and(|before| selector(before) != selector(after))
        });
        changed.map(|it| messages::replaced(&it.key)).collect()
    }
}

impl OperatorReconciler {
    /// Takes the next step of preparing a revision.
    pub(super) fn prepare(&mut self, name: &str, wanted: RevisionInputs, moment: Moment) -> Step {
        let Some(operator) = self.operators.get(name) else { return Step::Waits };
        // A previous process, or a rollout that was interrupted, may have made such a revision.
        let is_like = |it: &KeptRevision| {
            it.is_complete()
                && it.bundle.name == wanted.bundle.name
                && it.is_made_for(wanted.config.as_ref(), self.facts.as_ref())
                && (wanted.namespace.is_empty() || it.namespace == wanted.namespace)
        };
        let made = operator.revisions.iter().rev().find(|(number, it)| {
            operator.installed.is_none_or(|installed| **number > installed) && is_like(it)
        });
        if let Some((&number, it)) = made {
            let risks = wanted.risks.iter().chain(&it.risks).cloned().collect();
            if let Some(operator) = self.operators.get_mut(name) {
                operator.last_block = None;
            }
            return Step::Ready { number, risks };
        }
        if let Some(preparation) = &operator.preparation
            && preparation.wanted().is_like(&wanted)
        {
            // Another spec may remove the blocker.
            let is_over = matches!(preparation, Preparation::Failed { retry_at, wanted: failed, .. }
                if *retry_at <= moment.uptime || failed.generation != wanted.generation);
            if !is_over {
                return Step::Waits;
            }
        }
        let Some(source) = self.source(&wanted.bundle.catalog) else {
            self.fail(name, wanted, messages::catalog_gone, moment);
            return Step::Waits;
        };
        let ticket = self.ticket();
        let Some(operator) = self.operators.get_mut(name) else { return Step::Waits };
        let mut spec = operator.object.spec.clone();
        if let (true, Some((_, installed))) =
            (spec.namespace.is_empty(), operator.installed_revision())
        {
            // The namespace is that of the installed revision, whatever the next bundle suggests.
            spec.namespace.clone_from(&installed.namespace);
        }
        self.effects.push(OperatorEffect::ReadBundle {
            operator: name.to_owned(),
            ticket,
            bundle: wanted.bundle.clone(),
            source,
            spec: Box::new(spec),
        });
        // A failure is reported until it is known whether the retry fails, too.
        operator.last_block = match operator.preparation.take() {
            Some(Preparation::Failed { block, is_bundle, .. }) => Some((block, is_bundle)),
            _ => None,
        };
        operator.preparation = Some(Preparation::Reading { ticket, wanted });
        Step::Waits
    }

    fn fail(
        &mut self,
        name: &str,
        wanted: RevisionInputs,
        block: impl FnOnce(&RevisionInputs) -> (OperatorBlock, bool),
        moment: Moment,
    ) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let (block, is_bundle) = block(&wanted);
        operator.last_block = None;
        let retry_at = moment.uptime + RETRY_INTERVAL;
        operator.preparation = Some(Preparation::Failed { wanted, block, is_bundle, retry_at });
        self.unsettled.insert(name.to_owned());
    }

    /// Takes the preparation of an Operator if an answer has its ticket.
    fn answered(&mut self, name: &str, ticket: u64) -> Option<Preparation> {
        let operator = self.operators.get_mut(name)?;
        let asked = match operator.preparation.as_ref()? {
            Preparation::Reading { ticket, .. }
            | Preparation::Inspecting { ticket, .. }
            | Preparation::Writing { ticket, .. } => *ticket,
            Preparation::Failed { .. } => return None,
        };
        if asked != ticket {
            return None;
        }
        self.unsettled.insert(name.to_owned());
        operator.preparation.take()
    }

    /// Requests the inspection of the objects that a bundle would apply.
    pub(super) fn bundle_read(
        &mut self,
        name: &str,
        ticket: u64,
        content: Result<Box<RevisionContent>, String>,
        moment: Moment,
    ) {
        let Some(Preparation::Reading { wanted, .. }) = self.answered(name, ticket) else { return };
        let mut draft = match content.and_then(|content| RevisionDraft::read(*content)) {
            Ok(draft) => Box::new(draft),
            Err(message) => {
                let block = OperatorBlock::new(Reason::UnpackFailed, message);
                self.fail(name, wanted, |_| (block, true), moment);
                return;
            }
        };
        let installed = self.operators.get(name).and_then(TrackedOperator::installed_revision);
        let installed = installed.into_iter().flat_map(|(_, it)| it.manifests());
        let installed: BTreeSet<&ObjectKey> = installed.map(|it| &it.key).collect();
        draft.filter(self.facts.as_ref(), |key| installed.contains(key));
        let ticket = self.ticket();
        let known: BTreeSet<ObjectKey> =
            self.observed.of_operator(name).into_iter().map(|it| it.key.clone()).collect();
        let Some(operator) = self.operators.get_mut(name) else { return };
        let safety = operator.object.spec.crd_upgrade_safety;
        let definitions = match safety {
            CrdUpgradeSafety::Off => Vec::new(),
            CrdUpgradeSafety::Enforce | CrdUpgradeSafety::Warn => {
                draft.definitions().cloned().collect()
            }
        };
        let objects = draft.objects.iter().map(|it| &it.manifest);
        let unknown = objects.filter(|it| !known.contains(&it.key));
        self.effects.push(OperatorEffect::InspectObjects {
            operator: name.to_owned(),
            ticket,
            objects: unknown.map(|it| (it.key.clone(), it.version.clone())).collect(),
            definitions: (definitions, safety),
        });
        operator.preparation = Some(Preparation::Inspecting { ticket, wanted, draft });
    }

    /// Writes a revision after its objects were inspected, unless another owner has one of them.
    pub(super) fn objects_inspected(
        &mut self,
        name: &str,
        ticket: u64,
        findings: Result<Findings, String>,
        moment: Moment,
    ) {
        let Some(Preparation::Inspecting { wanted, mut draft, .. }) = self.answered(name, ticket)
        else {
            return;
        };
        let judged = findings
            .map_err(|error| OperatorBlock::new(Reason::InstallationFailed, error))
            .and_then(|findings| self.judge(name, &findings, &mut draft));
        let mut risks = match judged {
            Ok(risks) => risks,
            Err(block) => {
                self.fail(name, wanted, |_| (block, false), moment);
                return;
            }
        };
        let ticket = self.ticket();
        let number = self.next_revision(name);
        let Some(operator) = self.operators.get_mut(name) else { return };
        let replaced = operator.replaced_workloads(&draft);
        for note in &replaced {
            self.effects.push(OperatorEffect::Emit {
                operator: name.to_owned(),
                uid: operator.object.uid.clone(),
                draft: events::workload_replaced(note.clone()),
            });
        }
        risks.extend(replaced);
        let (mut revision, revisions) = draft.numbered(name, &operator.object.uid, number);
        revision.risks = risks;
        self.effects.push(OperatorEffect::WriteRevision {
            operator: name.to_owned(),
            ticket,
            revisions,
        });
        let revision = Box::new(revision);
        operator.preparation = Some(Preparation::Writing { ticket, wanted, number, revision });
    }

    /// Checks whether a revision may apply the existing objects, and removes existing namespaces from it.
    /// Returns the accepted risks, as sentences.
    ///
    /// # Errors
    ///
    /// When an object has another owner, or a change of a definition is unsafe for its users.
    fn judge(
        &self,
        name: &str,
        findings: &Findings,
        draft: &mut RevisionDraft,
    ) -> Result<Vec<String>, OperatorBlock> {
        let Some(operator) = self.operators.get(name) else { return Ok(Vec::new()) };
        let spec = &operator.object.spec;
        if let Some((_, installed)) = operator.installed_revision()
            && installed.namespace != draft.namespace
        {
            return Err(messages::namespace_moved(name, &installed.namespace, &draft.namespace));
        }
        let mut left_out: BTreeSet<ObjectKey> = BTreeSet::new();
        let keys: BTreeSet<&ObjectKey> = draft.objects.iter().map(|it| &it.manifest.key).collect();
        // Objects that other Operators are about to apply do not exist yet.
        for (key, holder) in self.holders(name, &keys) {
            match is_namespace(key) {
                true => {
                    left_out.insert(key.clone());
                }
                false => return Err(messages::held(key, holder)),
            }
        }
        for found in &findings.objects {
            if is_namespace(&found.key) {
                if found.is_terminating {
                    return Err(messages::namespace_terminating(&found.key.name));
                }
                if found.operator != name {
                    left_out.insert(found.key.clone());
                }
                continue;
            }
            if let Some(block) = collision(name, found, spec.collision_protection) {
                return Err(block);
            }
        }
        // A namespace with another owner is not taken over.
        draft.objects.retain(|it| !left_out.contains(&it.manifest.key));
        if findings.unsafe_definitions.is_empty() {
            return Ok(Vec::new());
        }
        match spec.crd_upgrade_safety {
            CrdUpgradeSafety::Enforce => {
                let problems = findings.unsafe_definitions.join("; ");
                Err(messages::unsafe_definitions(&draft.bundle, &problems))
            }
            CrdUpgradeSafety::Warn => Ok(findings.unsafe_definitions.clone()),
            CrdUpgradeSafety::Off => Ok(Vec::new()),
        }
    }

    /// Returns those of the objects that another Operator holds, each with that Operator.
    fn holders<'a>(
        &'a self,
        name: &str,
        keys: &BTreeSet<&'a ObjectKey>,
    ) -> BTreeMap<&'a ObjectKey, &'a str> {
        let holder = |key| Some((key, self.holder(name, key, |_| true)?));
        keys.iter().copied().filter_map(holder).collect()
    }

    /// Returns another Operator that holds an object and satisfies `is_meant`; `None` if there is none.
    pub(super) fn holder(
        &self,
        name: &str,
        key: &ObjectKey,
        is_meant: impl Fn(&TrackedOperator) -> bool,
    ) -> Option<&str> {
        let mut others = self.holding(key).filter(|(other, it)| *other != name && is_meant(it));
        let has = |it: &TrackedOperator| {
            it.held().flat_map(|(_, it)| it.manifests()).any(|it| it.key == *key)
        };
        others.find(|(_, it)| has(it)).map(|(other, _)| other)
    }

    /// Handles the result of writing the OperatorRevisions of a revision.
    pub(super) fn revision_written(
        &mut self,
        name: &str,
        ticket: u64,
        result: Result<(), String>,
        moment: Moment,
    ) {
        let Some(Preparation::Writing { wanted, number, revision, .. }) =
            self.answered(name, ticket)
        else {
            return;
        };
        if let Err(message) = result {
            let block = OperatorBlock::new(Reason::InstallationFailed, message);
            self.fail(name, wanted, |_| (block, false), moment);
            return;
        }
        let Some(operator) = self.operators.get_mut(name) else { return };
        operator.revisions.insert(number, *revision);
        operator.preparation = None;
    }
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

/// Returns the reason that an existing object is not taken over; `None` if it is.
fn collision(
    name: &str,
    found: &FoundObject,
    protection: CollisionProtection,
) -> Option<OperatorBlock> {
    if found.operator == name && found.is_ours {
        return None;
    }
    if found.is_ours {
        return Some(messages::owned_by_us(found));
    }
    let is_taken = match protection {
        CollisionProtection::Prevent => false,
        CollisionProtection::IfNoController => found.controller.is_none(),
        CollisionProtection::None => true,
    };
    (!is_taken).then(|| messages::collision(found))
}

#[cfg(test)]
mod tests;
