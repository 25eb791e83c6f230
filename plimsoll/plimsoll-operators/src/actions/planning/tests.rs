//! Plans of Actions: each parameter of a class has an effect, and a resolution answers as all others do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_api::olm::action::{ActionSpec, PlannedChange};
use plimsoll_api::olm::{Dependant, DependencyStatus, OperatorStatus};
use serde_json::{Value, json};

use super::{ActionFailure, ActionPlan, packages, plan};
use crate::actions::check::effective;
use crate::actions::files::built_in_classes;
use crate::actions::release::ObservedRelease;
use crate::actions::tests::class;
use crate::inventory::OperatorInventory;
use crate::observed::ObservedOperator;
use crate::query::{ResolutionQuery, answer};
use crate::tests::{FIXTURE, NoExpressions, catalogs, facts, operators};

/// Packages in addition to those of the fixture.
const OTHERS: &str = "
    main 0 pin/stable
      1.0.0 provides Pin, requires bar <1.2.7
    main 0 caller/stable
      1.0.0 provides Caller, requires Baz
    main 0 zalt/stable
      1.0.0 provides Baz
    other 0 bar/stable
      1.2.8 provides Bar";
/// An Operator with a dependency, both pinned.
const PINNED: &str = "
    foo: version 1.2.2; at 1.2.2
    bar: version 1.2.5; at 1.2.5; dependency";

/// Returns an inventory with Operators as texts. Of foo and bar, the one depends on the other.
fn inventory(text: &str) -> OperatorInventory {
    let known = catalogs(&(FIXTURE.to_owned() + OTHERS));
    let operators = operators(&known, text);
    let mut observed = BTreeMap::new();
    for (name, it) in &operators {
        let bundle = it.installed.as_ref().map(|it| it.reference.clone());
        let mut status = OperatorStatus { bundle, ..OperatorStatus::default() };
        if name == "foo" {
            let operator = "bar".to_owned();
            let on = DependencyStatus { operator, satisfied: true, ..Default::default() };
            status.dependencies.push(on);
        } else if name == "bar" && operators.contains_key("foo") {
            let (operator, requirement) = ("foo".to_owned(), "bar >=1.2.3".to_owned());
            status.dependants.push(Dependant { operator, requirement });
        } else if it.is_dependency {
            status.orphaned = true;
        }
        let there = ObservedOperator {
            uid: format!("uid-{name}"),
            is_dependency: it.is_dependency,
            change_set: it.change_set.clone(),
            spec: it.spec.clone(),
            status,
            ..ObservedOperator::default()
        };
        observed.insert(name.clone(), there);
    }
    let offered = known.iter().flat_map(|it| &it.packages).map(|it| it.name.clone()).collect();
    OperatorInventory { operators, observed, offered, facts: facts(30), ..Default::default() }
}

/// Plans an Action beside Operators.
fn planned(operators: &str, spec: &Value) -> Result<ActionPlan, ActionFailure> {
    let spec: ActionSpec = serde_json::from_value(spec.clone()).unwrap();
    let action = effective(&spec, &class(&spec.action_class), None)?;
    let inventory = inventory(operators);
    let known = catalogs(&(FIXTURE.to_owned() + OTHERS));
    let read: BTreeSet<String> = packages(&action, &inventory).into_iter().collect();
    assert!(read.is_superset(&inventory.operators.keys().cloned().collect()));
    let release = ObservedRelease::read(&json!({ "status": { "capabilities": {
        "knownCapabilities": ["Build", "Console"],
    } } }));
    plan(&action, &inventory, Some(&release), &BTreeMap::new(), &known, &NoExpressions)
}

/// Returns a plan as a text, a line for each change.
fn shown(planned: &Result<ActionPlan, ActionFailure>) -> String {
    let plan = match planned {
        Ok(plan) => plan,
        Err(failure) => {
            return format!("{}: {}\n{}", failure.reason, failure.message, failure.answer());
        }
    };
    let mut text = String::new();
    for it in &plan.changes {
        let set = if it.change_set.is_empty() { "alone" } else { "together" };
        let spec = it.manifest.as_ref().map(|it| it["spec"].clone()).unwrap_or_default();
        let fields = it.spec_fields.clone().unwrap_or_default();
        let name = it.subject();
        writeln!(
            text,
            "{:?} {name} {} as {:?} {set} of {:?} {:?} {spec} {fields}",
            it.operation, it.version, it.requested, it.catalog, it.repository
        )
        .unwrap();
    }
    writeln!(text, "{}\n{}", plan.explanation.join("\n"), plan.result).unwrap();
    text
}

/// Checks that a parameter makes a plan have a text which it does not have without.
fn check(operators: &str, spec: &Value, parameter: &str, value: &Value, expected: &str) {
    let without = shown(&planned(operators, spec));
    let mut with = spec.clone();
    with["parameters"][parameter] = value.clone();
    let with = shown(&planned(operators, &with));
    assert!(with.contains(expected), "{spec} {parameter}: {with}");
    assert!(!without.contains(expected), "{spec} {parameter}, without: {without}");
}

#[test]
fn each_parameter_of_a_class_has_an_effect_on_a_plan() {
    let install = |package: &str, version: &str| {
        let class = "operator-install";
        json!({
            "actionClass": class, "package": package, "version": version,
            "installDependencies": true,
        })
    };
    let query = |package: &str, version: &str| {
        let parameters = json!({ "output": "json" });
        json!({
            "actionClass": "resolution", "package": package, "version": version,
            "parameters": parameters,
        })
    };
    let update = json!({ "actionClass": "operator-update" });
    let update_foo =
        json!({ "actionClass": "operator-update", "package": "foo", "version": "~1.2" });
    let delete = |package: &str| json!({ "actionClass": "operator-delete", "package": package });
    let pin = "pin: version 1.0.0; at 1.0.0\nbar: version 1.2.5; at 1.2.5";
    let orphan = "bar: version 1.2.5; at 1.2.5; dependency";
    let crds = r#"{"deletion":{"crds":"Orphan"}}"#;
    let baz = "example.com/v1/Baz=zalt";
    let of_other = "Create bar 1.2.8 as";
    let rows = [
        ("", install("bar", ""), "packages", json!(["baz@~1.2"]), "Create baz 1.2.4"),
        ("", install("caller", ""), "providers", json!([baz]), "Create zalt 1.0.0"),
        ("", install("caller", ""), "exclude", json!(["baz"]), "Create zalt 1.0.0"),
        ("", install("foo", "1.2.9"), "preferRepository", json!("other"), of_other),
        ("", install("bar", ""), "namespace", json!("tools"), r#""namespace":"tools""#),
        ("", install("bar", ""), "collisionProtection", json!("None"), r#"Protection":"None""#),
        (pin, install("foo", "1.2.9"), "force", json!(true), "Create foo 1.2.9"),
        (PINNED, update.clone(), "packages", json!(["foo"]), "Update foo 2.0.1"),
        (PINNED, update.clone(), "ranges", json!(["foo@~1.2"]), "Update foo 1.2.9"),
        (PINNED, update_foo.clone(), "follow", json!(true), "Update foo 1.2.9 as \"~1.2\""),
        (PINNED, update, "latest", json!(true), "Update foo 2.0.1"),
        (PINNED, update_foo, "together", json!(false), "Update foo 1.2.9 as \"1.2.9\" alone"),
        (PINNED, delete("foo"), "packages", json!(["bar"]), "Delete bar"),
        (PINNED, delete("foo"), "cascade", json!(true), "Delete bar"),
        (PINNED, delete("foo"), "keepCRDs", json!(true), crds),
        (PINNED, delete("bar"), "force", json!(true), "Delete bar"),
        (orphan, json!({ "actionClass": "autoremove" }), "keepCRDs", json!(true), crds),
        ("", query("bar", ""), "packages", json!(["baz@~1.2"]), "baz@v1.2.4"),
        ("", query("caller", ""), "providers", json!([baz]), "zalt@v1.0.0"),
        ("", query("caller", ""), "exclude", json!(["baz"]), "zalt@v1.0.0"),
        ("", query("foo", "1.2.9"), "preferRepository", json!("other"), "bar@v1.2.8"),
        ("", query("bar", ""), "namespace", json!("tools"), r#""namespace":"tools""#),
        ("", query("bar", ""), "collisionProtection", json!("None"), r#"Protection":"None""#),
        ("", query("foo", ""), "noDependencies", json!(true), r#""unsatisfied":[{"#),
        ("", query("bar", ""), "output", json!("plan-json"), "{\n  \"operation\": \"install\""),
    ];
    for (operators, spec, parameter, value, expected) in &rows {
        check(operators, spec, parameter, value, expected);
    }
    let capability = json!({
        "actionClass": "capability-enable", "parameters": { "capabilities": ["Build"] },
    });
    let both = json!(["Build", "Console"]);
    check("", &capability, "capabilities", &both, "EnableCapability Console");
    let mut tested: BTreeSet<(String, String)> = rows
        .iter()
        .map(|(_, spec, parameter, ..)| {
            (spec["actionClass"].as_str().unwrap().to_owned(), (*parameter).to_owned())
        })
        .collect();
    tested.insert(("capability-enable".to_owned(), "capabilities".to_owned()));
    let classes = built_in_classes();
    let all = classes
        .iter()
        .flat_map(|class| class.parameters().map(|name| (class.name.clone(), name.to_owned())));
    assert_eq!(tested, all.collect::<BTreeSet<_>>(), "each parameter has a row");
}

#[test]
fn what_exists_gets_what_is_requested_of_it() {
    let check = |parameters: Value, fields: Value, expected: &str| {
        let mut spec = json!({
            "actionClass": "operator-install", "package": "bar", "parameters": parameters,
        });
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let there = "bar: version 1.2.7; at 1.2.7";
        let text = shown(&planned(there, &spec));
        assert!(text.starts_with(expected), "{spec}: {text}");
    };
    check(json!({}), json!({}), "bar is installed");
    check(
        json!({ "namespace": "tools" }),
        json!({}),
        r#"Update bar 1.2.7 as "1.2.7" alone of "main" "" null {"namespace":"tools"}"#,
    );
    check(
        json!({}),
        json!({ "channel": "stable", "repository": "main" }),
        r#"Update bar 1.2.7 as "1.2.7" alone of "main" "main" null {"channel":"stable"}"#,
    );
    // What is requested already of several packages is not requested again.
    check(json!({ "packages": ["baz@1.2.4"] }), json!({}), "Create baz 1.2.4 as \"1.2.4\"");
}

#[test]
fn an_action_that_cannot_be_done_says_what_may_be_meant() {
    for (spec, expected) in [
        (
            json!({ "actionClass": "operator-delete", "package": "fo" }),
            "OperatorNotFound: there is no Operator fo, did you mean `foo`?",
        ),
        (
            json!({ "actionClass": "operator-update", "package": "fo" }),
            "OperatorNotFound: there is no Operator fo, did you mean `foo`?",
        ),
        (
            json!({
                "actionClass": "operator-install", "package": "baz",
                "parameters": { "packages": ["callr"] },
            }),
            "PackageNotFound: no catalog has package `callr`, did you mean `caller`?",
        ),
        (
            json!({ "actionClass": "operator-install", "package": "baz", "repository": "mian" }),
            "InvalidAction: there is no catalog `mian`, did you mean `main`?",
        ),
        (
            json!({
                "actionClass": "operator-install", "package": "baz",
                "parameters": { "exclude": ["callr"] },
            }),
            "InvalidAction: cannot exclude `callr`: no catalog has package `callr`",
        ),
    ] {
        let text = shown(&planned(PINNED, &spec));
        assert!(text.starts_with(expected), "{spec}: {text}");
    }
}

#[test]
fn a_resolution_answers_what_the_service_answers() {
    let known = catalogs(&(FIXTURE.to_owned() + OTHERS));
    let pin = "pin: version 1.0.0; at 1.0.0\nbar: version 1.2.5; at 1.2.5";
    let check = |operators: &str, query: ResolutionQuery| {
        let mut spec = json!({
            "actionClass": "resolution",
            "package": query.packages[0],
            "installDependencies": !query.no_dependencies,
            "parameters": {
                "packages": query.packages[1..],
                "providers": query.providers,
                "exclude": query.exclude,
            },
        });
        for (field, value) in [
            ("version", &query.version_range),
            ("channel", &query.channel),
            ("repository", &query.repository),
        ] {
            spec[field] = json!(value.clone().unwrap_or_default());
        }
        if let Some(name) = &query.prefer_repository {
            spec["parameters"]["preferRepository"] = json!(name);
        }
        let there = inventory(operators);
        let expected = answer(there.inputs(&NoExpressions), &known, &query);
        let is_body = !matches!(
            expected.outcome,
            crate::query::ResolutionOutcome::Invalid
                | crate::query::ResolutionOutcome::PackageNotFound
        );
        let answered = |output: &str| {
            let mut spec = spec.clone();
            spec["parameters"]["output"] = json!(output);
            match planned(operators, &spec) {
                Ok(plan) => plan.result,
                Err(failure) => failure.answer().to_owned(),
            }
        };
        assert_eq!(answered("text"), expected.transcript(), "{spec}");
        let json = format!("{}\n", json!(expected));
        assert_eq!(answered("json") == json, is_body, "{spec}");
        expected.transcript()
    };
    let of = |packages: &[&str]| ResolutionQuery {
        packages: packages.iter().map(|it| (*it).to_owned()).collect(),
        ..ResolutionQuery::default()
    };
    let foo = |range: &str| ResolutionQuery { version_range: Some(range.into()), ..of(&["foo"]) };
    let no_dependencies = ResolutionQuery { no_dependencies: true, ..of(&["foo"]) };
    let chosen =
        ResolutionQuery { providers: vec!["example.com/v1/Baz=zalt".into()], ..of(&["caller"]) };
    let excluded = ResolutionQuery { exclude: vec!["baz".into()], ..of(&["caller"]) };
    let preferred = ResolutionQuery { prefer_repository: Some("other".into()), ..foo("1.2.9") };
    let elsewhere = ResolutionQuery { repository: Some("mian".into()), ..of(&["foo"]) };
    for (operators, query, expected) in [
        ("", of(&["foo"]), "- foo@v2.0.1"),
        ("", of(&["foo", "bar@1.2.5", "baz"]), "- bar@v1.2.5"),
        ("", foo("~1.2"), "foo v1.2.9 depends on bar"),
        ("", no_dependencies, "- foo@v2.0.1"),
        ("", chosen, "- zalt@v1.0.0"),
        ("", excluded, "- zalt@v1.0.0"),
        ("", preferred, "- bar@v1.2.8"),
        (PINNED, of(&["bar"]), "bar is kept for itself"),
        ("bar: version 1.2.7; at 1.2.7", of(&["bar"]), "Nothing to do"),
        (pin, foo("1.2.9"), "could leave your system in an inconsistent state"),
        ("", of(&["fooo"]), "no catalog has package `fooo`, did you mean `foo`?"),
        ("", elsewhere, "there is no catalog `mian`"),
        ("", foo("^9"), "error: "),
    ] {
        let text = check(operators, query);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn only_operators_that_are_named_follow_a_range() {
    let check = |attribute: &str, value: Value, expected: &str| {
        let mut spec =
            json!({ "actionClass": "operator-update", "parameters": { "follow": true } });
        match attribute {
            "package" => {
                spec["package"] = value;
                spec["version"] = "~1.2".into();
            }
            parameter => spec["parameters"][parameter] = value,
        }
        let text = shown(&planned(PINNED, &spec));
        assert!(text.contains(expected), "{attribute}: {text}");
    };
    check("package", json!("foo"), "Update foo 1.2.9 as \"~1.2\"");
    check("packages", json!(["foo@~1.2"]), "Update foo 1.2.9 as \"~1.2\"");
    check("ranges", json!(["foo@~1.2"]), "Update foo 1.2.9 as \"1.2.9\"");
}

#[test]
fn an_update_ends_the_change_set_of_an_interrupted_one() {
    let check = |bar: &str, foo: &str, set: &str, expected: &str| {
        let operators = format!("bar: version 1.2.7; at {bar}; set {set}\nfoo: {foo}; set {set}");
        let spec = json!({ "actionClass": "operator-update" });
        let plan = planned(&operators, &spec).expect("a plan");
        let shown = plan.changes.iter().map(|it| {
            let PlannedChange { operation, operator, .. } = it;
            let (joins, leaves) = (&it.change_set, &it.leaves_change_set);
            format!("{operation:?} {operator} in {joins:?}, leaves {leaves:?}")
        });
        assert_eq!(shown.collect::<Vec<_>>().join("\n"), expected, "{operators}");
    };
    let (done, update) = ("version 1.2.9; at 1.2.9", "update-1/2");
    let leave =
        "Update bar in \"\", leaves \"update-1/2\"\nUpdate foo in \"\", leaves \"update-1/2\"";
    check("1.2.7", done, update, leave);
    // It has not arrived yet: its set ends when it has.
    let waits = "Await bar in \"update-1/2\", leaves \"\"";
    check("1.2.5", "version 1.2.5; at 1.2.5", update, waits);
    // Those of users stay.
    check("1.2.7", done, "mine/2", "");
}
