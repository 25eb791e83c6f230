//! `plimsoll operator describe`: an Operator with its conditions, dependencies and events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use futures::StreamExt as _;
use kube::Client;
use kube::runtime::watcher;
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{OPERATOR, Operator};
use plimsoll_operators::deletion_plan::workload_text;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::cluster_state::api;
use serde_json::json;

use super::events::{read_events, write_events};
use super::selection::OperatorSelection;
use super::state::{AddOnState, is_dependency, status};
use super::watch::changes;
use crate::exit::{self, Refusal};
use crate::render::format::Format;

/// The placeholder for an empty value.
const NONE: &str = "<none>";

/// Arguments of `plimsoll operator describe`.
#[derive(Debug, Args)]
#[command(mut_group("OperatorSelection", |it| it.required(true)))]
pub struct DescribeArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    /// Describe it again when it changes, until it is deleted or the command is interrupted; of one Operator
    #[arg(long, short)]
    watch: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs `plimsoll operator describe`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no such Operator, or the output cannot be written.
pub(super) async fn run(
    client: &Client,
    arguments: &DescribeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    let names = arguments.selection.names(client, &state).await?;
    if let ([_, _, ..], true) = (names.as_slice(), arguments.watch) {
        return Err(Refusal::usage("--watch is for one Operator: name it".to_owned()).into());
    }
    if !arguments.output.is_for_people() && !arguments.watch {
        write_objects(&names, &state, &arguments.output, out)?;
        return Ok(exit::SUCCESS.into());
    }
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            out.write_all(b"\n\n")?;
        }
        write(client, name, &arguments.output, &state, out).await?;
        if arguments.watch {
            watch(client, name, &arguments.output, &state, out).await?;
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Describes an Operator.
async fn write(
    client: &Client,
    name: &String,
    output: &Format,
    state: &AddOnState,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if !output.write(state.operator(name)?, out)? {
        out.write_all(description(name, &state.operators).as_bytes())?;
        let events = read_events(client, std::slice::from_ref(name)).await?;
        match events.is_empty() {
            true => writeln!(out, "Events:       {NONE}")?,
            false => {
                writeln!(out, "Events:")?;
                write_events(&events, out)?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Describes an Operator again when what is shown of it changes, until it is deleted. `state` was shown before.
async fn watch(
    client: &Client,
    name: &String,
    output: &Format,
    state: &AddOnState,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let is_for_people = matches!(output, Format::Text | Format::Wide);
    let content = |state: &AddOnState| match is_for_people {
        true => description(name, &state.operators),
        false => json!(state.operators.get(name)).to_string(),
    };
    let mut shown = content(state);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let known = BTreeSet::from([name.clone()]);
    let mut changes = pin!(changes(api(client, OPERATOR), config, known));
    while let Some(change) = changes.next().await {
        if change.object.is_none() {
            if is_for_people {
                writeln!(out, "\noperator.olm.io/{name} deleted")?;
            }
            return Ok(());
        }
        let state = AddOnState::read(client).await?;
        let current = content(&state);
        // A deletion since is the next change.
        if current == shown || !state.operators.contains_key(name) {
            continue;
        }
        match output {
            Format::Text | Format::Wide => writeln!(out)?,
            Format::Yaml => writeln!(out, "---")?,
            _ => {}
        }
        write(client, name, output, &state, out).await?;
        shown = current;
    }
    Ok(())
}

/// Writes Operators for programs, several as a list.
fn write_objects(
    names: &[String],
    state: &AddOnState,
    output: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let operators: Vec<&Operator> =
        names.iter().map(|name| state.operator(name)).collect::<Result<_, _>>()?;
    match operators.as_slice() {
        [operator] => output.write(operator, out)?,
        operators if *output == Format::Name => output.write(&operators, out)?,
        operators => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": operators });
            output.write(&list, out)?
        }
    };
    Ok(())
}

/// Describes an Operator in the form of `kubectl describe`.
fn description(name: &str, operators: &BTreeMap<String, Operator>) -> String {
    let Some(operator) = operators.get(name) else { return String::new() };
    let status = status(operator);
    let mut text = String::new();
    write_fields(&mut text, name, operator, &status);
    write_sections(&mut text, &status, operators);
    text
}

/// Writes the fields that have one line each.
fn write_fields(text: &mut String, name: &str, operator: &Operator, status: &OperatorStatus) {
    let mut field = |label: &str, value: &str| {
        let value = if value.is_empty() { NONE } else { value };
        let _ = writeln!(text, "{:<14}{}", format!("{label}:"), on_one_line(value));
    };
    let labels = operator.metadata.labels.iter().flatten();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    let spec = &operator.spec;
    field("Name", name);
    field("Labels", &labels.join(","));
    field("Requested", if spec.version.is_empty() { "any version" } else { &spec.version });
    field("Channel", &spec.channel);
    field("Repository", &spec.repository);
    let bundle = status.bundle.clone().unwrap_or_default();
    let from = [("channel", &bundle.channel), ("catalog", &bundle.catalog)];
    let from =
        from.iter().filter(|(_, it)| !it.is_empty()).map(|(what, it)| format!(", {what} {it}"));
    let installed = match bundle.version.as_str() {
        "" => String::new(),
        version => format!("v{version} ({}{})", bundle.name, from.collect::<String>()),
    };
    field("Installed", &installed);
    field("Revision", &status.revision.map(|it| it.to_string()).unwrap_or_default());
    field("Namespace", &status.namespace);
    field(
        "Asked by",
        if is_dependency(operator) { "Operators that depend on it" } else { "a person" },
    );
    if status.orphaned {
        field("Orphaned", "nothing depends on it any more; `operator autoremove` deletes it");
    }
    if spec.paused {
        field("Paused", "True");
    }
    field("Objects", &status.inventory.len().to_string());
}

/// Writes the lists of the status.
fn write_sections(
    text: &mut String,
    status: &OperatorStatus,
    operators: &BTreeMap<String, Operator>,
) {
    let installed_version = |name: &str| {
        let bundle = operators.get(name).and_then(|it| it.status.as_ref()?.bundle.as_ref());
        bundle.map(|it| format!(" v{}", it.version)).unwrap_or_default()
    };
    let conditions = status
        .conditions
        .iter()
        .map(|it| format!("{}={} ({}): {}", it.type_, it.status.as_str(), it.reason, it.message));
    section(text, "Conditions", conditions);
    let required =
        status.dependencies.iter().map(|it| match (it.satisfied, it.operator.as_str()) {
            (true, "") => it.requirement.clone(),
            (true, by) => format!("{}: {by}{}", it.requirement, installed_version(by)),
            (false, _) => format!("{}: NOT SATISFIED, {}", it.requirement, it.message),
        });
    section(text, "Requires", required);
    let dependants =
        status.dependants.iter().map(|it| format!("{} ({})", it.operator, it.requirement));
    section(text, "Required by", dependants);
    let provided =
        status.provided_apis.iter().map(|it| format!("{}/{}/{}", it.group, it.version, it.kind));
    section(text, "Provides", provided);
    if let Some(deletion) = &status.deletion {
        let remaining = deletion.remaining.iter().map(workload_text);
        let stuck = deletion.stuck.iter().map(|it| format!("stuck: {it}"));
        let lines = [format!("phase {}", deletion.phase)].into_iter().chain(remaining).chain(stuck);
        section(text, "Deletion", lines);
    }
}

fn section(text: &mut String, label: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("  {}\n", on_one_line(&line))).collect();
    let _ = match lines.is_empty() {
        true => writeln!(text, "{:<14}{NONE}", format!("{label}:")),
        false => write!(text, "{label}:\n{}", lines.concat()),
    };
}
