//! What every measurement needs: payloads, and a controller with simulated operators.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::{ApiKind, CLUSTER_VERSION, crd};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_content::payload::{TemplateContext, parse};
use plimsoll_controller::{Controller, Leadership, Settings, SystemClock, View};
use plimsoll_plan::status::Limits;
use plimsoll_simulation::cluster_state::api;
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What only OpenShift's own API server completes: left out everywhere.
pub(crate) const INCOMPLETE: [&str; 2] =
    ["machine-api-termination-handler", "insights-runtime-extractor-scc"];

pub(crate) fn template() -> TemplateContext {
    TemplateContext { release_image: String::new(), cluster_profile: DEFAULT_PROFILE.to_owned() }
}

/// The payload and the one after it.
pub(crate) fn payloads() -> Result<(Arc<Payload>, Arc<Payload>), anyhow::Error> {
    let load = |variable: &str| {
        std::env::var_os(variable)
            .map(|path| plimsoll_source::load(&PathBuf::from(path), &template()))
    };
    let first = match load("PLIMSOLL_PAYLOAD") {
        Some(payload) => payload?,
        None => parse(sample::v1(), &template())?,
    };
    let second = match load("PLIMSOLL_PAYLOAD_NEXT") {
        Some(payload) => payload?,
        None => parse(sample::v2(), &template())?,
    };
    Ok((Arc::new(first), Arc::new(second)))
}

/// A controller at work, with simulated operators.
pub(crate) struct Work {
    pub(crate) release: watch::Sender<Arc<Payload>>,
    pub(crate) views: watch::Receiver<View>,
    pub(crate) stop: CancellationToken,
}

/// Starts simulated operators on `client` and a controller on `controlled`.
pub(crate) fn work(
    client: &Client,
    controlled: Client,
    payloads: &[Arc<Payload>],
    delay: Duration,
) -> Work {
    let stop = CancellationToken::new();
    let options = SimulationOptions { payloads: payloads.to_vec(), delay, ..Default::default() };
    tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone()));
    let (release, releases) = watch::channel(Arc::clone(&payloads[0]));
    let (view, views) = watch::channel(View::default());
    let controller = Controller {
        client: controlled,
        clock: Arc::new(SystemClock),
        settings: Settings {
            profile: DEFAULT_PROFILE.to_owned(),
            feature_set: Some(DEFAULT_FEATURE_SET.to_owned()),
            create: Some(ClusterVersionSpec {
                cluster_id: "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11".to_owned(),
                ..ClusterVersionSpec::default()
            }),
            force_release: false,
            leadership: Leadership::Alone,
            always_enabled: Vec::new(),
            capability_webhook: None,
            limits: Limits::default(),
        },
        release: releases,
        store: None,
        view,
    };
    tokio::spawn(controller.run(stop.clone()));
    Work { release, views, stop }
}

impl Work {
    /// Waits until a version is completed.
    pub(crate) async fn completed(&mut self, version: &str) -> Result<(), anyhow::Error> {
        let mut views = self.views.clone();
        let done = views.wait_for(|view| view.completed && view.version == version);
        match tokio::time::timeout(Duration::from_secs(900), done).await {
            Ok(seen) => {
                seen?;
                Ok(())
            }
            Err(_) => anyhow::bail!("not completed: {:#?}", self.views.borrow().waits),
        }
    }
}

/// The kind of definitions.
pub(crate) const DEFINITION: ApiKind = ApiKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// Creates the ClusterVersion as an installer would, with its overrides.
pub(crate) async fn create_cluster_version(client: &Client) -> Result<(), anyhow::Error> {
    for manifest in crd::manifests() {
        let object: DynamicObject = serde_json::from_value(manifest)?;
        api(client, DEFINITION).create(&PostParams::default(), &object).await?;
    }
    let overrides: Vec<Value> = INCOMPLETE
        .iter()
        .map(|name| {
            json!({
                "group": "security.openshift.io",
                "kind": "SecurityContextConstraints",
                "namespace": "-",
                "name": name,
                "unmanaged": true,
            })
        })
        .collect();
    let object = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "name": "version" },
        "spec": { "clusterID": "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11", "overrides": overrides },
    });
    let parameters = PatchParams::apply("installer");
    for _ in 0..200 {
        let patch = Patch::Apply(&object);
        if api(client, CLUSTER_VERSION).patch("version", &parameters, &patch).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("the ClusterVersion kind is not served")
}
