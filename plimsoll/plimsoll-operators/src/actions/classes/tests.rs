//! Classes that can be served, and those that cannot.

use plimsoll_api::olm::action::ActionClassSpec;
use serde_json::{Value, json};

use super::{acceptance, is_served};
use crate::actions::attributes::NamedClass;
use crate::actions::files::built_in_classes;

/// Returns a class of another controller with some fields.
fn class(name: &str, fields: &Value) -> NamedClass {
    let mut spec = json!({ "controller": "example.com/backups" });
    for (field, value) in fields.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let spec: ActionClassSpec = serde_json::from_value(spec).unwrap();
    NamedClass::new(name, spec)
}

#[test]
fn built_in_classes_are_accepted_and_complete() {
    let classes = built_in_classes();
    for class in &classes {
        assert_eq!(acceptance(class, &classes), Ok(()), "{}", class.name);
        let spec = &class.spec;
        assert!(!spec.by_hand.is_empty(), "{}", class.name);
        // Administrators set it, and applying the class again keeps that.
        assert_eq!(spec.history_limit, None, "{}", class.name);
        for name in class.parameters() {
            let schema = spec.schema.as_ref().unwrap();
            let description =
                schema["properties"][name]["description"].as_str().unwrap_or_default();
            assert!(description.len() > 10, "{}: {name}", class.name);
        }
    }
}

#[test]
fn a_class_that_does_not_agree_with_itself_or_others_is_not_accepted() {
    let schema = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let check = |fields: Value, expected: &str| {
        let mut others = built_in_classes();
        let names = json!({ "aliases": ["archive"] });
        others.extend([class("a-backup", &names), class("z-backup", &names)]);
        let found = acceptance(&class("backup", &fields), &others);
        match expected {
            "" => assert_eq!(found, Ok(()), "{fields}"),
            _ => {
                let message = found.expect_err(expected);
                assert!(message.contains(expected), "{fields}: {message}");
            }
        }
    };
    check(json!({}), "");
    check(json!({ "attributes": ["version"], "required": ["version"], "schema": schema }), "");
    check(json!({ "schema": schema, "defaults": { "parameters.size": 3 } }), "");
    check(json!({ "schema": schema, "required": ["parameters.size"] }), "");
    check(json!({ "schema": { "type": "array" } }), "spec.schema.type has to be object");
    check(
        json!({ "schema": { "type": "object", "properties": { "a": {} } } }),
        "spec.schema is no structural schema",
    );
    check(
        json!({ "attributes": ["packages"] }),
        "an Action has no attribute packages, did you mean `package`?",
    );
    check(
        json!({ "required": ["version"] }),
        "spec.required: version is neither in spec.attributes nor in spec.schema",
    );
    check(json!({ "defaults": { "dryRun": true } }), "spec.defaults: dryRun is neither in");
    check(
        json!({ "attributes": ["dryRun"], "defaults": { "dryRun": "yes" } }),
        "spec.defaults: dryRun is \"yes\": write true or false",
    );
    check(
        json!({ "attributes": ["version"], "defaults": { "version": 1 } }),
        "spec.defaults: version is 1: write a text",
    );
    check(
        json!({ "schema": schema, "defaults": { "parameters.size": "big" } }),
        "spec.defaults: spec.parameters.size is \"big\": write a whole number",
    );
    check(
        json!({ "schema": schema, "defaults": { "parameters": { "size": 3 } } }),
        "write a parameter as parameters.NAME",
    );
    check(json!({ "defaults": [] }), "spec.defaults has to be fields");
    check(json!({ "ttlAfterFinished": "2d" }), "spec.ttlAfterFinished is \"2d\"");
    check(json!({ "byHand": "a\nb" }), "spec.byHand has more than one line");
    check(
        json!({ "aliases": ["autoremove"] }),
        "spec.aliases: autoremove is the name of class autoremove: leave it out",
    );
    check(
        json!({ "aliases": ["operator-deletion"] }),
        "operator-deletion is an alias of class operator-delete",
    );
    check(json!({ "aliases": ["archive"] }), "archive is an alias of class a-backup");
}

#[test]
fn an_alias_is_that_of_one_class_whatever_the_order() {
    let names = json!({ "aliases": ["archive", "operator-deletion"] });
    let mut classes = vec![class("z", &names), class("a", &names)];
    classes.extend(built_in_classes());
    let found = |alias: &str| NamedClass::find(&classes, alias).map(|it| it.name.as_str());
    assert_eq!(found("archive"), Some("a"));
    assert_eq!(found("operator-deletion"), Some("operator-delete"));
    assert_eq!(acceptance(&classes[1], &classes[..1]), Ok(()));
}

#[test]
fn without_a_class_only_actions_that_name_a_built_in_one_are_served() {
    let foreign = class("backup", &json!({ "aliases": ["archive", "operator-update"] }));
    let check = |classes: &[NamedClass], name: &str, expected: bool| {
        assert_eq!(is_served(classes, name), expected, "{name}");
    };
    check(&built_in_classes(), "operator-install", true);
    check(&[], "operator-install", true);
    check(&[], "operator-deletion", true);
    check(&[], "backup", false);
    check(&[], "", false);
    let classes = [foreign];
    check(&classes, "backup", false);
    check(&classes, "archive", false);
    check(&classes, "operator-update", false);
    check(&classes, "operator-delete", true);
}
