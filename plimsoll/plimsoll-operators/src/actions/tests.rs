//! Fixtures of the tests of Actions, and a plan.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionRequester, ActionSpec};
use plimsoll_api::olm::{BundleReference, OperatorSpec, OperatorStatus};
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{
    Bundle, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint, Package, Requirement,
};
use semver::Version;

use super::attributes::NamedClass;
use super::check::effective;
use super::files::{ActionFiles, built_in_classes};
use super::planning;
use super::policy::NamedPolicy;
use crate::inventory::OperatorInventory;
use crate::loadout::LoadoutFile;
use crate::observed::ObservedOperator;
use crate::query::{ResolutionQuery, answer};
use crate::{InstalledOperator, RequestedOperator};
use plimsoll_plan::windows::MaintenanceWindows;

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns a built-in class.
pub(super) fn class(name: &str) -> NamedClass {
    NamedClass::find(&built_in_classes(), name).unwrap().clone()
}

/// Returns `alice` of group `dev`.
pub(super) fn alice() -> ActionRequester {
    ActionRequester { username: "alice".into(), groups: vec!["dev".into()] }
}

/// Reads the policies of a text.
pub(super) fn read_policies(text: &str) -> Vec<NamedPolicy> {
    let file = LoadoutFile { path: "policies.yaml".into(), text: text.into() };
    ActionFiles::read(&[file]).unwrap().policies
}

/// Reads the MaintenanceWindows of a text.
pub(super) fn read_windows(text: &str) -> MaintenanceWindows {
    let file = LoadoutFile { path: "windows.yaml".into(), text: text.into() };
    ActionFiles::read(&[file]).unwrap().windows.into_iter().collect()
}

pub(super) const POLICIES: &str = r"
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: dev}
spec:
  subjects: [{kind: Group, name: dev}]
  classes: [operator-install, operator-delete]
  enforce:
    attributes:
    - {name: installDependencies, values: ['false'], default: false}
    - {name: ensureConstraintSatisfiability, values: ['true'], default: true}
    - {name: version, range: <2}
    packages: [foo, bar-*]
    preconditions: {noWorkloadRemoval: true}
    maxActive: 3
  warn:
    attributes: [{name: version, required: true}]
---
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: others}
spec:
  subjects: [{kind: ServiceAccount, name: ci, namespace: tea}, {kind: User, name: bob}]
  classes: [autoremove]
  enforce: {}
";

pub(super) const CURATED: &str = r"
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: curated}
spec:
  subjects: [{kind: Group, name: dev}]
  classes: [operator-install]
  enforce: {catalogs: [curated, team-*]}
---
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: named}
spec:
  subjects: [{kind: User, name: alice}]
  classes: [operator-delete]
  enforce:
    attributes: [{name: package, values: [foo]}, {name: parameters.cascade, values: ['false']}]
";

/// Returns a catalog with version 1.0.0 of packages, each with the package that it requires.
fn catalog(name: &str, weight: i64, packages: &[(&str, Option<&str>)]) -> CatalogPart {
    let package = |(name, required): &(&str, Option<&str>)| {
        let mut bundle = Bundle::new(format!("{name}.v1.0.0"), Version::new(1, 0, 0));
        let required =
            required.map(|it| Constraint::Package { name: it.into(), range: ">=1.0.0".into() });
        bundle.requires = required.into_iter().map(Requirement::from).collect();
        let entry = ChannelEntry { name: bundle.name.clone(), ..ChannelEntry::default() };
        let channel = Channel { name: "stable".into(), entries: vec![entry], ..Channel::default() };
        Package {
            name: (*name).into(),
            default_channel: Some("stable".into()),
            channels: vec![channel],
            bundles: vec![bundle],
            ..Package::default()
        }
    };
    let name = CatalogName { namespace: String::new(), name: name.into() };
    CatalogPart { name, weight, packages: packages.iter().map(package).collect() }
}

#[test]
fn a_dependency_is_taken_from_the_catalog_that_it_was_planned_from() {
    let catalogs = [
        catalog("community", 0, &[("bar", None)]),
        catalog("curated", 1, &[("bar", None), ("foo", Some("bar"))]),
    ];
    let spec = ActionSpec {
        package: "foo".into(),
        install_dependencies: Some(true),
        ..ActionSpec::default()
    };
    let action = effective(&spec, &class("operator-install"), None).unwrap();
    let inventory = OperatorInventory::default();
    let plan =
        planning::plan(&action, &inventory, None, &BTreeMap::new(), &catalogs, &Cel).unwrap();
    let planned = plan.changes.iter().map(|it| {
        let repository = it.manifest.as_ref().and_then(|it| it["spec"]["repository"].as_str());
        (it.operator.as_str(), it.bundle.as_str(), it.catalog.as_str(), repository)
    });
    let expected =
        [("bar", "bar.v1.0.0", "curated", Some("curated")), ("foo", "foo.v1.0.0", "curated", None)];
    assert_eq!(planned.collect::<Vec<_>>(), expected);
}

/// Returns an inventory with Operator bar, of which the only bundle of a catalog is installed.
fn with_bar(catalogs: &[CatalogPart], requested: &str, is_dependency: bool) -> OperatorInventory {
    let spec = OperatorSpec { version: requested.into(), ..OperatorSpec::default() };
    let bundle = catalogs[0].packages[0].bundles[0].clone();
    let reference = BundleReference {
        name: bundle.name.clone(),
        version: "1.0.0".into(),
        catalog: "main".into(),
        channel: "stable".into(),
        ..BundleReference::default()
    };
    let status = OperatorStatus { bundle: Some(reference.clone()), ..OperatorStatus::default() };
    let spec_there = spec.clone();
    let observed =
        ObservedOperator { spec: spec_there, status, is_dependency, ..ObservedOperator::default() };
    let installed = InstalledOperator { reference, bundle, revision: 1, upgrade_block: None };
    let operator = RequestedOperator {
        installed: Some(installed),
        ..RequestedOperator::new(spec, is_dependency)
    };
    OperatorInventory {
        operators: BTreeMap::from([("bar".into(), operator)]),
        observed: BTreeMap::from([("bar".into(), observed)]),
        ..OperatorInventory::default()
    }
}

/// Returns what an installation of bar requests of it: the versions before and afterwards, and whether it is kept
/// for itself from then on.
fn requested_of_bar(
    catalogs: &[CatalogPart],
    inventory: &OperatorInventory,
    version: &str,
) -> Vec<(String, String, bool)> {
    let spec =
        ActionSpec { package: "bar".into(), version: version.into(), ..ActionSpec::default() };
    let action = effective(&spec, &class("operator-install"), None).unwrap();
    let plan = planning::plan(&action, inventory, None, &BTreeMap::new(), catalogs, &Cel).unwrap();
    let changes = plan.changes.into_iter();
    changes.map(|it| (it.requested_before, it.requested, it.becomes_requested)).collect()
}

#[test]
fn an_installation_takes_back_a_pin_that_waits() {
    let catalogs = [catalog("main", 0, &[("bar", None)])];
    let inventory = with_bar(&catalogs, "1.1.0", false);
    let changes = |version: &str| requested_of_bar(&catalogs, &inventory, version);
    assert_eq!(changes("1.0.0"), [("1.1.0".to_owned(), "1.0.0".to_owned(), false)]);
    // A range is followed from then on.
    assert_eq!(changes("^1"), [("1.1.0".to_owned(), "^1".to_owned(), false)]);
    let pinned = with_bar(&catalogs, "1.0.0", false);
    let changes = |version: &str| requested_of_bar(&catalogs, &pinned, version);
    assert_eq!(changes("^1"), [("1.0.0".to_owned(), "^1".to_owned(), false)]);
    assert!(changes("=1.0.0").is_empty());
}

#[test]
fn an_installation_keeps_a_dependency_for_itself() {
    let catalogs = [catalog("main", 0, &[("bar", None)])];
    let changes = |is_dependency: bool, version: &str| {
        let inventory = with_bar(&catalogs, "^1", is_dependency);
        requested_of_bar(&catalogs, &inventory, version)
    };
    for version in ["", "^1"] {
        assert_eq!(changes(true, version), [("^1".to_owned(), "^1".to_owned(), true)], "{version}");
        assert!(changes(false, version).is_empty(), "{version}");
    }
}

#[test]
fn a_resolution_answers_as_the_command_does() {
    let catalogs = [catalog("main", 0, &[("bar", None), ("foo", Some("gone"))])];
    let inventory = OperatorInventory::default();
    for (package, is_solved) in [("bar", true), ("foo", false)] {
        let spec = ActionSpec { package: package.into(), ..ActionSpec::default() };
        let action = effective(&spec, &class("resolution"), None).unwrap();
        let found = planning::plan(&action, &inventory, None, &BTreeMap::new(), &catalogs, &Cel);
        let query = ResolutionQuery {
            packages: vec![package.into()],
            no_dependencies: !action.is_set("installDependencies"),
            ..ResolutionQuery::default()
        };
        let expected = answer(inventory.inputs(&Cel), &catalogs, &query);
        assert_eq!(expected.error.is_none(), is_solved, "{expected:?}");
        let result = match &found {
            Ok(plan) => plan.result.as_str(),
            Err(failure) => failure.answer(),
        };
        assert_eq!(result, expected.transcript(), "{package}");
    }
}
