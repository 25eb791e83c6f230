//! What becomes of what a release removes: deletions are followed through the ledger, and what
//! releases left behind is remembered.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::progress::{DeletionState, Orphan, ReleaseProgressStatus};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_plan::plan::{Action, Plan};
use plimsoll_plan::progress::{Deleted, Mark, Outcome, Progress, Trace, Transience};
use plimsoll_plan::removal::{Ledger, Notice, Prune, Terminating, orphans, orphans_of_cluster};

use crate::resources::Resources;

/// What an earlier process left in a cluster in which it had carried out another plan.
pub(crate) struct Inherited {
    /// Version of the release that it applied.
    pub(crate) version: String,
    /// The objects that are ours, each with its API version.
    pub(crate) ours: BTreeMap<ObjectKey, String>,
    /// The kinds that have no namespace.
    pub(crate) cluster_kinds: BTreeSet<GroupKind>,
}

/// Deletions and orphans of a cluster.
#[derive(Default)]
pub(crate) struct Removals {
    pub(crate) ledger: Ledger,
    pub(crate) orphans: Vec<Orphan>,
    /// The annotation that asks for orphans to be deleted, as it was last seen.
    asked: Option<String>,
    /// What of it is still to be carried out.
    prune: Prune,
    /// Objects that are going, as watches last showed them: one may do so before the answer to the
    /// request that deletes them is handled.
    going: BTreeMap<ObjectKey, Terminating>,
    /// Orphans that an earlier process recorded and no watch has shown yet: others may have deleted
    /// them since.
    unseen: BTreeSet<ObjectKey>,
    notices: Vec<Notice>,
}

impl Removals {
    /// Takes up what an earlier process recorded.
    pub(crate) fn recorded(recorded: &ReleaseProgressStatus, asked: Option<String>) -> Self {
        let mut prune = Prune::parse(asked.as_deref());
        for deletion in &recorded.deletions {
            if deletion.state == DeletionState::Completed {
                prune.carried_out(&deletion.object);
            }
        }
        // What no object can be called, somebody else has recorded.
        let is_object =
            |orphan: &&Orphan| !orphan.object.kind.is_empty() && !orphan.object.name.is_empty();
        let orphans: Vec<Orphan> = recorded.orphans.iter().filter(is_object).cloned().collect();
        Self {
            asked,
            prune,
            ledger: Ledger::recorded(&recorded.deletions),
            going: BTreeMap::new(),
            unseen: orphans.iter().map(|orphan| orphan.object.clone()).collect(),
            orphans,
            notices: Vec::new(),
        }
    }

    /// A process begins with a plan: what that applies has been left behind by nobody. What else is
    /// ours in the cluster an earlier process left behind, if it had another plan.
    pub(crate) fn begun(&mut self, plan: &Plan, left: Option<&Inherited>, now: Timestamp) {
        let is_planned =
            |orphan: &Orphan| plan.steps.iter().any(|step| step.manifest.key == orphan.object);
        self.orphans.retain(|orphan| !is_planned(orphan));
        let Some(Inherited { version, ours, cluster_kinds }) = left else { return };
        // What was deleted once, and has been applied again since, was left behind again.
        self.ledger.retain(|key| !ours.contains_key(key));
        for orphan in orphans_of_cluster(ours, version, plan, cluster_kinds, now) {
            let is_known = self.orphans.iter().any(|known| known.object == orphan.object)
                || self.ledger.unfinished().any(|key| *key == orphan.object);
            if !is_known {
                self.orphans.push(orphan);
            }
        }
    }

    /// What happened since this was asked last.
    pub(crate) fn notices(&mut self, now: Timestamp) -> Vec<Notice> {
        self.notices.extend(self.ledger.stuck(now));
        std::mem::take(&mut self.notices)
    }

    /// A step of a plan was executed.
    pub(crate) fn executed(
        &mut self,
        progress: &Progress,
        index: usize,
        outcome: &Outcome,
        now: Timestamp,
    ) {
        let plan = progress.plan();
        let step = &plan.steps[index];
        if step.action != Action::Delete {
            return;
        }
        let (key, file) = (&step.manifest.key, &*step.manifest.file);
        let version = plan.release.version.as_str();
        match outcome {
            Outcome::Deleted(deleted) => {
                if *deleted != Deleted::Absent {
                    self.notices.push(self.ledger.requested(key, file, version, now));
                    if let Some(terminating) = self.going.get(key) {
                        self.notices.extend(self.ledger.seen(key, Some(terminating)));
                    }
                }
                // The watch may have told of the end already.
                if *deleted != Deleted::Going || progress.is_gone(index) {
                    self.gone(key, now);
                }
            }
            Outcome::Failed(error) if error.transience == Transience::Lasting => {
                self.notices.extend(self.ledger.refused(key, file, version, &error.cause, now));
            }
            Outcome::Failed(_) | Outcome::Applied(_) | Outcome::Obstacle(_) => {}
        }
    }

    /// A watch showed an object, or that it is gone.
    pub(crate) fn observed(
        &mut self,
        key: &ObjectKey,
        mark: Mark,
        terminating: Option<&Terminating>,
        now: Timestamp,
    ) {
        if mark.trace == Trace::Gone {
            self.gone(key, now);
        } else {
            self.unseen.remove(key);
            match terminating {
                Some(terminating) => self.going.insert(key.clone(), terminating.clone()),
                None => self.going.remove(key),
            };
            self.notices.extend(self.ledger.seen(key, terminating));
        }
    }

    /// The API server told what it serves: of a kind that it does not, nothing is left.
    pub(crate) fn discovered(&mut self, resources: &Resources, now: Timestamp) {
        let is_served = |kind: &GroupKind| {
            resources.iter().any(|(found, _)| found.group == kind.group && found.kind == kind.kind)
        };
        let notices = self.ledger.withdrawn(is_served, now);
        self.notices.extend(notices);
    }

    /// All objects of a kind that exist have been shown.
    pub(crate) fn listed(&mut self, kind: &GroupKind, now: Timestamp) {
        let of_kind = |key: &&ObjectKey| key.group_kind() == *kind;
        let unseen: Vec<ObjectKey> = self.unseen.iter().filter(of_kind).cloned().collect();
        for key in unseen {
            self.gone(&key, now);
        }
        let notices = self.ledger.listed(kind, now);
        self.notices.extend(notices);
        self.forget_pruned();
    }

    fn gone(&mut self, key: &ObjectKey, now: Timestamp) {
        self.going.remove(key);
        self.unseen.remove(key);
        self.notices.extend(self.ledger.gone(key, now));
        let before = self.orphans.len();
        self.orphans.retain(|orphan| orphan.object != *key);
        if self.orphans.len() < before {
            self.prune.carried_out(key);
        }
    }

    fn forget_pruned(&mut self) {
        for deletion in self.ledger.deletions() {
            if deletion.state == DeletionState::Completed {
                self.orphans.retain(|orphan| orphan.object != deletion.object);
                self.prune.carried_out(&deletion.object);
            }
        }
    }

    /// A plan follows another one: what that leaves behind, and the plan with what of it is to go.
    pub(crate) fn replanned(&mut self, outgoing: &Plan, next: Plan, now: Timestamp) -> Plan {
        self.orphans = orphans(&self.orphans, outgoing, &next, now);
        let next = self.and_prune(next);
        let deletes = |key: &ObjectKey| {
            next.steps.iter().any(|step| step.action == Action::Delete && step.manifest.key == *key)
        };
        self.ledger.retain(deletes);
        next
    }

    /// The plan with the orphans that are to go.
    pub(crate) fn and_prune(&self, plan: Plan) -> Plan {
        plan.and_prune(&self.prune.select(&self.orphans))
    }

    /// Takes note of which orphans are to go; true when the plan does not delete them all yet.
    pub(crate) fn asked(&mut self, asked: Option<String>, plan: &Plan) -> bool {
        if asked != self.asked {
            self.prune = Prune::parse(asked.as_deref());
            self.asked = asked;
        }
        let is_planned =
            |orphan: &Orphan| plan.steps.iter().any(|step| step.manifest.key == orphan.object);
        !self.prune.select(&self.orphans).iter().all(is_planned)
    }

    /// The annotation that asks for orphans to be deleted, and what is left of it to be carried out,
    /// where the two differ.
    pub(crate) fn asked_too_much(&self) -> Option<(&str, &Prune)> {
        let asked = self.asked.as_deref()?;
        (Prune::parse(Some(asked)) != self.prune).then_some((asked, &self.prune))
    }

    /// Whether an orphan is to go that the API server has not been asked to delete.
    pub(crate) fn is_pruning_due(&self) -> bool {
        let selected = self.prune.select(&self.orphans);
        selected.iter().any(|orphan| !self.ledger.unfinished().any(|key| *key == orphan.object))
    }
}

#[cfg(test)]
mod tests {
    //! What a process makes of the orphans and of the request that it finds when it begins.

    use jiff::Timestamp;
    use plimsoll_api::progress::{Deletion, DeletionState, Orphan, ReleaseProgressStatus};
    use plimsoll_api::{GroupKind, ObjectKey};
    use plimsoll_plan::progress::{Mark, Trace};
    use plimsoll_plan::removal::Prune;

    use super::Removals;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: "pier".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn what_an_earlier_process_pruned_is_taken_out_of_the_request() {
        let check = |state: DeletionState, expected: Option<Prune>| {
            let key = key("ConfigMap", "tides");
            let deletion = Deletion::new(&key, "orphan of 1.0.0: ", "1.1.0", Timestamp::UNIX_EPOCH);
            let deletions = vec![Deletion { state, ..deletion }];
            let recorded = ReleaseProgressStatus { deletions, ..Default::default() };
            let removals = Removals::recorded(&recorded, Some(key.to_string()));
            assert_eq!(removals.asked_too_much().map(|(_, left)| left), expected.as_ref());
        };
        check(DeletionState::Requested, None);
        check(DeletionState::Refused, None);
        check(DeletionState::Completed, Some(Prune::None));
    }

    #[test]
    fn an_orphan_that_is_gone_when_a_process_begins_is_forgotten() {
        let now = Timestamp::UNIX_EPOCH;
        let keys = [key("ConfigMap", "tides"), key("ConfigMap", "winds"), key("Secret", "codes")];
        let orphans = keys.each_ref().map(|key| Orphan::new(key, "v1", "a.yaml", "1.0.0", "", now));
        let recorded = ReleaseProgressStatus { orphans: orphans.to_vec(), ..Default::default() };
        let mut removals = Removals::recorded(&recorded, None);
        removals.observed(&keys[0], Mark { revision: 1, trace: Trace::Ours(0) }, None, now);
        for (listed, left) in [
            ("Lease", &["tides", "winds", "codes"][..]),
            ("ConfigMap", &["tides", "codes"]),
            ("ConfigMap", &["tides", "codes"]),
            ("Secret", &["tides"]),
        ] {
            removals.listed(&GroupKind::new("", listed), now);
            let names: Vec<&str> =
                removals.orphans.iter().map(|orphan| orphan.object.name.as_str()).collect();
            assert_eq!(names, left, "{listed}");
        }
    }
}
