//! The command lines for classes and attributes.

use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, ActionStatus, EffectiveAttribute};
use serde_json::{Value, json};

use super::{command, command_in, command_of};
use crate::actions::attributes::NamedClass;
use crate::actions::check::effective;
use crate::actions::files::built_in_classes;
use crate::actions::tests::class;

fn spec(value: Value) -> ActionSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn each_class_has_the_command_that_does_the_same() {
    let check = |action: Value, expected: &str| {
        let spec = spec(action);
        let classes = built_in_classes();
        let class = NamedClass::find(&classes, &spec.action_class).unwrap();
        let action = effective(&spec, class, None).unwrap();
        assert_eq!(command(&action), expected);
        // The status lists the attributes as texts.
        let status = ActionStatus { effective_spec: action.listed(), ..ActionStatus::default() };
        assert_eq!(command_of(&spec, &status), expected);
        assert_eq!(command_of(&spec, &ActionStatus::default()), expected);
    };
    let install = |more: Value| {
        let mut action = json!({"actionClass": "operator-install", "package": "foo"});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        action
    };
    check(install(json!({})), "kubectl operator install foo --no-dependencies");
    check(
        install(json!({"version": "^1.2.x", "installDependencies": true})),
        "kubectl operator install foo --version-range '^1.2.x'",
    );
    check(
        install(json!({"version": "1.2.3", "channel": "stable", "repository": "my cat's"})),
        r"kubectl operator install foo --version 1.2.3 --channel stable --repository 'my cat'\''s' --no-dependencies",
    );
    check(
        install(json!({"installDependencies": true, "dryRun": true})),
        "kubectl operator install foo --dry-run",
    );
    check(
        json!({"actionClass": "operator-installation", "package": "foo", "version": ">=1 <2"}),
        "kubectl operator install foo --version-range '>=1 <2' --no-dependencies",
    );
    let update = |more: Value| json!({"actionClass": "operator-update", "parameters": more});
    check(update(json!({})), "kubectl operator update");
    check(update(json!({"latest": true, "together": true})), "kubectl operator update --latest");
    check(
        json!({"actionClass": "operator-update", "package": "foo", "version": "~1.2",
               "dryRun": true}),
        "kubectl operator update foo --version-range '~1.2' --dry-run",
    );
    check(
        json!({"actionClass": "operator-delete", "package": "foo",
               "parameters": {"cascade": true}}),
        "kubectl operator delete foo --cascade --safe",
    );
    check(
        json!({"actionClass": "operator-deletion", "package": "foo",
               "ensureConstraintSatisfiability": false}),
        "kubectl operator delete foo",
    );
    check(json!({"actionClass": "autoremove"}), "kubectl operator autoremove");
    check(
        json!({"actionClass": "resolution-debug", "package": "foo"}),
        "kubectl operator resolve foo",
    );
    check(json!({"actionClass": "release-update"}), "plimsoll update to --latest");
    check(json!({"actionClass": "release-update", "version": "1.1.0"}), "plimsoll update to 1.1.0");
    check(
        json!({"actionClass": "release-update", "version": "1.1.0", "dryRun": true}),
        "plimsoll update plan 1.1.0",
    );
    check(json!({"actionClass": "release-update", "dryRun": true}), "plimsoll update");
    check(
        json!({"actionClass": "capability-enable",
               "parameters": {"capabilities": ["Build", "Storage"]}}),
        "plimsoll capability enable Build Storage",
    );
}

#[test]
fn values_are_neither_options_nor_commands() {
    let check = |package: &str, channel: &str, expected: &str| {
        let spec = spec(json!({
            "actionClass": "operator-install", "package": package, "channel": channel,
            "installDependencies": true,
        }));
        assert_eq!(command_of(&spec, &ActionStatus::default()), expected);
    };
    check("--force", "", "kubectl operator install -- --force");
    check("foo", "-x", "kubectl operator install foo --channel=-x");
    check("foo;reboot", "$(id)", "kubectl operator install 'foo;reboot' --channel '$(id)'");
    check("foo\u{1b}[2J", "", "");
    check("foo\nbar", "", "");
}

#[test]
fn what_is_invalid_has_the_command_of_its_spec() {
    let delete = spec(json!({
        "actionClass": "operator-delete", "package": "foo",
        "parameters": {"cascade": true, "gently": true},
    }));
    let command = command_of(&delete, &ActionStatus::default());
    assert_eq!(command, "kubectl operator delete foo --cascade");
}

#[test]
fn other_classes_have_the_command_that_they_name() {
    let by_hand = "velero backup create".to_owned();
    let backup = NamedClass {
        name: "backup".into(),
        spec: ActionClassSpec { by_hand: by_hand.clone(), ..ActionClassSpec::default() },
    };
    let action = effective(&ActionSpec::default(), &backup, None).unwrap();
    assert_eq!((command(&action), command_in(&backup, &action)), (String::new(), by_hand));
    let autoremove = class("autoremove");
    let action = effective(&ActionSpec::default(), &autoremove, None).unwrap();
    assert_eq!(command_in(&autoremove, &action), "kubectl operator autoremove");
    let spec = spec(json!({"actionClass": "backup", "package": "foo"}));
    let listed = EffectiveAttribute { name: "package".into(), ..EffectiveAttribute::default() };
    let status = ActionStatus { effective_spec: vec![listed], ..ActionStatus::default() };
    assert_eq!(command_of(&spec, &status), "");
}
