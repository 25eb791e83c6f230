//! The permissions in all namespaces that the bundles of a plan bring.

use std::collections::BTreeMap;

use plimsoll_api::olm::OperatorRevisionSpec;
use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_operators::actions::permissions::new_permissions;
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::planning::spec_after;
use plimsoll_operators::inspected::InspectedContent;
use plimsoll_operators::observed::ObservedOperator;
use serde_json::Value;

use super::ControlLoop;
use crate::actions::inventory::CatalogInventory;
use crate::bundle_content;
use crate::clock::run_beside;
use crate::workloads::revision_parts;
use crate::write::chain;

impl ControlLoop {
    /// Completes a plan with the permissions that its bundles bring and the installed ones do not have, or with why they
    /// are not known.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn with_permissions(
        &self,
        mut plan: ActionPlan,
        inventory: &CatalogInventory,
    ) -> Result<ActionPlan, String> {
        for change in &mut plan.changes {
            if change.is_release() || change.operation == ChangeOperation::Delete {
                continue;
            }
            let found = self.permissions(change, inventory).await?;
            (change.new_cluster_permissions, change.inspected) = found
                .unwrap_or_else(|why| (vec![format!("what is not known: {why}")], BTreeMap::new()));
            for permission in &change.new_cluster_permissions {
                let PlannedChange { operator, version, .. } = &change;
                plan.explanation
                    .push(format!("{operator} v{version} gets in all namespaces: {permission}"));
            }
        }
        Ok(plan)
    }

    /// Returns the permissions that the bundle of a change brings, and those on the way to it, with the digests of what was
    /// inspected, or why they are not known.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn permissions(
        &self,
        change: &PlannedChange,
        inventory: &CatalogInventory,
    ) -> Result<Result<(Vec<String>, BTreeMap<String, String>), String>, String> {
        let PlannedChange { operator, bundle, catalog, version, .. } = change;
        if bundle.is_empty() || !inventory.sources.contains_key(catalog) {
            return Ok(Err(format!("no catalog that can be read has version {version}")));
        }
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
        let from = installed.first().map(|it| it.bundle.clone());
        let bundles = match inventory.on_the_way(change, from.as_ref()) {
            Ok(bundles) => bundles,
            Err(why) => return Ok(Err(why)),
        };
        let before = installed.into_iter().flat_map(|it| it.objects).map(|it| it.object);
        let before: Vec<Value> = before.collect();
        let sources =
            bundles.into_iter().map(|it| (inventory.sources.get(&it.catalog).cloned(), it));
        let sources: Vec<_> = sources.collect();
        let (name, last, roots) = (operator.clone(), bundle.clone(), inventory.roots.clone());
        let read = run_beside(&*self.clock, move || {
            let (mut found, mut inspected) = (Vec::new(), BTreeMap::new());
            for (source, bundle) in sources {
                let source =
                    source.ok_or_else(|| format!("catalog {} cannot be read", bundle.catalog))?;
                let content =
                    bundle_content::read(&name, &bundle, &source, &roots, &spec, Vec::new())
                        .map_err(|why| format!("{}: {why}", bundle.name))?;
                let new = new_permissions(&before, &content.objects).into_iter();
                let is_last = bundle.name == last;
                let named = |it: String| match is_last {
                    true => it,
                    false => format!("{it} (by v{} on the way)", bundle.version),
                };
                found.extend(new.map(named));
                inspected.insert(InspectedContent::key(&bundle), content.bundle.digest);
            }
            Ok((found, inspected))
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
