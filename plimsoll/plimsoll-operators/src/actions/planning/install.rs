//! Installations.

use std::collections::BTreeSet;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::PlannedChange;
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::requirement::Provider;
use semver::Version;
use serde_json::{Map, Value, json};

use super::{ActionFailure, ActionPlan, Planner, named};
use crate::RequestedPackage;
use crate::actions::attributes::EffectiveAction;
use crate::install::{InstallError, InstallPlan, InstallRequest, plan_install};
use crate::loadout::ConvergedOperators;
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::observed::ObservedOperator;
use crate::planned_change::{awaited, change};
use crate::planner::{is_pinned, takes_back};
use crate::query::unknown_catalog;

/// Returns the request of an installation, or of a query about one.
pub(super) fn install_request(action: &EffectiveAction) -> InstallRequest {
    InstallRequest {
        packages: named(action),
        channel: action.optional_text("channel"),
        repository: action.optional_text("repository"),
        namespace: action.optional_text("parameters.namespace"),
        collision_protection: action.optional_text("parameters.collisionProtection"),
        providers: action.texts("parameters.providers"),
        exclude: action.texts("parameters.exclude"),
        prefer_repository: action.optional_text("parameters.preferRepository"),
        no_dependencies: !action.is_set("installDependencies"),
        ..InstallRequest::default()
    }
}

impl Planner<'_> {
    /// Plans a request. A conflict with what is installed is overridden if requirements need not be satisfied.
    /// Returns the plan with its explanation, a line each.
    fn install_plan(
        &self,
        request: &InstallRequest,
    ) -> Result<(InstallPlan, Vec<String>), ActionFailure> {
        if let Some(package) = self.unknown(request.names()) {
            return Err(self.not_found(package).on(package));
        }
        let is_served = |name: &Option<String>| {
            name.as_ref().is_none_or(|it| !self.inventory.unavailable.contains_key(it))
        };
        if is_served(&request.repository)
            && is_served(&request.prefer_repository)
            && let Some(message) = unknown_catalog(request, self.catalogs)
        {
            return Err(ActionFailure::new(Reason::InvalidAction, message));
        }
        let inputs = self.inventory.inputs(self.expressions);
        match plan_install(inputs, self.catalogs, request) {
            Ok(plan) => {
                let overrides = plan.overrides.iter().map(|it| format!("override: {it}"));
                let explanation = plan.edges.iter().cloned().chain(overrides);
                let explanation = explanation.chain(plan.notes.iter().cloned()).collect();
                Ok((plan, explanation))
            }
            Err(InstallError::Unsatisfiable(conflict)) => {
                let overridden = conflict.overridden().filter(|_| !self.ensures_constraints());
                let Some(plan) = overridden else {
                    let message = conflict.text().trim_end().to_owned();
                    return Err(ActionFailure::new(Reason::ConstraintsUnmet, message));
                };
                let text = conflict.text();
                let explanation = text.lines().map(|it| it.trim_start_matches("* ").to_owned());
                let explanation = explanation.chain(plan.notes.iter().cloned()).collect();
                Ok((plan, explanation))
            }
            Err(InstallError::Invalid(error)) => {
                Err(ActionFailure::new(Reason::InvalidAction, error.to_string()))
            }
            Err(InstallError::Blocked { name, block }) => {
                let message = format!("{name}: {}", block.message);
                Err(ActionFailure::new(block.reason, message).on(name))
            }
            Err(InstallError::LimitExceeded) => Err(ActionFailure::new(
                Reason::ConstraintsUnmet,
                "the dependencies are too complex to be resolved within the limit of work",
            )),
        }
    }

    /// Returns whether a package is requested already, in a version that matches and from where it is requested.
    fn is_requested(&self, request: &InstallRequest, package: &RequestedPackage) -> bool {
        let version = package.range.as_deref().unwrap_or_default();
        let Some(there) = self.inventory.observed.get(&package.name) else { return false };
        let operator = self.inventory.operators.get(&package.name);
        let is_same_pin = || {
            let installed = Version::parse(there.version());
            is_pinned(version)
                && is_pinned(&there.spec.version)
                && Range::parse(version)
                    .is_ok_and(|range| installed.is_ok_and(|it| range.matches(&it)))
        };
        let elsewhere = [
            &request.channel,
            &request.repository,
            &request.namespace,
            &request.collision_protection,
        ];
        !there.is_deleting
            && elsewhere.into_iter().all(Option::is_none)
            && operator.is_none_or(|it| !it.is_dependency && !takes_back(version, it))
            && (version.is_empty() || there.spec.version == version || is_same_pin())
    }

    pub(super) fn install(&self) -> Result<ActionPlan, ActionFailure> {
        let mut request = install_request(self.action);
        let whole = request.clone();
        request.packages.retain(|it| !self.is_requested(&whole, it));
        let (install, mut explanation) = match request.packages.is_empty() {
            true => Default::default(),
            false => self.install_plan(&request)?,
        };
        let mut changes = Vec::new();
        // Dependencies come first.
        for it in install.operators.iter().rev() {
            let (manifest, version) = (it.manifest(&request), it.version.to_string());
            let Some(there) = self.inventory.observed.get(&it.name) else {
                changes.push(change(&manifest, None, version));
                continue;
            };
            let change = with_sources(change(&manifest, Some(there), version), &manifest, there);
            let is_requested = there.spec.version == it.range
                && it.change_set == ChangeSetEdit::Keep
                && !it.becomes_requested
                && change.repository.is_empty()
                && change.spec_fields.is_none();
            changes.push(match is_requested {
                true if there.version() == change.version => continue,
                true => awaited(&it.name, there, change.version, it.is_dependency),
                false => change,
            });
        }
        let mut after = self.after(&changes);
        if self.name_catalogs(&install, &after, &mut changes) {
            after = self.after(&changes);
        }
        self.await_requested(&after, &mut changes);
        if changes.is_empty() {
            let names: Vec<&str> = whole.names().collect();
            let verb = if names.len() == 1 { "is" } else { "are" };
            explanation.push(format!("{} {verb} installed", names.join(", ")));
        }
        self.finished(changes, explanation, &after)
    }

    /// Sets the planned catalog in Operators that are created, where another one would be preferred. Returns
    /// whether there are any.
    fn name_catalogs(
        &self,
        install: &InstallPlan,
        after: &ConvergedOperators,
        changes: &mut [PlannedChange],
    ) -> bool {
        let mut is_changed = false;
        for planned in &install.operators {
            let operator = after.operators.get(&planned.name);
            let installed = operator.and_then(|it| it.installed.as_ref());
            let change = changes.iter_mut().find(|it| it.operator == planned.name);
            if installed.is_some_and(|it| it.reference.catalog != planned.catalog)
                && let Some(manifest) = change.and_then(|it| it.manifest.as_mut())
            {
                manifest["spec"]["repository"] = planned.catalog.as_str().into();
                is_changed = true;
            }
        }
        is_changed
    }

    /// Adds the Operators to wait for: the packages and their dependencies, as far as they were requested before
    /// and are not installed yet.
    fn await_requested(&self, after: &ConvergedOperators, changes: &mut Vec<PlannedChange>) {
        let requested: Vec<String> = named(self.action).into_iter().map(|it| it.name).collect();
        let mut queue = requested.clone();
        let mut seen = BTreeSet::new();
        while let Some(name) = queue.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let needed = after.decisions.get(&name).into_iter().flat_map(|it| &it.requirements);
            for requirement in needed {
                if let Some(Provider::Installed(package)) = &requirement.provider {
                    queue.push(package.clone());
                }
            }
            let expected = after.operators.get(&name).and_then(|it| it.installed.as_ref());
            let (Some(there), Some(expected)) = (self.inventory.observed.get(&name), expected)
            else {
                continue;
            };
            let is_planned = changes.iter().any(|it| it.operator == name);
            if there.version().is_empty() && !is_planned {
                let version = expected.reference.version.clone();
                let is_dependency = !requested.contains(&name);
                changes.push(awaited(&name, there, version, is_dependency));
            }
        }
    }
}

/// Returns the change of an Operator that exists, with the fields of its spec that say where it is from and where
/// it is installed, as far as they change.
fn with_sources(
    change: PlannedChange,
    manifest: &OperatorManifest,
    there: &ObservedOperator,
) -> PlannedChange {
    let spec = json!(there.spec);
    let mut sources: Map<String, Value> = manifest
        .sources()
        .filter(|(field, value)| spec[*field].as_str().unwrap_or_default() != *value)
        .map(|(field, value)| (field.to_owned(), value.into()))
        .collect();
    let repository = match sources.remove("repository") {
        Some(Value::String(name)) => name,
        _ => String::new(),
    };
    let spec_fields = Some(Value::Object(sources)).filter(|it| *it != json!({}));
    PlannedChange { repository, spec_fields, ..change }
}
