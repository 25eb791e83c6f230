//! Deletion planning: the effects of a deletion of Operators, shown before it is carried out (OPR-18,
//! OPR-20).

mod kept;
mod orphans;
mod rollout;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{CrdDeletion, OperatorStatus, RemainingObjects, WorkloadDeletion};
use serde::Serialize;
use serde_json::Value;

use self::kept::kept_by_release;
use self::orphans::dependencies;
use self::rollout::rolling_out;
use super::observed::ObservedOperator;

pub use self::kept::{KeptObject, without_release};
pub use self::orphans::{Dependants, Orphans, PossibleOrphan, orphans};
pub use self::rollout::{has_rollout, include_rollouts};

/// The API group of CustomResourceDefinitions.
const DEFINITION_GROUP: &str = "apiextensions.k8s.io";

/// The effects of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPlan {
    /// The Operators that are deleted, in order: dependants before what they depend on.
    pub delete: Vec<PlannedDeletion>,
    /// The requirements of remaining Operators that would not be satisfied any more.
    pub broken: Vec<BrokenRequirement>,
    /// The remaining Operators that were installed as dependencies and that no Operator would depend on.
    pub orphans: Vec<String>,
    /// The dependencies of deleted Operators that remain because other Operators need them.
    pub needed: Vec<NeededDependency>,
    /// Those that remain because it is not known yet whether others need them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub possible_orphans: Vec<PossibleOrphan>,
}

/// An Operator that is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedDeletion {
    /// The name of the Operator.
    pub name: String,
    /// The uid of the object; empty if there is none. Another Operator of the name is not meant.
    #[serde(skip)]
    pub uid: String,
    /// The installed version; empty if nothing is installed.
    pub version: String,
    /// Whether it is deleted because no Operator would depend on it any more.
    pub as_orphan: bool,
    /// The version that is being rolled out; empty if none is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rolling_out: String,
    /// The number of objects that are deleted, of those that are installed or that the version that is being
    /// rolled out has.
    pub objects: usize,
    /// The names of its CustomResourceDefinitions.
    pub definitions: Vec<String>,
    /// The objects that have another owner, too, and stay.
    pub kept: Vec<KeptObject>,
    /// Whether its definitions are kept, and with them the objects of its kinds.
    pub keeps_definitions: bool,
    /// The objects of its kinds, counted by kind and namespace.
    pub workloads: Vec<RemainingObjects>,
    /// The conversion webhooks that definitions lose which are kept.
    pub conversions: Vec<RemovedConversion>,
}

impl PlannedDeletion {
    /// Returns a line that says that a version is being rolled out; `None` if none is.
    pub fn rollout_text(&self) -> Option<String> {
        let version = Some(&self.rolling_out).filter(|it| !it.is_empty())?;
        Some(format!(
            "v{version} is still being rolled out: what it has created by then is deleted"
        ))
    }

    /// Returns the definitions that go with it.
    pub fn deleted_definitions(&self) -> impl Iterator<Item = &str> {
        let definitions = self.definitions.iter().filter(|_| !self.keeps_definitions);
        definitions.filter(|it| !self.keeps(it)).map(String::as_str)
    }

    /// Returns whether a definition stays because it has another owner, too.
    fn keeps(&self, definition: &str) -> bool {
        let mut kept = self.kept.iter().map(|it| &it.object);
        kept.any(|it| is_definition(it) && it.name == definition)
    }
}

/// A conversion webhook that a definition loses, since the service that answers it is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovedConversion {
    /// The name of the definition.
    pub definition: String,
    /// The service, as `NAMESPACE/NAME`.
    pub service: String,
}

impl RemovedConversion {
    /// Returns the conversion webhook that a definition, as the API server has it, loses when an Operator is
    /// deleted and the definition is kept; `None` if no service of the Operator answers one.
    pub fn of(definition: &Value, status: &OperatorStatus) -> Option<Self> {
        let name = definition["metadata"]["name"].as_str()?;
        let conversion = &definition["spec"]["conversion"];
        let service = &conversion["webhook"]["clientConfig"]["service"];
        let key = ObjectKey {
            group: String::new(),
            kind: "Service".to_owned(),
            namespace: service["namespace"].as_str()?.to_owned(),
            name: service["name"].as_str()?.to_owned(),
        };
        let is_its_own = conversion["strategy"] == "Webhook" && status.inventory.contains(&key);
        let service = key.namespaced_name();
        is_its_own.then(|| Self { definition: name.to_owned(), service })
    }
}

/// A requirement that a deletion breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BrokenRequirement {
    /// The Operator that is deleted.
    pub operator: String,
    /// The Operator that depends on it.
    pub dependant: String,
}

/// A dependency that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NeededDependency {
    /// The name of the Operator.
    pub name: String,
    /// The Operators that depend on it.
    pub needed_by: Vec<String>,
}

/// The inputs of a deletion plan.
#[derive(Debug, Clone, Copy)]
pub struct DeletionRequest<'a> {
    /// All Operators, by name.
    pub operators: &'a BTreeMap<String, ObservedOperator>,
    /// The objects of the kinds of each Operator, by Operator.
    pub workloads: &'a BTreeMap<String, Vec<RemainingObjects>>,
    /// The conversion webhooks that the definitions of each Operator lose if they are kept, by Operator.
    pub conversions: &'a BTreeMap<String, Vec<RemovedConversion>>,
    /// The objects that the release contains, as texts.
    pub of_release: &'a BTreeSet<String>,
    /// The Operators to delete.
    pub names: &'a BTreeSet<String>,
    /// Whether to delete dependencies that no Operator depends on any more.
    pub cascade: bool,
    /// Whether to keep definitions even if `spec.deletion` does not say so.
    pub keep_crds: bool,
}

impl DeletionPlan {
    /// Plans a deletion.
    pub fn new(request: &DeletionRequest<'_>) -> Self {
        let DeletionRequest { operators, names, cascade, .. } = *request;
        let dependants = Dependants::of(operators);
        let mut going: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut orphans = dependants.orphaned_without(&going);
        while cascade && !orphans.is_empty() {
            going.extend(orphans);
            orphans = dependants.orphaned_without(&going);
        }
        let possible_orphans = dependants.possible_orphans(&going);
        let is_possible = |name: &str| possible_orphans.iter().any(|it| it.name == name);
        let mut broken = BTreeSet::new();
        for name in &going {
            broken.extend(dependants.on(name).filter(|it| !going.contains(it)).map(|dependant| {
                BrokenRequirement { operator: (*name).to_owned(), dependant: dependant.to_owned() }
            }));
        }
        let mut needed = BTreeMap::new();
        for dependency in going.iter().flat_map(|name| dependencies(operators, name)) {
            let is_dependency = operators.get(dependency).is_some_and(|it| it.is_dependency);
            let is_orphan = going.contains(dependency) || orphans.contains(dependency);
            if is_dependency && !is_orphan && !is_possible(dependency) {
                let by = dependants.on(dependency).filter(|it| !going.contains(it));
                let by: BTreeSet<String> = by.map(str::to_owned).collect();
                if !by.is_empty() {
                    needed.insert(dependency, by);
                }
            }
        }
        let needed = needed.into_iter().map(|(name, by)| NeededDependency {
            name: name.to_owned(),
            needed_by: by.into_iter().collect(),
        });
        Self {
            delete: ordered(&dependants, &going)
                .into_iter()
                .map(|name| planned(request, name))
                .collect(),
            broken: broken.into_iter().collect(),
            orphans: orphans.into_iter().map(str::to_owned).collect(),
            needed: needed.collect(),
            possible_orphans,
        }
    }

    /// Returns the remaining Operators that depend on a deleted one.
    pub fn dependants_of(&self, name: &str) -> Vec<&str> {
        let of = self.broken.iter().filter(|it| it.operator == name);
        of.map(|it| it.dependant.as_str()).collect()
    }

    /// Returns the Operators that are not those of an earlier plan any more, a clause each.
    pub fn replaced_since(&self, earlier: &Self) -> Vec<String> {
        let mut replaced = Vec::new();
        for it in &self.delete {
            let before = earlier.delete.iter().find(|before| before.name == it.name);
            if before.is_none_or(|before| before.uid == it.uid) {
                continue;
            }
            replaced.push(match it.uid.as_str() {
                "" => format!("{} was deleted", it.name),
                _ => recreated(&it.name),
            });
        }
        replaced
    }

    /// Returns the plan as text for users.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for it in &self.delete {
            let version =
                if it.version.is_empty() { String::new() } else { format!(" v{}", it.version) };
            let why = if it.as_orphan { " (orphaned dependency)" } else { "" };
            line(&mut text, format_args!("{}{version} will be deleted{why}", it.name));
            line(&mut text, format_args!("  {}", counted(it.objects, "object", "objects")));
            if let Some(rollout) = it.rollout_text() {
                line(&mut text, format_args!("  {rollout}"));
            }
            for KeptObject { object, reason: _, message } in &it.kept {
                line(&mut text, format_args!("  {} is kept: {message}", object.reference()));
            }
            for definition in it.definitions.iter().filter(|name| !it.keeps(name)) {
                let fate = if it.keeps_definitions { " is kept" } else { "" };
                line(&mut text, format_args!("  definition {definition}{fate}"));
            }
            for RemovedConversion { definition, service } in &it.conversions {
                line(
                    &mut text,
                    format_args!(
                        "  conversion webhook of {definition} is removed: service {service} goes"
                    ),
                );
            }
            let fate = if it.keeps_definitions { " are kept" } else { "" };
            for workload in &it.workloads {
                line(&mut text, format_args!("  workloads: {}{fate}", workload_text(workload)));
            }
        }
        for BrokenRequirement { operator, dependant } in &self.broken {
            line(&mut text, format_args!("{dependant} depends on {operator}, and is kept"));
        }
        for orphan in &self.orphans {
            line(&mut text, format_args!("{orphan} will become an orphan, and is kept"));
        }
        for NeededDependency { name, needed_by } in &self.needed {
            let needed_by = depend(needed_by);
            line(&mut text, format_args!("{name} is kept: {needed_by} on it"));
        }
        for it in &self.possible_orphans {
            line(&mut text, format_args!("{}", it.text()));
        }
        text
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{arguments}");
}

/// Formats what became of an Operator in whose place there is another one.
pub fn recreated(name: &str) -> String {
    format!("{name} was deleted, and another client created it again")
}

/// Formats a number of things: `1 object`, `2 objects`.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Formats who depends on something: `foo depends`, or `foo, qux depend`.
pub fn depend(names: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let verb = if texts.len() == 1 { "depends" } else { "depend" };
    format!("{} {verb}", texts.join(", "))
}

/// Formats a number of objects: `2 Foo.foo.example.com in default`.
pub fn workload_text(workload: &RemainingObjects) -> String {
    let RemainingObjects { kind, namespace, count, .. } = workload;
    match namespace.as_str() {
        "" => format!("{count} {kind}"),
        namespace => format!("{count} {kind} in {namespace}"),
    }
}

/// Returns the names of the definitions that an Operator installed.
pub fn definitions(status: &OperatorStatus) -> Vec<String> {
    let definitions = status.inventory.iter().filter(|it| is_definition(it));
    definitions.map(|it| it.name.clone()).collect()
}

fn is_definition(key: &ObjectKey) -> bool {
    key.group == DEFINITION_GROUP && key.kind == "CustomResourceDefinition"
}

/// Orders Operators with dependants before what they depend on; a cycle begins with its first Operator by
/// name.
fn ordered<'a>(dependants: &Dependants<'a>, going: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut left = going.clone();
    let mut order = Vec::new();
    while let Some(first) = left.first().copied() {
        let is_free = |name: &&&str| dependants.on(name).all(|it| !left.contains(it));
        let next = left.iter().find(is_free).copied().unwrap_or(first);
        left.remove(next);
        order.push(next);
    }
    order
}

fn planned(request: &DeletionRequest<'_>, name: &str) -> PlannedDeletion {
    let DeletionRequest { operators, workloads, conversions, of_release, names, keep_crds, .. } =
        *request;
    let Some(operator) = operators.get(name) else {
        return PlannedDeletion { name: name.to_owned(), ..PlannedDeletion::default() };
    };
    let status = &operator.status;
    let workloads = workloads.get(name).cloned().unwrap_or_default();
    let policy = &operator.spec.deletion;
    let is_kept = keep_crds
        || policy.crds == CrdDeletion::Orphan
        || (policy.workloads == WorkloadDeletion::Orphan && !workloads.is_empty());
    let conversions = conversions.get(name).filter(|_| is_kept);
    let kept = kept_by_release(status, of_release);
    let goes = |key: &&ObjectKey| {
        !(kept.iter().any(|it| it.object == **key) || (is_kept && is_definition(key)))
    };
    PlannedDeletion {
        name: name.to_owned(),
        uid: operator.uid.clone(),
        version: status.bundle.as_ref().map(|it| it.version.clone()).unwrap_or_default(),
        as_orphan: !names.contains(name),
        rolling_out: if operator.is_deleting { String::new() } else { rolling_out(status) },
        objects: status.inventory.iter().filter(goes).count(),
        definitions: definitions(status),
        kept,
        keeps_definitions: is_kept,
        workloads,
        conversions: conversions.cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
