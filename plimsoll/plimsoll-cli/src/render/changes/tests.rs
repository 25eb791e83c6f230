//! One plan in all formats.

use plimsoll_api::olm::{Dependant, RemainingObjects};
use plimsoll_operators::change_plan::{KeptOperator, PlannedDependency, UnsatisfiedRequirement};
use plimsoll_operators::deletion_plan::PlannedDeletion;

use super::*;
use crate::render::graph::Picture;
use crate::render::json_path::JsonPath;

/// Returns the change of an Operator.
fn change(operation: ChangeOperation, operator: &str, before: &str, after: &str) -> OperatorChange {
    OperatorChange {
        planned: PlannedChange {
            operator: operator.to_owned(),
            operation,
            version_before: before.to_owned(),
            version: after.to_owned(),
            ..PlannedChange::default()
        },
        required_by: Vec::new(),
        displaced_by: Vec::new(),
        held_back: None,
        deletion: None,
    }
}

fn dependency(operator: &str, on: &str, broken: bool) -> PlannedDependency {
    PlannedDependency {
        operator: operator.to_owned(),
        on: on.to_owned(),
        version: "2.0.1".to_owned(),
        requirement: format!("{on} >=1.5.0"),
        broken,
    }
}

/// Returns an update: baz is installed for foo, bar becomes an orphan.
fn update() -> ChangePlan {
    let mut baz = change(ChangeOperation::Create, "baz", "", "1.5.6");
    baz.planned.dependency = true;
    baz.planned.requested = ">=1.5.6, <1.6.0".to_owned();
    baz.planned.catalog = "main".to_owned();
    baz.required_by =
        vec![Dependant { operator: "foo".to_owned(), requirement: "baz >=1.5.0".to_owned() }];
    let mut foo = change(ChangeOperation::Update, "foo", "1.2.9", "2.0.1");
    foo.planned.requested_before = "~1.2".to_owned();
    foo.planned.requested = "^2".to_owned();
    foo.held_back = Some("v3.0.0 is_outside".to_owned());
    let kept = |operator: &str, held_back: Option<&str>| KeptOperator {
        operator: operator.to_owned(),
        version: "1.2.7".to_owned(),
        held_back: held_back.map(str::to_owned),
        ..KeptOperator::default()
    };
    ChangePlan {
        digest: "sha256:1".to_owned(),
        changes: vec![baz, foo],
        kept: vec![kept("bar", None), kept("buz", Some("it is paused")), kept("qux", None)],
        dependencies: vec![dependency("foo", "baz", false)],
        orphans: vec!["bar".to_owned()],
        overrides: vec!["x is excluded".to_owned()],
        notes: vec!["^2 is >= v2.0.0 < v3.0.0".to_owned()],
        ..ChangePlan::nothing(PlannedOperation::Update)
    }
}

/// Returns a deletion of bar, which foo depends on.
fn deletion() -> ChangePlan {
    let mut bar = change(ChangeOperation::Delete, "bar", "1.2.5", "");
    bar.deletion = Some(PlannedDeletion {
        name: "bar".to_owned(),
        version: "1.2.5".to_owned(),
        objects: 7,
        definitions: vec!["bars.example.com".to_owned()],
        workloads: vec![RemainingObjects {
            kind: "Bar.example.com".to_owned(),
            namespace: "tea".to_owned(),
            count: 2,
            ..RemainingObjects::default()
        }],
        ..PlannedDeletion::default()
    });
    ChangePlan {
        digest: "sha256:2".to_owned(),
        changes: vec![bar],
        kept: vec![KeptOperator { operator: "foo".to_owned(), ..KeptOperator::default() }],
        dependencies: vec![dependency("foo", "bar", true)],
        unsatisfied: vec![UnsatisfiedRequirement {
            operator: "foo".to_owned(),
            requirement: "bar >=1.5.0".to_owned(),
            missing: "bar is deleted".to_owned(),
        }],
        ..ChangePlan::nothing(PlannedOperation::Delete)
    }
}

fn written(plan: &ChangePlan, format: &Format) -> String {
    let mut out = Vec::new();
    assert!(write(plan, format, &mut out).unwrap(), "{format}");
    String::from_utf8(out).unwrap()
}

#[test]
fn a_document_has_the_changes_and_their_effects() {
    assert_eq!(
        written(&update(), &Format::Markdown),
        r"# Update of foo

1 created, 1 updated. Plan `sha256:1`.

| Operator | What happens | Version | Requested | Catalog | Why |
|---|---|---|---|---|---|
| baz | created | 1.5.6 | \>=1.5.6, \<1.6.0 | main | a dependency; foo requires baz \>=1.5.0 |
| foo | updated | 1.2.9 → 2.0.1 | ~1.2 → ^2 |  | held back: v3.0.0 is\_outside |

## Dependencies

- foo 2.0.1 depends on baz: baz \>=1.5.0

## Held back

- buz 1.2.7: it is paused

## Orphans

- bar

## Notes

- override: x is excluded
- ^2 is \>= v2.0.0 \< v3.0.0

"
    );
    assert_eq!(
        written(&deletion(), &Format::Markdown),
        r"# Deletion of bar

1 deleted. Plan `sha256:2`.

| Operator | What happens | Version | Requested | Catalog | Why |
|---|---|---|---|---|---|
| bar | deleted | 1.2.5 |  |  |  |

## With bar

- 7 objects
- definition bars.example.com
- workloads: 2 Bar.example.com in tea

## Dependencies

- foo 2.0.1 depends on bar: bar \>=1.5.0, which is broken

## Not satisfied afterwards

- foo requires bar \>=1.5.0, but bar is deleted

"
    );
    let nothing = ChangePlan::nothing(PlannedOperation::Install);
    assert_eq!(written(&nothing, &Format::Markdown), "# Installation\n\nNothing changes.\n\n");
    // An Action that failed before there was a plan.
    let failed = ChangePlan {
        notes: vec!["foo requires bar".to_owned()],
        digest: String::new(),
        ..ChangePlan::nothing(PlannedOperation::Action)
    };
    let expected = "# Action\n\nThere is no plan.\n\n## Notes\n\n- foo requires bar\n\n";
    assert_eq!(written(&failed, &Format::Markdown), expected);
    // What others wrote is no markup.
    let mut foreign = update();
    foreign.warnings = vec!["<script>\n| `x` *y* ![z](http://z) &lt; a\\|b".to_owned()];
    let text = written(&foreign, &Format::Markdown);
    let warnings = r"## Warnings

- \<script\>\\n\| \`x\` \*y\* !\[z\](http://z) \&lt; a\\\|b

";
    assert!(text.ends_with(warnings), "{text}");
}

#[test]
fn a_document_says_why_an_operator_moves_that_nothing_requests() {
    let mut plan = update();
    plan.changes.push(change(ChangeOperation::Update, "qux", "1.0.0", "2.0.0"));
    plan.changes[2].displaced_by = vec!["foo <2.0.0".to_owned()];
    let text = written(&plan, &Format::Markdown);
    assert!(text.starts_with("# Update of foo\n"), "{text}");
    let row = r"| qux | updated | 1.0.0 → 2.0.0 |  |  | it cannot stay at 1.0.0: it depends on foo \<2.0.0 |";
    assert!(text.contains(row), "{text}");
}

#[test]
fn a_document_says_that_a_deleted_operator_is_being_rolled_out() {
    let mut early = deletion();
    if let Some(it) = &mut early.changes[0].deletion {
        it.rolling_out = "1.2.7".to_owned();
    }
    let text = written(&early, &Format::Markdown);
    let lines =
        "- 7 objects\n- v1.2.7 is still being rolled out: what it has created by then is deleted\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn a_picture_has_who_changes_and_who_depends_on_whom() {
    assert_eq!(
        written(&update(), &Format::Picture(Picture::Mermaid)),
        "---\ntitle: \"Update of foo\"\n---\nflowchart TD\n  \
         n0[\"baz<br/>1.5.6<br/>created\"]:::active\n  \
         n1[\"foo<br/>1.2.9 → 2.0.1<br/>updated<br/>held back\"]:::active\n  \
         n2[\"bar<br/>1.2.7<br/>orphaned\"]:::faint\n  \
         n3[\"buz<br/>1.2.7<br/>held back\"]\n  \
         n1 -->|\"baz &gt;=1.5.0\"| n0\n  \
         classDef faint stroke-dasharray:4\n  \
         classDef active fill:#cfe6fa,stroke:#3b7fb5,color:#12344d\n"
    );
    let dot = written(&deletion(), &Format::Picture(Picture::Dot));
    assert!(dot.contains(r#"n0 [label="bar\n1.2.5\ndeleted", style=dashed];"#), "{dot}");
    assert!(
        dot.contains(r#"n1 [label="foo\nlacks bar >=1.5.0", style=filled, fillcolor=mistyrose];"#)
    );
    assert!(dot.contains(r#"n1 -> n0 [label="bar >=1.5.0", style=dashed];"#), "{dot}");
    let svg = written(&update(), &Format::Picture(Picture::Svg));
    assert_eq!(svg.matches("<rect x").count(), 4);
}

#[test]
fn programs_get_the_same_value_and_people_the_text_of_the_operation() {
    let plan = update();
    let json: serde_json::Value = serde_json::from_str(&written(&plan, &Format::Json)).unwrap();
    assert_eq!(json, serde_json::to_value(&plan).unwrap());
    assert_eq!(written(&plan, &Format::PlanJson), written(&plan, &Format::Json));
    assert!(written(&plan, &Format::Yaml).starts_with("operation: update\n"));
    let names = "operator.olm.io/baz\noperator.olm.io/foo\n";
    assert_eq!(written(&plan, &Format::Name), names);
    let release = change(ChangeOperation::UpdateRelease, "", "1.0.0", "1.1.0");
    let release =
        ChangePlan { changes: vec![release], ..ChangePlan::nothing(PlannedOperation::Action) };
    let name = "clusterversion.config.openshift.io/version\n";
    assert_eq!(written(&release, &Format::Name), name);
    let template = JsonPath::parse("{.changes[*].version}").unwrap();
    assert_eq!(written(&plan, &Format::JsonPath(template)), "1.5.6 2.0.1");
    let mut out = Vec::new();
    assert!(!write(&plan, &Format::Text, &mut out).unwrap() && out.is_empty());
    assert_eq!(Format::PlanJson.to_string(), "plan-json");
}
