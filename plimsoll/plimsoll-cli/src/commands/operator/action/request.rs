//! `plimsoll operator action run` and `retry`: requesting Actions.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Api, Client, Error};
use plimsoll_api::olm::action::{ActionRequester, ActionState};
use plimsoll_api::{ACTION, ACTION_CLASS, ApiKind, CRON_ACTION, RETRY_ACTION};
use plimsoll_operators::actions::schedule::Schedule;
use plimsoll_operators::query::range_beside;
use plimsoll_simulation::cluster_state::api;
use serde_json::{Map, Value, json};

use super::follow::wait;
use super::{
    RetryArguments, RunArguments, Trial, TrialStrategy, WaitArguments, actions, failed, read,
};
use crate::arguments::name::hint;
use crate::commands::operator::{FIELD_MANAGER, dry_run_suffix};
use crate::exit::{self, Refusal};

/// Returns the requested spec, without the fields that the command line leaves out.
///
/// # Errors
///
/// When the version is given twice.
fn spec_of(arguments: &RunArguments) -> Result<Value, Refusal> {
    let package = arguments.package.as_ref();
    let own = package.and_then(|it| it.range.as_ref());
    if let (Some(package), Some(_)) = (package, &arguments.version)
        && let Some(message) = range_beside("--version", std::slice::from_ref(package))
    {
        return Err(Refusal::usage(message));
    }
    let mut spec = Map::new();
    spec.insert("actionClass".to_owned(), arguments.class.as_str().into());
    if let Some(deadline) = arguments.deadline {
        spec.insert("deadline".to_owned(), format!("{}s", deadline.as_secs()).into());
    }
    let texts = [
        ("package", package.map(|it| &it.name)),
        ("version", own.or(arguments.version.as_ref())),
        ("channel", arguments.channel.as_ref()),
        ("repository", arguments.repository.as_ref()),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, json!(text?))));
    let flags = [
        ("installDependencies", arguments.install_dependencies),
        ("ensureConstraintSatisfiability", arguments.ensure_constraint_satisfiability),
        ("dryRun", arguments.trial.is_plan().then_some(true)),
    ];
    let flags = flags.into_iter().filter_map(|(name, flag)| Some((name, json!(flag?))));
    spec.extend(texts.chain(flags).map(|(name, value)| (name.to_owned(), value)));
    if !arguments.parameters.is_empty() {
        let parameters: BTreeMap<String, Value> = arguments.parameters.iter().cloned().collect();
        spec.insert("parameters".to_owned(), json!(parameters));
    }
    if !arguments.preconditions.is_empty() {
        let names = arguments.preconditions.iter().filter_map(ValueEnum::to_possible_value);
        let conditions: BTreeMap<String, bool> =
            names.map(|it| (it.get_name().to_owned(), true)).collect();
        spec.insert("preconditions".to_owned(), json!(conditions));
    }
    Ok(spec.into())
}

/// Fails if the cluster has no such class. Passes if the user may not list classes.
async fn require_class(client: &Client, class: &str) -> Result<(), anyhow::Error> {
    let classes: Api<DynamicObject> = api(client, ACTION_CLASS);
    let found = match classes.list(&ListParams::default()).await {
        Ok(found) => found,
        Err(Error::Api(status)) if status.code == 403 => return Ok(()),
        Err(error) => return Err(failed(error, || "failed to list ActionClasses".to_owned())),
    };
    let (mut names, mut aliases) = (Vec::new(), Vec::new());
    for object in found.items {
        let of_class = object.data["spec"]["aliases"].as_array().cloned().unwrap_or_default();
        names.extend(object.metadata.name);
        aliases.extend(of_class.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if names.iter().chain(&aliases).any(|it| it == class) {
        return Ok(());
    }
    let hint = hint(class, names.iter().map(String::as_str));
    bail!("there is no ActionClass `{class}`{hint}; `kubectl get actionclasses` lists them")
}

pub(super) async fn request(
    client: &Client,
    arguments: &RunArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if let Some(schedule) = &arguments.schedule {
        let zone = arguments.time_zone.as_deref().unwrap_or_default();
        Schedule::parse(schedule, zone).map_err(|error| anyhow!(error))?;
    }
    require_class(client, &arguments.class).await?;
    let spec = spec_of(arguments)?;
    let (kind, spec) = match (&arguments.retry, &arguments.schedule) {
        (Some(limit), _) => (RETRY_ACTION, json!({ "backoffLimit": limit, "template": spec })),
        (None, Some(schedule)) => {
            let mut cron = json!({ "schedule": schedule, "template": spec });
            if let Some(zone) = &arguments.time_zone {
                cron["timeZone"] = zone.as_str().into();
            }
            (CRON_ACTION, cron)
        }
        (None, None) => (ACTION, spec),
    };
    let metadata = match &arguments.name {
        Some(name) => json!({ "name": name }),
        None => json!({ "generateName": format!("{}-", arguments.class) }),
    };
    let namespace = arguments.namespace.of(client);
    let request = NewRequest { kind, namespace: &namespace, metadata: &metadata, spec };
    create(client, request, arguments.trial, &arguments.wait, out).await
}

/// Returns the user as which the API server authenticates this command.
pub(super) async fn myself(client: &Client) -> Result<ActionRequester, anyhow::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.context("failed to ask the API server who this is")?;
    let user = review.status.and_then(|it| it.user_info).unwrap_or_default();
    Ok(ActionRequester {
        username: user.username.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
    })
}

/// An object that requests a change.
struct NewRequest<'r> {
    kind: ApiKind,
    namespace: &'r str,
    metadata: &'r Value,
    spec: Value,
}

/// Creates an object in the name of the current user, and waits until it ends.
async fn create(
    client: &Client,
    request: NewRequest<'_>,
    trial: Trial,
    waits: &WaitArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let NewRequest { kind, namespace, metadata, mut spec } = request;
    if trial.dry_run == Some(TrialStrategy::Client) {
        let name = metadata["name"].as_str().or(metadata["generateName"].as_str());
        let (kind, name) = (kind.kind.to_lowercase(), name.unwrap_or_default());
        writeln!(out, "{kind}.olm.io/{name} created (dry run)")?;
        return Ok(exit::SUCCESS.into());
    }
    let is_checked = trial.dry_run == Some(TrialStrategy::Server);
    spec["requester"] = json!(myself(client).await?);
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    }))?;
    let parameters =
        PostParams { dry_run: is_checked, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let created = actions(client, namespace, kind).create(&parameters, &object).await;
    let failed = |error| failed(error, || format!("failed to create the {}", kind.kind));
    let name = created.map_err(failed)?.metadata.name.unwrap_or_default();
    let suffix = dry_run_suffix(is_checked);
    writeln!(out, "{}.olm.io/{name} created{suffix}", kind.kind.to_lowercase())?;
    if is_checked || waits.no_wait || kind == CRON_ACTION {
        return Ok(exit::SUCCESS.into());
    }
    wait(client, kind, namespace, &name, waits.timeout, out).await
}

pub(super) async fn retry(
    client: &Client,
    arguments: &RetryArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    let state = action.status.state;
    if !matches!(state, ActionState::Failed | ActionState::Cancelled) {
        bail!(
            "Action `{name}` is {}: only one that failed or was cancelled is retried",
            state.outcome()
        );
    }
    let mut spec = json!(action.spec);
    if let Some(spec) = spec.as_object_mut() {
        for field in ["requester", "approval", "cancelled"] {
            spec.remove(field);
        }
    }
    if arguments.trial.is_plan() {
        spec["dryRun"] = true.into();
    }
    let metadata = json!({ "generateName": format!("{name}-") });
    let request = NewRequest { kind: ACTION, namespace: &namespace, metadata: &metadata, spec };
    create(client, request, arguments.trial, &arguments.wait, out).await
}
