//! The floor: the same server-side applies and nothing else, by the best simple client we can write.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::discovery::{self, ApiResource, Discovery};
use kube::{Api, Client};
use plimsoll_api::config::{ClusterVersionSpec, Release};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{Context, DEFAULT_FEATURE_SET, DEFAULT_PROFILE, UnmanagedObject};
use plimsoll_plan::apply::prepare;
use plimsoll_plan::capabilities;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::plan::{Action, GroupVersionKind, Plan, Step, plan};
use plimsoll_plan::progress::Scope;
use plimsoll_simulation::cluster_state::api;
use serde_json::json;

use crate::stage::{DEFINITION, INCOMPLETE};

/// The plan that a controller would make of a payload.
pub(crate) fn planned(payload: &Payload, mode: Mode) -> Plan {
    let overrides = INCOMPLETE.iter().map(|name| UnmanagedObject {
        group: "security.openshift.io".to_owned(),
        kind: "SecurityContextConstraints".to_owned(),
        namespace: "-".to_owned(),
        name: (*name).to_owned(),
    });
    let gates = payload.feature_gates(DEFAULT_PROFILE, DEFAULT_FEATURE_SET);
    let registry = &payload.capabilities;
    let capabilities =
        capabilities::effective(&ClusterVersionSpec::default(), &[], &[], registry, &gates);
    let context = Context {
        overrides: overrides.collect(),
        capabilities: Some(capabilities.for_inclusion()),
        ..payload.context(DEFAULT_PROFILE, DEFAULT_FEATURE_SET)
    };
    let mut plan = plan(&payload.manifests, &context, Release::default(), mode);
    if mode == Mode::Initializing {
        // An installation deletes nothing.
        plan.steps.retain(|step| step.action != Action::Delete);
    }
    plan
}

/// What the bare loop took.
pub(crate) struct Floor {
    /// Until the last manifest was accepted.
    pub(crate) applied: Duration,
    /// Until the server also served every kind that was defined.
    pub(crate) served: Duration,
}

/// Applies a payload bare: definitions and namespaces first, then the rest, what needs something
/// that is not there yet again and again. Everything that simulated operators would bring is there
/// before.
pub(crate) async fn apply(
    client: &Client,
    payload: &Payload,
    concurrency: usize,
) -> Result<Floor, anyhow::Error> {
    let plan = planned(payload, Mode::Initializing);
    furnish(client, &plan).await?;
    let began = Instant::now();
    let early = |step: &&Step| {
        matches!(step.manifest.key.kind.as_str(), "Namespace" | "CustomResourceDefinition")
    };
    let (first, rest): (Vec<&Step>, Vec<&Step>) = plan.steps.iter().partition(early);
    round(client, &first, concurrency).await?;
    round(client, &rest, concurrency).await?;
    let applied = began.elapsed();
    loop {
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let served = |kind: &GroupVersionKind| {
            let gvk = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
            discovery.resolve_gvk(&gvk).is_some()
        };
        if plan.steps.iter().flat_map(|step| &step.serves).all(served) {
            return Ok(Floor { applied, served: began.elapsed() });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn round(client: &Client, steps: &[&Step], concurrency: usize) -> Result<(), anyhow::Error> {
    let mut left: Vec<&Step> = steps.to_vec();
    for _ in 0..200 {
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let requests = left.iter().map(|&step| {
            let found = resource(&discovery, step);
            async move {
                let done = match found {
                    Some((resource, scope)) => one(client, step, &resource, scope).await,
                    None => false,
                };
                (step, done)
            }
        });
        let results: Vec<(&Step, bool)> =
            futures::stream::iter(requests).buffer_unordered(concurrency).collect().await;
        left = results.into_iter().filter(|(_, done)| !done).map(|(step, _)| step).collect();
        if left.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let first = left.first().context("something is left")?;
    anyhow::bail!("{} manifests cannot be applied, such as {}", left.len(), first.manifest.key)
}

fn resource(discovery: &Discovery, step: &Step) -> Option<(ApiResource, Scope)> {
    let kind = step.kind();
    let gvk = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let (resource, capabilities) = discovery.resolve_gvk(&gvk)?;
    let scope = match capabilities.scope {
        discovery::Scope::Cluster => Scope::Cluster,
        discovery::Scope::Namespaced => Scope::Namespaced,
    };
    Some((resource, scope))
}

async fn one(client: &Client, step: &Step, resource: &ApiResource, scope: Scope) -> bool {
    let mut object = prepare::object(step, scope);
    let api: Api<DynamicObject> = match scope {
        Scope::Namespaced => {
            Api::namespaced_with(client.clone(), &step.manifest.key.namespace, resource)
        }
        Scope::Cluster => Api::all_with(client.clone(), resource),
    };
    let parameters = PatchParams::apply("floor").force();
    loop {
        let name = &step.manifest.key.name;
        match api.patch_metadata(name, &parameters, &Patch::Apply(&object)).await {
            Ok(_) => return true,
            Err(kube::Error::Api(status)) => {
                let paths = prepare::undeclared_fields(&status.message);
                if !paths.iter().any(|path| prepare::remove_field(&mut object, path)) {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

/// Creates what simulated operators create: namespaces and definitions that the release does not have.
async fn furnish(client: &Client, plan: &Plan) -> Result<(), anyhow::Error> {
    let created = |name: &str| {
        plan.steps.iter().any(|s| s.manifest.key.kind == "Namespace" && s.manifest.key.name == name)
    };
    let mut names: Vec<&str> = plan
        .steps
        .iter()
        .map(|step| step.manifest.key.namespace.as_str())
        .filter(|name| !name.is_empty() && !created(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let parameters = PatchParams::apply("floor").force();
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    for name in names {
        let object =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        api.patch(name, &parameters, &Patch::Apply(&object)).await?;
    }
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let defined = |step: &Step| plan.steps.iter().any(|s| s.serves.contains(&step.kind()));
    for step in plan.steps.iter().filter(|s| resource(&discovery, s).is_none() && !defined(s)) {
        define(client, step).await?;
    }
    Ok(())
}

async fn define(client: &Client, step: &Step) -> Result<(), anyhow::Error> {
    let kind = step.kind();
    let plural = format!("{}s", kind.kind.to_lowercase());
    let name = format!("{plural}.{}", kind.group);
    let scope = if step.manifest.key.namespace.is_empty() { "Cluster" } else { "Namespaced" };
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "annotations": { "api-approved.kubernetes.io": "unapproved, for measurements" },
        },
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": { "kind": kind.kind, "plural": plural },
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    let parameters = PatchParams::apply("floor").force();
    api(client, DEFINITION).patch(&name, &parameters, &Patch::Apply(&object)).await?;
    Ok(())
}
