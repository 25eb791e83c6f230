//! `plimsoll operator describe`, `why`, `tree` and `events`: one Operator, and how Operators depend on each
//! other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{ApiKind, Operator};
use plimsoll_controller::api_resource;
use plimsoll_operators::deletion_plan::workload_text;
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::state::{AddOnState, is_dependency, status};
use crate::exit;
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::table;

/// The kind of Events. Those of cluster-scoped objects are in [`EVENT_NAMESPACE`].
const EVENT: ApiKind =
    ApiKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events" };
const EVENT_NAMESPACE: &str = "default";
/// The placeholder for an empty value.
const NONE: &str = "<none>";

/// Arguments of `plimsoll operator describe`.
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// Operator
    name: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// Operator
    name: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator tree`.
#[derive(Debug, Args)]
pub struct TreeArguments {
    /// Operators to begin with; those that nothing depends on without any
    names: Vec<String>,
    /// Show what depends on an Operator instead of what it depends on
    #[arg(long)]
    invert: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator events`.
#[derive(Debug, Args)]
pub struct EventsArguments {
    /// Operators; all without any
    names: Vec<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs `plimsoll operator describe`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no such Operator, or the output cannot be written.
pub(super) async fn describe(
    client: &Client,
    arguments: &DescribeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    let operator = state.operator(&arguments.name)?;
    if !arguments.output.write(operator, out)? {
        out.write_all(description(&arguments.name, &state.operators).as_bytes())?;
        let events = read_events(client, std::slice::from_ref(&arguments.name)).await?;
        match events.is_empty() {
            true => writeln!(out, "Events:       {NONE}")?,
            false => {
                writeln!(out, "Events:")?;
                write_events(&events, out)?;
            }
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Describes an Operator in the form of `kubectl describe`.
fn description(name: &str, operators: &BTreeMap<String, Operator>) -> String {
    let Some(operator) = operators.get(name) else { return String::new() };
    let status = status(operator);
    let installed_version = |name: &str| {
        let bundle = operators.get(name).and_then(|it| it.status.as_ref()?.bundle.as_ref());
        bundle.map(|it| format!(" v{}", it.version)).unwrap_or_default()
    };
    let mut text = String::new();
    let mut field = |label: &str, value: &str| {
        let value = if value.is_empty() { NONE } else { value };
        let _ = writeln!(text, "{:<14}{}", format!("{label}:"), on_one_line(value));
    };
    let pairs = |map: &Option<BTreeMap<String, String>>| {
        let pairs = map.iter().flatten().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(",")
    };
    let spec = &operator.spec;
    field("Name", name);
    field("Labels", &pairs(&operator.metadata.labels));
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
    section(
        &mut text,
        "Conditions",
        status.conditions.iter().map(|it| {
            format!("{}={} ({}): {}", it.type_, it.status.as_str(), it.reason, it.message)
        }),
    );
    section(
        &mut text,
        "Requires",
        status.dependencies.iter().map(|it| match (it.satisfied, it.operator.as_str()) {
            (true, "") => it.requirement.clone(),
            (true, by) => format!("{}: {by}{}", it.requirement, installed_version(by)),
            (false, _) => format!("{}: NOT SATISFIED, {}", it.requirement, it.message),
        }),
    );
    let required_by = status.dependants.iter();
    section(
        &mut text,
        "Required by",
        required_by.map(|it| format!("{} ({})", it.operator, it.requirement)),
    );
    section(
        &mut text,
        "Provides",
        status.provided_apis.iter().map(|it| format!("{}/{}/{}", it.group, it.version, it.kind)),
    );
    if let Some(deletion) = &status.deletion {
        let remaining = deletion.remaining.iter().map(workload_text);
        let stuck = deletion.stuck.iter().map(|it| format!("stuck: {it}"));
        let lines = [format!("phase {}", deletion.phase)].into_iter().chain(remaining).chain(stuck);
        section(&mut text, "Deletion", lines);
    }
    text
}

fn section(text: &mut String, label: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("  {}\n", on_one_line(&line))).collect();
    let _ = match lines.is_empty() {
        true => writeln!(text, "{:<14}{NONE}", format!("{label}:")),
        false => write!(text, "{label}:\n{}", lines.concat()),
    };
}

/// An Operator in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TreeNode {
    name: String,
    /// The installed version; empty if nothing is installed.
    version: String,
    /// The requirement of the parent in the tree; empty for a root.
    #[serde(skip_serializing_if = "String::is_empty")]
    requirement: String,
    /// Whether the requirement is satisfied.
    satisfied: bool,
    /// Whether it was installed as a dependency.
    dependency: bool,
    /// Whether its branches were shown before, and are left out here for that reason.
    repeated: bool,
    branches: Vec<TreeNode>,
}

/// Runs `plimsoll operator tree`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no Operator of a name, or the output cannot be written.
pub(super) async fn tree(
    client: &Client,
    arguments: &TreeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    for name in &arguments.names {
        state.operator(name)?;
    }
    let trees = trees(&state.operators, &arguments.names, arguments.invert);
    if !arguments.output.write(&trees, out)? {
        if trees.is_empty() {
            writeln!(out, "No resources found")?;
        }
        out.write_all(trees.iter().map(|it| tree_text(it, "", "")).collect::<String>().as_bytes())?;
    }
    Ok(exit::SUCCESS.into())
}

/// Returns the trees of some Operators; without names, trees that together have all Operators.
fn trees(operators: &BTreeMap<String, Operator>, names: &[String], invert: bool) -> Vec<TreeNode> {
    let edges: BTreeMap<&str, Vec<Edge>> = operators
        .iter()
        .map(|(name, operator)| (name.as_str(), edges(&status(operator), invert)))
        .collect();
    let mut roots: Vec<&str> = names.iter().map(String::as_str).collect();
    if roots.is_empty() {
        let targets: BTreeSet<&str> =
            edges.values().flatten().map(|edge| edge.to.as_str()).collect();
        roots.extend(edges.keys().filter(|name| !targets.contains(*name)));
        // Operators in a cycle are in no tree so far.
        let mut reached = BTreeSet::new();
        roots.iter().for_each(|root| reach(&edges, root, &mut reached));
        for name in edges.keys() {
            if !reached.contains(name) {
                roots.push(name);
                reach(&edges, name, &mut reached);
            }
        }
    }
    let mut shown = BTreeSet::new();
    let root =
        |name: &str| Edge { to: name.to_owned(), requirement: String::new(), satisfied: true };
    roots.into_iter().map(|name| node(operators, &edges, &root(name), &mut shown)).collect()
}

fn reach<'e>(edges: &'e BTreeMap<&str, Vec<Edge>>, from: &'e str, reached: &mut BTreeSet<&'e str>) {
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(edges.get(next).into_iter().flatten().map(|edge| edge.to.as_str()));
        }
    }
}

/// A requirement between two Operators, or one that no Operator satisfies.
#[derive(Debug, Clone)]
struct Edge {
    /// The Operator at the other end; the requirement itself if there is none.
    to: String,
    requirement: String,
    satisfied: bool,
}

/// Returns the edges of an Operator, in the order of the names at their other ends.
fn edges(status: &OperatorStatus, invert: bool) -> Vec<Edge> {
    let mut edges: Vec<Edge> = if invert {
        let dependants = status.dependants.iter();
        dependants
            .map(|it| Edge {
                to: it.operator.clone(),
                requirement: it.requirement.clone(),
                satisfied: true,
            })
            .collect()
    } else {
        // A requirement that the cluster itself satisfies leads to no Operator.
        let of_operators =
            status.dependencies.iter().filter(|it| !it.operator.is_empty() || !it.satisfied);
        let end = |operator: &String, requirement: &String| match operator.as_str() {
            "" => requirement.clone(),
            operator => operator.to_owned(),
        };
        of_operators
            .map(|it| Edge {
                to: end(&it.operator, &it.requirement),
                requirement: it.requirement.clone(),
                satisfied: it.satisfied,
            })
            .collect()
    };
    edges.sort_by(|one, other| one.to.cmp(&other.to));
    edges
}

fn node(
    operators: &BTreeMap<String, Operator>,
    edges: &BTreeMap<&str, Vec<Edge>>,
    edge: &Edge,
    shown: &mut BTreeSet<String>,
) -> TreeNode {
    let operator = operators.get(&edge.to);
    let bundle = operator.and_then(|it| status(it).bundle);
    let next = edges.get(edge.to.as_str()).map(Vec::as_slice).unwrap_or_default();
    let repeated = !shown.insert(edge.to.clone()) && !next.is_empty();
    let next = if repeated { &[] } else { next };
    TreeNode {
        name: edge.to.clone(),
        version: bundle.map(|it| it.version).unwrap_or_default(),
        requirement: edge.requirement.clone(),
        satisfied: edge.satisfied,
        dependency: operator.is_some_and(is_dependency),
        repeated,
        branches: next.iter().map(|it| node(operators, edges, it, shown)).collect(),
    }
}

fn tree_text(node: &TreeNode, first: &str, others: &str) -> String {
    let mut text = format!("{first}{}", on_one_line(&node.name));
    if !node.version.is_empty() {
        text.push_str(&format!(" v{}", node.version));
    }
    if !node.requirement.is_empty() && node.requirement != node.name {
        text.push_str(&format!(" ({})", on_one_line(&node.requirement)));
    }
    if !node.satisfied {
        text.push_str(" not satisfied");
    }
    text.push_str(if node.repeated { " (*)\n" } else { "\n" });
    let last = node.branches.len().saturating_sub(1);
    for (position, branch) in node.branches.iter().enumerate() {
        let (first, other) =
            if position == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        text.push_str(&tree_text(branch, &format!("{others}{first}"), &format!("{others}{other}")));
    }
    text
}

/// The reason why an Operator is installed.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    name: String,
    /// Whether a user requested it.
    requested: bool,
    /// Whether nothing depends on it although it was installed as a dependency.
    orphaned: bool,
    /// The chains of dependants, each from an Operator that a user requested down to this one.
    chains: Vec<String>,
}

/// Runs `plimsoll operator why`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no such Operator, or the output cannot be written.
pub(super) async fn why(
    client: &Client,
    arguments: &WhyArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    state.operator(&arguments.name)?;
    let origin = origin(&state.operators, &arguments.name);
    if !arguments.output.write(&origin, out)? {
        out.write_all(origin_text(&origin).as_bytes())?;
    }
    Ok(exit::SUCCESS.into())
}

fn origin(operators: &BTreeMap<String, Operator>, name: &str) -> Origin {
    let mut chains = Vec::new();
    let mut open = vec![vec![name.to_owned()]];
    while let Some(chain) = open.pop() {
        let Some(operator) = chain.last().and_then(|it| operators.get(it)) else { continue };
        if chain.len() > 1 && !is_dependency(operator) {
            let names: Vec<&str> = chain.iter().rev().map(String::as_str).collect();
            chains.push(names.join(" -> "));
        }
        for dependant in status(operator).dependants {
            if !chain.contains(&dependant.operator) {
                let mut longer = chain.clone();
                longer.push(dependant.operator);
                open.push(longer);
            }
        }
    }
    chains.sort();
    chains.dedup();
    let operator = operators.get(name);
    let requested = operator.is_some_and(|it| !is_dependency(it));
    let orphaned = operator.is_some_and(|it| status(it).dependants.is_empty()) && !requested;
    Origin { name: name.to_owned(), requested, orphaned, chains }
}

fn origin_text(origin: &Origin) -> String {
    let Origin { name, requested, orphaned, chains } = origin;
    let mut text = match (requested, orphaned) {
        (true, _) => format!("{name} was requested by a person\n"),
        (false, true) => format!(
            "{name} was installed as a dependency, and nothing depends on it any more; `operator \
             autoremove` deletes it\n"
        ),
        (false, false) => format!("{name} was installed as a dependency\n"),
    };
    if !chains.is_empty() {
        text.push_str("Operators that a person requested depend on it:\n");
    }
    chains.iter().for_each(|chain| text.push_str(&format!("  {chain}\n")));
    text
}

/// An event of an Operator.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperatorEvent {
    /// The time at which it last occurred; absent if the event does not say.
    time: Option<Timestamp>,
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    operator: String,
    message: String,
}

/// Runs `plimsoll operator events`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no Operator of a name, or the output cannot be written.
pub(super) async fn events(
    client: &Client,
    arguments: &EventsArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let events = read_events(client, &arguments.names).await?;
    if events.is_empty() && !arguments.names.is_empty() {
        // The events of a deleted Operator exist for a while. A name that never existed is an
        // error.
        let state = AddOnState::read(client).await?;
        for name in &arguments.names {
            state.operator(name)?;
        }
    }
    if !arguments.output.write(&events, out)? {
        match events.is_empty() {
            true => writeln!(out, "No events found")?,
            false => write_events(&events, out)?,
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Returns the events of some Operators, or of all without names; the oldest first.
async fn read_events(
    client: &Client,
    names: &[String],
) -> Result<Vec<OperatorEvent>, anyhow::Error> {
    let events: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), EVENT_NAMESPACE, &api_resource(EVENT));
    let list = events.list(&ListParams::default()).await.context("failed to list events")?;
    let event = |event: DynamicObject| {
        let regarding = &event.data["regarding"];
        let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
        let operator = regarding["name"].as_str()?.to_owned();
        let is_of_operator = regarding["kind"] == "Operator"
            && regarding["apiVersion"] == "olm.io/v1"
            && (names.is_empty() || names.contains(&operator));
        let time = event.data["series"]["lastObservedTime"].as_str();
        let time = time.or(event.data["eventTime"].as_str()).and_then(|it| it.parse().ok());
        is_of_operator.then(|| OperatorEvent {
            time: time.or(event.creation_timestamp().map(|it| it.0)),
            type_: text("type"),
            reason: text("reason"),
            operator,
            message: text("note"),
        })
    };
    let mut found: Vec<OperatorEvent> = list.items.into_iter().filter_map(event).collect();
    found.sort_by_key(|it| it.time);
    Ok(found)
}

fn write_events(events: &[OperatorEvent], out: &mut dyn Write) -> anyhow::Result<()> {
    let now = now();
    let row = |it: &OperatorEvent| {
        let seen = it.time.map_or_else(|| "<unknown>".to_owned(), |time| age(time, now));
        let object = format!("operator/{}", it.operator);
        vec![seen, it.type_.clone(), it.reason.clone(), object, it.message.clone()]
    };
    let rows: Vec<Vec<String>> = events.iter().map(row).collect();
    Ok(table::print(out, &["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], &rows)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::operator::state::samples::operators;

    #[test]
    fn trees_show_who_depends_on_whom_once() {
        let check = |text: &str, names: &[&str], invert: bool, expected: &str| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            let trees = trees(&operators(text), &names, invert);
            let found: String = trees.iter().map(|it| tree_text(it, "", "")).collect();
            assert_eq!(found, expected, "{text}");
        };
        let text = "foo: bar baz\n bar dependency: baz\n baz dependency:\n lone:";
        check(text, &[], false, "foo\n├── bar\n│   └── baz\n└── baz\nlone\n");
        check(text, &["baz"], true, "baz\n├── bar\n│   └── foo\n└── foo\n");
        check(text, &["bar", "foo"], false, "bar\n└── baz\nfoo\n├── bar (*)\n└── baz\n");
        check("a: b\n b: a", &[], false, "a\n└── b\n    └── a (*)\n");
        check("a: !ledger", &[], false, "a\n└── ledger not satisfied\n");
    }

    #[test]
    fn an_operator_is_there_because_somebody_asked_for_it() {
        let check = |text: &str, name: &str, expected: &str| {
            assert_eq!(origin_text(&origin(&operators(text), name)), expected, "{text}");
        };
        let text = "foo: bar\n qux: bar\n bar dependency: baz\n baz dependency:";
        check(text, "foo", "foo was requested by a person\n");
        check(
            text,
            "baz",
            "baz was installed as a dependency\n\
             Operators that a person requested depend on it:\n  foo -> bar -> baz\n  \
             qux -> bar -> baz\n",
        );
        check(
            "bar dependency:",
            "bar",
            "bar was installed as a dependency, and nothing depends on it any more; `operator \
             autoremove` deletes it\n",
        );
    }
}
