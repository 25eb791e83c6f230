//! Tests of what a deletion plan says.

use plimsoll_api::olm::{
    BundleReference, Dependant, DependencyStatus, OperatorHistory, OperatorRevisionSpec,
    RevisionObject,
};
use serde_json::json;

use super::*;
use crate::tests::deletion_request;

/// Parses installed Operators, one a line: `NAME [dependency]: DEPENDENCY…`.
fn operators(text: &str) -> BTreeMap<String, ObservedOperator> {
    let mut operators: BTreeMap<String, ObservedOperator> = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        let (left, right) = line.split_once(':').unwrap();
        let (name, label) = left.split_once(' ').unwrap_or((left, ""));
        operators.entry(name.to_owned()).or_default().is_dependency = label == "dependency";
        for dependency in right.split_whitespace().map(str::to_owned) {
            let dependant = Dependant { operator: name.to_owned(), requirement: String::new() };
            let it = operators.entry(dependency.clone()).or_default();
            it.status.dependants.push(dependant);
            let satisfied =
                DependencyStatus { operator: dependency, satisfied: true, ..Default::default() };
            let it = operators.get_mut(name).unwrap();
            it.status.dependencies.push(satisfied);
        }
    }
    for it in operators.values_mut() {
        it.status.bundle = Some(BundleReference::default());
        it.status.orphaned = it.is_dependency && it.status.dependants.is_empty();
    }
    operators
}

fn check(text: &str, names: &str, cascade: bool, expected: &str) {
    let operators = operators(text);
    let names = names.split(' ').map(str::to_owned).collect();
    let workload = RemainingObjects {
        kind: "Foo.foo.example.com".to_owned(),
        namespace: "default".to_owned(),
        count: 2,
        ..RemainingObjects::default()
    };
    let workloads = BTreeMap::from([("foo".to_owned(), vec![workload])]);
    let request =
        DeletionRequest { workloads: &workloads, cascade, ..deletion_request(&operators, &names) };
    let text = DeletionPlan::new(&request).text().replace("  0 objects\n", "");
    let lines: Vec<&str> = expected.lines().map(str::trim_start).collect();
    let found: Vec<&str> = text.lines().map(str::trim_start).collect();
    assert_eq!(found, lines, "{names:?} of {operators:#?}");
}

const FOO_NEEDS_BAR: &str = "foo: bar\n bar dependency:";

#[test]
fn a_dependant_counts_as_soon_as_one_of_both_reports_it() {
    let reports: [fn(&mut OperatorStatus); 2] =
        [|it| it.dependants.clear(), |it| it.dependencies.clear()];
    for forget in reports {
        let mut operators = operators(FOO_NEEDS_BAR);
        operators.values_mut().for_each(|it| forget(&mut it.status));
        let names = BTreeSet::from(["bar".to_owned()]);
        let request = deletion_request(&operators, &names);
        let plan = DeletionPlan::new(&request);
        assert_eq!(plan.dependants_of("bar"), ["foo"]);
        assert_eq!(
            plan.text(),
            "bar will be deleted\n  0 objects\nfoo depends on bar, and is kept\n"
        );
        let names = BTreeSet::from(["foo".to_owned()]);
        let plan = DeletionPlan::new(&DeletionRequest { names: &names, cascade: true, ..request });
        let going: Vec<&str> = plan.delete.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(going, ["foo", "bar"]);
    }
}

#[test]
fn a_plan_names_what_goes_what_breaks_and_what_is_left() {
    check(
        FOO_NEEDS_BAR,
        "foo",
        false,
        "foo will be deleted
         workloads: 2 Foo.foo.example.com in default
         bar will become an orphan, and is kept",
    );
    check(FOO_NEEDS_BAR, "bar", false, "bar will be deleted\nfoo depends on bar, and is kept");
    check(
        FOO_NEEDS_BAR,
        "bar foo",
        false,
        "foo will be deleted
         workloads: 2 Foo.foo.example.com in default
         bar will be deleted",
    );
    check(
        FOO_NEEDS_BAR,
        "foo",
        true,
        "foo will be deleted
         workloads: 2 Foo.foo.example.com in default
         bar will be deleted (orphaned dependency)",
    );
    // An Operator that a user installed is never an orphan.
    check("qux: bar\n bar:", "qux", true, "qux will be deleted");
    check(
        "qux: bar\n zed: bar\n bar dependency:",
        "qux",
        true,
        "qux will be deleted\nbar is kept: zed depends on it",
    );
    // Orphans of orphans, and a common dependency of two deleted Operators.
    check(
        "qux: a b\n a dependency: c\n b dependency: c\n c dependency:",
        "qux",
        true,
        "qux will be deleted
         a will be deleted (orphaned dependency)
         b will be deleted (orphaned dependency)
         c will be deleted (orphaned dependency)",
    );
    // A cycle has an order as well.
    check("a: b\n b: a", "a b", false, "a will be deleted\nb will be deleted");
}

#[test]
fn another_operator_of_the_name_is_another_plan() {
    let names = BTreeSet::from(["bar".to_owned(), "foo".to_owned()]);
    let plan = |text: &str, uid: &str| {
        let mut operators = operators(text);
        operators.values_mut().for_each(|it| uid.clone_into(&mut it.uid));
        DeletionPlan::new(&deletion_request(&operators, &names))
    };
    let shown = plan(FOO_NEEDS_BAR, "1");
    assert_eq!(plan(FOO_NEEDS_BAR, "1"), shown);
    assert!(plan(FOO_NEEDS_BAR, "1").replaced_since(&shown).is_empty());
    let current = plan(FOO_NEEDS_BAR, "2");
    assert_ne!(current, shown);
    assert_eq!(current.text(), shown.text());
    assert_eq!(
        current.replaced_since(&shown),
        [
            "foo was deleted, and another client created it again",
            "bar was deleted, and another client created it again",
        ]
    );
    assert_eq!(plan("foo:", "1").replaced_since(&shown), ["bar was deleted"]);
    // The uid is that of the change, in documents.
    assert!(!serde_json::to_string(&shown).unwrap().contains("uid"));
}

#[test]
fn orphans_are_dependencies_that_nothing_depends_on_but_orphans() {
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<String> = orphans(&operators(text)).names.into_iter().collect();
        assert_eq!(found, expected, "{text}");
    };
    check(FOO_NEEDS_BAR, &[]);
    check("bar dependency:", &["bar"]);
    check("bar dependency: baz\n baz dependency:\n foo:", &["bar", "baz"]);
}

/// A change of two Operators: foo, which a person requested, and bar, which was installed as a dependency.
type StateChange<'a> = &'a dyn Fn(&mut ObservedOperator, &mut ObservedOperator);

#[test]
fn what_a_requested_operator_requires_is_no_orphan_before_it_is_installed() {
    let created = |it: &mut ObservedOperator| {
        it.generation = 1;
        it.status = OperatorStatus::default();
    };
    let named = |operator: &str| DependencyStatus {
        operator: operator.to_owned(),
        requirement: "bar >=1.2.3".to_owned(),
        ..DependencyStatus::default()
    };
    let check = |what: &str, edit: StateChange<'_>, expected: &str| {
        let mut operators = operators("qux:\n bar dependency:\n foo:");
        let mut foo = operators.remove("foo").unwrap();
        let mut bar = operators.remove("bar").unwrap();
        edit(&mut foo, &mut bar);
        operators.extend([("foo".to_owned(), foo), ("bar".to_owned(), bar)]);
        let Orphans { names, possible } = orphans(&operators);
        let possible = possible.iter().map(PossibleOrphan::text);
        let found: Vec<String> = names.into_iter().chain(possible).collect();
        assert_eq!(found.join("\n"), expected, "{what}");
    };
    let unknown = "bar is kept: what foo requires is not known yet";
    check("nothing requires bar", &|_, _| {}, "bar");
    check("foo was created", &|foo, _| created(foo), unknown);
    check("foo was changed", &|foo, _| foo.generation = 1, unknown);
    let waits = |foo: &mut ObservedOperator| foo.status.bundle = None;
    check("no bundle of foo is chosen", &|foo, _| waits(foo), unknown);
    let names_bar = |foo: &mut ObservedOperator, bar: &mut ObservedOperator| {
        waits(foo);
        foo.status.dependencies = vec![named("bar")];
        bar.status.bundle = None;
        bar.status.orphaned = false;
    };
    check("foo names bar, which is not installed", &names_bar, "");
    check(
        "foo names bar in another version",
        &|foo, _| foo.status.dependencies = vec![named("bar")],
        "",
    );
    let requires_api = |foo: &mut ObservedOperator, _: &mut ObservedOperator| {
        foo.status.dependencies = vec![named("")];
    };
    check("bar, which is installed, is not what foo requires", &requires_api, "bar");
    let may_provide = |foo: &mut ObservedOperator, bar: &mut ObservedOperator| {
        requires_api(foo, bar);
        bar.status.bundle = None;
    };
    check("bar may be what foo requires", &may_provide, unknown);
    check("bar was created", &|_, bar| created(bar), "");
    check("the controller knows that bar is awaited", &|_, bar| bar.status.orphaned = false, "");
    let is_deleted = |foo: &mut ObservedOperator, _: &mut ObservedOperator| {
        created(foo);
        foo.is_deleting = true;
    };
    check("foo is being deleted", &is_deleted, "bar");
}

#[test]
fn a_dependency_is_kept_while_it_is_not_known_who_else_needs_it() {
    let mut operators = operators("foo: bar\n bar dependency:\n qux:");
    let qux = operators.get_mut("qux").unwrap();
    qux.status = OperatorStatus::default();
    let names = BTreeSet::from(["foo".to_owned()]);
    let plan = DeletionPlan::new(&DeletionRequest {
        cascade: true,
        ..deletion_request(&operators, &names)
    });
    assert_eq!(
        plan.text(),
        "foo will be deleted\n  0 objects\nbar is kept: what qux requires is not known yet\n"
    );
}

#[test]
fn a_definition_that_is_kept_loses_the_conversion_webhook_of_the_operator() {
    let service = json!({ "namespace": "bar", "name": "bar-service" });
    let webhook = json!({ "clientConfig": { "service": service } });
    let definition = |strategy: &str| {
        json!({
            "metadata": { "name": "bars.example.com" },
            "spec": { "conversion": { "strategy": strategy, "webhook": webhook } },
        })
    };
    let key = ObjectKey {
        group: String::new(),
        kind: "Service".to_owned(),
        namespace: "bar".to_owned(),
        name: "bar-service".to_owned(),
    };
    let own = OperatorStatus { inventory: vec![key], ..OperatorStatus::default() };
    let removed = RemovedConversion::of(&definition("Webhook"), &own).unwrap();
    assert_eq!(RemovedConversion::of(&definition("None"), &own), None);
    let other = OperatorStatus::default();
    assert_eq!(RemovedConversion::of(&definition("Webhook"), &other), None);
    let operators = operators("bar:");
    let names = BTreeSet::from(["bar".to_owned()]);
    let conversions = BTreeMap::from([("bar".to_owned(), vec![removed])]);
    let plan = |keep_crds| {
        DeletionPlan::new(&DeletionRequest {
            conversions: &conversions,
            keep_crds,
            ..deletion_request(&operators, &names)
        })
    };
    assert_eq!(
        plan(true).text(),
        "bar will be deleted\n  0 objects\n  conversion webhook of bars.example.com is removed: \
         service bar/bar-service goes\n"
    );
    let json = serde_json::to_value(plan(true)).unwrap();
    assert_eq!(
        json["delete"][0]["conversions"],
        json!([{ "definition": "bars.example.com", "service": "bar/bar-service" }])
    );
    assert!(plan(false).delete[0].conversions.is_empty());
}

#[test]
fn what_the_release_contains_is_kept_and_the_reason_shown() {
    let key = |group: &str, kind: &str, namespace: &str, name: &str| ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let mut operators = operators("bar:");
    let status = &mut operators.get_mut("bar").unwrap().status;
    status.inventory = vec![
        key(DEFINITION_GROUP, "CustomResourceDefinition", "", "bars.example.com"),
        key(DEFINITION_GROUP, "CustomResourceDefinition", "", "foos.example.com"),
        key("", "ConfigMap", "bar", "one"),
    ];
    let shared = [&status.inventory[0], &status.inventory[2]];
    let of_release: BTreeSet<String> = shared.map(ToString::to_string).into();
    let left = definitions(&without_release(status, &of_release));
    assert_eq!(left, ["foos.example.com"]);
    let plan = DeletionPlan::new(&DeletionRequest {
        of_release: &of_release,
        ..deletion_request(&operators, &BTreeSet::from(["bar".to_owned()]))
    });
    assert_eq!(
        plan.text(),
        "bar will be deleted\n  1 object\n  \
         customresourcedefinition.apiextensions.k8s.io/bars.example.com is kept: the release \
         contains it\n  configmap/one -n bar is kept: the release contains it\n  definition \
         foos.example.com\n"
    );
    let json = serde_json::to_value(plan).unwrap();
    assert_eq!(
        json["delete"][0]["kept"][1],
        json!({
            "group": "", "kind": "ConfigMap", "namespace": "bar", "name": "one",
            "reason": "Conflict", "message": "the release contains it",
        })
    );
}

#[test]
fn definitions_that_are_kept_are_not_among_the_objects_that_go() {
    let key = |group: &str, kind: &str, name: &str| ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let mut operators = operators("bar:");
    operators.get_mut("bar").unwrap().status.inventory = vec![
        key(DEFINITION_GROUP, "CustomResourceDefinition", "bars.example.com"),
        key("rbac.authorization.k8s.io", "ClusterRole", "bar"),
        key("", "Namespace", "bar"),
    ];
    let names = BTreeSet::from(["bar".to_owned()]);
    for (keep_crds, expected) in [
        (false, "  3 objects\n  definition bars.example.com\n"),
        (true, "  2 objects\n  definition bars.example.com is kept\n"),
    ] {
        let request = DeletionRequest { keep_crds, ..deletion_request(&operators, &names) };
        let text = DeletionPlan::new(&request).text();
        assert_eq!(text, format!("bar will be deleted\n{expected}"));
    }
}

#[test]
fn what_is_being_rolled_out_goes_as_what_is_installed() {
    let entry = |state: &str, revision: u32| -> OperatorHistory {
        serde_json::from_value(json!({
            "state": state, "bundle": "bar", "version": format!("1.{revision}.0"), "revision": revision,
            "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
        }))
        .unwrap()
    };
    let object = |api_version: &str, kind: &str, name: &str| RevisionObject {
        phase: String::new(),
        object: json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } }),
    };
    let definition = |name: &str| {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &format!("{name}.example.com"),
        )
    };
    let revisions = [
        // It is installed: the inventory has what is left of it.
        vec![definition("olds")],
        vec![definition("bars"), definition("foos")],
        vec![definition("foos"), object("v1", "ConfigMap", "one")],
    ];
    let revisions = revisions.into_iter().zip(1..).map(|(objects, revision)| {
        OperatorRevisionSpec { revision, objects, ..OperatorRevisionSpec::default() }
    });
    let revisions: Vec<OperatorRevisionSpec> = revisions.collect();
    let bars = ObjectKey {
        group: DEFINITION_GROUP.to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: String::new(),
        name: "bars.example.com".to_owned(),
    };
    let check = |history: Vec<OperatorHistory>, expected: &str| {
        let mut operators = operators("bar:");
        let status = &mut operators.get_mut("bar").unwrap().status;
        (status.history, status.inventory) = (history, vec![bars.clone()]);
        include_rollouts(status, &revisions);
        let plan =
            DeletionPlan::new(&deletion_request(&operators, &BTreeSet::from(["bar".to_owned()])));
        assert_eq!(plan.text(), format!("bar will be deleted\n  {expected}"));
    };
    let installed = "1 object\n  definition bars.example.com\n";
    check(vec![entry("Completed", 1)], installed);
    check(
        vec![entry("Partial", 3), entry("Partial", 2), entry("Completed", 1)],
        "3 objects\n  v1.3.0 is still being rolled out: what it has created by then is deleted\n  \
         definition bars.example.com\n  definition foos.example.com\n",
    );
    // It returned to what was installed before.
    check(vec![entry("Completed", 1), entry("Partial", 2), entry("Completed", 1)], installed);
}
