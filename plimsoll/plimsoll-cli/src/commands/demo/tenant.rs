//! The end of the demo: a tenant, who may request Actions and nothing else, has an Operator
//! installed that a policy grants.

use anyhow::Context as _;
use clap::Parser;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use plimsoll_api::crd::action_manifests;
use plimsoll_api::{ACTION_CLASS, ACTION_POLICY, ApiKind};
use plimsoll_controller::api_resource;
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use super::definitions::{DEFINITION, MANAGER, is_established};
use crate::commands::operator::{OperatorCommand, execute};
use crate::prompt::Prompter;

/// The tenant.
pub(super) const TENANT: &str = "alice";
/// The namespace of the tenant.
const NAMESPACE: &str = "team-a";
/// The class that the policy grants.
const CLASS: &str = "operator-install";
/// What the tenant types.
const COMMANDS: [&str; 2] = [
    "action run operator-install lantern@~1.1 --install-dependencies --name install-lantern --watch",
    "action show install-lantern",
];

/// A command line after `kubectl operator`.
#[derive(Debug, Parser)]
#[command(name = "kubectl operator")]
struct CommandLine {
    #[command(subcommand)]
    command: OperatorCommand,
}

/// Makes the namespace, the role and the policy of the tenant.
///
/// # Errors
///
/// When something cannot be requested; which would be a defect of this program.
pub(super) async fn prepare(client: &Client) -> Result<(), anyhow::Error> {
    for definition in action_manifests() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        await_condition(api(client, DEFINITION), name, is_established).await?;
    }
    let is_there = |it: Option<&DynamicObject>| it.is_some();
    await_condition(api(client, ACTION_CLASS), CLASS, is_there).await?;
    let group = "rbac.authorization.k8s.io";
    let rbac = |kind, plural| ApiKind { group, version: "v1", kind, plural };
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
    });
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let parameters = PatchParams::apply(MANAGER);
    let applied = namespaces.patch(NAMESPACE, &parameters, &Patch::Apply(&namespace)).await;
    applied.context("failed to make the namespace of the tenant")?;
    let rule = json!({
        "apiGroups": ["olm.io"],
        "resources": ["actions", "actionparts"],
        "verbs": ["create", "get", "list", "watch"],
    });
    apply(client, rbac("Role", "roles"), NAMESPACE, "tenant", json!({ "rules": [rule] })).await?;
    let binding = json!({
        "roleRef": { "apiGroup": group, "kind": "Role", "name": "tenant" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": TENANT }],
    });
    apply(client, rbac("RoleBinding", "rolebindings"), NAMESPACE, "tenant", binding).await?;
    let policy = json!({ "spec": {
        "subjects": [{ "kind": "User", "name": TENANT }],
        "classes": [CLASS],
        "enforce": { "packages": ["lantern", "ledger"] },
    } });
    apply(client, ACTION_POLICY, "", "tenants", policy).await
}

/// Has the tenant request the installation, and prints what the tenant sees.
///
/// # Errors
///
/// When the Action fails; which would be a defect of this program.
pub(super) async fn play(tenant: &Client) -> Result<(), anyhow::Error> {
    anstream::println!(
        "\nTenant {TENANT} may request Actions in namespace {NAMESPACE}, and nothing else. A policy \
         grants lantern"
    );
    for command in COMMANDS {
        anstream::println!("\n{TENANT}$ kubectl operator {command} -n {NAMESPACE}");
        let words = ["kubectl operator"].into_iter().chain(command.split(' '));
        let words = words.chain(["-n", NAMESPACE]);
        let CommandLine { command: parsed } = CommandLine::try_parse_from(words)?;
        let mut out = Vec::new();
        let ended = execute(Some(tenant), &parsed, &mut Prompter::NonInteractive, &mut out).await;
        anstream::print!("{}", String::from_utf8_lossy(&out));
        ended.with_context(|| format!("`{command}` failed"))?;
    }
    Ok(())
}

/// Applies an object; an empty namespace is none.
async fn apply(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    mut object: Value,
) -> Result<(), anyhow::Error> {
    let resource = api_resource(kind);
    let objects: Api<DynamicObject> = match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
    object["metadata"] = json!({ "name": name });
    let parameters = PatchParams::apply(MANAGER);
    let applied = objects.patch(name, &parameters, &Patch::Apply(&object)).await;
    applied.with_context(|| format!("failed to apply {} \"{name}\"", kind.kind))?;
    Ok(())
}
