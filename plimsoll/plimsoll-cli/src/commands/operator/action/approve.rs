//! `plimsoll operator action approve`, `reject` and `cancel`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, ReplaceOperation, TestOperation};
use kube::api::Patch;
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use plimsoll_api::olm::action::{ActionApproval, ActionRequester, ActionState, ApprovalDecision};
use plimsoll_api::olm::policy::ActionPolicySpec;
use plimsoll_api::{ACTION, ACTION_POLICY};
use plimsoll_controller::api_resource;
use plimsoll_operators::actions::approvals::ApprovalRule;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_resolve::printable::on_one_line;
use serde::Deserialize as _;
use serde_json::json;

use super::request::myself;
use super::retries::read_retry;
use super::show::{requester_text, write_plan};
use super::{CancelArguments, DecisionArguments, actions, parts, read, state_in_words};
use crate::commands::operator::patch_parameters;
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::object::reference;

/// How often the decision is sent again if the Action has changed meanwhile.
const ATTEMPTS: usize = 5;
/// The maximum number of groups that a decision names.
const GROUPS_MAX: usize = 256;

/// Approves or rejects the plan of an Action.
pub(super) async fn decide(
    client: &Client,
    decision: ApprovalDecision,
    arguments: &DecisionArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let mut action = read(client, &namespace, name).await?;
    let note = parts::complete(client, &mut action).await?;
    let (done, question) = match decision {
        ApprovalDecision::Approved => ("approved", "Approve it?"),
        ApprovalDecision::Rejected => ("rejected", "Reject it?"),
    };
    let status = &action.status;
    if status.state != ActionState::WaitingForApproval {
        let state = state_in_words(status.state);
        bail!("Action `{name}` {state}: only one that waits for an approval is {done}");
    }
    let digest = &status.plan_digest;
    if let Some(wanted) = arguments.plan.as_ref().filter(|it| *it != digest) {
        return Err(other_plan(name, &namespace, wanted).into());
    }
    if let Some(note) = note {
        // What is not shown is not agreed to.
        bail!(note);
    }
    let requester = requester_text(action.spec.requester.as_ref());
    writeln!(out, "Plan {} of {requester}:", on_one_line(digest))?;
    write_plan(&status.plan, out)?;
    for line in &status.explanation {
        writeln!(out, "* {}", on_one_line(line))?;
    }
    let dry_run = arguments.dry_run;
    if !dry_run.is_set() && !prompter.confirm(question, DefaultAnswer::No, out)? {
        let message = format!("nothing was {done}");
        return Err(Refusal { message, exit: exit::DECLINED }.into());
    }
    if dry_run.is_sent() {
        let ActionRequester { username, groups } = myself(client).await?;
        if groups.len() > GROUPS_MAX {
            bail!(
                "{username} is in more than {GROUPS_MAX} groups: patch spec.approvals with those that policies \
                 name"
            );
        }
        let approval = ActionApproval {
            approver: username,
            groups,
            plan: digest.clone(),
            decision,
            reason: arguments.reason.clone(),
        };
        if let Some(demand) = uncounted(client, &action, &approval).await {
            bail!(
                "Action `{name}` waits for {demand}: what {} decides does not count",
                approval.approver
            );
        }
        let what = if decision == ApprovalDecision::Approved { "approve" } else { "reject" };
        let sent = send(client, &action, &approval, dry_run.is_set()).await;
        sent.with_context(|| format!("failed to {what} Action `{name}`"))?;
    }
    writeln!(out, "action.olm.io/{name} {done}{}", dry_run.suffix())?;
    Ok(exit::SUCCESS.into())
}

/// Returns what the policies demand that grant an Action if a decision counts for none of them; `None` if it counts, or
/// these policies cannot be read.
async fn uncounted(
    client: &Client,
    action: &ActionObject,
    approval: &ActionApproval,
) -> Option<String> {
    let requester = action.spec.requester.as_ref()?;
    if requester.username == approval.approver {
        // The API server refuses that.
        return None;
    }
    let policies: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(ACTION_POLICY));
    let mut demands = Vec::new();
    for decision in action.status.policies.iter().filter(|it| it.allowed && it.mode == "Enforce") {
        let policy = policies.get_opt(&decision.policy).await.ok()??;
        let spec = ActionPolicySpec::deserialize(&policy.data["spec"]).ok()?;
        let rule = ApprovalRule::of(&spec.enforce?)?;
        if rule.counts(approval, Some(requester)) {
            return None;
        }
        demands.push(rule.demand());
    }
    (!demands.is_empty()).then(|| demands.join(", or "))
}

/// Returns the refusal to decide on an Action whose plan is not the one that was shown.
fn other_plan(name: &str, namespace: &str, agreed: &str) -> Refusal {
    let message = format!(
        "Action `{name}` has another plan than {agreed}: `operator action show {name} -n \
         {namespace}` shows it"
    );
    Refusal { message, exit: exit::DECLINED }
}

/// Adds what a user decided on a plan to an Action, and leaves what others decided.
///
/// # Errors
///
/// When the Action has another plan by now, or the request is rejected.
async fn send(
    client: &Client,
    action: &ActionObject,
    approval: &ActionApproval,
    is_dry_run: bool,
) -> Result<(), anyhow::Error> {
    let ActionObject { namespace, name, .. } = action;
    let parameters = patch_parameters(is_dry_run);
    let mut current = action.clone();
    for attempt in 1..=ATTEMPTS {
        let patch = Patch::<()>::Json(patch(&current, approval)?);
        let sent = actions(client, namespace, ACTION).patch(name, &parameters, &patch).await;
        let Err(error) = sent else { return Ok(()) };
        // A test of a patch that does not hold is answered so.
        let is_invalid = matches!(&error, Error::Api(status) if status.code == 422);
        if is_invalid {
            current = read(client, namespace, name).await?;
            if current.status.plan_digest != approval.plan {
                return Err(other_plan(name, namespace, &approval.plan).into());
            }
        }
        if !is_invalid || attempt == ATTEMPTS {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Returns the patch that adds what a user decided, if the Action still has the plan.
fn patch(
    action: &ActionObject,
    approval: &ActionApproval,
) -> Result<json_patch::Patch, anyhow::Error> {
    let value = serde_json::to_value(approval)?;
    let test = |path: PointerBuf, value: &str| {
        PatchOperation::Test(TestOperation { path, value: value.into() })
    };
    let approvals = |rest: &[&str]| {
        PointerBuf::from_tokens(["spec", "approvals"].into_iter().chain(rest.iter().copied()))
    };
    let mut operations =
        vec![test(PointerBuf::from_tokens(["status", "planDigest"]), &approval.plan)];
    let given = &action.spec.approvals;
    match given.iter().position(|it| it.approver == approval.approver) {
        Some(at) => {
            let at = at.to_string();
            operations.push(test(approvals(&[&at, "approver"]), &approval.approver));
            let path = approvals(&[&at]);
            operations.push(PatchOperation::Replace(ReplaceOperation { path, value }));
        }
        None if given.is_empty() => {
            let revision = PointerBuf::from_tokens(["metadata", "resourceVersion"]);
            operations.push(test(revision, &action.revision));
            let (path, value) = (approvals(&[]), json!([value]));
            operations.push(PatchOperation::Add(AddOperation { path, value }));
        }
        None => {
            let path = approvals(&["-"]);
            operations.push(PatchOperation::Add(AddOperation { path, value }));
        }
    }
    Ok(json_patch::Patch(operations))
}

pub(super) async fn cancel(
    client: &Client,
    arguments: &CancelArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (kind, name) = (arguments.name.kind, &arguments.name.name);
    let namespace = arguments.namespace.of(client);
    let state = match kind == ACTION {
        true => read(client, &namespace, name).await?.status.state,
        false => read_retry(client, &namespace, name).await?.state(),
    };
    if state.is_final() {
        let state = state_in_words(state);
        bail!("{} `{name}` {state}: only what has not ended is cancelled", kind.kind);
    }
    let patch = Patch::Merge(json!({ "spec": { "cancelled": true } }));
    let dry_run = arguments.dry_run;
    if dry_run.is_sent() {
        let (actions, parameters) =
            (actions(client, &namespace, kind), patch_parameters(dry_run.is_set()));
        let patched = actions.patch(name, &parameters, &patch).await;
        patched.with_context(|| format!("failed to cancel {} `{name}`", kind.kind))?;
    }
    let running = match state {
        ActionState::Running if kind == ACTION => ": it stops before its next change",
        ActionState::Running => ": there is no further attempt",
        _ => "",
    };
    writeln!(out, "{} cancelled{running}{}", reference(kind, name), dry_run.suffix())?;
    Ok(exit::SUCCESS.into())
}
