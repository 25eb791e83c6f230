//! `plimsoll operator action list`, `show` and `logs`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionState, PlannedChange};
use plimsoll_api::{ACTION, whole_seconds};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::change_plan::ChangePlan;
use plimsoll_operators::version_text;
use plimsoll_resolve::printable::{on_lines, on_one_line};
use plimsoll_simulation::cluster_state::api;
use serde_json::Value;

use super::follow::wait;
use super::{ListArguments, LogsArguments, ShowArguments, actions, failed, read};
use crate::commands::operator::events::EVENT;
use crate::commands::operator::unreadable::left_out;
use crate::exit;
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::{changes, table};

/// The number of objects per page of a list.
const PAGE: u32 = 500;

pub(super) async fn list(
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
    if arguments.output.write_about(ACTION, &objects, out)? {
        return Ok(exit::SUCCESS.into());
    }
    let mut found = readable(&objects);
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
            it.status.state.outcome().to_owned(),
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

/// Returns the Actions that can be read. The others are named on standard error.
fn readable(objects: &[Value]) -> Vec<ActionObject> {
    let mut found = Vec::new();
    for object in objects {
        match ActionObject::read(object) {
            Ok(action) => found.push(action),
            Err(problem) => {
                let metadata = &object["metadata"];
                let text = |field: &str| metadata[field].as_str().unwrap_or_default();
                let name = format!("{}/{}", text("namespace"), text("name"));
                anstream::eprintln!("{}", left_out("Action", &name, &problem));
            }
        }
    }
    found
}

pub(super) async fn show(
    client: &Client,
    arguments: &ShowArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (name, namespace) = (&arguments.name, arguments.namespace.of(client));
    let action = read(client, &namespace, name).await?;
    if !arguments.output.is_for_people() {
        write_in(&arguments.output, client, &action, out).await?;
        return Ok(exit::SUCCESS.into());
    }
    let ActionObject { spec, status, .. } = &action;
    let requester = spec.requester.as_ref().map_or("", |it| it.username.as_str());
    writeln!(out, "Action {namespace}/{name}: {}", status.state.outcome())?;
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
        writeln!(out, "Result:\n{}", on_lines(status.result.trim_end()))?;
    }
    for condition in &status.conditions {
        let (type_, reason) = (&condition.type_, &condition.reason);
        writeln!(
            out,
            "{type_} is {} ({reason}): {}",
            condition.status.as_str(),
            on_lines(&condition.message)
        )?;
    }
    match status.state {
        ActionState::WaitingForApproval => {
            writeln!(out, "Approve it with `operator action approve {name} -n {namespace}`")?;
        }
        ActionState::Failed | ActionState::Cancelled => {
            writeln!(out, "Request it again with `operator action retry {name} -n {namespace}`")?;
        }
        ActionState::Pending | ActionState::Running | ActionState::Succeeded => {}
    }
    Ok(exit::SUCCESS.into())
}

/// Writes an Action, or its plan, in a format that is not for people.
async fn write_in(
    format: &Format,
    client: &Client,
    action: &ActionObject,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if format.is_of_plan() {
        changes::write(&ChangePlan::of_action(&action.status), format, out)?;
        return Ok(());
    }
    let object = actions(client, &action.namespace, ACTION).get(&action.name).await?;
    format.write_about(ACTION, &object, out)?;
    Ok(())
}

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

pub(super) async fn logs(
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
        let state = action.status.state.outcome();
        lines.push((whole_seconds(time), format!("ended: {state}")));
    }
    lines.sort_by_key(|(time, _)| *time);
    for (time, line) in lines {
        writeln!(out, "{time} {}", on_one_line(&line))?;
    }
    if arguments.follow && !action.status.state.is_final() {
        return wait(client, ACTION, &namespace, name, Duration::ZERO, out).await;
    }
    Ok(exit::SUCCESS.into())
}
