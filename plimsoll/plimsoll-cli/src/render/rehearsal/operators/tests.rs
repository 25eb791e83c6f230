//! Reports of rehearsals, with one of everything.

use plimsoll_simulation::rehearsal::{OperatorTransition, UnreadCatalog};

use super::*;

fn operator(name: &str, before: Option<&str>, after: Option<&str>) -> RehearsedOperator {
    RehearsedOperator {
        name: name.to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        is_deleted: after.is_none(),
        conditions: Vec::new(),
    }
}

fn trouble(operator: &str, kind: TroubleKind, reason: &str, message: &str) -> OperatorTrouble {
    OperatorTrouble {
        operator: operator.to_owned(),
        kind,
        reason: reason.to_owned(),
        message: message.to_owned(),
        is_earlier: false,
        is_accepted: false,
    }
}

fn result() -> OperatorsResult {
    let earlier = trouble("urn", TroubleKind::Stuck, "RollingOut", "Rolling out v1.0.0");
    OperatorsResult {
        seconds: 185,
        operators: vec![
            operator("bar", Some("1.2.5"), Some("1.2.5")),
            operator("baz", None, Some("1.5.6")),
            operator("fiz", Some("2.9.2"), None),
            operator("foo", Some("1.2.2"), Some("2.0.1")),
        ],
        troubles: vec![
            trouble("pot", TroubleKind::Unsatisfied, "UnmetDependency", "pot depends on fiz"),
            OperatorTrouble { is_earlier: true, ..earlier },
        ],
        orphans: vec!["bar".to_owned()],
        objects: ObjectCounts { created: 9, changed: 0, deleted: 2 },
        deleted_operands: vec!["fizs.fiz.example.com/one -n default".to_owned()],
        transitions: vec![OperatorTransition {
            at: 185,
            operator: "foo".to_owned(),
            version: "2.0.1".to_owned(),
            status: "False",
            reason: "AsExpected".to_owned(),
            message: "v2.0.1 is installed".to_owned(),
        }],
        unread_catalogs: vec![UnreadCatalog {
            name: "other".to_owned(),
            message: "it is elsewhere".to_owned(),
        }],
        not_copied: Vec::new(),
        unread_kinds: Vec::new(),
    }
}

fn written(result: OperatorsResult, format: &Format, details: bool) -> String {
    let mut out = Vec::new();
    let report = OperatorsReport::of(result, "a copy of the cluster".to_owned());
    report.write(format, details, &mut out).expect("it can be written");
    String::from_utf8(out).expect("it is text")
}

#[test]
fn a_text_begins_with_the_verdict() {
    let expected = "\
Changes of 3 Operators, rehearsed on a copy of the cluster
It would not succeed: nothing moves any more after 3m05s. 9 created, 2 deleted of the objects of Operators.

  new operator -> baz@v1.5.6
  fiz@v2.9.2 -> deleted
  foo@v1.2.2 -> foo@v2.0.1

Unsatisfied
  ✗ pot UnmetDependency: pot depends on fiz

Stuck
  ! urn RollingOut: Rolling out v1.0.0 (as before)

Nothing depends on them any more
  bar

Operands that would be deleted
  - fizs.fiz.example.com/one -n default

Catalogs that cannot be read from here
  other: it is elsewhere
";
    assert_eq!(written(result(), &Format::Text, false), expected);
    let steps = "\nSteps\n +3:05  foo AsExpected: v2.0.1 is installed\n";
    assert!(written(result(), &Format::Text, true).contains(steps));
    let well = OperatorsResult { troubles: Vec::new(), ..result() };
    let verdict = "It would succeed, in 3m05s of simulated time: 9 created, 2 deleted of the";
    assert!(written(well, &Format::Text, false).contains(verdict));
}

#[test]
fn programs_read_the_verdict_beside_the_result() {
    let text = written(result(), &Format::Json, false);
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(report["succeeds"], false);
    assert_eq!(report["troubles"][0]["kind"], "Unsatisfied");
    assert_eq!(report["operators"][1]["after"], "1.5.6");
    let names = "operator.olm.io/baz\noperator.olm.io/fiz\noperator.olm.io/foo\n";
    assert_eq!(written(result(), &Format::Name, false), names);
    let report = OperatorsReport::of(result(), String::new());
    assert!(report.write(&Format::Diff, false, &mut Vec::new()).is_err());
}

#[test]
fn a_change_request_names_what_is_lost_and_what_was_not_read() {
    let not_copied = vec!["widgets.example.com".to_owned()];
    let unread_kinds = vec!["secrets".to_owned(), "roles.rbac.authorization.k8s.io".to_owned()];
    let lacking = OperatorsResult { not_copied, unread_kinds, ..result() };
    let text = written(lacking.clone(), &Format::Markdown, false);
    assert!(text.contains("**It would not succeed**"), "{text}");
    let surroundings = "\
Nothing depends on them any more: bar.

## Operands that would be deleted

- `fizs.fiz.example.com/one -n default`

## Catalogs that cannot be read from here

- **other**: it is elsewhere

Not copied: widgets.example.com.

Not read, so that the copy has none of them: you may not list them, or what serves them fails: secrets, \
roles.rbac.authorization.k8s.io.
";
    assert!(text.ends_with(surroundings), "{text}");
    let unread = "what serves them fails\n  secrets, roles.rbac.authorization.k8s.io\n";
    assert!(written(lacking.clone(), &Format::Text, false).ends_with(unread));
    let json = written(lacking, &Format::Json, false);
    let report: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(report["unreadKinds"][0], "secrets");
}
