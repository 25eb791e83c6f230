//! Deletion of the objects of earlier revisions that the installed one lacks.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{CrdDeletion, DeletionPolicy, WorkloadDeletion};

use super::has_users_data;
use crate::deletion::{self, DeletionInputs, NextDeletion};
use crate::reconciler::handler::OperatorHandler;

impl OperatorHandler<'_> {
    /// Deletes objects of earlier revisions that the installed one lacks, except for those with data of users.
    pub(in crate::reconciler) fn delete_leftovers(&mut self) {
        let rollout = self.operator.rollout.as_ref().filter(|it| it.is_complete);
        let Some(rollout) = rollout.filter(|it| !it.is_cleaned_up) else { return };
        if self.operator.revisions.len() < 2 {
            return;
        }
        let steps = &rollout.execution.progress().plan().steps;
        let has: BTreeSet<ObjectKey> = steps.iter().map(|it| it.manifest.key.clone()).collect();
        let sees_all = self.sees_all_objects();
        self.operator.removal.get_or_insert_default();
        if !sees_all {
            return;
        }
        let recorded = self.recorded_objects();
        let left = self.live_objects(|it| {
            recorded.contains(&it.key) && !has.contains(&it.key) && !has_users_data(&it.key)
        });
        let Some(shared) = self.shared(&left) else { return };
        let policy = DeletionPolicy {
            crds: CrdDeletion::Orphan,
            workloads: WorkloadDeletion::Orphan,
            ..DeletionPolicy::default()
        };
        let inputs = DeletionInputs {
            policy: &policy,
            objects: &left,
            operands: &[],
            shared: &shared,
            occupied: const { &BTreeSet::new() },
            started: self.moment.time,
            now: self.moment.time,
        };
        let Some(occupied) = self.occupied(&inputs) else { return };
        match deletion::next(&DeletionInputs { occupied: &occupied, ..inputs }) {
            NextDeletion::Phase { phase: _, delete, progress } => {
                self.request_deletions(delete, progress);
            }
            NextDeletion::Complete { .. } | NextDeletion::Refused { .. } => {
                self.operator.removal = None;
                if let Some(rollout) = &mut self.operator.rollout {
                    rollout.is_cleaned_up = true;
                }
                self.forget_old_revisions();
            }
        }
        // Objects that are not deleted block updates.
        let upgrade_block = self.operator.upgrade_block(self.name, &self.cluster.objects);
        let known = self.requested.get(self.name).and_then(|it| it.installed.as_ref());
        if known.is_some_and(|it| it.upgrade_block != upgrade_block) {
            self.is_request_outdated = true;
            self.output.undecided.insert(self.name.to_owned());
        }
    }
}
