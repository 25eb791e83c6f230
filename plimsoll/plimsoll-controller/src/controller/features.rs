//! The cluster's features: fixed when the controller is started, or read from the FeatureGate of
//! the cluster, which need not exist and may be created at any time.

use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::FEATURE_GATE;
use plimsoll_plan::plan::features::{FEATURE_GATE_NAME, Features};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Settings;
use crate::error::Error;
use crate::observe::{self, ConfigObservation};
use crate::resources::{Resources, api_resource};

/// The features that the settings name, or those of the cluster.
///
/// # Errors
///
/// When the FeatureGate cannot be read.
pub(super) async fn find(client: &Client, settings: &Settings) -> Result<Features, Error> {
    match &settings.feature_set {
        Some(set) => Ok(Features::fixed(set)),
        None => cluster_features(client).await,
    }
}

/// The features that the FeatureGate of a cluster names; the default ones if there is none, the
/// kind is not served, or we may not read it.
///
/// # Errors
///
/// When the server does not answer, or answers with another error than these.
pub async fn cluster_features(client: &Client) -> Result<Features, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(FEATURE_GATE));
    match api.get_opt(FEATURE_GATE_NAME).await {
        Ok(found) => Ok(features_of(found.as_ref())),
        Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => {
            if status.code == 403 {
                tracing::warn!(
                    message = status.message,
                    "the FeatureGate cannot be read: the feature set is assumed to be Default"
                );
            }
            Ok(Features::default())
        }
        Err(source) => Err(Error::ReadFeatureGate { source }),
    }
}

/// The features that a FeatureGate names; the default ones if there is none.
pub(super) fn features_of(feature_gate: Option<&DynamicObject>) -> Features {
    feature_gate.map_or_else(Features::default, |object| Features::of_cluster(&object.data))
}

/// Watches the FeatureGate, if it is to be followed. While its kind is not served nothing is
/// requested: the watch starts when the kind is defined, and is tried once a sweep.
pub(super) struct FeatureWatch {
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
    /// The watch, if it has started; it ends with this.
    task: JoinSet<()>,
    is_followed: bool,
    /// Whether the watch has shown anything: the kind is served.
    is_answered: bool,
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
        let mut watch = Self { client, sender, task, is_followed, is_answered: false };
        let is_served = resources
            .iter()
            .any(|(kind, _)| kind.group == FEATURE_GATE.group && kind.kind == FEATURE_GATE.kind);
        if is_served {
            watch.restart_unanswered();
        }
        watch
    }

    /// The watch has shown something.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Starts the watch anew if it has not shown anything: the kind may be served by now.
    pub(super) fn restart_unanswered(&mut self) {
        if self.is_followed && !self.is_answered {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.task = JoinSet::new();
        self.task.spawn(observe::watch_named(
            self.client.clone(),
            FEATURE_GATE,
            FEATURE_GATE_NAME,
            ConfigObservation::FeatureGate,
            None,
            self.sender.clone(),
        ));
    }

    /// A kind was defined: if it is this one, the watch need not wait for the next sweep.
    pub(super) fn defined(&mut self, group: &str, plural: &str) {
        if group == FEATURE_GATE.group && plural == FEATURE_GATE.plural {
            self.restart_unanswered();
        }
    }
}
