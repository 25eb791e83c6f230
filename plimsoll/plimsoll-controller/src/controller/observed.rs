//! The objects that configure the controller changed.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::progress::AnnotationRecord;
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use plimsoll_plan::reconciler::events;
use plimsoll_plan::reconciler::revisions::StorageRollback;
use plimsoll_plan::removal::PRUNE;
use plimsoll_plan::spec::overrides::OVERRIDE_TERMS;
use plimsoll_plan::spec::read;
use plimsoll_plan::update::operators::OperatorsOnPlatform;
use plimsoll_plan::update::preconditions::WINDOW_ANNOTATION;
use plimsoll_plan::windows::MaintenanceWindows;
use serde::Deserialize;

use super::Controller;
use super::control_loop::ControlLoop;
use super::features::features_of;
use crate::listing_watch::revision;
use crate::observe::ConfigObservation;
use crate::report::StatusObject;

impl ControlLoop {
    /// A watch showed an object that configures the controller.
    pub(super) async fn configuration_observed(
        &mut self,
        controller: &Controller,
        observation: ConfigObservation,
    ) {
        match observation {
            ConfigObservation::ClusterVersion(Some(object)) => {
                self.cluster_version_changed(controller, &object).await;
            }
            ConfigObservation::ClusterVersion(None) => self.is_deleted = true,
            ConfigObservation::ReleaseProgress(None) => self.reporter.release_progress_lost(),
            ConfigObservation::ReleaseProgress(Some(revision)) => {
                self.status_shown(StatusObject::ReleaseProgress, revision);
            }
            ConfigObservation::ClusterVersionInterrupted => {
                self.reporter.interrupted(StatusObject::ClusterVersion);
                self.is_cluster_version_unknown = true;
                self.session.execution.hold();
            }
            ConfigObservation::ReleaseProgressInterrupted => {
                self.reporter.interrupted(StatusObject::ReleaseProgress);
            }
            ConfigObservation::ConfigMap { name, data } => {
                let (desired, uptime) = (&self.reconciler.desired, self.stopwatch.uptime());
                if self.reconciler.requests.config_map_changed(name, data, desired, uptime) {
                    self.reporter.touch();
                }
            }
            ConfigObservation::OperatorDefinition { is_served } => {
                if is_served {
                    self.session.operators_defined();
                }
                if self.operators_watch.defined(is_served) {
                    self.operators_observed(OperatorsOnPlatform::default());
                }
            }
            ConfigObservation::Operators(operators) => self.operators_observed(operators),
            ConfigObservation::WindowDefinition { is_served } => {
                if self.windows_watch.defined(is_served) {
                    self.windows_observed(Arc::default());
                }
            }
            ConfigObservation::Windows(windows) => self.windows_observed(windows),
            ConfigObservation::FeatureGate(object) => {
                self.feature_gate_changed(controller, object.as_deref()).await;
            }
        }
    }

    async fn cluster_version_changed(&mut self, controller: &Controller, object: &DynamicObject) {
        let now = controller.clock.now();
        let (spec, status) = read_cluster_version(object);
        self.status_shown(StatusObject::ClusterVersion, revision(&object.metadata));
        self.is_cluster_version_unknown = false;
        if object.uid().as_deref() != Some(&*self.uid) {
            // Another one took its place: it continues from what ReleaseProgress recorded.
            self.is_deleted = true;
            return;
        }
        let spec = match spec {
            Ok(spec) => {
                self.reconciler.generation = object.metadata.generation.unwrap_or_default();
                self.reconciler.unreadable_spec = None;
                spec
            }
            Err(why) => {
                self.reconciler.unreadable_spec = Some(why);
                self.reconciler.desired.spec().clone()
            }
        };
        let annotations = Annotations::of(object);
        self.reconciler.annotations = annotations.recorded();
        let named = &status.capabilities.enabled_capabilities;
        let override_terms = annotations.override_terms.as_deref();
        let enabled = self.reconciler.desired.cluster_version_changed(spec, override_terms, named);
        self.reconciler.desired.maintenance_window_changed(annotations.maintenance_window);
        self.publish_rules();
        self.emit_all(enabled.iter().map(|name| events::capability_enabled(name)));
        self.pause_changed(annotations.pause, self.stopwatch.steady_time());
        self.refresh_updates();
        let is_changed = self.reconciler.desired.refresh(now);
        let plan = Arc::clone(self.session.progress().plan());
        let removals = self.session.execution.removals_mut();
        if removals.prune_requested(annotations.prune, &plan) || is_changed {
            self.replan_if_changed(controller).await;
        }
        self.reporter.touch();
    }

    /// A watch showed an object that has one of the statuses.
    fn status_shown(&mut self, object: StatusObject, revision: u64) {
        if let Some(StorageRollback { seen, now }) = self.reporter.shown(object, revision) {
            tracing::warn!(?object, seen, now, "the object is listed at an earlier revision");
            self.is_storage_rolled_back = true;
        }
    }

    /// Installed Operators require something else of the platform.
    fn operators_observed(&mut self, operators: OperatorsOnPlatform) {
        let (desired, uptime) = (&self.reconciler.desired, self.stopwatch.uptime());
        if self.reconciler.requests.operators_changed(operators, desired, uptime) {
            self.reporter.touch();
        }
    }

    /// The MaintenanceWindows are these.
    fn windows_observed(&mut self, windows: Arc<MaintenanceWindows>) {
        self.reconciler.requests.windows_changed(windows, self.stopwatch.uptime());
        self.reporter.touch();
    }

    fn pause_changed(&mut self, annotation: Option<String>, now: jiff::Timestamp) {
        let pause = &mut self.reconciler.pause;
        if !pause.annotation_changed(annotation, &mut self.session.execution, now) {
            return;
        }
        let is_resumed = pause.is_none();
        self.session.start_due(now);
        if is_resumed {
            let version = &self.reconciler.desired.release().version;
            let resumed = self.reconciler.events.resumed(version);
            self.emit_all(resumed);
        }
        self.reporter.touch();
    }

    /// The FeatureGate changed: if that makes a difference, another plan is due.
    async fn feature_gate_changed(
        &mut self,
        controller: &Controller,
        feature_gate: Option<&DynamicObject>,
    ) {
        self.feature_watch.answered();
        let features = features_of(feature_gate);
        let Some(change) = self.reconciler.desired.features_changed(features) else { return };
        self.emit(events::features_changed(&change));
        self.publish_rules();
        self.reconciler.desired.refresh(controller.clock.now());
        self.replan_if_changed(controller).await;
        self.reporter.touch();
    }
}

/// The annotations of a ClusterVersion that the controller follows; each `None` if it is absent.
#[derive(Debug, Clone, Default)]
pub(super) struct Annotations {
    pub(super) pause: Option<String>,
    pub(super) prune: Option<String>,
    pub(super) override_terms: Option<String>,
    pub(super) maintenance_window: Option<String>,
}

impl Annotations {
    pub(super) fn of(cluster_version: &DynamicObject) -> Self {
        let annotation = |name: &str| cluster_version.annotations().get(name).cloned();
        Self {
            pause: annotation(PAUSE_BEFORE),
            prune: annotation(PRUNE),
            override_terms: annotation(OVERRIDE_TERMS),
            maintenance_window: annotation(WINDOW_ANNOTATION),
        }
    }

    /// By name, for the record of a ClusterVersion that may be deleted.
    pub(super) fn recorded(&self) -> Vec<AnnotationRecord> {
        let Self { pause, prune, override_terms, maintenance_window } = self;
        let named = [
            (PAUSE_BEFORE, pause),
            (PRUNE, prune),
            (OVERRIDE_TERMS, override_terms),
            (WINDOW_ANNOTATION, maintenance_window),
        ];
        let present = named.into_iter().filter_map(|(name, value)| {
            Some(AnnotationRecord { name: name.to_owned(), value: value.clone()? })
        });
        present.collect()
    }
}

/// The spec of a ClusterVersion, or why it cannot be read, and the status; what cannot be read of that is
/// empty.
pub(super) fn read_cluster_version(
    object: &DynamicObject,
) -> (Result<ClusterVersionSpec, String>, ClusterVersionStatus) {
    let spec = read::read(&object.data["spec"]);
    if let Err(error) = &spec {
        tracing::warn!(error, "the spec of the ClusterVersion cannot be read; it is ignored");
    }
    (spec, Deserialize::deserialize(&object.data["status"]).unwrap_or_default())
}
