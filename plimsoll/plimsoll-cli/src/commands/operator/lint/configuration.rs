//! What bundles refuse of the configuration of their Operators.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use plimsoll_bundle::{InstallRequest, load, revision_objects};
use plimsoll_content::diagnostic::{Diagnostic, FieldProblem};
use plimsoll_operators::lint::ConfiguredOperator;
use plimsoll_source::catalog::bundle_content;

use super::super::loadout::LoadoutState;

/// Returns what bundles refuse of the specs of their Operators, by Operator. A note says of which Operators that
/// is not known, since the bundle cannot be read.
pub(super) fn problems(
    state: &LoadoutState,
    operators: &[ConfiguredOperator],
) -> BTreeMap<String, Vec<FieldProblem>> {
    let mut problems = BTreeMap::new();
    for operator in operators {
        match refused(state, operator) {
            Ok(found) => {
                problems.insert(operator.name.clone(), found);
            }
            Err(error) => {
                let name = &operator.name;
                anstream::eprintln!("note: spec.config of {name} is not checked: {error:#}");
            }
        }
    }
    problems
}

/// Returns what the bundle of an Operator refuses of its spec.
fn refused(
    state: &LoadoutState,
    operator: &ConfiguredOperator,
) -> Result<Vec<FieldProblem>, anyhow::Error> {
    let ConfiguredOperator { name, spec, bundle } = operator;
    let catalog = state.catalogs.opened.iter().find(|it| it.name == bundle.catalog);
    let catalog =
        catalog.with_context(|| format!("catalog `{}` is not read from here", bundle.catalog))?;
    let content = bundle_content(&catalog.source, name, &bundle.name)
        .with_context(|| format!("bundle {}", bundle.name))?;
    let loaded = load(&content.files)
        .map_err(|defects| anyhow!("bundle {} has {} defects", bundle.name, defects.len()))?;
    let request = InstallRequest {
        operator: name,
        namespace: &spec.namespace,
        config: spec.config.as_ref(),
        certificates: spec.certificates,
    };
    let defects = revision_objects(&loaded, &request).err().unwrap_or_default();
    // The other defects are those of the bundle.
    let is_of_spec = |it: &Diagnostic| it.file.starts_with("spec.");
    let of_spec = defects.into_iter().filter(is_of_spec);
    Ok(of_spec.map(|it| FieldProblem::new(it.file, it.message)).collect())
}
