//! Kinds that are not served. A revision with an object of one is refused before anything is applied, unless an
//! Operator is about to bring the kind.

use std::collections::BTreeSet;

use plimsoll_content::Manifest;
use plimsoll_plan::plan::GroupVersionKind;

use super::events::{Findings, UnservedKind};
use super::handler::OperatorHandler;
use super::messages;
use super::revision::RevisionDraft;
use super::track::Preparation;
use crate::OperatorBlock;

impl RevisionDraft {
    /// Returns the kinds of its objects that it does not bring itself.
    pub(super) fn foreign_kinds(&self) -> BTreeSet<GroupVersionKind> {
        let objects = || self.objects.iter().map(|it| &it.manifest);
        let mut kinds: BTreeSet<GroupVersionKind> = objects().map(kind_of).collect();
        kinds.retain(|kind| !brings(objects(), kind));
        kinds
    }
}

fn kind_of(object: &Manifest) -> GroupVersionKind {
    GroupVersionKind {
        group: object.key.group.clone(),
        version: object.version.clone(),
        kind: object.key.kind.clone(),
    }
}

/// Returns whether objects make an API server serve a kind: a definition of it, or an APIService of its group.
fn brings<'a>(objects: impl IntoIterator<Item = &'a Manifest>, kind: &GroupVersionKind) -> bool {
    let service = format!("{}.{}", kind.version, kind.group);
    objects.into_iter().any(|it| match &it.definition {
        Some(defined) => {
            defined.kind.group == kind.group
                && defined.kind.kind == kind.kind
                && defined.served().any(|version| version == kind.version)
        }
        None => it.key.kind == "APIService" && it.key.name == service,
    })
}

impl OperatorHandler<'_> {
    /// Returns whether another Operator is about to bring a kind: it is applied, or is prepared along with this
    /// one.
    fn is_coming(&self, kind: &GroupVersionKind) -> bool {
        let members = self.other_members();
        self.peers.operators.iter().any(|(name, peer)| {
            let draft = match &peer.preparation {
                Some(Preparation::Inspecting { draft, .. }) if members.contains(name) => {
                    Some(draft)
                }
                _ => None,
            };
            let drafted = draft.into_iter().flat_map(|it| &it.objects).map(|it| &it.manifest);
            let held = peer.held().flat_map(|(_, it)| it.manifests());
            peer.object.deleted.is_none() && brings(held.chain(drafted), kind)
        })
    }

    /// Returns whether a kind is not served that another member of the change set may bring, which is still being
    /// read.
    pub(super) fn awaits_kinds(&self, found: &Findings) -> bool {
        found.unserved.iter().any(|it| !self.is_coming(&it.kind)) && self.awaits_member()
    }

    /// Goes on with an inspection that waited for other members of the change set.
    pub(super) fn continue_inspection(&mut self) {
        let is_over = match &self.operator.preparation {
            Some(Preparation::Inspecting { found: Some(found), .. }) => !self.awaits_kinds(found),
            _ => false,
        };
        if !is_over {
            return;
        }
        if let Some(Preparation::Inspecting { wanted, draft, kept, found: Some(found), .. }) =
            self.operator.preparation.take()
        {
            self.inspected(wanted, draft, kept, Ok(*found));
        }
    }

    /// Checks that all kinds of a revision are served, or will be.
    ///
    /// # Errors
    ///
    /// When some will not be; the message names an object of each.
    pub(super) fn check_kinds(
        &mut self,
        unserved: &[UnservedKind],
        draft: &RevisionDraft,
    ) -> Result<(), OperatorBlock> {
        let provider = self.operator.object.spec.certificates;
        let (mut groups, mut missing) = (BTreeSet::new(), Vec::new());
        for it in unserved.iter().filter(|it| !self.is_coming(&it.kind)) {
            let mut objects = draft.objects.iter().map(|it| &it.manifest);
            let Some(object) = objects.find(|object| kind_of(object) == it.kind) else { continue };
            groups.insert(it.kind.group.clone());
            missing.push(messages::unserved_kind(&object.key, it, provider));
        }
        self.operator.unserved = groups;
        match missing.is_empty() {
            true => Ok(()),
            false => Err(messages::unserved(&draft.bundle, &missing)),
        }
    }

    /// Tries a failed preparation again.
    pub(super) fn try_again(&mut self) {
        let now = self.moment.uptime;
        if let Some(Preparation::Failed { retry_at, .. }) = &mut self.operator.preparation {
            *retry_at = now;
            self.mark_pending();
        }
    }
}
