//! `plimsoll operator policy`: the decisions of policies about Actions before they are requested (OPR-25).

mod cases;
mod compile;
mod explain;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use plimsoll_api::olm::action::{ActionRequester, ActionSpec, EffectiveAttribute, PolicyDecision};
use plimsoll_api::{ACTION, ObjectKey};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check::unknown_class;
use plimsoll_operators::actions::files::{ActionFiles, DeclaredAction, built_in_classes};
use plimsoll_operators::actions::policy::problems::unknown_classes;
use plimsoll_operators::actions::policy::{NamedPolicy, PolicyRequest, PolicyVerdict, judge};
use plimsoll_operators::actions::subjects::SERVICE_ACCOUNT_PREFIX;
use plimsoll_plan::windows::MaintenanceWindows;
use serde::Serialize;

use super::selection::read_files_or_input;
use crate::arguments::name;
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

use self::cases::CaseResult;
pub use self::compile::CompileArguments;
pub(super) use self::compile::compile;
pub use self::explain::ExplainArguments;
pub(super) use self::explain::explain;

/// The namespace of an Action that names none.
const NAMESPACE: &str = "default";
/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of all service accounts, and the beginning of that of those of a namespace.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Arguments of `plimsoll operator policy`.
#[derive(Debug, Args)]
pub struct PolicyArguments {
    /// What to do
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// Subcommands of `plimsoll operator policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show what the policies of files decide on the Actions of files, and by which rule; no cluster is
    /// needed
    ///
    /// What the user may do by hand, which needs no policy, is not looked at, nor are rules about plans. With
    /// --cases, the decisions on the requests of a table are compared with those that it expects.
    Test(TestArguments),
    /// Show what a user may request by the policies of files, and under which conditions; no cluster is
    /// needed
    Explain(ExplainArguments),
    /// Print what the policies of files say of requests as a ValidatingAdmissionPolicy, which API servers
    /// evaluate without a webhook
    Compile(CompileArguments),
}

/// The files with policies, and the namespace of requests.
#[derive(Debug, Args)]
struct PolicyFiles {
    /// File or directory with ActionPolicies, ActionClasses, MaintenanceWindows, Namespaces and Actions; `-` for standard input
    #[arg(long = "filename", short = 'f', required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Namespace of requests that name none
    #[arg(long, short, default_value = NAMESPACE, value_parser = name::namespace)]
    namespace: String,
}

/// Policies to judge requests by.
struct Policies {
    files: ActionFiles,
    /// The classes of the files, and those that are built in.
    classes: Vec<NamedClass>,
    /// The MaintenanceWindows of the files.
    windows: MaintenanceWindows,
    /// The namespace of requests that name none.
    namespace: String,
}

impl PolicyFiles {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or what is wrong in them.
    fn read(&self) -> Result<Policies, anyhow::Error> {
        let (files, classes) = read(&self.files)?;
        let windows = files.windows.iter().cloned().collect();
        Ok(Policies { files, classes, windows, namespace: self.namespace.clone() })
    }
}

/// Reads files with policies, and returns what is in them, with the classes of the files and those that are built in.
/// Warns of policies about classes that are not among them.
///
/// # Errors
///
/// When one cannot be read, or there is no policy, or what is wrong in them.
fn read(paths: &[PathBuf]) -> Result<(ActionFiles, Vec<NamedClass>), anyhow::Error> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(read_files_or_input(path)?);
    }
    let files = match ActionFiles::read(&files) {
        Ok(read) => read,
        Err(errors) => bail!("{}", errors.join("\n")),
    };
    let is_missing = |class: &NamedClass| files.classes.iter().all(|it| it.name != class.name);
    let built_in = built_in_classes().into_iter().filter(is_missing);
    let classes: Vec<NamedClass> = files.classes.iter().cloned().chain(built_in).collect();
    if files.policies.is_empty() {
        bail!("no ActionPolicy is in these files");
    }
    for NamedPolicy { name, spec } in &files.policies {
        for problem in unknown_classes(spec, &classes) {
            anstream::eprintln!("warning: ActionPolicy {name}: {problem}");
        }
    }
    Ok((files, classes))
}

impl Policies {
    /// Judges a request, before there is a plan.
    ///
    /// # Errors
    ///
    /// When there is no class of its name.
    fn judge(
        &self,
        requester: &ActionRequester,
        namespace: &str,
        spec: &ActionSpec,
    ) -> Result<PolicyVerdict, anyhow::Error> {
        let Some(class) = NamedClass::find(&self.classes, &spec.action_class) else {
            bail!("{}", unknown_class(&spec.action_class, &self.classes));
        };
        let labels = self.files.labels(namespace);
        let request =
            PolicyRequest::unplanned(namespace, &labels, requester, spec, class, &self.windows);
        Ok(judge(&request, &self.files.policies))
    }
}

/// Returns a user whom the API server has authenticated: with the groups that it adds.
fn authenticated(user: &str, groups: &[String]) -> ActionRequester {
    let mut groups = groups.to_vec();
    groups.push(AUTHENTICATED.to_owned());
    if let Some((namespace, _)) =
        user.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|it| it.split_once(':'))
    {
        groups.push(SERVICE_ACCOUNTS.to_owned());
        groups.push(format!("{SERVICE_ACCOUNTS}:{namespace}"));
    }
    ActionRequester { username: user.to_owned(), groups }
}

/// Arguments of `plimsoll operator policy test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    #[command(flatten)]
    files: PolicyFiles,
    /// User who requests the Actions; `system:serviceaccount:NAMESPACE:NAME` for a service account
    #[arg(long = "as", value_name = "USER", required_unless_present = "cases")]
    user: Option<String>,
    /// Group of the user; may be given several times
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    /// File with a table of requests and the decisions that are expected; the Actions of other files are not
    /// looked at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "groups"])]
    cases: Option<PathBuf>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// The decision about an Action.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TestedAction {
    kind: String,
    namespace: String,
    name: String,
    allowed: bool,
    /// The approvals that the plan needs, such as `2 approvals of group sre`; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    requires: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    policies: Vec<PolicyDecision>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    effective_spec: Vec<EffectiveAttribute>,
}

impl TestedAction {
    /// Returns the Action as kubectl names it.
    fn reference(&self) -> String {
        let key = ObjectKey {
            group: ACTION.group.to_owned(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        key.reference()
    }
}

/// Runs `plimsoll operator policy test`. The command fails if an Action is denied, or a case is decided otherwise
/// than is expected.
///
/// # Errors
///
/// When files cannot be read, or have no Action.
pub(super) fn test(
    arguments: &TestArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let policies = arguments.files.read()?;
    if let Some(path) = &arguments.cases {
        return test_cases(&cases::run(path, &policies)?, &arguments.output, out);
    }
    if policies.files.actions.is_empty() {
        bail!("no Action is in these files");
    }
    let user = arguments.user.clone().unwrap_or_default();
    let requester = authenticated(&user, &arguments.groups);
    let tested = policies.files.actions.iter().map(|it| tested(it, &policies, &requester));
    let tested: Vec<TestedAction> = tested.collect::<Result<_, _>>()?;
    if arguments.output == Format::Name {
        tested.iter().try_for_each(|it| writeln!(out, "{}", it.reference()))?;
    } else if !arguments.output.write(&tested, out)? {
        for action in &tested {
            print(action, out)?;
        }
    }
    let is_denied = tested.iter().any(|it| !it.allowed);
    Ok(if is_denied { exit::FAILURE } else { exit::SUCCESS }.into())
}

/// Prints the results of cases.
fn test_cases(
    results: &[CaseResult],
    output: &Format,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let failed = results.iter().filter(|it| !it.passed).count();
    if *output == Format::Name {
        results.iter().try_for_each(|it| writeln!(out, "{}", it.name))?;
    } else if !output.write(&results, out)? {
        for CaseResult { name, passed, decision, expected } in results {
            match passed {
                true => writeln!(out, "ok      {name}: {decision}")?,
                false => writeln!(out, "FAILED  {name}: {decision}, expected {expected}")?,
            }
        }
        writeln!(out, "{} cases, {failed} failed", results.len())?;
    }
    Ok(if failed > 0 { exit::FAILURE } else { exit::SUCCESS }.into())
}

fn tested(
    action: &DeclaredAction,
    policies: &Policies,
    requester: &ActionRequester,
) -> Result<TestedAction, anyhow::Error> {
    let DeclaredAction { kind, namespace, name, spec } = action;
    let namespace = match namespace.as_str() {
        "" => &policies.namespace,
        namespace => namespace,
    };
    let judged = policies.judge(requester, namespace, spec);
    let PolicyVerdict { decisions, granted } = judged.with_context(|| format!("{kind} {name}"))?;
    let mut tested = TestedAction {
        kind: kind.clone(),
        namespace: namespace.to_owned(),
        name: name.clone(),
        allowed: granted.is_ok(),
        requires: String::new(),
        reason: None,
        message: String::new(),
        policies: decisions,
        effective_spec: Vec::new(),
    };
    match granted {
        Ok(grant) => {
            tested.requires = grant.approval.map(|it| it.demand()).unwrap_or_default();
            tested.effective_spec = grant.action.listed();
        }
        Err(failure) => {
            tested.reason = Some(failure.reason.as_str());
            tested.message = failure.message;
        }
    }
    Ok(tested)
}

fn print(action: &TestedAction, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let TestedAction { kind, namespace, name, .. } = action;
    let fate = match (action.allowed, action.requires.as_str()) {
        (true, "") => "allowed".to_owned(),
        (true, approval) => format!("allowed, once its plan has {approval}"),
        (false, _) => format!("denied: {}", action.message),
    };
    writeln!(out, "{kind} {namespace}/{name}: {fate}")?;
    let rows: Vec<Vec<String>> = action
        .policies
        .iter()
        .map(|it| {
            let decision = if it.allowed { "allowed" } else { "denied" };
            let texts = [&it.policy, &it.mode, decision, &it.rule, &it.message];
            texts.map(str::to_owned).to_vec()
        })
        .collect();
    if !rows.is_empty() {
        let headings = ["POLICY", "MODE", "DECISION", "RULE", "MESSAGE"];
        table::print_whole(out, &headings, &rows)?;
    }
    let rows: Vec<Vec<String>> = action
        .effective_spec
        .iter()
        .map(|it| vec![it.name.clone(), it.value.clone(), it.set_by.clone()])
        .collect();
    if !rows.is_empty() {
        let headings = ["ATTRIBUTE", "VALUE", "SET BY"];
        table::print(out, &headings, &rows)?;
    }
    Ok(())
}
