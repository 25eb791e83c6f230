//! `plimsoll operator action approve` and `cancel`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use kube::api::Patch;
use kube::{Client, Error};
use plimsoll_api::ACTION;
use plimsoll_api::olm::action::ActionState;
use plimsoll_resolve::printable::on_one_line;
use serde_json::json;

use super::request::myself;
use super::retries::read_retry;
use super::show::{requester_text, write_plan};
use super::{ApproveArguments, CancelArguments, actions, parts, read, state_in_words};
use crate::commands::operator::patch_parameters;
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::object::reference;

pub(super) async fn approve(
    client: &Client,
    arguments: &ApproveArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let mut action = read(client, &namespace, name).await?;
    let note = parts::complete(client, &mut action).await?;
    let status = &action.status;
    if status.state != ActionState::WaitingForApproval {
        let state = state_in_words(status.state);
        bail!("Action `{name}` {state}: only one that waits for an approval is approved");
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
    if !dry_run.is_set() && !prompter.confirm("Approve it?", DefaultAnswer::No, out)? {
        let message = "nothing was approved".to_owned();
        return Err(Refusal { message, exit: exit::DECLINED }.into());
    }
    if dry_run.is_sent() {
        approve_plan(client, arguments, &namespace, digest).await?;
    }
    writeln!(out, "action.olm.io/{name} approved{}", dry_run.suffix())?;
    Ok(exit::SUCCESS.into())
}

/// Returns the refusal to approve an Action whose plan is not the one that is agreed to.
fn other_plan(name: &str, namespace: &str, agreed: &str) -> Refusal {
    let message = format!(
        "Action `{name}` has another plan than {agreed}: `operator action show {name} -n \
         {namespace}` shows it"
    );
    Refusal { message, exit: exit::DECLINED }
}

/// Approves the plan with a digest, and no other one.
///
/// # Errors
///
/// When the Action has another plan by now, or the request is rejected.
async fn approve_plan(
    client: &Client,
    arguments: &ApproveArguments,
    namespace: &str,
    digest: &str,
) -> Result<(), anyhow::Error> {
    let name = &arguments.name;
    let approver = myself(client).await?.username;
    let patch = Patch::<()>::Json(json_patch::Patch(vec![
        PatchOperation::Test(TestOperation {
            path: PointerBuf::from_tokens(["status", "planDigest"]),
            value: digest.into(),
        }),
        PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["spec", "approval"]),
            value: json!({ "plan": digest, "approver": approver }),
        }),
    ]));
    let parameters = patch_parameters(arguments.dry_run.is_set());
    let Err(error) = actions(client, namespace, ACTION).patch(name, &parameters, &patch).await
    else {
        return Ok(());
    };
    // A test of a patch that does not hold is answered so.
    let is_invalid = matches!(&error, Error::Api(status) if status.code == 422);
    if is_invalid && read(client, namespace, name).await?.status.plan_digest != digest {
        return Err(other_plan(name, namespace, digest).into());
    }
    Err(anyhow!(error).context(format!("failed to approve Action `{name}`")))
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
