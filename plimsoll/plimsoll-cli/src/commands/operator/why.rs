//! `plimsoll operator why`: the reason that an Operator is installed.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use kube::Client;
use plimsoll_api::OPERATOR;
use plimsoll_operators::deletion_plan::{Dependants, orphans};
use plimsoll_operators::observed::ObservedOperator;
use serde::Serialize;

use super::state::{AddOnState, observed};
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
    /// The Operators that may depend on it: what they require is not known yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
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
    let origin = origin(&observed(&state.operators), &arguments.name);
    if !arguments.output.write_about(OPERATOR, &origin, out)? {
        out.write_all(origin_text(&origin).as_bytes())?;
    }
    Ok(exit::SUCCESS.into())
}

fn origin(operators: &BTreeMap<String, ObservedOperator>, name: &str) -> Origin {
    let dependants = Dependants::of(operators);
    let mut chains = Vec::new();
    let mut open = vec![vec![name.to_owned()]];
    while let Some(chain) = open.pop() {
        let Some(operator) = chain.last().and_then(|it| operators.get(it)) else { continue };
        if chain.len() > 1 && !operator.is_dependency {
            let names: Vec<&str> = chain.iter().rev().map(String::as_str).collect();
            chains.push(names.join(" -> "));
        }
        let last = chain.last().map(String::as_str).unwrap_or_default();
        for dependant in dependants.on(last).filter(|it| !chain.iter().any(|name| name == it)) {
            let mut longer = chain.clone();
            longer.push(dependant.to_owned());
            open.push(longer);
        }
    }
    chains.sort();
    chains.dedup();
    let operator = operators.get(name);
    let requested = operator.is_some_and(|it| !it.is_dependency);
    let orphans = orphans(operators);
    let possible = orphans.possible.into_iter().find(|it| it.name == name);
    Origin {
        name: name.to_owned(),
        requested,
        orphaned: orphans.names.contains(name),
        unknown: possible.map(|it| it.unknown).unwrap_or_default(),
        chains,
    }
}

fn origin_text(origin: &Origin) -> String {
    let Origin { name, requested, orphaned, unknown, chains } = origin;
    let mut text = match (requested, orphaned) {
        (true, _) => format!("{name} was requested by a person\n"),
        (false, true) => format!(
            "{name} was installed as a dependency, and nothing depends on it any more; `operator \
             autoremove` deletes it\n"
        ),
        (false, false) if !unknown.is_empty() => format!(
            "{name} was installed as a dependency; what may depend on it is not installed yet: {}\n",
            unknown.join(", ")
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
            let operators = observed(&operators(text));
            assert_eq!(origin_text(&origin(&operators, name)), expected, "{text}");
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
        for requested in ["foo:", "foo: !bar"] {
            check(
                &format!("{requested}\n bar dependency:"),
                "bar",
                "bar was installed as a dependency; what may depend on it is not installed yet: foo\n",
            );
        }
    }
}
