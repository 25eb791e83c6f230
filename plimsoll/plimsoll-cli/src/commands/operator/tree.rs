//! `plimsoll operator tree`: the Operators that depend on each other.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use kube::Client;
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{OPERATOR, Operator};
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::selection::OperatorSelection;
use super::state::{AddOnState, is_dependency, status};
use crate::exit;
use crate::render::format::Format;

/// Arguments of `plimsoll operator tree`.
#[derive(Debug, Args)]
pub struct TreeArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    /// Show what depends on an Operator instead of what it depends on
    #[arg(long)]
    invert: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
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
pub(super) async fn run(
    client: &Client,
    arguments: &TreeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    let selection = &arguments.selection;
    // Without names, trees begin with what nothing depends on.
    let names = match selection.is_whole() {
        true => Vec::new(),
        false => selection.names(client, &state).await?,
    };
    let trees = trees(&state.operators, &names, arguments.invert);
    if !arguments.output.write_about(OPERATOR, &trees, out)? {
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
}
