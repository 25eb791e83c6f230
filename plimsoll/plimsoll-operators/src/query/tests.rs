//! Queries as JSON and as parameters, and what is answered.

use serde_json::json;

use super::*;
use crate::tests::{FIXTURE, catalogs, inputs, operators};

/// Answers a query in JSON, beside Operators.
fn answered(present: &str, query: &Value) -> ResolutionAnswer {
    let of = catalogs(FIXTURE);
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    answer(inputs, &of, &ResolutionQuery::read(&query.to_string()).expect("a query"))
}

#[test]
fn a_query_is_the_same_as_json_and_as_parameters() {
    let query = json!({
        "packages": ["foo@~1.2", "bar"], "versionRange": ">=1", "channel": "stable",
        "repository": "main", "namespace": "ns", "collisionProtection": "None",
        "providers": ["bar=baz"], "exclude": ["baz/baz.v1.2.4"], "preferRepository": "same",
        "noDependencies": true,
    });
    let read = ResolutionQuery::read(&query.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), query);
    let parameters = [
        ("package", "foo@~1.2"),
        ("package", "bar"),
        ("versionRange", ">=1"),
        ("channel", "stable"),
        ("repository", "main"),
        ("namespace", "ns"),
        ("collisionProtection", "None"),
        ("provider", "bar=baz"),
        ("exclude", "baz/baz.v1.2.4"),
        ("preferRepository", "same"),
        ("noDependencies", "true"),
    ];
    assert_eq!(ResolutionQuery::from_parameters(parameters).unwrap(), read);
}

#[test]
fn a_query_that_cannot_be_read_says_why() {
    for (text, says) in [
        ("{", "EOF while parsing"),
        (r#"{"package": ["foo"]}"#, "unknown field `package`"),
        (r#"{"packages": [1]}"#, "packages[0]: invalid type: integer `1`"),
        (r#"{"packages": ["foo"]} and more"#, "trailing characters"),
    ] {
        let error = ResolutionQuery::read(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
    for (parameters, says) in [
        (&[("packages", "foo")][..], "unknown parameter `packages`, did you mean `package`?"),
        (
            &[("VersionRange", "1")],
            "unknown parameter `VersionRange`, did you mean `versionRange`?",
        ),
        (&[("x", "foo")], "unknown parameter `x`: there are package, versionRange, channel, "),
        (&[("package", "")], "the parameter `package` has no value: give it one, or leave it out"),
        (&[("channel", "")], "the parameter `channel` has no value"),
        (&[("noDependencies", "")], "the parameter `noDependencies` has no value"),
        (
            &[("noDependencies", "true"), ("noDependencies", "false")],
            "the parameter `noDependencies` is given twice: give it once",
        ),
        (&[("channel", "a"), ("channel", "b")], "the parameter `channel` is given twice"),
        (
            &[("noDependencies", "yes")],
            "the parameter `noDependencies` is `yes`: use true or false",
        ),
    ] {
        let error = ResolutionQuery::from_parameters(parameters.iter().copied()).unwrap_err();
        assert!(error.starts_with(says), "{error}");
    }
    for (query, says) in [
        (json!({}), "no package is requested"),
        (json!({ "packages": ["foo@newest"] }), "the range of `foo@newest`"),
        (json!({ "packages": ["foo"], "versionRange": "x||" }), "versionRange: "),
        (
            json!({ "packages": ["bar", "foo@1.2.3"], "versionRange": "~1.2" }),
            "versionRange cannot be used with `foo@1.2.3`, which says its versions itself: leave out \
             versionRange, or write `foo`",
        ),
        (json!({ "packages": ["foo"], "exclude": [""] }), "exclude: ``: write PACKAGE or "),
        (json!({ "packages": ["foo"], "exclude": ["bar/"] }), "exclude: `bar/`: write PACKAGE or "),
        (
            json!({ "packages": ["foo"], "providers": ["bar="] }),
            "`bar=` is not of the form PACKAGE=",
        ),
        (
            json!({ "packages": ["foo"], "exclude": vec!["bar"; OVERRIDES_MAX + 1] }),
            "there are 65 exclusions, and a query may have 64: ",
        ),
        (json!({ "packages": ["foo"], "channel": "" }), "channel is empty: "),
        (json!({ "packages": ["foo"], "repository": "" }), "repository is empty: "),
        (json!({ "packages": ["foo"], "preferRepository": "" }), "preferRepository is empty: "),
        (
            json!({ "packages": ["foo"], "namespace": "A_b" }),
            "namespace: no namespace can be named `A_b`: ",
        ),
        (json!({ "packages": ["foo"], "namespace": "" }), "namespace: "),
        (
            json!({ "packages": ["foo"], "collisionProtection": "prevent" }),
            "collisionProtection: unknown variant `prevent`, expected one of `Prevent`",
        ),
    ] {
        let ResolutionAnswer { outcome, error, .. } = answered("", &query);
        assert_eq!(outcome, ResolutionOutcome::Invalid, "{query}");
        assert!(error.clone().unwrap().starts_with(says), "{query}: {error:?}");
    }
}

#[test]
fn an_answer_is_what_a_terminal_shows_and_data() {
    let solved = answered("", &json!({ "packages": ["foo@~1.2"] }));
    assert_eq!((solved.outcome, solved.exit), (ResolutionOutcome::Solved, 0));
    assert!(solved.text.ends_with("- foo@v1.2.9\n- bar@v1.2.7\n"), "{}", solved.text);
    assert_eq!(solved.transcript(), solved.text);
    let plan = solved.plan.unwrap();
    let planned = plan.changes.iter().map(|it| it.planned.operator.as_str());
    assert_eq!(planned.collect::<Vec<_>>(), ["bar", "foo"]);
    let names = solved.operators.iter().filter_map(|it| it["metadata"]["name"].as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["foo", "bar"]);
    assert_eq!(solved.operators[0]["spec"]["version"], "~1.2");

    let query = json!({ "packages": ["foo@~1.2"], "exclude": ["bar"] });
    let conflict = answered("", &query);
    assert_eq!((conflict.outcome, conflict.exit), (ResolutionOutcome::Unsatisfiable, 3));
    assert!(conflict.text.ends_with('\n') && conflict.plan.is_none(), "{}", conflict.text);
    let message = "installing foo could leave your system in an inconsistent state";
    assert_eq!(conflict.transcript(), format!("{}Error: {message}\n", conflict.text));

    let query = json!({ "packages": ["foo@~1.2"], "exclude": ["bar", "bar"] });
    let twice = answered("", &query).text;
    let without = "--exclude bar cannot be satisfied: without it there is a solution";
    assert_eq!(twice.matches(without).count(), 1, "{twice}");

    let unknown = answered("", &json!({ "packages": ["fox"] }));
    let message = "error: no catalog has package `fox`, did you mean `foo`?\n";
    assert_eq!(unknown.transcript(), message);
    let twice = answered("", &json!({ "packages": ["foo", "foo"] }));
    assert_eq!((twice.outcome, twice.exit), (ResolutionOutcome::Invalid, 1));
}

#[test]
fn packages_that_are_named_by_any_parameter_are_needed() {
    let query = json!({
        "packages": ["foo@~1.2"], "providers": ["bar=baz", "example.com/v1/Qux=qux"],
        "exclude": ["fiz", "fez/fez.v1.2.4"],
    });
    let query = ResolutionQuery::read(&query.to_string()).unwrap();
    let needed = needed_packages(&query.request().unwrap());
    assert_eq!(needed, ["foo", "baz", "qux", "bar", "fiz", "fez"]);
}
