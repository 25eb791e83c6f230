//! `plimsoll operator action`: requesting, following, approving and cancelling Actions (OPR-23 to
//! OPR-25).

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use futures::StreamExt as _;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{DynamicObject, ListParams, Patch, PostParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, Error};
use plimsoll_api::duration;
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionRequester, ActionState, ChangeState, PlannedChange,
};
use plimsoll_api::{ACTION, ACTION_CLASS, ApiKind, CRON_ACTION, RETRY_ACTION, whole_seconds};
use plimsoll_controller::api_resource;
use plimsoll_operators::actions::lifecycle::ActionObject;
use plimsoll_operators::actions::schedule::Schedule;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{FIELD_MANAGER, patch_parameters};
use crate::arguments::name::{self, hint};
use crate::exit::{self, Refusal};
use crate::process::now;
use crate::prompt::{DefaultAnswer, Respondent};
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::table;

/// The number of objects per page of a list.
const PAGE: u32 = 500;
/// The kind of events.
const EVENT: ApiKind =
    ApiKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events" };

/// Arguments of `plimsoll operator action`.
#[derive(Debug, Args)]
pub struct ActionArguments {
    /// What to do
    #[command(subcommand)]
    command: ActionCommand,
}

/// Subcommands of `plimsoll operator action`.
#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// Request an Action, and wait until it ends
    Run(Box<RunArguments>),
    /// List Actions
    List(ListArguments),
    /// Show an Action: attributes, policies, plan, and what became of it
    Show(ShowArguments),
    /// Approve the plan of an Action
    Approve(ApproveArguments),
    /// Request a failed or cancelled Action again, and wait until it ends
    Retry(RetryArguments),
    /// Cancel an Action that has not begun
    Cancel(CancelArguments),
    /// Print what happened to an Action, in order
    Logs(LogsArguments),
}

/// The namespace of Actions.
#[derive(Debug, Args)]
struct NamespaceArguments {
    /// Namespace; that of the kubeconfig's context without it
    #[arg(long, short, value_parser = name::namespace)]
    namespace: Option<String>,
}

impl NamespaceArguments {
    fn of(&self, client: &Client) -> String {
        self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned())
    }
}

/// The options for waiting.
#[derive(Debug, Args)]
struct WaitArguments {
    /// Do not wait until it ends
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until it ends; for ever without it
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    timeout: Option<Duration>,
}

/// A condition that a plan has to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precondition {
    /// All requirements are satisfied afterwards
    #[value(name = "consistent")]
    Consistent,
    /// No Operator goes that has workloads
    #[value(name = "noWorkloadRemoval")]
    NoWorkloadRemoval,
    /// No Operator is left that nothing depends on
    #[value(name = "noOrphans")]
    NoOrphans,
}

/// Arguments of `plimsoll operator action run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Class of the Action, such as operator-install
    class: String,
    /// Package that it is about
    package: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Name of the Action; one that begins with the class without it
    #[arg(long)]
    name: Option<String>,
    /// Version or range of versions of the package
    #[arg(long)]
    version: Option<String>,
    /// Channel to take the package from
    #[arg(long)]
    channel: Option<String>,
    /// Catalog to take the package from, by its name
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Whether Operators are created for what the package requires
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    install_dependencies: Option<bool>,
    /// Whether nothing is done as long as requirements are not satisfied
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    ensure_constraint_satisfiability: Option<bool>,
    /// Parameter of the class; a VALUE of JSON is read as such; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, Value)>,
    /// What has to hold of the plan; repeatable
    #[arg(long = "precondition", value_enum, value_name = "NAME")]
    preconditions: Vec<Precondition>,
    /// How long it may take from its start, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    deadline: Option<Duration>,
    /// Only make the plan
    #[arg(long)]
    dry_run: bool,
    /// Try again after failures, at most so many
    #[arg(long, value_name = "NUMBER", conflicts_with = "schedule")]
    retry: Option<u32>,
    /// Request it again and again, in the format of cron
    #[arg(long, value_name = "CRON")]
    schedule: Option<String>,
    /// Time zone of the schedule, such as Europe/Madrid
    #[arg(long, value_name = "ZONE", requires = "schedule")]
    time_zone: Option<String>,
    #[command(flatten)]
    wait: WaitArguments,
}

/// Arguments of `plimsoll operator action list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Actions of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator action show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator action approve`.
#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Digest of the plan; another one is not approved
    #[arg(long, value_name = "DIGEST")]
    plan: Option<String>,
    /// Agree to the plan
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `plimsoll operator action retry`.
#[derive(Debug, Args)]
pub struct RetryArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
    #[command(flatten)]
    wait: WaitArguments,
}

/// Arguments of `plimsoll operator action cancel`.
#[derive(Debug, Args)]
pub struct CancelArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
}

/// Arguments of `plimsoll operator action logs`.
#[derive(Debug, Args)]
pub struct LogsArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Go on until it ends
    #[arg(long, short)]
    follow: bool,
}

impl ActionArguments {
    pub(super) fn is_agreed(&self) -> bool {
        matches!(&self.command, ActionCommand::Approve(arguments) if arguments.yes)
    }
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as cascade=true")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or the request is rejected.
pub(super) async fn run(
    client: &Client,
    arguments: &ActionArguments,
    person: &mut Respondent,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    match &arguments.command {
        ActionCommand::Run(arguments) => request(client, arguments, out).await,
        ActionCommand::List(arguments) => list(client, arguments, out).await,
        ActionCommand::Show(arguments) => show(client, arguments, out).await,
        ActionCommand::Approve(arguments) => approve(client, arguments, person, out).await,
        ActionCommand::Retry(arguments) => retry(client, arguments, out).await,
        ActionCommand::Cancel(arguments) => cancel(client, arguments, out).await,
        ActionCommand::Logs(arguments) => logs(client, arguments, out).await,
    }
}

/// Adds context to a failed request for Actions. If the cluster does not serve them, it says how to
/// change that.
fn failed(error: Error, what: impl FnOnce() -> String) -> anyhow::Error {
    match &error {
        Error::Api(status) if status.code == 404 => {
            let help = "Actions are not executed in this cluster: `plimsoll run --operators --actions` \
                        does that";
            anyhow!(error).context(format!("{}: {help}", what()))
        }
        _ => anyhow!(error).context(what()),
    }
}

pub(super) fn actions(client: &Client, namespace: &str, kind: ApiKind) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &api_resource(kind))
}

async fn read(client: &Client, namespace: &str, name: &str) -> Result<ActionObject, anyhow::Error> {
    let found = actions(client, namespace, ACTION).get_opt(name).await;
    let found =
        found.map_err(|error| failed(error, || format!("failed to read Action `{name}`")))?;
    let Some(found) = found else {
        bail!(
            "there is no Action `{name}` in namespace {namespace}: `operator action list` lists them"
        );
    };
    let value = serde_json::to_value(found)?;
    ActionObject::read(&value).map_err(|error| anyhow!("Action `{name}` cannot be read: {error}"))
}

/// Returns the requested spec, without the fields that the command line leaves out.
fn spec_of(arguments: &RunArguments) -> Value {
    let mut spec = Map::new();
    spec.insert("actionClass".to_owned(), arguments.class.as_str().into());
    if let Some(deadline) = arguments.deadline {
        spec.insert("deadline".to_owned(), format!("{}s", deadline.as_secs()).into());
    }
    let texts = [
        ("package", &arguments.package),
        ("version", &arguments.version),
        ("channel", &arguments.channel),
        ("repository", &arguments.repository),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, json!(text.as_ref()?))));
    let flags = [
        ("installDependencies", arguments.install_dependencies),
        ("ensureConstraintSatisfiability", arguments.ensure_constraint_satisfiability),
        ("dryRun", arguments.dry_run.then_some(true)),
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
    spec.into()
}

/// Fails if the cluster has no such class. Passes if the user may not list classes.
async fn require_class(client: &Client, class: &str) -> Result<(), anyhow::Error> {
    let classes: Api<DynamicObject> = api(client, ACTION_CLASS);
    let found = match classes.list(&ListParams::default()).await {
        Ok(found) => found,
        Err(Error::Api(status)) if status.code == 403 => return Ok(()),
        Err(error) => return Err(failed(error, || "failed to list ActionClasses".to_owned())),
    };
    let mut names = Vec::new();
    for object in found.items {
        let aliases = object.data["spec"]["aliases"].as_array().cloned().unwrap_or_default();
        names.extend(object.metadata.name);
        names.extend(aliases.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if names.iter().any(|it| it == class) {
        return Ok(());
    }
    let hint = hint(class, names.iter().map(String::as_str));
    bail!("there is no ActionClass `{class}`{hint}; `kubectl get actionclasses` lists them")
}

async fn request(
    client: &Client,
    arguments: &RunArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if let Some(schedule) = &arguments.schedule {
        let zone = arguments.time_zone.as_deref().unwrap_or_default();
        Schedule::parse(schedule, zone).map_err(|error| anyhow!(error))?;
    }
    require_class(client, &arguments.class).await?;
    let spec = spec_of(arguments);
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
    create(client, kind, &namespace, &metadata, spec, &arguments.wait, out).await
}

/// Returns the user as which the API server authenticates this command.
async fn myself(client: &Client) -> Result<ActionRequester, anyhow::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.context("failed to ask the API server who this is")?;
    let user = review.status.and_then(|it| it.user_info).unwrap_or_default();
    Ok(ActionRequester {
        username: user.username.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
    })
}

/// Creates an object in the name of the current user, and waits until it ends.
async fn create(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    metadata: &Value,
    mut spec: Value,
    waits: &WaitArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    spec["requester"] = json!(myself(client).await?);
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    }))?;
    let parameters =
        PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let created = actions(client, namespace, kind).create(&parameters, &object).await;
    let failed = |error| failed(error, || format!("failed to create the {}", kind.kind));
    let name = created.map_err(failed)?.metadata.name.unwrap_or_default();
    writeln!(out, "{}.olm.io/{name} created", kind.kind.to_lowercase())?;
    if waits.no_wait || kind == CRON_ACTION {
        return Ok(exit::SUCCESS.into());
    }
    wait(client, kind, namespace, &name, waits.timeout, out).await
}

/// Prints the progress of an object until it ends.
async fn wait(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    timeout: Option<Duration>,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let api = actions(client, namespace, kind);
    let followed = follow(api, kind, namespace, name, out);
    let Some(most) = timeout else { return followed.await };
    match tokio::time::timeout(most, followed).await {
        Ok(ended) => ended,
        Err(_) => bail!(
            "{} `{name}` has not ended within {} s: it continues, `kubectl get {} {name} -n {namespace}` \
             shows it",
            kind.kind,
            most.as_secs(),
            kind.plural
        ),
    }
}

async fn follow(
    api: Api<DynamicObject>,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut seen = pin!(watch_object(api, name));
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    while let Some(object) = seen.next().await {
        // The watch restarts by itself.
        let Ok(object) = object else { continue };
        let Some(object) = object else { bail!("{} `{name}` was deleted", kind.kind) };
        let status = &object.data["status"];
        let succeeded = status["conditions"].as_array().into_iter().flatten();
        let succeeded = succeeded.into_iter().find(|it| it["type"] == ACTION_SUCCEEDED);
        let Some(succeeded) = succeeded else { continue };
        let plan = status["plan"].as_array().into_iter().flatten();
        for change in plan.filter_map(|it| PlannedChange::deserialize(it).ok()) {
            let (subject, line) =
                (change.subject(), format!("{:?} {}", change.state, change.message));
            if change.state != ChangeState::Planned
                && shown.insert(subject.to_owned(), line.clone()).as_ref() != Some(&line)
            {
                writeln!(out, "{subject}: {}", on_one_line(line.trim_end()))?;
            }
        }
        let text = |field: &str| succeeded[field].as_str().unwrap_or_default();
        let state = status["state"].as_str().unwrap_or(text("reason"));
        let line = format!("{state}: {}", text("message"));
        if shown.insert(String::new(), line.clone()).as_ref() != Some(&line) {
            writeln!(out, "{name}: {line}")?;
            if state == ActionState::Approval.as_str() {
                writeln!(out, "approve it with `operator action approve {name} -n {namespace}`")?;
            }
        }
        match text("status") {
            "True" => return Ok(exit::SUCCESS.into()),
            "False" => return Ok(exit::FAILURE.into()),
            _ => {}
        }
    }
    bail!("the watch of {} `{name}` ended", kind.kind)
}

async fn list(
    client: &Client,
    arguments: &ListArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let namespace = arguments.namespace.of(client);
    let api = match arguments.all_namespaces {
        true => api(client, ACTION),
        false => actions(client, &namespace, ACTION),
    };
    let mut objects = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page: kube::api::ObjectList<DynamicObject> = api
            .list(&parameters)
            .await
            .map_err(|error| failed(error, || "failed to list Actions".to_owned()))?;
        for item in page.items {
            objects.push(serde_json::to_value(item)?);
        }
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => break,
        }
    }
    if arguments.output.write(&objects, out)? {
        return Ok(exit::SUCCESS.into());
    }
    let mut found: Vec<ActionObject> =
        objects.iter().filter_map(|it| ActionObject::read(it).ok()).collect();
    found.sort_by(|a, b| a.order().cmp(&b.order()));
    if found.is_empty() {
        match arguments.all_namespaces {
            true => writeln!(out, "No resources found")?,
            false => writeln!(out, "No resources found in {namespace} namespace.")?,
        }
        return Ok(exit::SUCCESS.into());
    }
    let is_wide = arguments.output.is_wide();
    let row = |it: &ActionObject| {
        let succeeded = it.status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
        let mut row = vec![
            it.name.clone(),
            it.spec.action_class.clone(),
            it.spec.package.clone(),
            it.status.state.as_str().to_owned(),
            succeeded.map(|it| it.reason.clone()).unwrap_or_default(),
            it.spec.requester.as_ref().map(|it| it.username.clone()).unwrap_or_default(),
            age(it.created, now()),
        ];
        if arguments.all_namespaces {
            row.insert(0, it.namespace.clone());
        }
        if is_wide {
            row.push(succeeded.map(|it| on_one_line(&it.message)).unwrap_or_default());
        }
        row
    };
    let mut headings = vec!["NAME", "CLASS", "PACKAGE", "STATE", "REASON", "REQUESTER", "AGE"];
    if arguments.all_namespaces {
        headings.insert(0, "NAMESPACE");
    }
    if is_wide {
        headings.push("MESSAGE");
    }
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    table::print(out, &headings, &rows)?;
    Ok(exit::SUCCESS.into())
}

async fn show(
    client: &Client,
    arguments: &ShowArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    if arguments.output != Format::Text {
        let object = actions(client, &namespace, ACTION).get(name).await?;
        arguments.output.write(&object, out)?;
        return Ok(exit::SUCCESS.into());
    }
    let ActionObject { spec, status, .. } = &action;
    let requester = spec.requester.as_ref().map_or("", |it| it.username.as_str());
    writeln!(out, "Action {namespace}/{name}: {}", status.state.as_str())?;
    writeln!(out, "Class:     {}", spec.action_class)?;
    writeln!(out, "Requester: {requester}")?;
    for (what, time) in [("Started:  ", status.start_time), ("Ended:    ", status.completion_time)]
    {
        if let Some(time) = time {
            writeln!(out, "{what} {}", whole_seconds(time))?;
        }
    }
    if !status.effective_spec.is_empty() {
        writeln!(out, "Attributes:")?;
        for it in &status.effective_spec {
            writeln!(out, "  {}: {} (set by {})", it.name, on_one_line(&it.value), it.set_by)?;
        }
    }
    if !status.policies.is_empty() {
        writeln!(out, "Policies:")?;
        for it in &status.policies {
            let fate = if it.allowed { "allowed" } else { "denied" };
            let policy = if it.policy.is_empty() { "permissions" } else { &it.policy };
            writeln!(out, "  {policy} ({}): {fate}: {}", it.mode, on_one_line(&it.message))?;
        }
    }
    if !status.plan.is_empty() {
        writeln!(out, "Plan {}:", status.plan_digest)?;
        write_plan(&status.plan, out)?;
    }
    for line in &status.explanation {
        writeln!(out, "* {}", on_one_line(line))?;
    }
    if !status.result.is_empty() {
        writeln!(out, "Result:\n{}", status.result.trim_end())?;
    }
    for condition in &status.conditions {
        let (type_, reason) = (&condition.type_, &condition.reason);
        writeln!(
            out,
            "{type_} is {} ({reason}): {}",
            condition.status.as_str(),
            condition.message
        )?;
    }
    match status.state {
        ActionState::Approval => {
            writeln!(out, "Approve it with `operator action approve {name} -n {namespace}`")?;
        }
        ActionState::Failed | ActionState::Cancelled => {
            writeln!(out, "Request it again with `operator action retry {name} -n {namespace}`")?;
        }
        ActionState::Pending | ActionState::Running | ActionState::Succeeded => {}
    }
    Ok(exit::SUCCESS.into())
}

fn write_plan(plan: &[PlannedChange], out: &mut dyn Write) -> Result<(), anyhow::Error> {
    for it in plan {
        let version = |version: &str| match version {
            "" => String::new(),
            version => format!(" {version}"),
        };
        let versions = match (it.version_before.as_str(), it.version.as_str()) {
            ("", after) => version(after),
            (before, "") => version(before),
            (before, after) => format!(" {before} to {after}"),
        };
        let dependency = if it.dependency { ", a dependency" } else { "" };
        write!(out, "  {:?} {}{versions}{dependency}: {:?}", it.operation, it.subject(), it.state)?;
        match it.message.as_str() {
            "" => writeln!(out)?,
            message => writeln!(out, " ({})", on_one_line(message))?,
        }
        for workload in &it.workloads {
            writeln!(out, "    {} {} go with it", workload.count, workload.kind)?;
        }
    }
    Ok(())
}

async fn approve(
    client: &Client,
    arguments: &ApproveArguments,
    person: &mut Respondent,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    let status = &action.status;
    if status.state != ActionState::Approval {
        bail!("Action `{name}` is {} and waits for no approval", status.state.as_str());
    }
    let digest = &status.plan_digest;
    if let Some(wanted) = arguments.plan.as_ref().filter(|it| *it != digest) {
        let message = format!(
            "Action `{name}` has another plan than {wanted}: `operator action show {name}` shows it"
        );
        return Err(Refusal { message, exit: exit::DECLINED }.into());
    }
    let requester = action.spec.requester.as_ref().map_or("", |it| it.username.as_str());
    writeln!(out, "Plan {digest} of {requester}:")?;
    write_plan(&status.plan, out)?;
    for line in &status.explanation {
        writeln!(out, "* {}", on_one_line(line))?;
    }
    if !person.confirm("Approve it?", DefaultAnswer::No, out)? {
        let message = "nothing was approved".to_owned();
        return Err(Refusal { message, exit: exit::DECLINED }.into());
    }
    let approver = myself(client).await?.username;
    // Only the plan that was shown is approved.
    let patch = Patch::<()>::Json(json_patch::Patch(vec![
        PatchOperation::Test(TestOperation {
            path: PointerBuf::from_tokens(["status", "planDigest"]),
            value: digest.as_str().into(),
        }),
        PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["spec", "approval"]),
            value: json!({ "plan": digest, "approver": approver }),
        }),
    ]));
    let patched =
        actions(client, &namespace, ACTION).patch(name, &patch_parameters(false), &patch).await;
    patched.with_context(|| format!("failed to approve Action `{name}`"))?;
    writeln!(out, "action.olm.io/{name} approved")?;
    Ok(exit::SUCCESS.into())
}

async fn retry(
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
            state.as_str()
        );
    }
    let mut spec = json!(action.spec);
    if let Some(spec) = spec.as_object_mut() {
        for field in ["requester", "approval", "cancelled"] {
            spec.remove(field);
        }
    }
    let metadata = json!({ "generateName": format!("{name}-") });
    create(client, ACTION, &namespace, &metadata, spec, &arguments.wait, out).await
}

async fn cancel(
    client: &Client,
    arguments: &CancelArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    let state = action.status.state;
    if state == ActionState::Running {
        bail!("Action `{name}` is RUNNING: what has begun runs to its end, and is not undone");
    }
    if state.is_final() {
        bail!("Action `{name}` has ended: it is {}", state.as_str());
    }
    let patch = Patch::Merge(json!({ "spec": { "cancelled": true } }));
    let patched =
        actions(client, &namespace, ACTION).patch(name, &patch_parameters(false), &patch).await;
    patched.with_context(|| format!("failed to cancel Action `{name}`"))?;
    writeln!(out, "action.olm.io/{name} cancelled")?;
    Ok(exit::SUCCESS.into())
}

async fn logs(
    client: &Client,
    arguments: &LogsArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    let events = actions(client, &namespace, EVENT).list(&ListParams::default()).await;
    let events = events.context("failed to list events")?;
    let mut lines = vec![(whole_seconds(action.created), "requested".to_owned())];
    for event in events.items.iter().filter(|it| it.data["regarding"]["uid"] == *action.uid) {
        let text = |field: &str| event.data[field].as_str().unwrap_or_default();
        let time = text("eventTime").parse().unwrap_or(action.created);
        lines.push((whole_seconds(time), format!("{}: {}", text("reason"), text("note"))));
    }
    if let Some(time) = action.status.start_time {
        lines.push((whole_seconds(time), "started".to_owned()));
    }
    if let Some(time) = action.status.completion_time {
        let state = action.status.state.as_str();
        lines.push((whole_seconds(time), format!("ended: {state}")));
    }
    lines.sort_by_key(|(time, _)| *time);
    for (time, line) in lines {
        writeln!(out, "{time} {}", on_one_line(&line))?;
    }
    if arguments.follow && !action.status.state.is_final() {
        return wait(client, ACTION, &namespace, name, None, out).await;
    }
    Ok(exit::SUCCESS.into())
}
