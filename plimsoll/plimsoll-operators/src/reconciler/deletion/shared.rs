//! Objects that have another owner, too: they stay when an Operator or one of its revisions goes.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;

use crate::deletion::LiveObject;
use crate::reconciler::events::OperatorEffect;
use crate::reconciler::handler::OperatorHandler;
use crate::reconciler::removal::{RETRY_INTERVAL, ReleaseObjects};

impl OperatorHandler<'_> {
    /// Returns those of the objects that another Operator, which is not being deleted, holds too, or that
    /// the release contains; `None` until the latter are read.
    pub(super) fn shared(&mut self, objects: &[LiveObject]) -> Option<BTreeSet<ObjectKey>> {
        if objects.is_empty() || !self.knows_release() {
            return objects.is_empty().then(BTreeSet::new);
        }
        let ReleaseObjects::Read { objects: of_release, .. } =
            &self.operator.removal.as_ref()?.release
        else {
            return None;
        };
        let is_shared = |key: &&ObjectKey| {
            of_release.contains(&key.to_string())
                || self.peers.holder(key, |peer| peer.object.deleted.is_none()).is_some()
        };
        Some(objects.iter().map(|it| &it.key).filter(is_shared).cloned().collect())
    }

    /// Returns whether the objects of the release are known. They are read if they are not.
    fn knows_release(&mut self) -> bool {
        let removal = self.operator.removal.get_or_insert_default();
        match &removal.release {
            ReleaseObjects::Read { .. } => return true,
            ReleaseObjects::Reading => return false,
            ReleaseObjects::Failed { retry_at, .. } if *retry_at > self.moment.uptime => {
                return false;
            }
            ReleaseObjects::Failed { .. } | ReleaseObjects::Due => {}
        }
        removal.release = ReleaseObjects::Reading;
        self.output.effects.push(OperatorEffect::ReadRelease { operator: self.name.to_owned() });
        false
    }

    /// Handles the objects of the release.
    pub(in crate::reconciler) fn release_read(
        &mut self,
        objects: Result<BTreeSet<String>, String>,
    ) {
        let uptime = self.moment.uptime;
        let Some(removal) = &mut self.operator.removal else { return };
        removal.release = match objects {
            Ok(objects) => ReleaseObjects::Read { objects, at: uptime },
            Err(message) => {
                let retry_at = uptime + RETRY_INTERVAL;
                removal.next = Some(removal.next.map_or(retry_at, |at| at.min(retry_at)));
                ReleaseObjects::Failed { message, retry_at }
            }
        };
        self.mark_pending();
    }
}
