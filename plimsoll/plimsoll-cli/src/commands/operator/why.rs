//! `plimsoll operator why`: the reason that an Operator is installed.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use kube::Client;
use plimsoll_api::{OPERATOR, Operator};
use serde::Serialize;

use super::state::{AddOnState, is_dependency, status};
use crate::arguments::name;
use crate::exit;
use crate::render::format::Format;

/// Arguments of `plimsoll operator why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// Operator
    #[arg(value_parser = name::operator())]
    name: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
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
pub(super) async fn run(
    client: &Client,
    arguments: &WhyArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    state.operator(&arguments.name)?;
    let origin = origin(&state.operators, &arguments.name);
    if !arguments.output.write_about(OPERATOR, &origin, out)? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::operator::state::samples::operators;

    #[test]
    fn an_operator_is_requested_or_required_by_one_that_is() {
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
