//! `plimsoll operator action`: requesting, following, approving and cancelling Actions and
//! RetryActions (OPR-23 to OPR-25).

mod approve;
mod attributes;
mod follow;
mod list;
mod logs;
mod parts;
mod request;
mod retries;
mod show;
mod values;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, Error};
use plimsoll_api::olm::action::{ActionState, ApprovalDecision};
use plimsoll_api::{ACTION, ApiKind, CRON_ACTION, EVENT_ACTION, RETRY_ACTION, duration};
use plimsoll_controller::api_resource;
use plimsoll_operators::RequestedPackage;
use plimsoll_operators::actions::report::ActionObject;
use serde_json::Value;

use self::attributes::{Setting, deadline_duration, whole_duration};
use super::dry_run::DryRun;
use super::selection::requested_operator;
use super::wait::TIMEOUT;
use crate::arguments::name::{self, RequestName, hint};
use crate::prompt::Prompter;
use crate::render::format::{Format, FormatParser};

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
    ///
    /// The exit code is 0 if it succeeded, 1 if it failed, was cancelled or the time is over, 2 if
    /// the class has no such attributes, and 3 if the time is over and it waits for an approval.
    Run(Box<RunArguments>),
    /// List Actions and RetryActions
    List(ListArguments),
    /// Show an Action: attributes, policies, plan, and what became of it
    Show(ShowArguments),
    /// Approve the plan of an Action
    Approve(DecisionArguments),
    /// Reject the plan of an Action that waits for an approval, so that it fails
    Reject(DecisionArguments),
    /// Request again what failed or was cancelled, and wait until it ends
    Retry(RetryArguments),
    /// Cancel an Action: before it begins, or else before its next change
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
    /// How long to wait until it ends; 0s for ever
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = TIMEOUT,
        conflicts_with = "no_wait"
    )]
    timeout: Duration,
    /// Print each change of its state and of its plan as it happens, not the end alone
    #[arg(long, short, conflicts_with = "no_wait")]
    watch: bool,
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
    /// No CustomResourceDefinition goes
    #[value(name = "noDefinitionRemoval")]
    NoDefinitionRemoval,
    /// No bundle brings permissions in all namespaces that are not there
    #[value(name = "noNewClusterPermissions")]
    NoNewClusterPermissions,
}

/// The part of a request that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TrialStrategy {
    /// The controller makes the plan, and changes nothing
    Plan,
    /// Nothing is sent
    Client,
    /// The API server checks the request, and stores nothing
    Server,
}

/// The option for a dry run of a request.
#[derive(Debug, Clone, Copy, Args)]
struct Trial {
    /// Change nothing: only have the plan made (`plan`, or no value), only say what would be requested
    /// (`client`), or have the API server check it (`server`)
    #[arg(
        long,
        value_name = "STRATEGY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "plan"
    )]
    dry_run: Option<TrialStrategy>,
}

impl Trial {
    /// Returns whether the controller only makes the plan.
    fn is_plan(self) -> bool {
        self.dry_run == Some(TrialStrategy::Plan)
    }
}

/// The options of what creates a request.
#[derive(Debug, Args)]
struct RequestOptions {
    #[command(flatten)]
    trial: Trial,
    #[command(flatten)]
    wait: WaitArguments,
    /// Output format of the object that is created
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator action run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Class of the Action, such as operator-install
    class: String,
    /// Packages that it is about, with their versions or ranges, such as foo@~1.2; more than one if
    /// the class has the parameter `packages`
    #[arg(value_name = "PACKAGE[@RANGE]", value_parser = requested_operator)]
    packages: Vec<RequestedPackage>,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Name of the Action; one that begins with the class without it
    #[arg(long)]
    name: Option<String>,
    /// Version or range of versions of the package
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    version: Option<String>,
    /// Channel to take the package from
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// Catalog to take the package from, by its name
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    repository: Option<String>,
    /// Whether Operators are created for what the package requires
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    install_dependencies: Option<bool>,
    /// Whether nothing is done as long as requirements are not satisfied
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    ensure_constraint_satisfiability: Option<bool>,
    /// Attribute, or parameter of the class, such as `channel=stable`, `cascade=true`,
    /// `names={a,b}` or `retain.days=3`; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = Setting::parse)]
    settings: Vec<Setting>,
    /// Parameter of the class; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = Setting::parse)]
    parameters: Vec<Setting>,
    /// What has to hold of the plan; repeatable
    #[arg(long = "precondition", value_enum, value_name = "NAME")]
    preconditions: Vec<Precondition>,
    /// MaintenanceWindow in which it begins; with --schedule, those that are due begin when it opens
    #[arg(long, value_name = "NAME")]
    maintenance_window: Option<String>,
    /// How long it may take from its start, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = deadline_duration)]
    deadline: Option<Duration>,
    /// How long it is kept after it ended, such as `24h`
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = whole_duration,
        conflicts_with = "schedule"
    )]
    ttl: Option<Duration>,
    /// Try again after failures, at most so many
    #[arg(long, value_name = "NUMBER", conflicts_with = "schedule")]
    retry: Option<u32>,
    /// Request it again and again, in the format of cron
    #[arg(long, value_name = "CRON", conflicts_with_all = ["watch", "timeout"])]
    schedule: Option<String>,
    /// Time zone of the schedule, such as Europe/Madrid
    // An option that may not be used is not required: what conflicts with the schedule does with
    // its time zone.
    #[arg(
        long,
        value_name = "ZONE",
        requires = "schedule",
        conflicts_with_all = ["watch", "timeout", "ttl", "retry"]
    )]
    time_zone: Option<String>,
    #[command(flatten)]
    options: RequestOptions,
}

impl RunArguments {
    /// Returns how long the Action itself is kept; `None` if a RetryAction is kept for that time.
    fn own_ttl(&self) -> Option<Duration> {
        self.ttl.filter(|_| self.retry.is_none())
    }
}

/// A state, as the command line selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateChoice {
    /// It has not begun
    Pending,
    /// Its plan waits for an approval
    Approval,
    /// It is being done
    Running,
    /// All was done
    Succeeded,
    /// It ended otherwise
    Failed,
    /// It was cancelled
    Cancelled,
}

impl From<StateChoice> for ActionState {
    fn from(choice: StateChoice) -> Self {
        match choice {
            StateChoice::Pending => Self::Pending,
            StateChoice::Approval => Self::WaitingForApproval,
            StateChoice::Running => Self::Running,
            StateChoice::Succeeded => Self::Succeeded,
            StateChoice::Failed => Self::Failed,
            StateChoice::Cancelled => Self::Cancelled,
        }
    }
}

/// Arguments of `plimsoll operator action list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Actions of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Those in these states
    #[arg(
        long = "state",
        value_name = "STATE",
        value_enum,
        ignore_case = true,
        value_delimiter = ','
    )]
    states: Vec<StateChoice>,
    /// Those with these labels, such as `team=harbour`
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator action show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Action, or `retryaction/NAME`
    #[arg(id = "action", value_name = "NAME", value_parser = name::request())]
    name: RequestName,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Output format of the Action, or of its plan
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::CHANGES, default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator action approve` and `reject`.
#[derive(Debug, Args)]
pub struct DecisionArguments {
    /// Action
    #[arg(id = "action", value_name = "NAME", value_parser = name::action())]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Digest of the plan; nothing is decided on another one
    #[arg(long, value_name = "DIGEST")]
    plan: Option<String>,
    /// Why, for the requester and others
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Arguments of `plimsoll operator action retry`.
#[derive(Debug, Args)]
pub struct RetryArguments {
    /// Action, or `retryaction/NAME`
    #[arg(id = "action", value_name = "NAME", value_parser = name::request())]
    name: RequestName,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Do not ask whether to request in your name what another user requested
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    options: RequestOptions,
}

/// Arguments of `plimsoll operator action cancel`.
#[derive(Debug, Args)]
pub struct CancelArguments {
    /// Action, or `retryaction/NAME`
    #[arg(id = "action", value_name = "NAME", value_parser = name::request())]
    name: RequestName,
    #[command(flatten)]
    namespace: NamespaceArguments,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Arguments of `plimsoll operator action logs`.
#[derive(Debug, Args)]
pub struct LogsArguments {
    /// Action, or `retryaction/NAME`
    #[arg(id = "action", value_name = "NAME", value_parser = name::request())]
    name: RequestName,
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// Go on until it ends
    #[arg(long, short)]
    follow: bool,
}

impl ActionArguments {
    pub(super) fn is_agreed(&self) -> bool {
        match &self.command {
            ActionCommand::Approve(arguments) | ActionCommand::Reject(arguments) => arguments.yes,
            ActionCommand::Retry(arguments) => arguments.yes,
            _ => false,
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or the request is rejected.
pub(super) async fn run(
    client: &Client,
    arguments: &ActionArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    match &arguments.command {
        ActionCommand::Run(arguments) => request::request(client, arguments, out).await,
        ActionCommand::List(arguments) => list::list(client, arguments, out).await,
        ActionCommand::Show(arguments) => show::show(client, arguments, out).await,
        ActionCommand::Approve(arguments) => {
            approve::decide(client, ApprovalDecision::Approved, arguments, prompter, out).await
        }
        ActionCommand::Reject(arguments) => {
            approve::decide(client, ApprovalDecision::Rejected, arguments, prompter, out).await
        }
        ActionCommand::Retry(arguments) => request::retry(client, arguments, prompter, out).await,
        ActionCommand::Cancel(arguments) => approve::cancel(client, arguments, out).await,
        ActionCommand::Logs(arguments) => logs::logs(client, arguments, out).await,
    }
}

/// Adds context to a failed request for Actions. If the cluster does not serve them, it says how to
/// change that.
fn failed(error: Error, what: impl FnOnce() -> String) -> anyhow::Error {
    match &error {
        Error::Api(status) if status.code == 404 && !is_missing(&error) => {
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

/// Returns a state in words, as the end of a sentence.
fn state_in_words(state: ActionState) -> &'static str {
    match state {
        ActionState::Pending => "is pending",
        ActionState::WaitingForApproval => "waits for an approval",
        ActionState::Running => "is running",
        ActionState::Succeeded => "has succeeded",
        ActionState::Failed => "has failed",
        ActionState::Cancelled => "was cancelled",
    }
}

/// Returns the argument that names an object to these commands.
fn argument(kind: ApiKind, name: &str) -> String {
    match kind == ACTION {
        true => name.to_owned(),
        false => format!("{}/{name}", kind.kind.to_lowercase()),
    }
}

/// Returns whether a request failed because an object or its namespace does not exist. If the kind
/// is not served, the answer has no such reason.
fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.reason == "NotFound")
}

/// Returns whether a request failed because the user may not make it.
fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 403)
}

/// Reads an Action.
async fn read(client: &Client, namespace: &str, name: &str) -> Result<ActionObject, anyhow::Error> {
    let value = get(client, namespace, ACTION, name).await?;
    ActionObject::read(&value).map_err(|error| anyhow!("Action `{name}` cannot be read: {error}"))
}

/// Reads an object of a namespace as it is.
///
/// # Errors
///
/// When there is none of this name; the error has similar names.
async fn get(
    client: &Client,
    namespace: &str,
    kind: ApiKind,
    name: &str,
) -> Result<Value, anyhow::Error> {
    let what = kind.kind;
    match actions(client, namespace, kind).get(name).await {
        Ok(mut found) => {
            // kubectl prints none either.
            found.metadata.managed_fields = None;
            return Ok(serde_json::to_value(found)?);
        }
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(failed(error, || format!("failed to read {what} `{name}`"))),
    }
    if kind == ACTION
        && let Some(message) = of_other_kind(client, namespace, name).await
    {
        bail!(message);
    }
    let hint = match actions(client, namespace, kind).list(&ListParams::default()).await {
        Ok(list) => hint(name, list.items.iter().filter_map(|it| it.metadata.name.as_deref())),
        // Whoever may not list Actions gets no names of them.
        Err(_) => String::new(),
    };
    bail!("there is no {what} `{name}` in namespace {namespace}{hint}")
}

/// Returns how to see the RetryAction, CronAction or EventAction that has a name which no Action
/// has; `None` if there is none, or the user may not read it.
async fn of_other_kind(client: &Client, namespace: &str, name: &str) -> Option<String> {
    for kind in [RETRY_ACTION, CRON_ACTION, EVENT_ACTION] {
        let found = actions(client, namespace, kind).get_opt(name).await;
        if !matches!(found, Ok(Some(_))) {
            continue;
        }
        if kind == RETRY_ACTION {
            let other = argument(kind, name);
            return Some(format!(
                "there is no Action `{name}` in namespace {namespace}, but a RetryAction: write \
                 {other}"
            ));
        }
        let article = if kind == EVENT_ACTION { "an" } else { "a" };
        let (kind, resource) = (kind.kind, kind.kind.to_lowercase());
        return Some(format!(
            "`{name}` is {article} {kind}: `kubectl get {resource} {name} -n {namespace} -o yaml` \
             shows it"
        ));
    }
    None
}
