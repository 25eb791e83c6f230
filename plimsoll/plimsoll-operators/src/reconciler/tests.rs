//! Lifecycles of Operators on an in-memory cluster. A seed determines the order of events: responses are
//! late, and at any moment a new process may replace the current one.

mod cluster;

use std::collections::BTreeSet;

use plimsoll_api::olm::{BundleReference, OperatorHistory};
use serde_json::{Value, json};

use self::cluster::FakeCluster;
use super::revision::{KeptRevision, RevisionContent, RevisionDraft, normalize};
use super::*;
use crate::tests::{NoExpressions, catalogs, operators, part};

/// The number of seeds.
const SEEDS: u64 = 40;

/// Requests of users: `apply NAME: FIELD VALUE; …`, `delete NAME`, `label KIND NAME` removes the label of an
/// object, `remove KIND NAME` deletes one, `operand NAME` creates an operand, `enable NAME…` enables these
/// capabilities and no others; `expect NAME VERSION` once nothing is left to do, `-` for an Operator that
/// is deleted.
const LIVES: &[&str] = &[
    "apply foo: version 1.2.3
     expect foo 1.2.3
     apply foo: version 1.2.5
     expect foo 1.2.3
     apply bar: version 1.2.5
     expect bar 1.2.5
     expect foo 1.2.5
     remove ConfigMap foo-1.2.5
     expect foo 1.2.5
     operand foo
     delete bar
     expect bar -
     delete foo
     expect foo -",
    "apply bar: version <1.2.6
     apply foo: version ^1.2
     expect bar 1.2.5
     apply bar: version *
     expect bar 1.2.7
     expect foo 1.2.9
     label ConfigMap bar-1.2.7
     expect bar 1.2.7
     operand bar
     operand foo
     delete foo
     delete bar
     expect foo -
     expect bar -",
    "apply bar: version 1.2.1
     expect bar 1.2.1
     apply bar: version 1.2.5
     expect bar 1.2.5
     apply bar: version 1.2.5; revision 1
     expect bar 1.2.1
     apply bar: version 1.2.7
     expect bar 1.2.7
     delete bar
     expect bar -
     apply bar: version 1.2.1
     expect bar 1.2.1",
    // Two steps in a change set, and one that is never complete.
    "apply foo: version 1.2.3; set x/2
     expect foo
     apply bar: version 1.2.5; set x/2
     expect foo 1.2.3
     expect bar 1.2.5
     apply foo: version 1.2.9; set y/2
     expect foo 1.2.3
     apply bar: version 1.2.7; set y/2
     expect foo 1.2.9
     expect bar 1.2.7
     apply foo: version 2.0.1; set z/3
     apply bar: version 1.2.7; set z/3
     expect foo 1.2.9
     apply baz: version 1.5.6; set z/3
     expect foo 2.0.1
     delete baz
     expect baz -
     expect foo 2.0.1",
    // An object that needs a capability is created when it is enabled, and kept.
    "enable -
     apply baz: version 1.5.6
     expect baz 1.5.6
     enable Other
     expect baz 1.5.6
     enable Other Console
     expect baz 1.5.6
     enable -
     expect baz 1.5.6
     apply baz: version *
     delete baz
     expect baz -",
];

fn play(life: &str, seed: u64) -> Result<FakeCluster, String> {
    let mut cluster = FakeCluster::new(seed);
    for line in life.lines().map(str::trim) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "apply" => cluster.apply(rest),
            "delete" => cluster.delete(rest),
            "label" => cluster.remove_label(rest),
            "remove" => cluster.remove_object(rest),
            "enable" => cluster.enable(rest),
            "operand" => cluster.add_operand(rest),
            "expect" => {
                cluster.run_until_idle()?;
                let (name, version) = rest.split_once(' ').unwrap_or((rest, ""));
                let found = cluster.installed(name);
                if found != version {
                    let (log, why) =
                        (cluster.log.join("\n"), cluster.condition(name, "Progressing"));
                    return Err(format!("{line}: it is {found}: {why}\n{log}"));
                }
                cluster.check_objects(name, version)?;
            }
            _ => return Err(format!("{line}: no such verb")),
        }
    }
    cluster.run_until_idle()?;
    Ok(cluster)
}

#[test]
fn operators_live_whatever_the_order_of_events_and_restarts() {
    for seed in 0..SEEDS {
        for (number, life) in LIVES.iter().enumerate() {
            let played = play(life, seed);
            assert!(played.is_ok(), "life {number}, seed {seed}: {}", played.unwrap_err());
        }
    }
}

#[test]
fn at_rest_nothing_is_written_and_a_new_process_writes_nothing() {
    for life in LIVES {
        let life: String =
            life.lines().take_while(|it| !it.contains("delete")).collect::<Vec<_>>().join("\n");
        let mut cluster = play(&life, 0).expect("it becomes idle");
        let writes = cluster.writes;
        cluster.wait(3600);
        cluster.run_until_idle().expect("it becomes idle");
        cluster.restart();
        cluster.run_until_idle().expect("it becomes idle");
        assert_eq!(cluster.writes, writes, "{life}\n{}", cluster.log.join("\n"));
    }
}

#[test]
fn only_those_are_decided_again_that_a_change_reaches() {
    let of = catalogs(
        "main 0 app/stable
           1.0.0 provides App, requires db >=1.0.0
         main 0 caller/stable
           1.0.0 provides Caller, requires Db
         main 0 db/stable
           1.0.0 provides Db, requires disk >=1.0.0
         main 0 disk/stable
           1.0.0 provides Disk
         main 0 waiting/stable
           1.0.0 requires db >=9.0.0
         main 0 other/stable
           1.0.0 provides Other, requires disk >=1.0.0",
    );
    let requested = operators(
        &of,
        "app: at 1.0.0
         caller: at 1.0.0
         db: at 1.0.0
         disk: at 1.0.0; set x/2
         other: at 1.0.0; set x/2
         second: owns Disk; set y/2
         waiting: install Enforce",
    );
    let cases = [
        ("app", "db"),
        ("db", "app caller disk waiting"),
        ("disk", "db other second"),
        ("other", "disk"),
        ("second", "disk"),
        ("waiting", "db"),
    ];
    for (changed, expected) in cases {
        let mut reconciler =
            OperatorReconciler { requested: requested.clone(), ..OperatorReconciler::default() };
        let inputs = OperatorInputs {
            operators: &requested,
            unavailable: &BTreeMap::new(),
            facts: &ClusterFacts::default(),
            expressions: &NoExpressions,
        };
        let names: BTreeSet<String> = requested.keys().cloned().collect();
        for (name, decision) in crate::decide(inputs, &names, &|names| part(&of, names)) {
            let decision = Some(decision);
            let operator = TrackedOperator { decision, ..TrackedOperator::default() };
            reconciler.operators.insert(name.clone(), operator);
            reconciler.decision_changed(&name);
        }
        reconciler.mark_affected_undecided(changed);
        reconciler.output.undecided.remove(changed);
        let undecided: Vec<&str> = reconciler.output.undecided.iter().map(String::as_str).collect();
        assert_eq!(undecided.join(" "), expected, "of a change of {changed}");
    }
}

#[test]
fn the_first_status_does_not_conflict_with_the_finalizer() {
    for seed in 0..SEEDS {
        let cluster =
            play("apply foo: version 1.2.3\nexpect foo 1.2.3", seed).expect("it becomes idle");
        let first = cluster.log.iter().find(|line| line.starts_with("status of foo"));
        assert!(first.is_some_and(|line| line.ends_with("written: true")), "{:#?}", cluster.log);
    }
}

#[test]
fn revisions_of_a_deleted_operator_are_not_those_of_its_successor() {
    for seed in 0..SEEDS {
        let mut cluster = FakeCluster::new(seed);
        cluster.collects_garbage = false;
        let mut installed = |version: &str, is_restarted: bool| -> Result<(), String> {
            cluster.apply(&format!("bar: version {version}"));
            cluster.run_until_idle()?;
            if is_restarted {
                cluster.restart();
                cluster.run_until_idle()?;
            }
            assert!(cluster.owns_its_revision("bar"), "{:#?}", cluster.log);
            cluster.collect_garbage();
            cluster.run_until_idle()?;
            cluster.restart();
            cluster.run_until_idle()?;
            assert_eq!(cluster.installed("bar"), version, "{:#?}", cluster.log);
            cluster.check_objects("bar", version)?;
            cluster.delete("bar");
            cluster.run_until_idle()
        };
        for (version, is_restarted) in [("1.2.1", false), ("1.2.1", true), ("1.2.5", false)] {
            let played = installed(version, is_restarted);
            assert!(played.is_ok(), "seed {seed}: {}", played.unwrap_err());
        }
    }
}

#[test]
fn what_an_update_leaves_and_does_not_go_holds_up_the_next_minor_version() {
    for seed in 0..SEEDS {
        let installed = "apply baz: version 1.5.6
            apply bar: version 1.2.7
            apply foo: version 1.2.3
            expect foo 1.2.3";
        let mut cluster = play(installed, seed).expect("it becomes idle");
        cluster.stuck = Some("foo-1.2.3".to_owned());
        cluster.apply("foo: version 1.2.5");
        cluster.run_for(400).expect("it becomes idle");
        let left = "configmap \"foo/foo-1.2.3\": finalizer example.com/kept";
        let objection = format!("Objects of earlier revisions are not deleted: {left}");
        assert_eq!(cluster.condition("foo", "Upgradeable"), objection, "{:#?}", cluster.log);
        // The same minor version is installed nevertheless.
        cluster.apply("foo: version 1.2.9");
        cluster.run_for(60).expect("it becomes idle");
        assert_eq!(cluster.installed("foo"), "1.2.9", "{:#?}", cluster.log);
        cluster.restart();
        cluster.run_for(60).expect("it becomes idle");
        cluster.apply("foo: version 2.0.1");
        cluster.run_for(60).expect("it becomes idle");
        assert_eq!(cluster.installed("foo"), "1.2.9", "{:#?}", cluster.log);
        cluster.stuck = None;
        cluster.remove_object("ConfigMap foo-1.2.3");
        cluster.run_for(60).expect("it becomes idle");
        assert_eq!(cluster.installed("foo"), "2.0.1", "{:#?}", cluster.log);
    }
}

#[test]
fn a_bundle_is_read_once_for_an_installation() {
    let cluster = play("apply foo: version 1.2.3\nexpect foo 1.2.3", 0).expect("it becomes idle");
    let reads = cluster.log.iter().filter(|line| line.starts_with("read bundle"));
    assert_eq!(reads.count(), 1, "{:#?}", cluster.log);
}

#[test]
fn a_namespace_that_several_share_goes_with_the_last_of_them() {
    let installed = "apply foo: version 1.2.3; namespace shared
        expect foo 1.2.3
        apply bar: version 1.2.5; namespace shared
        expect bar 1.2.5";
    for seed in 0..SEEDS {
        for deleted in ["delete foo\nexpect foo -\ndelete bar", "delete foo\ndelete bar"] {
            let played = play(&format!("{installed}\n{deleted}\nexpect bar -"), seed);
            let cluster = played.expect("it becomes idle");
            assert_eq!(cluster.namespaces(), Vec::<&str>::new(), "{:#?}", cluster.log);
        }
        let kept = play(&format!("{installed}\ndelete foo\nexpect foo -"), seed);
        assert_eq!(kept.expect("it becomes idle").namespaces(), ["shared"]);
    }
}

#[test]
fn what_another_operator_has_too_stays_with_its_operands() {
    for seed in 0..SEEDS {
        for is_shared in [true, false] {
            let installed = "apply foo: version 1.2.3\nexpect foo 1.2.3
                apply bar: version 1.2.5\nexpect bar 1.2.5\noperand foo";
            let mut cluster = play(installed, seed).expect("it becomes idle");
            if is_shared {
                cluster.share_definition("foo", "bar");
            }
            cluster.delete("foo");
            cluster.run_until_idle().expect("it becomes idle");
            assert_eq!(cluster.installed("foo"), "-", "{:#?}", cluster.log);
            assert_eq!(cluster.has_operand("foo"), is_shared, "{:#?}", cluster.log);
        }
    }
}

#[test]
fn a_namespace_that_cannot_be_read_is_named_and_read_again() {
    let mut cluster =
        play("apply foo: version 1.2.3\nexpect foo 1.2.3", 0).expect("it becomes idle");
    cluster.unreadable = Some("configmaps cannot be listed: grant list".to_owned());
    cluster.delete("foo");
    cluster.run_for(60).expect("it becomes idle");
    let message = cluster.condition("foo", "Progressing");
    assert_eq!(
        message,
        "Whether namespace foo is empty is not known, so it is not deleted: configmaps cannot be \
         listed: grant list"
    );
    cluster.unreadable = None;
    cluster.run_for(60).expect("it becomes idle");
    assert_eq!(cluster.installed("foo"), "-");
}

#[test]
fn each_event_is_emitted_once_across_restarts() {
    let mut cluster =
        play("apply foo: version 1.2.3\nexpect foo 1.2.3", 0).expect("it becomes idle");
    for _ in 0..3 {
        cluster.restart();
        cluster.run_until_idle().expect("it becomes idle");
    }
    let expected = ["UnmetDependency", "InstallationSucceeded"];
    let found: BTreeSet<&str> = cluster.events.iter().map(String::as_str).collect();
    assert_eq!(found, BTreeSet::from(expected));
    assert_eq!(cluster.events.len(), expected.len(), "{:?}", cluster.events);
}

#[test]
fn revisions_are_cut_into_parts_that_an_api_server_accepts_and_read_again() {
    let large = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("part-{number}") },
            "data": { "x": "y".repeat(300 << 10) },
        })
    };
    let content = RevisionContent {
        bundle: BundleReference { name: "foo.v1.0.0".into(), ..BundleReference::default() },
        properties: Vec::new(),
        namespace: "foo".into(),
        config: None,
        objects: (0..10).map(large).collect(),
    };
    let draft = RevisionDraft::read(content.clone()).expect("it has objects");
    let (made, parts) = draft.numbered("foo", "uid", 7);
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["foo-7-1", "foo-7-2", "foo-7-3", "foo-7-4", "foo-7-5"]);
    let mut read: Option<KeptRevision> = None;
    for (name, object) in &parts {
        assert!(object.to_string().len() < 1 << 20, "{name} is too large");
        assert!(!read.as_ref().is_some_and(KeptRevision::is_complete));
        let spec = serde_json::from_value(object["spec"].clone()).expect("a spec");
        let part = KeptRevision::read(name, &spec).expect("a part");
        match &mut read {
            Some(read) => read.merge(part),
            None => read = Some(part),
        }
    }
    let read = read.expect("there are parts");
    assert!(read.is_complete());
    assert_eq!(format!("{made:?}"), format!("{read:?}"), "what is kept is what is read again");
    let objects: Vec<Value> = read.manifests().map(plimsoll_content::Manifest::object).collect();
    assert_eq!(objects, content.objects);

    let mut changed = parts[0].1["spec"].clone();
    changed["objects"][0]["object"]["data"]["x"] = "another".into();
    let spec = serde_json::from_value(changed).expect("a spec");
    assert!(KeptRevision::read("foo-7-1", &spec).expect_err("refused").contains("their digest is"));
}

#[test]
fn numbers_are_as_they_come_back_from_an_api_server() {
    let mut value = json!({ "a": [1.0, 1.5, -3.0, 1e300], "b": { "c": 0.0 } });
    normalize(&mut value);
    assert_eq!(value, json!({ "a": [1, 1.5, -3, 1e300], "b": { "c": 0 } }));
}

#[test]
fn a_bundle_is_not_tried_again_after_it_was_rolled_back() {
    let entry = |state: &str, bundle: &str| -> OperatorHistory {
        serde_json::from_value(json!({
            "state": state, "bundle": bundle, "version": "1.0.0", "revision": 1,
            "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
        }))
        .expect("an entry")
    };
    let good = || entry("Completed", "good");
    let table = [
        (vec![good(), entry("Partial", "bad"), good()], true),
        (vec![entry("Partial", "bad"), good()], false),
        (vec![good()], false),
        (vec![entry("Completed", "bad"), good(), entry("Partial", "bad")], true),
    ];
    for (history, expected) in table {
        let mut operator = TrackedOperator { history, ..TrackedOperator::default() };
        operator.object.spec.rollback = plimsoll_api::olm::RollbackPolicy::Automatic;
        assert_eq!(operator.was_rolled_back("bad"), expected, "{:?}", operator.history);
        operator.object.spec.rollback = plimsoll_api::olm::RollbackPolicy::Manual;
        assert!(!operator.was_rolled_back("bad"));
    }
}
