//! What the command line comes to, and what is refused.

use clap::Parser as _;
use plimsoll_api::olm::action::ActionClassSpec;

use super::*;

/// A command line after `action run`.
#[derive(Debug, clap::Parser)]
#[command(name = "run")]
struct CommandLine {
    #[command(flatten)]
    run: RunArguments,
}

fn class(name: &str, spec: Value) -> NamedClass {
    let spec = ActionClassSpec::deserialize(spec).expect("a class");
    NamedClass::new(name, spec)
}

fn classes() -> [NamedClass; 3] {
    let schema = json!({
        "type": "object",
        "properties": {
            "cascade": { "type": "boolean" },
            "note": { "type": "string" },
            "version": { "type": "integer" },
            "packages": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "retain": {
                "type": "object",
                "properties": { "days": { "type": "integer" }, "mode": { "type": "string" } },
            },
        },
    });
    let attributes = json!(["package", "version", "installDependencies", "dryRun"]);
    [
        class("paint", json!({ "attributes": attributes, "schema": schema })),
        class("single", json!({ "attributes": ["package"] })),
        class("none", json!({})),
    ]
}

/// Returns the spec of a command line, or the error.
fn spec(line: &str) -> Result<Value, String> {
    let words = ["run"].into_iter().chain(line.split(' '));
    let CommandLine { run } = CommandLine::try_parse_from(words).expect("it is a command line");
    let classes = classes();
    let class = classes.iter().find(|it| it.name == run.class);
    spec_of(&run, class).map_err(|it| it.message)
}

#[test]
fn what_is_set_has_the_types_of_the_class() {
    let check = |line: &str, expected: Value| {
        let mut found = spec(line).expect(line);
        let fields = found.as_object_mut().expect("an object");
        fields.remove("actionClass");
        assert_eq!(found, expected, "{line}");
    };
    check("paint", json!({}));
    check("paint foo@~1.2", json!({ "package": "foo", "version": "~1.2" }));
    check(
        "paint foo bar@1.0 baz",
        json!({ "package": "foo", "parameters": { "packages": ["bar@1.0", "baz"] } }),
    );
    check(
        "paint --set package=foo --set version=~1.2 --set installDependencies=true",
        json!({ "package": "foo", "version": "~1.2", "installDependencies": true }),
    );
    check(
        "paint --set deadline=1h --set ttlAfterFinished=2d --set dryRun=false",
        json!({ "deadline": "3600s", "ttlAfterFinished": "172800s", "dryRun": false }),
    );
    check("paint --ttl 10m", json!({ "ttlAfterFinished": "600s" }));
    check("paint --set ttlAfterFinished=0s", json!({ "ttlAfterFinished": "0s" }));
    check("paint --deadline 1s", json!({ "deadline": "1s" }));
    check(
        "paint --set cascade=true --set note=true",
        json!({ "parameters": { "cascade": true, "note": "true" } }),
    );
    check(
        "paint --set version=1 --set parameters.version=2",
        json!({ "version": "1", "parameters": { "version": 2 } }),
    );
    check(
        "paint --set retain.days=3 --param retain.mode=all --set packages={a,b}",
        json!({ "parameters": { "retain": { "days": 3, "mode": "all" }, "packages": ["a", "b"] } }),
    );
    check(
        r"paint --set labels.example\.com/team=harbour",
        json!({ "parameters": { "labels": { "example.com/team": "harbour" } } }),
    );
    check("paint --param note=a=b", json!({ "parameters": { "note": "a=b" } }));
    // A class that may not be read, or is not there.
    check(
        "other foo bar --set a.b=1 --set c=x",
        json!({
            "package": "foo",
            "parameters": { "packages": ["bar"], "a": { "b": 1 }, "c": "x" },
        }),
    );
}

#[test]
fn what_the_class_does_not_have_is_refused_with_what_to_write() {
    let check = |line: &str, expected: &str| {
        let error = spec(line).expect_err(line);
        assert_eq!(error, expected, "{line}");
    };
    check(
        "paint --set cascad=true",
        "`--set cascad=true`: class paint has no attribute or parameter `cascad`, did you mean \
         `cascade`?; it has package, version, installDependencies, dryRun, cascade, labels, note, \
         packages, retain, version, deadline, ttlAfterFinished",
    );
    check(
        "none --param colour=red",
        "`--param colour=red`: class none has no attribute or parameter `colour`; it has deadline, \
         ttlAfterFinished",
    );
    check(
        "single --set version=1",
        "`--set version=1`: class single has no attribute or parameter `version`; it has package, \
         deadline, ttlAfterFinished",
    );
    check("paint --set cascade=yes", "`--set cascade=yes`: write true or false");
    check("paint --set dryRun=1", "`--set dryRun=1`: write true or false");
    check("paint --set package=", "`--set package=`: it has no value");
    check(
        "paint --set retain.days=few",
        "`--set retain.days=few`: write a whole number, such as 3",
    );
    check(
        "paint --set retain.day=3",
        "`--set retain.day=3`: retain has no field `day`, did you mean `days`?; it has days, mode",
    );
    check("paint --set cascade.a=1", "`--set cascade.a=1`: cascade has no fields");
    check(
        "paint --set packages.0=a",
        "`--set packages.0=a`: packages is a list: write the whole of it, as packages={a,b}",
    );
    check(
        "paint foo --set package=bar",
        "`--set package=bar`: package is given twice: give it once",
    );
    check("paint --set note=a --param note=b", "`--set note=a`: note is given twice: give it once");
    check(
        r#"paint --set retain={"days":1} --set retain.days=2"#,
        "`--set retain.days=2`: days is given twice: give it once",
    );
    check(
        "paint --set deadline=soon",
        "`--set deadline=soon`: `soon` is not a duration; use units, such as 90s, 40m, 1h30m or 2d",
    );
    check(
        "paint --set deadline=100ms",
        "`--set deadline=100ms`: `100ms` has a part of a second; use whole seconds, such as 90s",
    );
    check(
        "paint --set deadline=1y",
        "`--set deadline=1y`: `1y` is not a duration; use units, such as 90s, 40m, 1h30m or 2d",
    );
    check("paint --set deadline=-5s", "`--set deadline=-5s`: the duration `-5s` is negative");
    check("paint --set deadline=0s", "`--set deadline=0s`: `0s` is too short: write at least 1s");
    check("single foo bar", "class single takes one package: request an Action for each");
    check("none foo bar", "class none takes no packages");
}

#[test]
fn a_time_zone_is_that_of_a_schedule() {
    let read = |line: &str| CommandLine::try_parse_from(line.split(' ')).is_ok();
    assert!(read("run paint --schedule @weekly --time-zone Europe/Madrid"));
    for option in ["", " --watch", " --timeout 1m", " --ttl 1h", " --retry 2", " --no-wait"] {
        assert!(!read(&format!("run paint --time-zone Europe/Madrid{option}")), "{option}");
    }
}

#[test]
fn settings_have_a_name() {
    for text in ["", "a", "=1", " =1"] {
        assert!(Setting::parse(text).is_err(), "{text}");
    }
    let setting = Setting { name: "a".to_owned(), text: "b=c".to_owned() };
    assert_eq!(Setting::parse("a=b=c"), Ok(setting));
}
