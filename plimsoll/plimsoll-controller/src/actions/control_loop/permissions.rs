//! The permissions in all namespaces that the bundles of a plan bring.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_api::olm::{BundleReference, OperatorRevisionSpec};
use plimsoll_operators::actions::ActionFailure;
use plimsoll_operators::actions::permissions::new_permissions;
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::planning::spec_after;
use plimsoll_operators::observed::ObservedOperator;
use serde_json::Value;

use super::ControlLoop;
use crate::actions::inventory::CatalogInventory;
use crate::bundle_content;
use crate::clock::run_beside;
use crate::workloads::revision_parts;
use crate::write::chain;

impl ControlLoop {
    /// Completes a plan with the permissions that its bundles bring and the installed ones do not have. A bundle that cannot
    /// be read makes it fail: what it brings is not known.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn with_permissions(
        &self,
        mut plan: ActionPlan,
        inventory: &CatalogInventory,
    ) -> Result<Result<ActionPlan, ActionFailure>, String> {
        for change in &mut plan.changes {
            if change.is_release() || change.operation == ChangeOperation::Delete {
                continue;
            }
            match self.permissions(change, inventory).await? {
                Ok(permissions) => change.new_cluster_permissions = permissions,
                Err(why) => {
                    let message = format!(
                        "the permissions that {} brings are not known: {why}",
                        change.operator
                    );
                    let failure = ActionFailure::new(Reason::InstallationFailed, message);
                    return Ok(Err(failure.on(change.operator.as_str())));
                }
            }
            for permission in &change.new_cluster_permissions {
                let PlannedChange { operator, version, .. } = &change;
                plan.explanation
                    .push(format!("{operator} v{version} gets in all namespaces: {permission}"));
            }
        }
        Ok(Ok(plan))
    }

    /// Returns the permissions that the bundle of a change brings, or why they are not known.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn permissions(
        &self,
        change: &PlannedChange,
        inventory: &CatalogInventory,
    ) -> Result<Result<Vec<String>, String>, String> {
        let PlannedChange { operator, bundle, catalog, version, .. } = change;
        let Some(source) = inventory.sources.get(catalog).filter(|_| !bundle.is_empty()) else {
            return Ok(Err(format!("no catalog that can be read has version {version}")));
        };
        let there = inventory.inventory.observed.get(operator);
        let installed = match there {
            Some(there) => {
                let parts = revision_parts(&self.client, operator, &there.uid).await;
                installed_parts(there, parts.map_err(|error| chain(&error))?)
            }
            None => Vec::new(),
        };
        let mut spec = spec_after(change, there);
        if let Some(part) = installed.first().filter(|_| spec.namespace.is_empty()) {
            spec.namespace.clone_from(&part.namespace);
        }
        let before = installed.into_iter().flat_map(|it| it.objects).map(|it| it.object);
        let before: Vec<Value> = before.collect();
        let bundle = BundleReference {
            name: bundle.clone(),
            catalog: catalog.clone(),
            version: version.clone(),
            ..BundleReference::default()
        };
        let (name, source, roots) = (operator.clone(), source.clone(), inventory.roots.clone());
        let read = run_beside(&*self.clock, move || {
            let content = bundle_content::read(&name, &bundle, &source, &roots, &spec, Vec::new())?;
            Ok(new_permissions(&before, &content.objects))
        });
        read.await.map_err(|error| error.to_string())
    }
}

/// Returns the parts of the revision of an Operator that was completed last.
fn installed_parts(
    operator: &ObservedOperator,
    parts: Vec<OperatorRevisionSpec>,
) -> Vec<OperatorRevisionSpec> {
    let installed = operator.installed_revision();
    parts.into_iter().filter(|it| Some(it.revision) == installed).collect()
}
