//! Objects that an administrator took out of management: until when, and what is told of it.

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use plimsoll_api::Reason;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::progress::OverrideState;
use plimsoll_plan::spec::overrides::{self, OVERRIDE_TERMS, Overrides};

use super::{Controller, Work};
use crate::events::Severity;

/// The overrides of a ClusterVersion.
pub(super) fn overrides_of(
    cluster_version: &DynamicObject,
    spec: &ClusterVersionSpec,
) -> Overrides {
    let annotation = cluster_version.annotations().get(OVERRIDE_TERMS);
    Overrides::parse(&spec.overrides, annotation.map(String::as_str))
}

impl Work {
    /// Takes up what was overridden until now, and tells of overrides that came and went.
    pub(super) async fn apply_overrides(&mut self, controller: &Controller) {
        let now = controller.clock.now();
        let standing = self.overrides.progress(now);
        if standing != self.reported_overrides.0 {
            let before = std::mem::replace(&mut self.reported_overrides.0, standing);
            for change in overrides::changes(&before, &self.reported_overrides.0) {
                let reason = match change.state {
                    Some(OverrideState::InForce) => Reason::OverrideInForce,
                    Some(OverrideState::Expired) => Reason::OverrideExpired,
                    None => Reason::OverrideRemoved,
                };
                let (note, object) = (change.message, Some(&change.object));
                self.emit_about(Severity::Normal, reason, "Override", note, object);
            }
            // What updates are judged by may be other than it was.
            self.request_changed = true;
            self.reporter.touch();
        }
        if self.overrides.problems != self.reported_overrides.1 {
            self.reported_overrides.1.clone_from(&self.overrides.problems);
            for problem in &self.overrides.problems {
                self.emit(Severity::Warning, Reason::OverrideTermsInvalid, problem.clone());
            }
            self.reporter.touch();
        }
        if self.overrides.for_inclusion(now) != self.request.overrides {
            self.request = self.requested(now);
            self.replan(controller).await;
            self.reporter.touch();
        }
    }
}
