//! `plimsoll operator action approve` and `cancel`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use kube::Client;
use kube::api::Patch;
use plimsoll_api::ACTION;
use plimsoll_api::olm::action::ActionState;
use plimsoll_resolve::printable::on_one_line;
use serde_json::json;

use super::request::myself;
use super::show::write_plan;
use super::{ApproveArguments, CancelArguments, actions, read};
use crate::commands::operator::patch_parameters;
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};

pub(super) async fn approve(
    client: &Client,
    arguments: &ApproveArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    let status = &action.status;
    if status.state != ActionState::WaitingForApproval {
        bail!("Action `{name}` is {} and waits for no approval", status.state.outcome());
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
    let dry_run = arguments.dry_run;
    if !dry_run.is_set() && !prompter.confirm("Approve it?", DefaultAnswer::No, out)? {
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
    if dry_run.is_sent() {
        let (actions, parameters) =
            (actions(client, &namespace, ACTION), patch_parameters(dry_run.is_set()));
        let patched = actions.patch(name, &parameters, &patch).await;
        patched.with_context(|| format!("failed to approve Action `{name}`"))?;
    }
    writeln!(out, "action.olm.io/{name} approved{}", dry_run.suffix())?;
    Ok(exit::SUCCESS.into())
}

pub(super) async fn cancel(
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
        bail!("Action `{name}` has ended: it is {}", state.outcome());
    }
    let patch = Patch::Merge(json!({ "spec": { "cancelled": true } }));
    let dry_run = arguments.dry_run;
    if dry_run.is_sent() {
        let (actions, parameters) =
            (actions(client, &namespace, ACTION), patch_parameters(dry_run.is_set()));
        let patched = actions.patch(name, &parameters, &patch).await;
        patched.with_context(|| format!("failed to cancel Action `{name}`"))?;
    }
    writeln!(out, "action.olm.io/{name} cancelled{}", dry_run.suffix())?;
    Ok(exit::SUCCESS.into())
}
