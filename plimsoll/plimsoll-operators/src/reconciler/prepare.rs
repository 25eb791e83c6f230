//! Preparation of a revision of the selected bundle: the bundle is read, the objects that it would apply are
//! inspected, and the revision is written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::olm::{BundleReference, CollisionProtection, CrdUpgradeSafety};
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_plan::reconciler::events;
use plimsoll_resolve::ClusterFacts;

use super::events::{Findings, FoundObject, OperatorEffect};
use super::handler::OperatorHandler;
use super::messages;
use super::revision::{KeptRevision, RevisionContent, RevisionDraft, live_definitions};
use super::track::{BlockCause, OperatorObject, Preparation, RevisionInputs, TrackedOperator};
use crate::inspected::Inspection;
use crate::{OperatorAction, OperatorBlock, OperatorDecision};

/// The delay before a failed preparation is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// A revision that the cluster has.
pub(super) struct PreparedRevision {
    /// The number of the revision.
    pub(super) number: u32,
    /// The accepted risks of applying it, as sentences.
    pub(super) risks: Vec<String>,
}

impl TrackedOperator {
    /// Records a decision, or a block if it cannot be carried out.
    pub(super) fn decided(&mut self, name: &str, decision: OperatorDecision) {
        let mut decision = decision;
        let block = match &decision.action {
            OperatorAction::RollBack { revision, .. } => {
                let is_kept = self.revisions.get(revision).is_some_and(KeptRevision::is_complete);
                (!is_kept).then(|| messages::revision_not_kept(self, *revision))
            }
            OperatorAction::Upgrade(chosen) if self.was_rolled_back(&chosen.reference.name) => {
                Some(messages::rolled_back(name, &chosen.reference))
            }
            OperatorAction::Keep => {
                self.rolled_back_change().map(|it| messages::change_rolled_back(name, it))
            }
            _ => None,
        };
        if let Some(block) = block {
            decision.block(block);
        }
        self.decision = Some(decision);
    }

    /// Returns the inputs of a revision of a bundle for the present spec, with the accepted risks.
    pub(super) fn wanted(&self, bundle: &BundleReference, risks: &[String]) -> RevisionInputs {
        RevisionInputs {
            bundle: bundle.clone(),
            config: self.object.spec.config.clone(),
            certificates: self.object.spec.certificates,
            ready_when: self.object.spec.ready_when.clone(),
            namespace: self.object.spec.namespace.clone(),
            inspected: self.inspection(),
            risks: risks.to_vec(),
            generation: self.object.generation,
        }
    }

    /// Returns what was inspected for the requested version, with what is installed; `None` for nothing.
    fn inspection(&self) -> Option<Inspection> {
        let OperatorObject { inspected, spec, .. } = &self.object;
        let inspected = inspected.as_ref().filter(|it| it.is_for(&spec.version))?.clone();
        Some(match self.installed_revision() {
            Some((_, installed)) => inspected.with_installed(&installed.bundle),
            None => inspected,
        })
    }

    /// Returns a revision with such inputs that was made before, and its number: by a previous process, or for
    /// a rollout that was interrupted or waits; `None` if there is none.
    pub(super) fn made(
        &self,
        wanted: &RevisionInputs,
        facts: Option<&ClusterFacts>,
    ) -> Option<(u32, &KeptRevision)> {
        let RevisionInputs { config, certificates, ready_when, .. } = wanted;
        let has_same_result = |it: &KeptRevision| {
            it.is_complete()
                && it.bundle.name == wanted.bundle.name
                && it.is_made_for(config.as_ref(), *certificates, ready_when, facts)
                && (wanted.namespace.is_empty() || it.namespace == wanted.namespace)
                && wanted.uninspected(&it.bundle).is_none()
        };
        let made = self.revisions.iter().rev().find(|(number, it)| {
            self.installed.is_none_or(|installed| **number > installed) && has_same_result(it)
        });
        made.map(|(number, it)| (*number, it))
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

impl OperatorHandler<'_> {
    /// Takes the next step of preparing a revision. Returns the revision once the cluster has it.
    pub(super) fn prepare(&mut self, wanted: RevisionInputs) -> Option<PreparedRevision> {
        if let Some((number, it)) = self.operator.made(&wanted, self.facts) {
            let risks = wanted.risks.iter().chain(&it.risks).cloned().collect();
            let prepared = PreparedRevision { number, risks };
            // A previous process, or a rollout that was interrupted, may have made it.
            return self.is_inspected(number, &wanted.risks).then_some(prepared);
        }
        let now = self.moment.uptime;
        let preparation = self.operator.preparation.as_ref();
        if preparation.is_none_or(|it| !it.is_awaited(&wanted, now)) {
            self.read_bundle(wanted);
        }
        None
    }

    /// Requests the content of a bundle.
    fn read_bundle(&mut self, wanted: RevisionInputs) {
        let Some(catalog) = self.catalogs.get(&wanted.bundle.catalog) else {
            let block = messages::catalog_gone(&wanted);
            self.fail(wanted, block, BlockCause::Bundle);
            return;
        };
        let ticket = self.output.ticket();
        let operator = &mut *self.operator;
        let mut spec = operator.object.spec.clone();
        if spec.namespace.is_empty()
            && let Some((_, installed)) = operator.installed_revision()
        {
            // The namespace is that of the installed revision, whatever the next bundle suggests.
            spec.namespace.clone_from(&installed.namespace);
        }
        self.output.effects.push(OperatorEffect::ReadBundle {
            operator: self.name.to_owned(),
            ticket,
            bundle: wanted.bundle.clone(),
            source: catalog.source().clone(),
            spec: Box::new(spec),
        });
        operator.begin_preparation();
        operator.preparation = Some(Preparation::Reading { ticket, wanted });
    }

    fn fail(&mut self, wanted: RevisionInputs, block: OperatorBlock, cause: BlockCause) {
        self.operator.last_block = None;
        let retry_at = self.moment.uptime + RETRY_INTERVAL;
        self.operator.preparation = Some(Preparation::Failed { wanted, block, cause, retry_at });
        self.mark_pending();
        self.mark_set_pending();
    }

    /// Takes the preparation if an answer has its ticket.
    fn answered(&mut self, ticket: u64) -> Option<Preparation> {
        let asked = match self.operator.preparation.as_ref()? {
            Preparation::Reading { ticket, .. }
            | Preparation::Inspecting { ticket, .. }
            | Preparation::Writing { ticket, .. } => *ticket,
            Preparation::Failed { .. } => return None,
        };
        if asked != ticket {
            return None;
        }
        self.mark_pending();
        self.operator.preparation.take()
    }

    /// Requests the inspection of the objects that a bundle would apply.
    pub(super) fn bundle_read(
        &mut self,
        ticket: u64,
        content: Result<Box<RevisionContent>, String>,
    ) {
        let Some(Preparation::Reading { wanted, .. }) = self.answered(ticket) else { return };
        let inspected = content.and_then(|content| match wanted.uninspected(&content.bundle) {
            Some(problem) => Err(problem),
            None => RevisionDraft::read(*content),
        });
        let mut draft = match inspected {
            Ok(draft) => Box::new(draft),
            Err(message) => {
                let block = OperatorBlock::new(Reason::UnpackFailed, message);
                self.fail(wanted, block, BlockCause::Bundle);
                return;
            }
        };
        let installed = self.operator.installed_revision();
        let installed = installed.into_iter().flat_map(|(_, it)| it.manifests());
        let installed: BTreeSet<&ObjectKey> = installed.map(|it| &it.key).collect();
        draft.filter(self.facts, |key| installed.contains(key));
        self.inspect(wanted, draft, None);
        self.mark_set_pending();
    }

    /// Requests the inspection of the objects that a revision would apply. `kept` is its number if it is a kept
    /// one.
    pub(super) fn inspect(
        &mut self,
        wanted: RevisionInputs,
        draft: Box<RevisionDraft>,
        kept: Option<u32>,
    ) {
        let ticket = self.output.ticket();
        let known = self.cluster.objects.of_operator(self.name);
        let known: BTreeSet<&ObjectKey> = known.into_iter().map(|it| &it.key).collect();
        let objects = draft.objects.iter().map(|it| &it.manifest);
        let unknown = objects.filter(|it| !known.contains(&it.key));
        self.output.effects.push(OperatorEffect::InspectObjects {
            operator: self.name.to_owned(),
            ticket,
            objects: unknown.map(|it| (it.key.clone(), it.version.clone())).collect(),
            definitions: draft.definitions().cloned().collect(),
            safety: self.operator.object.spec.crd_upgrade_safety,
            kinds: draft.foreign_kinds(),
        });
        let found = None;
        self.operator.preparation =
            Some(Preparation::Inspecting { ticket, wanted, draft, kept, found });
    }

    /// Handles the findings of an inspection, once it is known what the other members of the change set bring.
    pub(super) fn objects_inspected(&mut self, ticket: u64, findings: Result<Findings, String>) {
        if self.verified(ticket, &findings) {
            return;
        }
        let Some(Preparation::Inspecting { wanted, draft, kept, .. }) = self.answered(ticket)
        else {
            return;
        };
        match findings {
            Ok(found) if self.awaits_kinds(&found) => {
                let found = Some(Box::new(found));
                self.operator.preparation =
                    Some(Preparation::Inspecting { ticket, wanted, draft, kept, found });
            }
            findings => self.inspected(wanted, draft, kept, findings),
        }
    }

    /// Writes a new revision after its objects were inspected, or begins the rollout of a kept one, unless
    /// another owner has one of them, or one is of a kind that is not served.
    pub(super) fn inspected(
        &mut self,
        wanted: RevisionInputs,
        mut draft: Box<RevisionDraft>,
        kept: Option<u32>,
        findings: Result<Findings, String>,
    ) {
        let cause = match findings.is_ok() && self.takes_from_member(&draft) {
            true => BlockCause::Member,
            false => BlockCause::Cluster,
        };
        let checked = match findings {
            Ok(findings) => self.checked(&findings, &mut draft),
            Err(error) => Err(OperatorBlock::new(Reason::InstallationFailed, error)),
        };
        let (mut risks, live) = match checked {
            Ok(checked) => checked,
            Err(block) => {
                let block = match kept.filter(|it| self.operator.installed >= Some(*it)) {
                    Some(number) => messages::not_returned_to(number, &block),
                    None => block,
                };
                self.fail(wanted, block, cause);
                return;
            }
        };
        let replaced = self.operator.replaced_workloads(&draft);
        for note in &replaced {
            self.emit(events::workload_replaced(note.clone()));
        }
        risks.extend(replaced);
        self.operator.last_block = None;
        if let Some(number) = kept {
            self.operator.inspected = Some(number);
            if let Some(revision) = self.operator.revisions.get_mut(&number) {
                (revision.risks, revision.live) = (risks, Some(live));
            }
            self.mark_set_pending();
            return;
        }
        let ticket = self.output.ticket();
        let number = self.next_revision();
        self.operator.inspected = Some(number);
        let (mut revision, revisions) =
            draft.numbered(self.name, &self.operator.object.uid, number, self.key);
        (revision.risks, revision.live) = (risks, Some(live));
        let operator = self.name.to_owned();
        self.output.effects.push(OperatorEffect::WriteRevision { operator, ticket, revisions });
        let revision = Box::new(revision);
        self.operator.preparation = Some(Preparation::Writing { ticket, wanted, number, revision });
    }

    /// Checks whether a revision may be applied. Returns the accepted risks, as sentences, and the existing
    /// definitions.
    ///
    /// # Errors
    ///
    /// When it may not be.
    fn checked(
        &mut self,
        findings: &Findings,
        draft: &mut RevisionDraft,
    ) -> Result<(Vec<String>, Vec<Manifest>), OperatorBlock> {
        let risks = self.check_findings(findings, draft)?;
        self.check_kinds(&findings.unserved, draft)?;
        Ok((risks, live_definitions(&findings.definitions)))
    }

    /// Checks whether a revision may apply the existing objects, and removes existing namespaces from it.
    /// Returns the accepted risks, as sentences.
    ///
    /// # Errors
    ///
    /// When an object has another owner, or a change of a definition is unsafe for its users or accepted by
    /// no API server.
    fn check_findings(
        &self,
        findings: &Findings,
        draft: &mut RevisionDraft,
    ) -> Result<Vec<String>, OperatorBlock> {
        let (name, spec) = (self.name, &self.operator.object.spec);
        if let Some((_, installed)) = self.operator.installed_revision()
            && installed.namespace != draft.namespace
        {
            return Err(messages::namespace_moved(name, &installed.namespace, &draft.namespace));
        }
        let mut left_out: BTreeSet<ObjectKey> = BTreeSet::new();
        let keys: BTreeSet<&ObjectKey> = draft.objects.iter().map(|it| &it.manifest.key).collect();
        // Objects that other Operators are about to apply do not exist yet.
        for (key, holder) in self.peers.holders(&keys) {
            match is_namespace(key) {
                true => {
                    left_out.insert(key.clone());
                }
                false => return Err(messages::held(key, holder)),
            }
        }
        for found in &findings.objects {
            match claim(name, found, spec.collision_protection) {
                Claim::Applied => {}
                Claim::LeftAlone => {
                    left_out.insert(found.key.clone());
                }
                Claim::Blocked(block) => return Err(block),
            }
        }
        // A namespace with another owner is not taken over.
        draft.objects.retain(|it| !left_out.contains(&it.manifest.key));
        if !findings.refused_definitions.is_empty() {
            let problems = findings.refused_definitions.join("; ");
            return Err(messages::refused_definitions(&draft.bundle, &problems));
        }
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

    /// Handles the result of writing the OperatorRevisions of a revision.
    pub(super) fn revision_written(&mut self, ticket: u64, result: Result<(), String>) {
        let Some(Preparation::Writing { wanted, number, revision, .. }) = self.answered(ticket)
        else {
            return;
        };
        match result {
            Ok(()) => {
                self.operator.revisions.insert(number, *revision);
                self.operator.last_block = None;
                self.mark_set_pending();
            }
            Err(message) => {
                let block = OperatorBlock::new(Reason::InstallationFailed, message);
                self.fail(wanted, block, BlockCause::Cluster);
            }
        }
    }

    /// Returns the number of the next revision: one that no OperatorRevision of an Operator with this name
    /// has, even if that was deleted. Numbers of OperatorRevisions that the controller did not make do not
    /// count, but their names are not used.
    fn next_revision(&self) -> u32 {
        let written = self.written_revisions.values().filter(|it| it.operator == self.name);
        let history = self.operator.history.iter().map(|it| it.revision);
        let kept = self.operator.revisions.keys().copied();
        let known = written.filter_map(|it| it.number).chain(history).chain(kept);
        let mut number = known.max().unwrap_or_default().saturating_add(1);
        while self.is_taken(number) {
            number += 1;
        }
        number
    }

    /// Returns whether an OperatorRevision has the name of a revision, or of one of its parts.
    fn is_taken(&self, number: u32) -> bool {
        let whole = format!("{}-{number}", self.name);
        let first_part = format!("{whole}-");
        let mut parts = self.written_revisions.range(first_part.clone()..);
        let has_part = parts.next().is_some_and(|(name, _)| name.starts_with(&first_part));
        has_part || self.written_revisions.contains_key(&whole)
    }
}

pub(super) fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

/// What a revision does with an object that exists already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is applied.
    Applied,
    /// It is not part of the revision: a namespace with another owner.
    LeftAlone,
    /// It blocks the revision.
    Blocked(OperatorBlock),
}

/// Judges whether a revision of an Operator may apply an object that exists already.
pub fn claim(name: &str, found: &FoundObject, protection: CollisionProtection) -> Claim {
    if is_namespace(&found.key) {
        return match (found.is_terminating, found.operator == name) {
            (true, _) => Claim::Blocked(messages::namespace_terminating(&found.key.name)),
            (false, true) => Claim::Applied,
            (false, false) => Claim::LeftAlone,
        };
    }
    collision(name, found, protection).map_or(Claim::Applied, Claim::Blocked)
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
