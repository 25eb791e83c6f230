//! The second part of the demo: an Operator is installed from the example catalog, misses a
//! dependency until that is installed, is updated, and is deleted. Then a tenant has it installed
//! once more.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};
use plimsoll_api::crd::operator_manifests;
use plimsoll_api::{ApiKind, CATALOG, OPERATOR};
use plimsoll_controller::actions::ActionSettings;
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{Leadership, SystemClock};
use plimsoll_simulation::cluster_state::api;
use plimsoll_simulation::sample;
use plimsoll_source::catalog::CatalogRoots;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::definitions::{DEFINITION, MANAGER, is_established};
use super::tenant;
use crate::render::table;

/// Plays the second part with a client of the tenant, on a cluster with simulated operators.
///
/// # Errors
///
/// When something cannot be requested, or the controller ends; which would be a defect of this program.
pub(super) async fn run(
    client: &Client,
    tenant: &Client,
    stop: &CancellationToken,
) -> Result<(), anyhow::Error> {
    let catalog = write_catalog()?;
    let settings = OperatorSettings {
        leadership: Leadership::Alone,
        roots: CatalogRoots::new([catalog.path().to_owned()]),
        cache: None,
        actions: Some(ActionSettings::default()),
        queries: None,
    };
    let controller = OperatorController {
        client: client.clone(),
        clock: Arc::new(SystemClock),
        settings,
        view: tokio::sync::watch::Sender::default(),
    };
    let ended = stop.child_token();
    let mut working = tokio::spawn(controller.run(ended.clone()));
    tokio::select! {
        played = play_all(client, tenant, catalog.path()) => played?,
        result = &mut working => {
            result??;
            anyhow::bail!("the controller of Operators ended before the demo did");
        }
    }
    ended.cancel();
    working.await??;
    Ok(())
}

/// Writes the example catalog, which is part of the program, to a directory.
fn write_catalog() -> Result<TempDir, anyhow::Error> {
    let directory = tempfile::tempdir().context("failed to make a directory for the catalog")?;
    for (path, bytes) in sample::catalog() {
        let path = directory.path().join(path);
        let context = || format!("failed to write `{}`", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(context)?;
        }
        std::fs::write(&path, bytes).with_context(context)?;
    }
    Ok(directory)
}

async fn play_all(client: &Client, tenant: &Client, catalog: &Path) -> Result<(), anyhow::Error> {
    tenant::prepare(client).await?;
    play(client, catalog).await?;
    tenant::play(tenant).await?;
    anstream::println!();
    print_table(client).await
}

async fn play(client: &Client, catalog: &Path) -> Result<(), anyhow::Error> {
    for definition in operator_manifests() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        await_condition(api(client, DEFINITION), name, is_established).await?;
    }
    let source = json!({ "type": "Directory", "path": catalog.to_string_lossy() });
    request(client, CATALOG, "examples", json!({ "source": source })).await?;

    anstream::println!("\nInstalling Operator lantern 1.0.0 from the example catalog");
    request(client, OPERATOR, "lantern", json!({ "version": "1.0.0" })).await?;
    let lantern = until(client, "lantern", |it| {
        is(it, "Installed", "True") && is(it, "ConstraintsSatisfied", "False")
    });
    let lantern = lantern.await?;
    anstream::println!(
        "  {}",
        condition(&lantern, "ConstraintsSatisfied")["message"].as_str().unwrap_or_default()
    );

    anstream::println!("Installing Operator ledger ~1.4");
    request(client, OPERATOR, "ledger", json!({ "version": "~1.4" })).await?;
    for name in ["ledger", "lantern"] {
        let is_satisfied =
            |it: &Value| is(it, "Installed", "True") && is(it, "ConstraintsSatisfied", "True");
        until(client, name, is_satisfied).await?;
    }
    anstream::println!("  lantern has what it requires");

    anstream::println!("Updating lantern to ~1.1");
    request(client, OPERATOR, "lantern", json!({ "version": "~1.1" })).await?;
    let is_updated = |it: &Value| {
        it["status"]["resolvedVersion"] == "~1.1 (@v1.1.1)" && is(it, "Progressing", "False")
    };
    until(client, "lantern", is_updated).await?;
    anstream::println!();
    print_table(client).await?;

    anstream::println!("\nDeleting lantern: first its Beacon, then what runs, then the rest");
    create_beacon(client).await?;
    api(client, OPERATOR).delete("lantern", &DeleteParams::default()).await?;
    await_condition(api(client, OPERATOR), "lantern", |it: Option<&DynamicObject>| it.is_none())
        .await?;
    anstream::println!();
    print_table(client).await
}

/// Requests an object as it is to be, as `kubectl apply` would.
async fn request(
    client: &Client,
    kind: ApiKind,
    name: &str,
    spec: Value,
) -> Result<(), anyhow::Error> {
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    });
    let parameters = PatchParams::apply(MANAGER);
    let applied = api(client, kind).patch(name, &parameters, &Patch::Apply(&object)).await;
    applied.with_context(|| format!("failed to apply {} \"{name}\"", kind.kind))?;
    Ok(())
}

/// Creates an object of lantern's kind, which the simulated operator then reconciles.
async fn create_beacon(client: &Client) -> Result<(), anyhow::Error> {
    let kind = GroupVersionKind::gvk("lantern.example.com", "v1", "Beacon");
    let beacons: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind));
    let object = json!({
        "apiVersion": "lantern.example.com/v1",
        "kind": "Beacon",
        "metadata": { "name": "north", "namespace": "default" },
        "spec": { "colour": "green" },
    });
    beacons.patch("north", &PatchParams::apply(MANAGER), &Patch::Apply(&object)).await?;
    let has_finalizer =
        |it: Option<&DynamicObject>| it.is_some_and(|it| it.metadata.finalizers.is_some());
    await_condition(beacons, "north", has_finalizer).await?;
    Ok(())
}

/// Waits until an Operator reports something of its present spec.
async fn until(
    client: &Client,
    name: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Value, anyhow::Error> {
    let is_wanted = |it: Option<&DynamicObject>| {
        it.is_some_and(|it| {
            it.data["status"]["observedGeneration"].as_i64() == it.metadata.generation
                && wanted(&it.data)
        })
    };
    let found = await_condition(api(client, OPERATOR), name, is_wanted).await?;
    Ok(found.map(|it| it.data).unwrap_or_default())
}

fn condition<'a>(operator: &'a Value, type_: &str) -> &'a Value {
    let conditions = operator["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|it| it["type"] == type_);
    found.unwrap_or(&Value::Null)
}

fn is(operator: &Value, type_: &str, status: &str) -> bool {
    condition(operator, type_)["status"] == status
}

/// Prints the Operators as `kubectl get operators` does.
async fn print_table(client: &Client) -> Result<(), anyhow::Error> {
    let operators = api(client, OPERATOR).list(&Default::default()).await?;
    let row = |operator: DynamicObject| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let satisfied = text(&condition(&operator.data, "ConstraintsSatisfied")["status"]);
        let version = text(&operator.data["status"]["resolvedVersion"]);
        vec![operator.name_any(), satisfied, version]
    };
    let rows: Vec<Vec<String>> = operators.into_iter().map(row).collect();
    table::print(&mut anstream::stdout().lock(), &["NAME", "SATISFIED", "VERSION"], &rows)?;
    Ok(())
}
