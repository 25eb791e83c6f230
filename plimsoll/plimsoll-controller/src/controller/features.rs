//! The cluster's features: fixed when the controller is started, or followed in the FeatureGate of
//! the cluster, which need not be there and may come at any time.

use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::FEATURE_GATE;
use plimsoll_api::Reason;
use plimsoll_plan::plan::features::{FEATURE_GATE_NAME, Features};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Controller, Settings, Work};
use crate::bootstrap::api_resource;
use crate::error::Error;
use crate::events::Severity;
use crate::observe::{self, ConfigObservation};
use crate::resources::Resources;

/// The features that a controller goes by now: those that it was told, or those of the cluster.
pub(super) async fn find(client: &Client, settings: &Settings) -> Result<Features, Error> {
    match &settings.feature_set {
        Some(set) => Ok(Features::of_set(set)),
        None => cluster_features(client).await,
    }
}

/// The features that the FeatureGate of a cluster tells.
///
/// # Errors
///
/// When the server cannot be asked. That it has no FeatureGate, does not know any, or shows us
/// none, is no error.
pub async fn cluster_features(client: &Client) -> Result<Features, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(FEATURE_GATE));
    match api.get_opt(FEATURE_GATE_NAME).await {
        Ok(found) => Ok(of(found.as_ref())),
        Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => {
            if status.code == 403 {
                tracing::warn!(
                    message = status.message,
                    "the FeatureGate cannot be read: the feature set is taken for Default"
                );
            }
            Ok(Features::default())
        }
        Err(source) => Err(Error::ReadFeatureGate { source }),
    }
}

/// The features that a FeatureGate tells; the default ones if there is none.
fn of(feature_gate: Option<&DynamicObject>) -> Features {
    feature_gate.map_or_else(Features::default, |object| Features::of_cluster(&object.data))
}

/// Watches the FeatureGate, if it is to be followed. While its kind is not served nothing is asked:
/// its definition is waited for, and looked for once a sweep.
pub(super) struct FeatureWatch {
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
    /// The watch, if it has begun; it ends with this.
    task: JoinSet<()>,
    is_followed: bool,
    /// Whether the server has answered: the kind is served.
    answered: bool,
}

impl FeatureWatch {
    pub(super) fn start(
        client: Client,
        settings: &Settings,
        sender: mpsc::Sender<ConfigObservation>,
        resources: &Resources,
    ) -> Self {
        let is_followed = settings.feature_set.is_none();
        let task = JoinSet::new();
        let mut watch = Self { client, sender, task, is_followed, answered: false };
        let is_served = resources
            .iter()
            .any(|(kind, _)| kind.group == FEATURE_GATE.group && kind.kind == FEATURE_GATE.kind);
        if is_served {
            watch.look_again();
        }
        watch
    }

    /// Looks whether there is one by now.
    pub(super) fn look_again(&mut self) {
        if self.is_followed && !self.answered {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.task = JoinSet::new();
        self.task.spawn(observe::watch_named(
            self.client.clone(),
            (FEATURE_GATE, FEATURE_GATE_NAME),
            ConfigObservation::FeatureGate,
            self.sender.clone(),
        ));
    }

    /// A kind was defined: if it is this one, there is no need to wait for the next try.
    pub(super) fn defined(&mut self, group: &str, plural: &str) {
        if group == FEATURE_GATE.group && plural == FEATURE_GATE.plural {
            self.look_again();
        }
    }
}

impl Work {
    /// The FeatureGate is as it is: if that makes a difference, what is included is decided anew.
    pub(super) async fn featured(
        &mut self,
        controller: &Controller,
        feature_gate: Option<&DynamicObject>,
    ) {
        self.feature_watch.answered = true;
        let features = of(feature_gate);
        let profile = &controller.settings.profile;
        let change = features.change(&self.features, &self.payload, profile);
        // The gates of releases to come may have changed even if nothing did for this one.
        self.features = features;
        let Some(change) = change else { return };
        let note = format!("{change}; what is included is decided anew");
        self.emit(Severity::Normal, Reason::FeaturesChanged, note);
        let kept: Vec<String> = self.capabilities.enabled.iter().cloned().collect();
        self.decide_capabilities(controller, &kept);
        self.request = self.requested(controller.clock.now());
        self.replan(controller).await;
        self.reporter.touch();
    }
}
