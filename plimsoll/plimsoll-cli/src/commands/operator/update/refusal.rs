//! The errors of updates that are not possible.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::anyhow;
use plimsoll_operators::RequestedOperator;
use plimsoll_operators::update::UpdateError;

use super::super::loadout::{LoadoutState, StateSource};
use crate::arguments::name::hint;
use crate::exit::{self, Refusal};

/// Returns the error of an update that is not possible; a conflict is printed.
pub(super) fn refusal(
    error: UpdateError,
    state: &LoadoutState,
    operators: &BTreeMap<String, RequestedOperator>,
    out: &mut dyn Write,
) -> anyhow::Error {
    let message = match error {
        UpdateError::UnknownOperator { name } if state.require_package(&name).is_ok() => {
            let verb = if state.source == StateSource::Cluster { "install" } else { "resolve" };
            return anyhow!("there is no Operator `{name}`: `operator {verb} {name}` adds it");
        }
        UpdateError::UnknownOperator { name } => {
            let names = operators.keys().map(String::as_str);
            return anyhow!("there is no Operator `{name}`{}", hint(&name, names));
        }
        UpdateError::NotOffered { name, block } => {
            let is_installed = operators.get(&name).is_some_and(|it| it.installed.is_some());
            // Nothing else is known of what is not installed: its name may be misspelt.
            return match state.require_package(&name) {
                Err(error) if !is_installed => error,
                _ => anyhow!("{name} cannot be updated: {}", block.message),
            };
        }
        UpdateError::Blocked { name, block } => {
            format!("{name} cannot be updated: {}", block.message)
        }
        UpdateError::Unsatisfiable(explanation) => {
            if let Err(error) = out.write_all(explanation.text().as_bytes()) {
                return error.into();
            }
            "the update could leave your system in an inconsistent state".to_owned()
        }
        UpdateError::LimitExceeded => {
            return anyhow!(
                "the dependencies are too complex: no solution or proof of none was found within \
                 the limit; name fewer Operators"
            );
        }
    };
    Refusal { message, exit: exit::UNSATISFIABLE }.into()
}
