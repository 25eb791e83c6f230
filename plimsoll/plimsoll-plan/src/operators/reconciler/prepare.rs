//! From a bundle that was chosen to a revision that the cluster has: it is read, what it would take is
//! looked at, and it is written.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_api::olm::{CollisionProtection, CrdUpgradeSafety};
use plimsoll_api::{ObjectKey, Reason};
use serde_json::Value;

use super::messages;
use super::revision::{KeptRevision, RevisionContent, keys, operator_revisions};
use super::track::{Preparation, TrackedOperator, Wanted};
use super::{Findings, FoundObject, Moment, OperatorEffect, OperatorReconciler};
use crate::operators::{OperatorAction, OperatorBlock, OperatorDecision};

/// How soon what could not be prepared is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// How far a revision is.
pub(super) enum Step {
    /// The cluster has it.
    Ready { number: u32, risks: Vec<String> },
    /// It is being made, or something is in the way.
    Waits,
}

impl TrackedOperator {
    /// Takes a decision, unless what it decides cannot be done.
    pub(super) fn decided(&mut self, name: &str, decision: OperatorDecision) {
        let mut decision = decision;
        let block = match &decision.action {
            OperatorAction::Return { revision } => {
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
}

impl OperatorReconciler {
    /// Makes a revision of what is wanted, step by step.
    pub(super) fn prepare(
        &mut self,
        name: &str,
        wanted: Wanted,
        moment: Moment,
        effects: &mut Vec<OperatorEffect>,
    ) -> Step {
        let Some(operator) = self.operators.get(name) else { return Step::Waits };
        // A revision that was made before this process began, or before its rollout was interrupted.
        let is_like = |it: &KeptRevision| {
            it.is_complete()
                && it.bundle.name == wanted.bundle.name
                && it.config == wanted.config
                && (wanted.namespace.is_empty() || it.namespace == wanted.namespace)
        };
        let made = operator.revisions.iter().rev().find(|(number, it)| {
            operator.installed.is_none_or(|installed| **number > installed) && is_like(it)
        });
        if let Some((number, _)) = made {
            return Step::Ready { number: *number, risks: wanted.risks };
        }
        if let Some(preparation) = &operator.preparation
            && preparation.wanted().is_like(&wanted)
        {
            // Another spec may allow what was in the way.
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
            // Where it is installed, whatever the next bundle suggests.
            spec.namespace.clone_from(&installed.namespace);
        }
        effects.push(OperatorEffect::ReadBundle {
            operator: name.to_owned(),
            ticket,
            bundle: wanted.bundle.clone(),
            source,
            spec: Box::new(spec),
        });
        // What failed before is reported until it is known whether it fails again.
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
        wanted: Wanted,
        block: impl FnOnce(&Wanted) -> (OperatorBlock, bool),
        moment: Moment,
    ) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let (block, is_bundle) = block(&wanted);
        operator.last_block = None;
        let retry_at = moment.uptime + RETRY_INTERVAL;
        operator.preparation = Some(Preparation::Failed { wanted, block, is_bundle, retry_at });
        self.unsettled.insert(name.to_owned());
    }

    /// Takes the preparation of an Operator out if it is the one that an answer is for.
    fn answered(&mut self, name: &str, ticket: u64) -> Option<Preparation> {
        let operator = self.operators.get_mut(name)?;
        let asked = match operator.preparation.as_ref()? {
            Preparation::Reading { ticket, .. }
            | Preparation::Looking { ticket, .. }
            | Preparation::Writing { ticket, .. } => *ticket,
            Preparation::Failed { .. } => return None,
        };
        if asked != ticket {
            return None;
        }
        self.unsettled.insert(name.to_owned());
        operator.preparation.take()
    }

    /// A bundle was read: what it would take is looked at.
    pub(super) fn bundle_read(
        &mut self,
        name: &str,
        ticket: u64,
        content: Result<Box<RevisionContent>, String>,
        moment: Moment,
        effects: &mut Vec<OperatorEffect>,
    ) {
        let Some(Preparation::Reading { wanted, .. }) = self.answered(name, ticket) else { return };
        let content = content.and_then(|mut content| {
            content.objects.iter_mut().for_each(normalize);
            Ok((keys(&content.objects)?, content))
        });
        let (objects, content) = match content {
            Ok(content) => content,
            Err(message) => {
                let block = OperatorBlock::new(Reason::UnpackFailed, message);
                self.fail(name, wanted, |_| (block, true), moment);
                return;
            }
        };
        let ticket = self.ticket();
        let known: BTreeSet<ObjectKey> =
            self.observed.of_operator(name).into_iter().map(|it| it.key.clone()).collect();
        let Some(operator) = self.operators.get_mut(name) else { return };
        let safety = operator.object.spec.crd_upgrade_safety;
        let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
        let definitions = match safety {
            CrdUpgradeSafety::Off => Vec::new(),
            CrdUpgradeSafety::Enforce | CrdUpgradeSafety::Warn => {
                content.objects.iter().filter(is_definition).cloned().collect()
            }
        };
        effects.push(OperatorEffect::Look {
            operator: name.to_owned(),
            ticket,
            objects: objects.into_iter().filter(|(key, _)| !known.contains(key)).collect(),
            definitions: (definitions, safety),
        });
        operator.preparation = Some(Preparation::Looking { ticket, wanted, content });
    }

    /// What a revision would take was looked at: unless it belongs to somebody else, it is written.
    pub(super) fn looked(
        &mut self,
        name: &str,
        ticket: u64,
        findings: Result<Findings, String>,
        moment: Moment,
        effects: &mut Vec<OperatorEffect>,
    ) {
        let Some(Preparation::Looking { wanted, content, .. }) = self.answered(name, ticket) else {
            return;
        };
        let mut content = content;
        let mut wanted = wanted;
        let judged = findings
            .map_err(|error| OperatorBlock::new(Reason::InstallationFailed, error))
            .and_then(|findings| self.judge(name, &findings, &mut content, &mut wanted));
        if let Err(block) = judged {
            self.fail(name, wanted, |_| (block, false), moment);
            return;
        }
        let ticket = self.ticket();
        let Some(operator) = self.operators.get_mut(name) else { return };
        let number = operator.next_revision();
        let owner = (name, operator.object.uid.as_str());
        let written = operator_revisions(owner, number, &content).and_then(|revisions| {
            let mut kept: Option<KeptRevision> = None;
            for (name, object) in &revisions {
                let spec = serde_json::from_value(object["spec"].clone());
                let spec = spec.map_err(|error: serde_json::Error| error.to_string())?;
                let part = KeptRevision::read(name, &spec)?;
                match &mut kept {
                    Some(kept) => kept.merge(part),
                    None => kept = Some(part),
                }
            }
            Ok((kept.ok_or("it has no objects")?, revisions))
        });
        match written {
            Ok((revision, revisions)) => {
                let operator_name = name.to_owned();
                effects.push(OperatorEffect::WriteRevision {
                    operator: operator_name,
                    ticket,
                    revisions,
                });
                let revision = Box::new(revision);
                operator.preparation =
                    Some(Preparation::Writing { ticket, wanted, number, revision });
            }
            Err(message) => {
                let block = OperatorBlock::new(Reason::UnpackFailed, message);
                self.fail(name, wanted, |_| (block, true), moment);
            }
        }
    }

    /// Whether a revision may take what was found; a namespace that exists is left out.
    fn judge(
        &self,
        name: &str,
        findings: &Findings,
        content: &mut RevisionContent,
        wanted: &mut Wanted,
    ) -> Result<(), OperatorBlock> {
        let Some(operator) = self.operators.get(name) else { return Ok(()) };
        let spec = &operator.object.spec;
        if let Some((_, installed)) = operator.installed_revision()
            && installed.namespace != content.namespace
        {
            return Err(messages::namespace_moved(name, &installed.namespace, &content.namespace));
        }
        let keys = keys(&content.objects)
            .map_err(|message| OperatorBlock::new(Reason::UnpackFailed, message))?;
        let mut left_out: BTreeSet<&ObjectKey> = BTreeSet::new();
        for (key, _) in &keys {
            // What others are about to apply cannot be found yet.
            match self.holder(name, key) {
                Some(_) if is_namespace(key) => {
                    left_out.insert(key);
                }
                Some(holder) => return Err(messages::held(key, holder)),
                None => {}
            }
        }
        for found in &findings.objects {
            if is_namespace(&found.key) {
                if found.is_terminating {
                    return Err(messages::namespace_terminating(&found.key.name));
                }
                if found.operator != name {
                    left_out.insert(&found.key);
                }
                continue;
            }
            if let Some(block) = collision(name, found, spec.collision_protection) {
                return Err(block);
            }
        }
        // A namespace that others made stays theirs.
        let mut of_objects = keys.iter();
        let stays = |(key, _): &(ObjectKey, String)| !left_out.contains(key);
        content.objects.retain(|_| of_objects.next().is_none_or(stays));
        if !findings.unsafe_definitions.is_empty() {
            let problems = findings.unsafe_definitions.join("; ");
            match spec.crd_upgrade_safety {
                CrdUpgradeSafety::Enforce => {
                    return Err(messages::unsafe_definitions(&wanted.bundle, &problems));
                }
                CrdUpgradeSafety::Warn => {
                    wanted.risks.extend(findings.unsafe_definitions.iter().cloned());
                }
                CrdUpgradeSafety::Off => {}
            }
        }
        Ok(())
    }

    /// The Operator among the others whose revision has an object, installed, under way or about to be.
    fn holder(&self, name: &str, key: &ObjectKey) -> Option<&str> {
        let mut others = self.operators.iter().filter(|(other, _)| other.as_str() != name);
        let has = |revision: &KeptRevision| revision.manifests().any(|it| it.key == *key);
        let found = others.find(|(_, it)| {
            let numbers = it.installed.into_iter().chain(it.rollout.as_ref().map(|it| it.number));
            let mut held = numbers.filter_map(|number| it.revisions.get(&number));
            let is_written = matches!(&it.preparation,
                Some(Preparation::Writing { revision, .. }) if has(revision));
            is_written || held.any(has)
        });
        found.map(|(holder, _)| holder.as_str())
    }

    /// The OperatorRevisions of a revision were written.
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

/// Why an object that exists is not taken over; `None` if it is.
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

/// Numbers as the API server writes them: 1.0 comes back as 1, and what comes back is to have the same
/// digest.
pub(super) fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|it| number.is_f64() && it.fract() == 0.0);
            // Within the integers that are exact as floating-point numbers.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(whole) = whole.filter(|it| it.abs() <= EXACT) {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(fields) => fields.values_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
