//! `plimsoll operator action show`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{
    ActionApproval, ActionRequester, ActionState, ActionStatus, ApprovalDecision, ChangeState,
    FailureDetails, PlannedChange,
};
use plimsoll_api::{ACTION, RETRY_ACTION, whole_seconds};
use plimsoll_operators::actions::attributes::given;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::change_plan::ChangePlan;
use plimsoll_operators::deletion_plan::workload_text;
use plimsoll_operators::version_text;
use plimsoll_resolve::printable::{on_lines, on_one_line};

use super::retries::{RetryObject, read_retry};
use super::{ShowArguments, actions, argument, get, parts, read, state_in_words};
use crate::exit::{self, Refusal};
use crate::render::format::Format;
use crate::render::{changes, table};

/// Runs `plimsoll operator action show`.
pub(super) async fn show(
    client: &Client,
    arguments: &ShowArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (kind, name) = (arguments.name.kind, &arguments.name.name);
    let namespace = arguments.namespace.of(client);
    let format = &arguments.output;
    if kind == RETRY_ACTION && format.is_of_plan() {
        let argument = argument(kind, name);
        let message = format!(
            "{argument} has no plan: name one of its attempts, which `operator action show \
             {argument} -n {namespace}` lists"
        );
        return Err(Refusal::usage(message).into());
    }
    if !format.is_for_people() && !format.is_of_plan() {
        format.write_about(kind, &get(client, &namespace, kind, name).await?, out)?;
        return Ok(exit::SUCCESS.into());
    }
    if kind == RETRY_ACTION {
        let retry = read_retry(client, &namespace, name).await?;
        let attempts = attempts_of(client, &retry).await?;
        write_retry(&retry, &attempts, out)?;
    } else {
        write_action(client, &namespace, name, format, out).await?;
    }
    Ok(exit::SUCCESS.into())
}

/// Writes an Action for people, or its plan.
///
/// # Errors
///
/// When the cluster has no such Action, or cannot be read.
async fn write_action(
    client: &Client,
    namespace: &str,
    name: &str,
    format: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let mut action = read(client, namespace, name).await?;
    let note = parts::complete(client, &mut action).await?;
    if format.is_of_plan() {
        if let Some(note) = note {
            bail!(note);
        }
        changes::write(&ChangePlan::of_action(&action.status), format, out)?;
        return Ok(());
    }
    write_heading(&action, out)?;
    write_attributes(&action.status, out)?;
    write_whole_plan(&action.status, out)?;
    if let Some(note) = note {
        writeln!(out, "{note}")?;
    }
    write_result(&action.status, out)?;
    if let Some(failure) = &action.status.failure {
        write_failure(failure, out)?;
    }
    write_conditions(&action.status.conditions, out)?;
    write_next(&action, out)
}

/// Writes what and whose it is, and when it was done.
fn write_heading(action: &ActionObject, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let ActionObject { namespace, name, spec, status, .. } = action;
    let requester = spec.requester.as_ref().or(status.requester.as_ref());
    writeln!(out, "Action {namespace}/{name} {}", state_in_words(status.state))?;
    writeln!(out, "Class:     {}", on_one_line(&spec.action_class))?;
    writeln!(out, "Requester: {}", requester_text(requester))?;
    for approval in &spec.approvals {
        let decision = match approval.decision {
            ApprovalDecision::Approved => "Approved: ",
            ApprovalDecision::Rejected => "Rejected: ",
        };
        writeln!(out, "{decision} {}", approval_text(approval, &status.plan_digest))?;
    }
    write_times(action.created, status.start_time, status.completion_time, out)?;
    if status.attempts > 1 {
        writeln!(out, "Begun:     {} times", status.attempts)?;
    }
    if spec.cancelled && !status.state.is_final() {
        writeln!(out, "It is cancelled before its next change")?;
    }
    Ok(())
}

/// Returns a user with the groups, for people.
pub(super) fn requester_text(requester: Option<&ActionRequester>) -> String {
    let Some(ActionRequester { username, groups }) = requester else { return String::new() };
    match groups.is_empty() {
        true => on_one_line(username),
        false => on_one_line(&format!("{username} of {}", groups.join(", "))),
    }
}

/// Returns who decided on the plan with a digest and why, and which plan if it is another one.
pub(super) fn approval_text(approval: &ActionApproval, digest: &str) -> String {
    let ActionApproval { plan, approver, reason, .. } = approval;
    let other = match digest.is_empty() || plan == digest {
        true => String::new(),
        false => format!(", but another plan: {plan}"),
    };
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    on_one_line(&format!("by {approver}{other}{reason}"))
}

fn write_times(
    created: Timestamp,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let times = [("Requested:", Some(created)), ("Started:  ", started), ("Ended:    ", ended)];
    for (what, time) in times {
        if let Some(time) = time {
            writeln!(out, "{what} {}", whole_seconds(time))?;
        }
    }
    Ok(())
}

/// Writes the attributes that count, and what policies decided.
fn write_attributes(status: &ActionStatus, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    if !status.effective_spec.is_empty() {
        writeln!(out, "Attributes:")?;
    }
    for it in &status.effective_spec {
        let line = format!("{}: {} (set by {})", it.name, it.value, it.set_by);
        writeln!(out, "  {}", on_one_line(&line))?;
    }
    if !status.policies.is_empty() {
        writeln!(out, "Policies:")?;
    }
    for it in &status.policies {
        let fate = if it.allowed { "allowed" } else { "denied" };
        let policy = if it.policy.is_empty() { "permissions" } else { &it.policy };
        let rule = if it.rule.is_empty() { String::new() } else { format!(" by {}", it.rule) };
        let line = format!("{policy} ({}): {fate}{rule}: {}", it.mode, it.message);
        writeln!(out, "  {}", on_one_line(&line))?;
    }
    Ok(())
}

/// Writes the plan with the dependencies that it creates and what one should know of it.
pub(super) fn write_whole_plan(
    status: &ActionStatus,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if !status.plan.is_empty() {
        let summary = match status.plan_summary.as_str() {
            "" => String::new(),
            summary => format!(", {summary}"),
        };
        let line = format!("Plan {}{summary}:", status.plan_digest);
        writeln!(out, "{}", on_one_line(&line))?;
        write_plan(&status.plan, out)?;
    }
    if !status.dependencies.is_empty() {
        writeln!(out, "Dependencies:")?;
    }
    for it in &status.dependencies {
        let state = [it.reason.as_str(), it.message.as_str()];
        let state: Vec<&str> = state.into_iter().filter(|it| !it.is_empty()).collect();
        let line = format!("{} {}: {}", it.package, version_text(&it.version), state.join(": "));
        writeln!(out, "  {}", on_one_line(line.trim_end_matches(": ")))?;
    }
    for line in &status.explanation {
        writeln!(out, "* {}", on_one_line(line))?;
    }
    Ok(())
}

/// Writes the answer of a query.
fn write_result(status: &ActionStatus, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    if !status.result.is_empty() {
        writeln!(out, "Result:\n{}", on_lines(status.result.trim_end()))?;
    }
    Ok(())
}

/// Writes what a person needs to go on after a failure.
fn write_failure(failure: &FailureDetails, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let FailureDetails { item, precondition, done, left, unknown, command } = failure;
    for (what, text) in [("Failed on:", item), ("Violated: ", precondition)] {
        if !text.is_empty() {
            writeln!(out, "{what} {}", on_one_line(text))?;
        }
    }
    let lists = [("Done", done), ("Left as it was", left), ("Not known whether done", unknown)];
    for (what, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        writeln!(out, "{what}:")?;
        for line in lines {
            writeln!(out, "  {}", on_one_line(line))?;
        }
    }
    if !command.is_empty() {
        writeln!(out, "By hand:   {}", on_one_line(command))?;
    }
    Ok(())
}

fn write_conditions(
    conditions: &[MetaCondition],
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    for condition in conditions {
        let MetaCondition { type_, status, reason, message, .. } = condition;
        let text = format!("{type_} is {} ({reason}): {message}", status.as_str());
        writeln!(out, "{}", indented(&text))?;
    }
    Ok(())
}

/// Returns a text whose lines after the first one are indented, so that none looks like a line of
/// the program.
pub(super) fn indented(text: &str) -> String {
    on_lines(text.trim_end()).replace('\n', "\n    ")
}

/// Writes the command that goes on.
fn write_next(action: &ActionObject, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let ActionObject { namespace, name, status, .. } = action;
    match status.state {
        ActionState::WaitingForApproval => {
            writeln!(out, "Approve it with `operator action approve {name} -n {namespace}`")?;
        }
        ActionState::Failed | ActionState::Cancelled => {
            writeln!(out, "Request it again with `operator action retry {name} -n {namespace}`")?;
        }
        ActionState::Pending | ActionState::Running | ActionState::Succeeded => {}
    }
    Ok(())
}

/// Writes what a command that waited for the end of an Action has besides its state. `note` says
/// what of it cannot be had.
pub(super) fn write_end(
    action: &ActionObject,
    note: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let status = &action.status;
    if let Some(note) = note {
        writeln!(out, "{note}")?;
    }
    if status.state == ActionState::Succeeded {
        return write_result(status, out);
    }
    match &status.failure {
        Some(failure) => write_failure(failure, out),
        None => Ok(()),
    }
}

/// Returns how far a change is, with its message.
pub(super) fn progress_text(change: &PlannedChange) -> String {
    let state = change_state(change.state);
    match change.message.as_str() {
        "" => state.to_owned(),
        message => on_one_line(&format!("{state} ({message})")),
    }
}

/// Returns how far a change is, in words.
fn change_state(state: ChangeState) -> &'static str {
    match state {
        ChangeState::Planned => "planned",
        ChangeState::Writing => "being requested",
        ChangeState::Written => "requested",
        ChangeState::Completed => "done",
        ChangeState::Failed => "failed",
    }
}

/// Writes the changes of a plan, a line each.
pub(super) fn write_plan(plan: &[PlannedChange], out: &mut dyn Write) -> Result<(), anyhow::Error> {
    for it in plan {
        // Releases have versions without `v`.
        let text = |version: &str| match it.operator.as_str() {
            "" => version.to_owned(),
            _ => version_text(version),
        };
        let versions = match (it.version_before.as_str(), it.version.as_str()) {
            ("", "") => String::new(),
            ("", version) | (version, "") => format!(" {}", text(version)),
            (before, after) => format!(" {} to {}", text(before), text(after)),
        };
        let dependency = if it.dependency { ", a dependency" } else { "" };
        let line = format!("{:?} {}{versions}{dependency}", it.operation, it.subject());
        writeln!(out, "  {}: {}", on_one_line(&line), progress_text(it))?;
        for workload in &it.workloads {
            writeln!(out, "    {} go with it", on_one_line(&workload_text(workload)))?;
        }
    }
    Ok(())
}

/// Returns the Actions that a RetryAction made, the oldest first.
pub(super) async fn attempts_of(
    client: &Client,
    retry: &RetryObject,
) -> Result<Vec<ActionObject>, anyhow::Error> {
    let found = actions(client, &retry.namespace, ACTION).list(&ListParams::default()).await;
    let found = found.map_err(|error| anyhow!(error).context("failed to list Actions"))?;
    let mut attempts = Vec::new();
    for object in found.items {
        let owners = object.metadata.owner_references.iter().flatten();
        if owners.into_iter().any(|it| it.uid == retry.uid) {
            attempts.extend(ActionObject::read(&serde_json::to_value(object)?));
        }
    }
    attempts.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(attempts)
}

/// Writes a RetryAction with its attempts for people.
fn write_retry(
    retry: &RetryObject,
    attempts: &[ActionObject],
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let RetryObject { namespace, name, spec, status, .. } = retry;
    writeln!(out, "RetryAction {namespace}/{name} {}", state_in_words(retry.state()))?;
    writeln!(out, "Class:     {}", on_one_line(&spec.template.action_class))?;
    writeln!(out, "Requester: {}", requester_text(spec.requester.as_ref()))?;
    write_times(retry.created, status.start_time, status.completion_time, out)?;
    writeln!(out, "Attempts:  {}", retry.failures())?;
    if let Some(seconds) = spec.active_deadline_seconds {
        writeln!(out, "Deadline:  {seconds}s after the request")?;
    }
    if let Some(time) = status.next_attempt_time {
        writeln!(out, "Next:      {}", whole_seconds(time))?;
    }
    let attributes = given(&spec.template);
    if !attributes.is_empty() {
        writeln!(out, "Attributes:")?;
    }
    for (name, value) in &attributes {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(out, "  {}", on_one_line(&format!("{name}: {value}")))?;
    }
    if !attempts.is_empty() {
        let row = |it: &ActionObject| {
            let message = it.status.conditions.first().map(|it| on_one_line(&it.message));
            let state = it.status.state.outcome().to_owned();
            vec![it.name.clone(), state, message.unwrap_or_default()]
        };
        let rows: Vec<Vec<String>> = attempts.iter().map(row).collect();
        table::print(out, &["ATTEMPT", "STATE", "MESSAGE"], &rows)?;
    }
    write_conditions(&status.conditions, out)?;
    if matches!(retry.state(), ActionState::Failed | ActionState::Cancelled) {
        let argument = argument(RETRY_ACTION, name);
        writeln!(out, "Request it again with `operator action retry {argument} -n {namespace}`")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plimsoll_api::ConditionStatus;

    use super::*;

    #[test]
    fn a_message_looks_like_no_other_line() {
        let condition = MetaCondition {
            type_: "ActionSucceeded".to_owned(),
            status: ConditionStatus::False,
            observed_generation: None,
            last_transition_time: Timestamp::UNIX_EPOCH,
            reason: "ConstraintsUnmet".to_owned(),
            message: "no\nActionSucceeded is True (ActionSucceeded): all done\r\n".to_owned(),
        };
        let mut out = Vec::new();
        write_conditions(&[condition], &mut out).expect("it is written");
        let expected = "ActionSucceeded is False (ConstraintsUnmet): no\n    \
                        ActionSucceeded is True (ActionSucceeded): all done\n";
        assert_eq!(String::from_utf8(out).expect("it is text"), expected);
    }

    #[test]
    fn an_approval_says_whose_it_is_and_whether_it_is_of_the_plan() {
        let check = |digest: &str, reason: &str, expected: &str| {
            let approval = ActionApproval {
                plan: "sha256:a".into(),
                approver: "bob\n".into(),
                reason: reason.into(),
                ..ActionApproval::default()
            };
            assert_eq!(approval_text(&approval, digest), expected, "{digest}");
        };
        check("", "", "by bob\\n");
        check("sha256:a", "", "by bob\\n");
        check("sha256:a", "as agreed\n", "by bob\\n (as agreed\\n)");
        check("sha256:b", "", "by bob\\n, but another plan: sha256:a");
    }
}
