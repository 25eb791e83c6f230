//! `plimsoll operator policy test`: the decisions of policies about Actions before they are
//! requested (OPR-25).

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionRequester, EffectiveAttribute, PolicyDecision};
use plimsoll_api::{ACTION, ObjectKey};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::files::{ActionFiles, DeclaredAction, built_in_classes};
use plimsoll_operators::actions::policy::{PolicyRequest, judge};
use serde::Serialize;

use super::loadout::read_files;
use crate::arguments::name::hint;
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// The namespace of an Action that names none.
const NAMESPACE: &str = "default";
/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";

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
    /// What the user may do by hand, which needs no policy, is not looked at, nor are rules about plans.
    Test(TestArguments),
}

/// Arguments of `plimsoll operator policy test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// File or directory with Actions, ActionPolicies and ActionClasses
    #[arg(long = "filename", short = 'f', required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// User who requests the Actions; `system:serviceaccount:NAMESPACE:NAME` for a service account
    #[arg(long = "as", value_name = "USER")]
    user: String,
    /// Group of the user; may be given several times
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Namespace of Actions that name none
    #[arg(long, short, default_value = NAMESPACE)]
    namespace: String,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    requires_approval: bool,
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

/// Runs `plimsoll operator policy test`. The command fails if an Action is denied.
///
/// # Errors
///
/// When files cannot be read, or have no Action.
pub(super) fn test(
    arguments: &TestArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut files = Vec::new();
    for path in &arguments.files {
        files.extend(read_files(path)?);
    }
    let read = match ActionFiles::read(&files) {
        Ok(read) => read,
        Err(errors) => bail!("{}", errors.join("\n")),
    };
    if read.actions.is_empty() {
        bail!("no Action is in these files");
    }
    let classes: Vec<NamedClass> = read.classes.iter().cloned().chain(built_in_classes()).collect();
    let mut groups = arguments.groups.clone();
    groups.push(AUTHENTICATED.to_owned());
    let requester = ActionRequester { username: arguments.user.clone(), groups };
    let tested = read.actions.iter().map(|it| tested(it, &classes, &read, &requester, arguments));
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

fn tested(
    action: &DeclaredAction,
    classes: &[NamedClass],
    files: &ActionFiles,
    requester: &ActionRequester,
    arguments: &TestArguments,
) -> Result<TestedAction, anyhow::Error> {
    let DeclaredAction { kind, namespace, name, spec } = action;
    let namespace = match namespace.as_str() {
        "" => arguments.namespace.clone(),
        namespace => namespace.to_owned(),
    };
    let Some(class) = NamedClass::find(classes, &spec.action_class) else {
        let names = classes.iter().map(|it| it.name.as_str());
        bail!(
            "{kind} {name}: no ActionClass `{}` is built in or in these files{}",
            spec.action_class,
            hint(&spec.action_class, names)
        );
    };
    let request = PolicyRequest {
        namespace: &namespace,
        requester,
        spec,
        class,
        active: 0,
        may_directly: None,
        plan: None,
        now: Timestamp::now(),
    };
    let verdict = judge(&request, &files.policies);
    let mut tested = TestedAction {
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        allowed: verdict.granted.is_ok(),
        requires_approval: false,
        reason: None,
        message: String::new(),
        policies: verdict.decisions,
        effective_spec: Vec::new(),
    };
    match verdict.granted {
        Ok(grant) => {
            tested.requires_approval = grant.requires_approval;
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
    let fate = match (action.allowed, action.requires_approval) {
        (true, false) => "allowed".to_owned(),
        (true, true) => "allowed, once its plan is approved".to_owned(),
        (false, _) => format!("denied: {}", action.message),
    };
    writeln!(out, "{kind} {namespace}/{name}: {fate}")?;
    let rows: Vec<Vec<String>> = action
        .policies
        .iter()
        .map(|it| {
            let decision = if it.allowed { "allowed" } else { "denied" };
            vec![it.policy.clone(), it.mode.clone(), decision.to_owned(), it.message.clone()]
        })
        .collect();
    if !rows.is_empty() {
        let headings = ["POLICY", "MODE", "DECISION", "MESSAGE"];
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
