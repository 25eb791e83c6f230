//! The attributes of Actions, and those that their classes know.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::ActionSpec;
use serde_json::{Value, json};

use crate::actions::check::effective;
use crate::actions::tests::class;

#[test]
fn attributes_are_those_of_the_class() {
    let check = |class_name: &str, spec: Value, expected: Result<&str, &str>| {
        let spec: ActionSpec = serde_json::from_value(spec).unwrap();
        match (effective(&spec, &class(class_name), None), expected) {
            (Ok(action), Ok(expected)) => {
                let listed = action.listed();
                let texts =
                    listed.iter().map(|it| format!("{}={} ({})", it.name, it.value, it.set_by));
                assert_eq!(texts.collect::<Vec<_>>().join(", "), expected);
            }
            (Err(failure), Err(expected)) => {
                assert_eq!(failure.reason, Reason::InvalidAction);
                assert!(failure.message.contains(expected), "{}", failure.message);
            }
            (found, _) => panic!("{found:?}"),
        }
    };
    check(
        "operator-installation",
        json!({"package": "foo", "installDependencies": true}),
        Ok("ensureConstraintSatisfiability=true (class operator-install), \
            installDependencies=true (request), package=foo (request)"),
    );
    check("operator-install", json!({}), Err("class operator-install needs spec.package"));
    check("autoremove", json!({"package": "foo"}), Err("has no attribute package: it has dryRun"));
    check(
        "operator-delete",
        json!({"package": "foo", "parameters": {"cascade": "yes"}}),
        Err("spec.parameters.cascade is \"yes\": write true or false"),
    );
    // The spelling of the command sets the attribute, so that policies judge that.
    check(
        "operator-delete",
        json!({"package": "foo", "parameters": {"force": true}}),
        Ok("ensureConstraintSatisfiability=false (request), package=foo (request), \
            parameters.force=true (request)"),
    );
    check(
        "resolution",
        json!({"package": "foo", "parameters": {"noDependencies": true}}),
        Ok("installDependencies=false (request), package=foo (request), \
            parameters.noDependencies=true (request)"),
    );
    check(
        "operator-update",
        json!({}),
        Ok("ensureConstraintSatisfiability=true (class operator-update), \
        parameters.together=true (class operator-update)"),
    );
    check(
        "release-update",
        json!({"parameters": {"x": 1}}),
        Err("has no parameters, but x is given"),
    );
}
