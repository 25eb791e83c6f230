//! Operators that configure the bundles that applying a loadout leads to.

use plimsoll_api::olm::{BundleReference, OperatorSpec};

use super::LintInputs;
use crate::loadout::{DeclaredOperator, converge};

/// An Operator that configures its bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredOperator {
    /// Its name.
    pub name: String,
    /// The spec that is applied.
    pub spec: OperatorSpec,
    /// The bundle that is installed in the end.
    pub bundle: BundleReference,
}

/// Returns the Operators with a configuration that have a bundle once a loadout is applied.
pub fn configured(inputs: LintInputs<'_>) -> Vec<ConfiguredOperator> {
    let declared = inputs.loadout.operators.iter().filter(|it| it.spec.config.is_some());
    let declared: Vec<&DeclaredOperator> = declared.collect();
    if declared.is_empty() {
        return Vec::new();
    }
    let base = inputs.converged_base();
    let operators = inputs.applied(base.as_ref());
    let converged = converge(inputs.deciding(&operators), inputs.catalogs);
    let configured = declared.into_iter().filter_map(|it| {
        let installed = converged.operators.get(&it.name)?.installed.as_ref()?;
        Some(ConfiguredOperator {
            name: it.name.clone(),
            spec: it.spec.clone(),
            bundle: installed.reference.clone(),
        })
    });
    configured.collect()
}
