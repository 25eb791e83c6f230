//! Requirements that are expressions over the properties of installed bundles.

use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{Constraint, Requirement};
use serde_json::json;

use super::*;
use crate::tests::{catalogs, inputs, operators, part};
use crate::{OperatorAction, OperatorDecision, decide};

const RULE: &str = "properties.exists(p, p.type == 'certified' && p.value == true)";

/// Returns the properties of a version of `db`, which is certified or not.
fn properties(version: &str, certified: bool) -> Vec<BundleProperty> {
    let property = |type_: &str, value| BundleProperty { type_: type_.to_owned(), value };
    vec![
        property("olm.package", json!({ "packageName": "db", "version": version })),
        property("certified", json!(certified)),
    ]
}

/// Decides on `app`, which requires something certified, and on `db` 1.0.0, which is installed. `next` says
/// whether `db` 1.1.0 is certified.
fn decided(installed: bool, next: bool) -> BTreeMap<String, OperatorDecision> {
    let mut of = catalogs(
        "main 0 app/stable
           1.0.0 provides App
         main 0 db/stable
           1.0.0 provides Db
           1.1.0 <1.0.0, provides Db",
    );
    let requirement = Requirement::from(Constraint::Cel { rule: RULE.to_owned() });
    of[0].packages[0].bundles[0].requires.push(requirement);
    for bundle in &mut of[0].packages[1].bundles {
        let described = properties(&bundle.version.to_string(), next);
        bundle.properties = installed_bundle(&bundle.name, "db", &described).properties;
    }
    let mut operators = operators(&of, "app: at 1.0.0; version 1.0.0\ndb: at 1.0.0");
    let db = operators.get_mut("db").and_then(|it| it.installed.as_mut()).expect("it is installed");
    db.bundle = installed_bundle("db.v1.0.0", "db", &properties("1.0.0", installed));
    let inputs = OperatorInputs { expressions: &Cel, ..inputs(&operators) };
    decide(inputs, &operators.keys().cloned().collect(), &|names| part(&of, names))
}

#[test]
fn an_installed_bundle_satisfies_an_expression_with_the_properties_of_its_revision() {
    for certified in [true, false] {
        let decisions = decided(certified, certified);
        let provider = certified.then(|| Provider::Installed("db".to_owned()));
        assert_eq!(decisions["app"].requirements[0].provider, provider, "certified: {certified}");
        assert_eq!(decisions["db"].dependants.len(), usize::from(certified));
    }
}

#[test]
fn an_update_is_blocked_if_it_loses_what_an_expression_of_a_dependant_needs() {
    let action = |next| decided(true, next).remove("db").expect("it is decided on").action;
    assert!(matches!(action(true), OperatorAction::Upgrade(_)), "{:?}", action(true));
    let OperatorAction::Blocked(block) = action(false) else {
        panic!("it is {:?}", action(false));
    };
    assert!(block.message.contains("app depends on"), "{}", block.message);
}
