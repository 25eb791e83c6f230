//! `plimsoll operator action run` and `retry`: requesting Actions.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Api, Client, Error};
use plimsoll_api::olm::action::{ActionClassSpec, ActionRequester, ActionState};
use plimsoll_api::{ACTION, ACTION_CLASS, ApiKind, CRON_ACTION, RETRY_ACTION};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_plan::windows::schedule::Schedule;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::attributes::{require_valid, seconds, spec_of};
use super::follow::{FollowedRequest, wait};
use super::retries::read_retry;
use super::values::as_setting;
use super::{
    NamespaceArguments, RequestOptions, RetryArguments, RunArguments, TrialStrategy, actions,
    failed, get, is_forbidden, read, state_in_words,
};
use crate::arguments::name::hint;
use crate::commands::operator::{FIELD_MANAGER, dry_run_suffix};
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::format::Format;
use crate::render::object::reference;

/// Returns the class of the cluster with a name or alias; `None` if the user may not list classes.
///
/// # Errors
///
/// When the cluster has no such class, or the class cannot be read.
async fn class_of(client: &Client, class: &str) -> Result<Option<NamedClass>, anyhow::Error> {
    let classes: Api<DynamicObject> = api(client, ACTION_CLASS);
    let found = match classes.list(&ListParams::default()).await {
        Ok(found) => found,
        Err(error) if is_forbidden(&error) => return Ok(None),
        Err(error) => return Err(failed(error, || "failed to list ActionClasses".to_owned())),
    };
    let mut classes = Vec::new();
    for object in found.items {
        let name = object.metadata.name.unwrap_or_default();
        match ActionClassSpec::deserialize(&object.data["spec"]) {
            Ok(spec) => classes.push(NamedClass::new(name, spec)),
            Err(error) if name == class => {
                bail!("ActionClass `{class}` cannot be read: spec: {error}");
            }
            Err(_) => {}
        }
    }
    let Some(found) = NamedClass::find(&classes, class) else {
        let hint = hint(class, classes.iter().map(|it| it.name.as_str()));
        bail!("there is no ActionClass `{class}`{hint}; `kubectl get actionclasses` lists them");
    };
    Ok(Some(found.clone()))
}

/// Fails if no CronAction can have the schedule.
///
/// # Errors
///
/// When the schedule or its time zone is none, or only a plan is to be made.
fn require_schedule(arguments: &RunArguments) -> Result<(), Refusal> {
    let Some(schedule) = &arguments.schedule else { return Ok(()) };
    if arguments.options.trial.is_plan() {
        let message = "--dry-run cannot be used with --schedule, whose plans are made later: \
                       write --dry-run=client or --dry-run=server";
        return Err(Refusal::usage(message.to_owned()));
    }
    let refused = |option: &str, problem: &str| Refusal::usage(format!("{option}: {problem}"));
    Schedule::parse(schedule, "").map_err(|it| refused("--schedule", &it))?;
    let zone = arguments.time_zone.as_deref().unwrap_or_default();
    Schedule::parse(schedule, zone).map_err(|it| refused("--time-zone", &it))?;
    Ok(())
}

/// Runs `plimsoll operator action run`.
pub(super) async fn request(
    client: &Client,
    arguments: &RunArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    require_schedule(arguments)?;
    let class = class_of(client, &arguments.class).await?;
    let spec = spec_of(arguments, class.as_ref())?;
    if let Some(class) = &class {
        require_valid(&spec, class)?;
    }
    let (kind, spec) = repeated(arguments, spec);
    let metadata = match &arguments.name {
        Some(name) => json!({ "name": name }),
        None => json!({ "generateName": format!("{}-", arguments.class) }),
    };
    let request = NewRequest { kind, namespace: &arguments.namespace, metadata, spec };
    create(client, request, &arguments.options, out).await
}

/// Returns the kind and the spec of what requests an Action as often as the command line says.
fn repeated(arguments: &RunArguments, spec: Value) -> (ApiKind, Value) {
    if let Some(limit) = arguments.retry {
        let mut retry = json!({ "backoffLimit": limit, "template": spec });
        if let Some(ttl) = arguments.ttl {
            retry["ttlAfterFinished"] = seconds(ttl).into();
        }
        return (RETRY_ACTION, retry);
    }
    let Some(schedule) = &arguments.schedule else { return (ACTION, spec) };
    let mut cron = json!({ "schedule": schedule, "template": spec });
    if let Some(zone) = &arguments.time_zone {
        cron["timeZone"] = zone.as_str().into();
    }
    if let Some(window) = &arguments.maintenance_window {
        cron["maintenanceWindow"] = window.as_str().into();
    }
    (CRON_ACTION, cron)
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
    namespace: &'r NamespaceArguments,
    /// The metadata without a namespace.
    metadata: Value,
    spec: Value,
}

impl NewRequest<'_> {
    /// Returns the object, with a namespace if the command line has one.
    fn manifest(&self) -> Value {
        let mut manifest = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "metadata": self.metadata,
            "spec": self.spec,
        });
        if let Some(namespace) = &self.namespace.namespace {
            manifest["metadata"]["namespace"] = namespace.as_str().into();
        }
        manifest
    }

    /// Returns the object as kubectl names it, if its name is known only in part by that.
    fn reference(&self) -> String {
        let name = self.metadata["name"].as_str().or(self.metadata["generateName"].as_str());
        reference(self.kind, name.unwrap_or_default())
    }
}

/// Creates an object in the name of the current user, and waits until it ends.
async fn create(
    client: &Client,
    mut request: NewRequest<'_>,
    options: &RequestOptions,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let format = &options.output;
    if options.trial.dry_run == Some(TrialStrategy::Client) {
        if *format == Format::Name || !format.write(&request.manifest(), out)? {
            let end = if *format == Format::Name { "" } else { " created (dry run)" };
            writeln!(out, "{}{end}", request.reference())?;
        }
        return Ok(exit::SUCCESS.into());
    }
    request.spec["requester"] = json!(myself(client).await?);
    let object: DynamicObject = serde_json::from_value(request.manifest())?;
    let (kind, namespace) = (request.kind, request.namespace.of(client));
    let is_checked = options.trial.dry_run == Some(TrialStrategy::Server);
    let parameters =
        PostParams { dry_run: is_checked, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let created = actions(client, &namespace, kind).create(&parameters, &object).await;
    let mut created = created.map_err(|error| {
        failed(in_words_of_options(error), || format!("failed to create the {}", kind.kind))
    })?;
    // kubectl prints none either.
    created.metadata.managed_fields = None;
    let name = created.metadata.name.clone().unwrap_or_default();
    let is_for_people = format.is_for_people();
    if is_for_people {
        let suffix = dry_run_suffix(is_checked);
        writeln!(out, "{} created{suffix}", reference(kind, &name))?;
        out.flush()?;
    }
    if is_checked || options.wait.no_wait || kind == CRON_ACTION {
        format.write_about(kind, &created, out)?;
        return Ok(exit::SUCCESS.into());
    }
    let is_watched = options.wait.watch;
    let followed = FollowedRequest { kind, namespace: &namespace, name: &name, is_watched };
    if is_for_people {
        return wait(client, &followed, options.wait.timeout, out).await;
    }
    // Programs get the object alone.
    let code = wait(client, &followed, options.wait.timeout, &mut io::sink()).await?;
    format.write_about(kind, &get(client, &namespace, kind, &name).await?, out)?;
    Ok(code)
}

/// Returns an error that says what to write on the command line, where that of the API server says
/// what to write in a manifest.
fn in_words_of_options(error: Error) -> Error {
    match error {
        Error::Api(mut status) => {
            status.message = as_setting(&status.message);
            Error::Api(status)
        }
        other => other,
    }
}

/// Runs `plimsoll operator action retry`. What another user requested is requested again only if that is agreed to:
/// policies may have denied it to that user.
pub(super) async fn retry(
    client: &Client,
    arguments: &RetryArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (kind, name) = (arguments.name.kind, &arguments.name.name);
    let namespace = arguments.namespace.of(client);
    let (state, mut spec) = match kind == ACTION {
        true => {
            let action = read(client, &namespace, name).await?;
            (action.status.state, json!(action.spec))
        }
        false => {
            let retry = read_retry(client, &namespace, name).await?;
            (retry.state(), json!(retry.spec))
        }
    };
    if !matches!(state, ActionState::Failed | ActionState::Cancelled) {
        let state = state_in_words(state);
        bail!("{} `{name}` {state}: only one that failed or was cancelled is retried", kind.kind);
    }
    let requester = spec["requester"]["username"].as_str().unwrap_or_default().to_owned();
    if arguments.options.trial.dry_run.is_none() {
        let own = myself(client).await?.username;
        let question = format!(
            "{} requested {name}; it would be requested again in the name of {own}, with other permissions. \
             Request it?",
            on_one_line(&requester)
        );
        let is_own = requester.is_empty() || requester == own;
        if !is_own && !prompter.confirm(&question, DefaultAnswer::No, out)? {
            let message = "nothing was requested".to_owned();
            return Err(Refusal { message, exit: exit::DECLINED }.into());
        }
    }
    remove_decisions(&mut spec);
    if kind == RETRY_ACTION {
        remove_decisions(&mut spec["template"]);
    }
    if arguments.options.trial.is_plan() {
        let action = if kind == ACTION { &mut spec } else { &mut spec["template"] };
        action["dryRun"] = true.into();
    }
    let metadata = json!({ "generateName": format!("{name}-") });
    let request = NewRequest { kind, namespace: &arguments.namespace, metadata, spec };
    create(client, request, &arguments.options, out).await
}

/// Removes from a spec what is of one request alone.
fn remove_decisions(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        for field in ["requester", "approvals", "cancelled"] {
            spec.remove(field);
        }
    }
}
