//! The command lines for classes and attributes.

use std::collections::BTreeSet;

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
        "kubectl operator update 'foo@~1.2' --dry-run",
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
        "kubectl operator resolve foo --apply --dry-run",
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
fn each_parameter_of_each_class_is_in_the_command() {
    let classes = built_in_classes();
    let mut seen = BTreeSet::new();
    let mut check = |class: &str, parameter: &str, value: Value, expected: &str| {
        seen.insert((class.to_owned(), parameter.to_owned()));
        let of_name = NamedClass::find(&classes, class).unwrap();
        let mut action = json!({ "actionClass": class, "parameters": { parameter: value } });
        if of_name.spec.required.iter().any(|it| it == "package") {
            action["package"] = json!("foo");
        }
        let action = effective(&spec(action), of_name, None).unwrap();
        let (verb, options) = expected.split_once(' ').unwrap_or((expected, ""));
        let line = command(&action);
        assert!(
            line.starts_with(&format!("kubectl operator {verb}"))
                || line.starts_with(&format!("plimsoll capability {verb}")),
            "{line}"
        );
        assert!(line.contains(options), "{class} {parameter}: {line}");
    };
    for class in ["operator-install", "resolution"] {
        let verb = if class == "resolution" { "resolve" } else { "install" };
        let packages = json!(["bar@^2", "baz"]);
        check(class, "packages", packages, &format!("{verb} foo 'bar@^2' baz"));
        let providers = json!(["bar=baz", "a.example/v1/A=qux"]);
        let used = "--use bar=baz --use a.example/v1/A=qux";
        check(class, "providers", providers, &format!("{verb} {used}"));
        let excluded = "--exclude bar --exclude baz/baz.v1.0.0";
        check(class, "exclude", json!(["bar", "baz/baz.v1.0.0"]), &format!("{verb} {excluded}"));
        let preferred = format!("{verb} --prefer-repository same");
        check(class, "preferRepository", json!("same"), &preferred);
        // `resolve` does not have these options.
        check(class, "namespace", json!("tea"), "install --namespace tea");
        let protection = "install --collision-protection IfNoController";
        check(class, "collisionProtection", json!("IfNoController"), protection);
    }
    check("operator-install", "force", json!(true), "install --force");
    check("resolution", "noDependencies", json!(true), "resolve --no-dependencies");
    check("resolution", "output", json!("plan-json"), "resolve --output plan-json");
    check("resolution", "output", json!("json"), "resolve --output plan-json");
    check("operator-update", "packages", json!(["bar@^2", "baz"]), "update 'bar@^2' baz");
    let ranges = "update --for-range 'bar@^2' --for-range 'baz@<3'";
    check("operator-update", "ranges", json!(["bar@^2", "baz@<3"]), ranges);
    // Only those that are named follow a range. The command updates all together.
    check("operator-update", "follow", json!(true), "update");
    check("operator-update", "together", json!(true), "update");
    check("operator-update", "latest", json!(true), "update --latest");
    check("operator-delete", "packages", json!(["bar", "baz"]), "delete foo bar baz");
    check("operator-delete", "cascade", json!(true), "delete --cascade");
    check("operator-delete", "keepCRDs", json!(true), "delete --keep-crds");
    check("operator-delete", "force", json!(true), "delete --force");
    check("autoremove", "keepCRDs", json!(true), "autoremove --keep-crds");
    check("capability-enable", "capabilities", json!(["Build"]), "enable Build");
    let all = classes.iter().flat_map(|class| {
        class.parameters().map(|it| (class.name.clone(), it.to_owned())).collect::<Vec<_>>()
    });
    assert_eq!(seen, all.collect::<BTreeSet<_>>());
}

#[test]
fn packages_have_the_ranges_that_the_action_gives_them() {
    let check = |action: Value, expected: &str| {
        assert_eq!(command_of(&spec(action), &ActionStatus::default()), expected);
    };
    check(
        json!({"actionClass": "operator-install", "package": "foo", "version": "1.2.3",
               "installDependencies": true, "parameters": {"packages": ["bar"]}}),
        "kubectl operator install foo@1.2.3 bar",
    );
    check(
        json!({"actionClass": "operator-install", "package": "foo", "installDependencies": true,
               "ensureConstraintSatisfiability": false}),
        "kubectl operator install foo --force",
    );
    check(
        json!({"actionClass": "resolution", "package": "foo",
               "parameters": {"namespace": "tea"}}),
        "kubectl operator install foo --namespace tea --dry-run",
    );
    let update = |parameters: Value| {
        json!({"actionClass": "operator-update", "package": "foo", "version": "^1",
               "parameters": parameters})
    };
    check(
        update(json!({"packages": ["bar"], "ranges": ["baz@^1"]})),
        "kubectl operator update 'foo@^1' bar --for-range 'baz@^1'",
    );
    check(
        update(json!({"follow": true, "ranges": ["baz@^1"]})),
        "kubectl operator update foo --version-range '^1' --for-range 'baz@^1'",
    );
    check(
        update(json!({"follow": true, "packages": ["bar"], "ranges": ["baz@2.0.0"]})),
        "kubectl operator update bar && \
         kubectl operator update foo --version-range '^1' --for-range baz@2.0.0",
    );
    check(update(json!({"follow": true, "packages": ["bar\n@^2"]})), "");
    check(
        json!({"actionClass": "operator-update", "parameters": {"latest": true,
               "packages": ["bar"]}}),
        "kubectl operator update bar",
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
fn attributes_that_a_status_has_in_part_have_no_command() {
    let check = |count: usize, expected: usize| {
        let packages: Vec<String> = (0..count).map(|it| format!("package-{it:030}")).collect();
        let delete = spec(json!({
            "actionClass": "operator-delete", "package": "foo",
            "parameters": { "packages": packages },
        }));
        let action = effective(&delete, &class("operator-delete"), None).unwrap();
        let listed = action.listed();
        assert!(listed.iter().all(|it| it.value.len() < 1100), "{count}");
        let status = ActionStatus { effective_spec: listed, ..ActionStatus::default() };
        let named = |line: &str| line.matches("package-").count();
        assert_eq!(named(&command_of(&delete, &status)), expected, "{count}");
        assert_eq!(named(&command(&action)), count, "it is that of all attributes");
    };
    check(3, 3);
    check(60, 0);
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
    let backup = NamedClass::new(
        "backup",
        ActionClassSpec { by_hand: by_hand.clone(), ..ActionClassSpec::default() },
    );
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
