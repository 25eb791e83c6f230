//! Plans of changes of Operators for documents and programs: Markdown, JSON, and the dependencies as a picture.
//! The text for people is that of each operation.

mod markdown;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR};
use plimsoll_operators::change_plan::{ChangePlan, OperatorChange, PlannedOperation};

use super::format::Format;
use super::graph::{Edge, Graph, Node, Tone};
use super::object::reference;

/// Writes a plan, unless the format is one for people. Returns whether it did.
///
/// # Errors
///
/// When the output cannot be written, or a template finds nothing.
pub(crate) fn write(
    plan: &ChangePlan,
    format: &Format,
    out: &mut dyn Write,
) -> Result<bool, anyhow::Error> {
    match format {
        Format::Text | Format::Wide => return Ok(false),
        Format::Markdown => markdown::write(plan, out)?,
        Format::Picture(picture) => out.write_all(graph(plan).draw(*picture).as_bytes())?,
        Format::Name => {
            plan.changes.iter().try_for_each(|it| writeln!(out, "{}", changed(&it.planned)))?;
        }
        Format::PlanJson => return Format::Json.write(plan, out),
        Format::Json
        | Format::Yaml
        | Format::JsonPath(_)
        | Format::Diff
        | Format::Sarif
        | Format::Junit => return format.write(plan, out),
    }
    Ok(true)
}

/// Returns the object that is changed, as kubectl names it.
fn changed(change: &PlannedChange) -> String {
    match change.is_release() {
        true => reference(CLUSTER_VERSION, CLUSTER_VERSION_NAME),
        false => reference(OPERATOR, &change.operator),
    }
}

/// Returns the title of a plan, which names what was requested: what is only a dependency of it, or moves since
/// it cannot stay, is left out.
fn title(plan: &ChangePlan) -> String {
    let requested = plan.changes.iter();
    let requested = requested.filter(|it| !it.planned.dependency && it.displaced_by.is_empty());
    let names: Vec<&str> = requested.map(|it| it.planned.subject()).collect();
    let what = match plan.operation {
        PlannedOperation::Install => "Installation",
        PlannedOperation::Update => "Update",
        PlannedOperation::Delete => "Deletion",
        PlannedOperation::Action => "Action",
    };
    match (plan.operation, names.as_slice()) {
        (_, []) => what.to_owned(),
        (PlannedOperation::Action, names) => format!("{what} on {}", names.join(", ")),
        (_, names) => format!("{what} of {}", names.join(", ")),
    }
}

/// Returns what becomes of an Operator, as a participle.
fn participle(operation: ChangeOperation) -> &'static str {
    match operation {
        ChangeOperation::Create => "created",
        ChangeOperation::Update | ChangeOperation::UpdateRelease => "updated",
        ChangeOperation::Delete => "deleted",
        ChangeOperation::EnableCapability => "enabled",
        ChangeOperation::Await => "awaited",
    }
}

/// Returns a value before and afterwards; the one that exists if the other does not.
fn transition(before: &str, after: &str) -> String {
    match (before, after) {
        ("", one) | (one, "") => one.to_owned(),
        (before, after) if before == after => after.to_owned(),
        (before, after) => format!("{before} → {after}"),
    }
}

/// Returns the Operators with their versions, and who depends on whom. Operators that stay are left out if
/// nothing is to be said of them.
fn graph(plan: &ChangePlan) -> Graph {
    let mut graph = Graph { title: title(plan), ..Graph::default() };
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let unsatisfied: BTreeSet<&str> =
        plan.unsatisfied.iter().map(|it| it.operator.as_str()).collect();
    let orphans: BTreeSet<&str> = plan.orphans.iter().map(String::as_str).collect();
    for OperatorChange { planned: it, held_back, .. } in &plan.changes {
        let versions = transition(&it.version_before, &it.version);
        let tone = match it.operation {
            _ if unsatisfied.contains(it.operator.as_str()) => Tone::Bad,
            ChangeOperation::Delete => Tone::Faint,
            _ => Tone::Active,
        };
        places.insert(&it.operator, graph.nodes.len());
        let mut lines =
            vec![it.subject().to_owned(), versions, participle(it.operation).to_owned()];
        lines.extend(held_back.as_ref().map(|_| "held back".to_owned()));
        graph.nodes.push(Node { lines: filled(lines), tone });
    }
    let connected = plan.dependencies.iter().flat_map(|it| [it.operator.as_str(), it.on.as_str()]);
    let connected: BTreeSet<&str> = connected.collect();
    for it in &plan.kept {
        let name = it.operator.as_str();
        let (is_bad, is_orphan) = (unsatisfied.contains(name), orphans.contains(name));
        if !is_bad && !is_orphan && it.held_back.is_none() && !connected.contains(name) {
            continue;
        }
        let tone = match (is_bad, is_orphan) {
            (true, _) => Tone::Bad,
            (false, true) => Tone::Faint,
            (false, false) => Tone::Plain,
        };
        let mut lines = vec![name.to_owned(), it.version.clone()];
        lines.extend(is_orphan.then(|| "orphaned".to_owned()));
        lines.extend(it.held_back.as_ref().map(|_| "held back".to_owned()));
        places.insert(name, graph.nodes.len());
        graph.nodes.push(Node { lines: filled(lines), tone });
    }
    for it in &plan.unsatisfied {
        if let Some(at) = places.get(it.operator.as_str()) {
            graph.nodes[*at].lines.push(format!("lacks {}", it.requirement));
        }
    }
    for it in &plan.dependencies {
        if let (Some(from), Some(to)) =
            (places.get(it.operator.as_str()), places.get(it.on.as_str()))
        {
            let (from, to, label) = (*from, *to, it.requirement.clone());
            graph.edges.push(Edge { from, to, label, is_dashed: it.broken });
        }
    }
    graph
}

/// Returns the lines that have a text.
fn filled(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|it| !it.is_empty());
    lines
}

#[cfg(test)]
mod tests;
