//! Requests that are wrong, with what is said about them.

use std::fmt::Write as _;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec};
use plimsoll_content::yaml;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{effective, request, unknown_class};
use crate::actions::attributes::NamedClass;
use crate::actions::files::built_in_classes;

/// Returns the built-in classes, and a class of another controller.
fn classes() -> Vec<NamedClass> {
    let schema = json!({
        "type": "object",
        "required": ["target"],
        "properties": {
            "target": { "type": "string" },
            "count": { "type": "integer", "maximum": 3 },
            "places": { "type": "array", "items": { "type": "object", "properties": {
                "zone": { "type": "string" },
            } } },
            "channel": { "type": "string" },
        },
    });
    let spec = ActionClassSpec {
        controller: "example.com/backups".into(),
        attributes: vec!["version".into(), "dryRun".into()],
        required: vec!["dryRun".into()],
        schema: Some(schema),
        ..ActionClassSpec::default()
    };
    let mut classes = built_in_classes();
    classes.push(NamedClass::new("backup", spec));
    classes
}

/// Checks what is said about the spec of an Action in YAML.
fn check(text: &str, expected: &[&str]) {
    let document = yaml::parse(text).into_iter().next().unwrap();
    let spec = ActionSpec::deserialize(&document.value.unwrap()).unwrap();
    let classes = classes();
    let class = NamedClass::find(&classes, &spec.action_class).unwrap();
    let found = request(&spec, class);
    assert!(found.iter().all(|it| it.reason == Reason::InvalidAction), "{text}");
    let messages: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
    let mut shown = String::new();
    for message in &messages {
        writeln!(shown, "{message}").unwrap();
    }
    assert_eq!(messages.len(), expected.len(), "{text}: {shown}");
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.contains(expected), "{text}: {shown}");
    }
}

#[test]
fn a_request_that_is_right_has_no_problem() {
    for text in [
        "{actionClass: operator-install, package: foo, version: ^1.2.x, installDependencies: true}",
        "{actionClass: operator-installation, package: foo, parameters: {force: true}}",
        "{actionClass: operator-install, package: foo, parameters: {packages: [bar, baz@~1.2]}}",
        "{actionClass: operator-install, package: foo, parameters: {providers: [a/v1/B=foo]}}",
        "{actionClass: operator-update}",
        "{actionClass: operator-update, package: foo}",
        "{actionClass: operator-update, parameters: {ranges: [foo@^1], follow: true}}",
        "{actionClass: autoremove, parameters: {keepCRDs: true}, deadline: 1h30m}",
        "{actionClass: release-update, version: 1.2.3, ttlAfterFinished: 0s}",
        "{actionClass: capability-enable, parameters: {capabilities: [Console]}}",
        "{actionClass: backup, version: newest, dryRun: true, parameters: {target: disk}}",
        "{actionClass: autoremove, preconditions: {expressions: [{expression: 'true'}]}}",
    ] {
        check(text, &[]);
    }
}

#[test]
fn attributes_that_are_wrong_are_named_with_what_to_write() {
    for (text, message) in [
        (
            "{actionClass: operator-install}",
            "class operator-install needs spec.package: write for example \"package: foo\"",
        ),
        (
            "{actionClass: operator-deletion}",
            "class operator-delete needs spec.package: write for example \"package: foo\"",
        ),
        ("{actionClass: resolution-debug}", "class resolution needs spec.package"),
        (
            "{actionClass: backup, parameters: {target: disk}}",
            "class backup needs spec.dryRun: write for example \"dryRun: true\"",
        ),
        (
            "{actionClass: autoremove, package: foo}",
            "spec.package: class autoremove has no attribute package: it has dryRun",
        ),
        (
            "{actionClass: operator-delete, package: foo, version: 1.0.0}",
            "spec.version: class operator-delete has no attribute version: it has package, \
             ensureConstraintSatisfiability and dryRun",
        ),
        (
            "{actionClass: resolution, package: foo, dryRun: true}",
            "spec.dryRun: class resolution has no attribute dryRun",
        ),
        (
            "{actionClass: backup, channel: a, dryRun: true, parameters: {target: disk}}",
            "spec.channel: it is a parameter: write spec.parameters.channel",
        ),
        (
            "{actionClass: operator-install, package: foo@^1.2}",
            "spec.package is \"foo@^1.2\": write \"package: foo\" and \"version: ^1.2\"",
        ),
        (
            "{actionClass: operator-delete, package: foo@1}",
            "spec.package is \"foo@1\": write \"foo\"",
        ),
        (
            "{actionClass: operator-install, package: Foo}",
            "spec.package: no Operator can be named `Foo`",
        ),
        (
            "{actionClass: operator-install, package: foo, version: newest}",
            "spec.version: `newest` is not a range",
        ),
        (
            "{actionClass: operator-update, package: foo, version: '>='}",
            "write a version such as 1.2.3, or a range such as ^1.2",
        ),
        (
            "{actionClass: operator-update, version: ^1}",
            "spec.version is for one Operator: write its name to spec.package",
        ),
        (
            "{actionClass: release-update, version: ^1.2}",
            "spec.version is \"^1.2\": write one whole version, such as 1.2.3",
        ),
        (
            "{actionClass: autoremove, deadline: soon}",
            "spec.deadline is \"soon\": write hours, minutes and seconds, such as 90s, 40m or \
             1h30m",
        ),
        ("{actionClass: autoremove, deadline: 2d}", "spec.deadline is \"2d\""),
        (
            "{actionClass: autoremove, deadline: 0h0s}",
            "spec.deadline is \"0h0s\": write at least 1s",
        ),
        ("{actionClass: autoremove, ttlAfterFinished: '24'}", "spec.ttlAfterFinished is \"24\""),
    ] {
        check(text, &[message]);
    }
}

/// Classes, parameters of an Action, and what is said about them.
const PARAMETERS: [(&str, &str, &str); 28] = [
    (
        "operator-update",
        "{latest: 'yes'}",
        "spec.parameters.latest is \"yes\": write true or false",
    ),
    ("operator-update", "{latest: 1}", "spec.parameters.latest is 1: write true or false"),
    (
        "operator-update",
        "{lates: true}",
        "spec.parameters.lates: class operator-update has no parameter lates, did you \
         mean `latest`?",
    ),
    (
        "operator-update",
        "{x: true}",
        "class operator-update has no parameter x: it has follow, latest, packages, ranges \
         and together",
    ),
    (
        "operator-update",
        "{package: foo}",
        "spec.parameters.package: it is no parameter: write spec.package",
    ),
    ("operator-update", "yes", "spec.parameters is true: write fields"),
    (
        "operator-update",
        "{latest: true, packages: [foo]}",
        "spec.parameters.latest is for all Operators: leave it out, or name none",
    ),
    (
        "operator-update",
        "{ranges: [foo]}",
        "spec.parameters.ranges[0] is \"foo\", without versions: write for example \"foo@^1.2\"",
    ),
    (
        "operator-update",
        "{ranges: [foo@new]}",
        "spec.parameters.ranges[0]: the range of `foo@new`: `new` is not a range",
    ),
    (
        "release-update",
        "{force: true}",
        "spec.parameters.force: class release-update has no parameters, but force is given",
    ),
    (
        "operator-install",
        "{packages: bar}",
        "spec.parameters.packages is \"bar\": write a list, such as [\"bar\"]",
    ),
    (
        "operator-install",
        "{packages: [bar, 1]}",
        "spec.parameters.packages[1] is 1: write a text, such as \"1\"",
    ),
    (
        "operator-install",
        "{packages: ['@1']}",
        "spec.parameters.packages[0]: `@1` has no name of a package",
    ),
    (
        "operator-install",
        "{packages: [bar, foo@1]}",
        "spec.parameters.packages[1]: foo is named twice: name it once",
    ),
    (
        "operator-install",
        "{providers: [foo]}",
        "spec.parameters.providers[0]: `foo` is not of the form",
    ),
    (
        "operator-install",
        "{exclude: [foo/]}",
        "spec.parameters.exclude[0] is \"foo/\": write PACKAGE or PACKAGE/BUNDLE",
    ),
    (
        "operator-install",
        "{namespace: A_B}",
        "spec.parameters.namespace: no namespace can be named `A_B`",
    ),
    (
        "operator-install",
        "{collisionProtection: All}",
        "spec.parameters.collisionProtection is \"All\": write Prevent, IfNoController or None",
    ),
    (
        "operator-delete",
        "{packages: [bar@1]}",
        "spec.parameters.packages[0] is \"bar@1\": write \"bar\"",
    ),
    (
        "operator-delete",
        "{keepCrds: true}",
        "class operator-delete has no parameter keepCrds, did you mean `keepCRDs`?",
    ),
    (
        "resolution",
        "{output: yaml}",
        "spec.parameters.output is \"yaml\": write text, json or plan-json",
    ),
    (
        "capability-enable",
        "{}",
        "class capability-enable needs spec.parameters.capabilities: write for example \
         \"capabilities: [foo]\"",
    ),
    ("capability-enable", "{capabilities: []}", "spec.parameters.capabilities"),
    (
        "backup",
        "{}",
        "class backup needs spec.parameters.target: write for example \"target: foo\"",
    ),
    (
        "backup",
        "{target: disk, count: many}",
        "spec.parameters.count is \"many\": write a whole number",
    ),
    ("backup", "{target: disk, count: 4}", "spec.parameters.count"),
    (
        "backup",
        "{target: disk, places: [{zone: 1}]}",
        "spec.parameters.places[0].zone is 1: write a text",
    ),
    (
        "backup",
        "{target: disk, places: [{zon: a}]}",
        "spec.parameters.places[0].zon: unknown field",
    ),
];

#[test]
fn parameters_that_are_wrong_are_named_with_what_to_write() {
    let of = |class: &str, parameters: &str| {
        let package = match class {
            "operator-update" | "autoremove" | "capability-enable" | "release-update" => "",
            "backup" => ", dryRun: true",
            _ => ", package: foo",
        };
        format!("{{actionClass: {class}{package}, parameters: {parameters}}}")
    };
    for (class, parameters, message) in PARAMETERS {
        check(&of(class, parameters), &[message]);
    }
    check(
        "{actionClass: operator-delete, package: foo, ensureConstraintSatisfiability: true, \
         parameters: {force: true}}",
        &["spec.parameters.force says the opposite of spec.ensureConstraintSatisfiability"],
    );
    check(
        "{actionClass: resolution, package: foo, installDependencies: true, \
         parameters: {noDependencies: true}}",
        &["spec.parameters.noDependencies says the opposite of spec.installDependencies"],
    );
}

#[test]
fn preconditions_that_cannot_be_evaluated_are_named() {
    let window = "spec.preconditions.withinMaintenanceWindow";
    for (preconditions, message) in [
        (
            "{expressions: [{expression: 'plan.changes.size() <'}]}",
            "spec.preconditions.expressions[0].expression: ",
        ),
        (
            "{expressions: [{expression: 'true'}, {expression: 'changes.size() < 5'}]}",
            "spec.preconditions.expressions[1].expression: ",
        ),
        (
            "{expressions: [{expression: '1 + 1'}]}",
            "its value is int: write one that is true or false",
        ),
        (
            "{withinMaintenanceWindow: {schedule: often, duration: 4h}}",
            &format!("{window}.schedule: `often` is no schedule"),
        ),
        ("{withinMaintenanceWindow: {duration: 4h}}", &format!("{window}.schedule is missing")),
        (
            "{withinMaintenanceWindow: {schedule: '0 22 * * 5'}}",
            &format!("{window}.duration is missing: write for example 4h"),
        ),
        (
            "{withinMaintenanceWindow: {schedule: '0 22 * * 5', duration: 4 hours}}",
            &format!("{window}.duration is \"4 hours\""),
        ),
        (
            "{withinMaintenanceWindow: {schedule: '0 22 * * 5', duration: 4h, timeZone: Mars}}",
            &format!("{window}.timeZone: `Mars` is no time zone"),
        ),
        (
            "{withinMaintenanceWindow: {name: nights, duration: 4h}}",
            &format!("{window} has a name: leave out schedule, timeZone and duration"),
        ),
    ] {
        check(&format!("{{actionClass: autoremove, preconditions: {preconditions}}}"), &[message]);
    }
}

#[test]
fn everything_that_is_wrong_is_found_at_once() {
    check(
        "{actionClass: autoremove, package: foo, parameters: {force: true}, deadline: soon}",
        &["spec.package", "spec.parameters.force", "spec.deadline"],
    );
}

/// Returns a request with parameters.
fn with_parameters(class: &str, parameters: Value) -> ActionSpec {
    let parameters = Some(parameters);
    ActionSpec { action_class: class.into(), parameters, ..ActionSpec::default() }
}

#[test]
fn of_many_problems_the_first_ones_are_listed() {
    let check = |count: usize, listed: usize, last: &str| {
        let parameters = (0..count).map(|it| (format!("p{it:05}"), json!(1)));
        let spec = with_parameters("autoremove", Value::Object(parameters.collect()));
        let classes = classes();
        let found = request(&spec, NamedClass::find(&classes, "autoremove").unwrap());
        assert_eq!(found.len(), listed, "{count}");
        let message = &found.last().unwrap().message;
        assert!(message.starts_with(last), "{count}: {message}");
    };
    check(10, 10, "spec.parameters.p00009: ");
    check(11, 11, "and 1 more");
    check(5000, 11, "and 4990 more");
}

#[test]
fn a_request_that_is_too_long_is_refused_as_a_whole_and_a_long_value_is_shown_in_part() {
    let check = |length: usize, expected: &str| {
        let value = "x".repeat(length);
        let spec = with_parameters("operator-update", json!({ "latest": value }));
        let classes = classes();
        let class = NamedClass::find(&classes, "operator-update").unwrap();
        let found = request(&spec, class);
        assert_eq!(found.len(), 1, "{length}");
        let message = &found[0].message;
        assert!(message.len() < 512 && message.contains(expected), "{length}: {message}");
        let failure = effective(&spec, class, None).unwrap_err();
        assert_eq!((failure.reason, &failure.message), (Reason::InvalidAction, message));
    };
    check(200 * 1024, "…: write true or false");
    check(256 * 1024, "spec is longer than 256 KiB");
}

#[test]
fn a_class_that_does_not_exist_is_named_with_what_may_be_meant() {
    let says = "there is no ActionClass `operator-instal`, did you mean `operator-install`?";
    assert_eq!(unknown_class("operator-instal", &built_in_classes()), says);
}
