//! Small releases and what is said about going from one to the other.

#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_api::config::Release;
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use serde_json::{Value, json};

use super::{DryRunOutcome, Forecast, ObservedObject, OrphanCause, between, of_cluster};
use crate::plan::mode::Mode;
use crate::plan::{Plan, plan};
use crate::progress::{StepBlocker, Transience, TryError};

/// A document of a file: kind, name, and what else there is in it.
fn manifest(file: &str, kind: &str, name: &str, extra: Value) -> Manifest {
    let api_version = match kind {
        "ConfigMap" | "Namespace" => "v1",
        "ClusterOperator" => "config.openshift.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        _ => "apps/v1",
    };
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "annotations": { "a": "b" } },
    });
    for (field, value) in extra.as_object().expect("an object") {
        if field == "annotations" {
            object["metadata"]["annotations"] = value.clone();
        } else {
            object[field] = value.clone();
        }
    }
    Manifest::read(file.into(), 0, &object).expect("a manifest")
}

fn release(version: &str, manifests: &[Manifest]) -> Plan {
    let release = Release { version: version.to_owned(), ..Release::default() };
    let context = Context { profile: None, ..Context::default() };
    plan(manifests, &context, release, Mode::Updating)
}

/// A line for each step, then one for each orphan.
fn reported(forecast: &Forecast) -> Vec<String> {
    let steps = forecast.plan.steps.iter().zip(&forecast.changes).map(|(step, change)| {
        let text = format!("{} {}", step.manifest.key.name, change.kind().as_str());
        match change {
            super::StepChange::Changed(fields) => {
                let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
                format!("{text} {}", paths.join(","))
            }
            super::StepChange::Replaced { because, fields } => {
                let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
                format!("{text} for {}: {}", because.join(","), paths.join(","))
            }
            super::StepChange::Refused { reason, message }
            | super::StepChange::Waiting { reason, message } => {
                format!("{text} {reason} {message}")
            }
            _ => text,
        }
    });
    let orphans = forecast.orphans.iter().map(|orphan| match &orphan.cause {
        OrphanCause::Vanished => format!("{} vanished", orphan.key.name),
        OrphanCause::Excluded(reason) => format!("{} left out: {reason}", orphan.key.name),
    });
    steps.chain(orphans).collect()
}

fn files(before: &[Manifest], after: &[Manifest]) -> Forecast {
    let plan = Arc::new(release("1.1.0", after));
    between(Some(&release("1.0.0", before)), plan, &BTreeSet::new())
}

#[test]
fn a_forecast_from_files_compares_each_object_with_what_the_release_before_left() {
    let delete = json!({"annotations": {"release.openshift.io/delete": "true"}});
    let once = json!({"annotations": {"release.openshift.io/create-only": "true"}});
    let before = [
        manifest("0000_10_a_1.yaml", "ConfigMap", "same", json!({"data": {"k": "v"}})),
        manifest("0000_10_a_2.yaml", "ConfigMap", "other", json!({"data": {"k": "v"}})),
        manifest("0000_10_a_3.yaml", "ConfigMap", "going", json!({})),
        manifest("0000_10_a_4.yaml", "ConfigMap", "kept", once.clone()),
        manifest("0000_10_a_5.yaml", "ConfigMap", "forgotten", json!({})),
        manifest("0000_10_a_6.yaml", "ConfigMap", "dropped", json!({})),
        manifest("0000_10_a_7.yaml", "ConfigMap", "gone", delete.clone()),
    ];
    let mut dropped = manifest("0000_10_a_6.yaml", "ConfigMap", "dropped", json!({}));
    dropped.annotations = Arc::default();
    let after = [
        manifest("0000_10_a_1.yaml", "ConfigMap", "same", json!({"data": {"k": "v"}})),
        manifest("0000_10_a_2.yaml", "ConfigMap", "other", json!({"data": {"k": "w", "l": "x"}})),
        manifest("0000_10_a_3.yaml", "ConfigMap", "going", delete.clone()),
        manifest("0000_10_a_4.yaml", "ConfigMap", "kept", once.clone()),
        dropped,
        manifest("0000_10_a_7.yaml", "ConfigMap", "gone", delete),
        manifest("0000_10_a_8.yaml", "ConfigMap", "new", json!({})),
        manifest(
            "0000_10_a_9.yaml",
            "ConfigMap",
            "odd",
            json!({"annotations": {"release.openshift.io/delete": "soon"}}),
        ),
    ];
    let forecast = files(&before, &after);
    assert_eq!(
        reported(&forecast),
        [
            "same unchanged",
            "other changed data.k,data.l",
            "going deleted",
            "kept unchanged",
            "gone unchanged",
            "new created",
            "odd refused UpdatePayloadFailed invalid delete annotation \
             \"release.openshift.io/delete\" value: \"soon\"",
            "dropped left out: no annotations",
            "forgotten vanished",
        ]
    );
    let stops = forecast.stops();
    assert_eq!(stops.len(), 2);
    assert_eq!(stops[0].reason, Reason::ResourceAlreadyDeleted.as_str());
    assert!(stops[1].message.starts_with("configmap \"odd\": "), "{stops:?}");
    let effects: Vec<&str> =
        forecast.effects().map(|(step, _)| step.manifest.key.name.as_str()).collect();
    assert_eq!(effects, ["other", "going", "new"]);
}

#[test]
fn files_tell_which_objects_no_update_changes() {
    let deployment = |name: &str, app: &str, annotations: Value| {
        let spec = json!({ "selector": { "matchLabels": { "app": app } } });
        let file = format!("0000_10_a_{name}.yaml");
        manifest(&file, "Deployment", name, json!({ "spec": spec, "annotations": annotations }))
    };
    let release = |app: &str| {
        let replaced = json!({ "plimsoll.io/replace": "true" });
        let once = json!({ "release.openshift.io/create-only": "true" });
        [
            deployment("1", app, json!({ "a": "b" })),
            deployment("2", app, replaced),
            deployment("3", app, once),
        ]
    };
    let forecast = files(&release("a"), &release("b"));
    assert_eq!(
        reported(&forecast),
        [
            "1 refused UpdatePayloadResourceInvalid spec.selector is changed, which no update can: \
             keep it, or set the annotation plimsoll.io/replace to \"true\": the object is deleted \
             and, once it is gone, created again",
            "2 replaced for spec.selector: spec.selector.matchLabels.app",
            "3 unchanged",
        ]
    );
    assert_eq!(forecast.stops().len(), 1);
}

#[test]
fn files_tell_whose_claims_a_replacement_would_delete() {
    let release = |service: &str, policy: &str| {
        let spec = json!({
            "serviceName": service,
            "persistentVolumeClaimRetentionPolicy": { "whenDeleted": policy },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" } }],
        });
        let annotations = json!({ "plimsoll.io/replace": "true" });
        let content = json!({ "spec": spec, "annotations": annotations });
        [manifest("0000_10_a_1.yaml", "StatefulSet", "a", content)]
    };
    let forecast = files(&release("a", "Delete"), &release("b", "Delete"));
    let found = reported(&forecast).join("; ");
    let refused = "a refused UpdatePayloadResourceInvalid it is not replaced, since";
    assert!(found.starts_with(refused), "{found}");
    let forecast = files(&release("a", "Retain"), &release("b", "Retain"));
    assert_eq!(reported(&forecast), ["a replaced for spec.serviceName: spec.serviceName"]);
    assert_eq!(forecast.effects().count(), 1);
}

#[test]
fn files_tell_which_preconditions_do_not_hold() {
    let delete = json!({"annotations": {"release.openshift.io/delete": "true"}});
    let gone = [manifest("0000_10_a_1.yaml", "ConfigMap", "gone", delete)];
    let other = [manifest("0000_10_a_1.yaml", "ConfigMap", "other", json!({}))];
    let check = |from: (&str, &[Manifest]), to: (&str, &[Manifest]), expected: &[&str]| {
        let plan = Arc::new(release(to.0, to.1));
        let forecast = between(Some(&release(from.0, from.1)), plan, &BTreeSet::new());
        let stops = forecast.stops();
        let found: Vec<&str> = stops.iter().map(|stop| stop.reason.as_str()).collect();
        assert_eq!(found, expected, "{} -> {}", from.0, to.0);
        assert!(stops.iter().all(|stop| stop.forcible));
        assert!(forecast.clone().forced().stops().is_empty());
        let found = forecast.declared().stops();
        assert!(found.iter().all(|stop| !stop.reason.starts_with("Multiple")), "{found:?}");
    };
    check(("1.0.0", &other), ("1.1.0", &other), &[]);
    check(("1.0.0", &other), ("1.0.0", &other), &[]);
    check(("1.1.0", &other), ("1.0.0", &other), &["LowDesiredVersion"]);
    check(("1.0.0", &other), ("1.2.0", &other), &["MultipleMinorVersionsUpdate"]);
    check(("1.0.0", &gone), ("1.1.0", &gone), &["ResourceAlreadyDeleted"]);
    check(("1.0.0", &gone), ("1.0.1", &gone), &[]);
    check(("1.0.0", &other), ("1.1.0", &gone), &[]);
}

#[test]
fn what_is_deleted_with_its_namespace_or_its_definition_is_no_orphan() {
    let delete = json!({"annotations": {"release.openshift.io/delete": "true"}});
    let inside = |name: &str, namespace: &str| {
        let mut manifest = manifest("0000_10_a_2.yaml", "ConfigMap", name, json!({}));
        manifest.key.namespace = namespace.to_owned();
        manifest
    };
    let before = [
        manifest("0000_10_a_1.yaml", "Namespace", "pier", json!({})),
        inside("in-pier", "pier"),
        inside("in-quay", "quay"),
        berths("0000_10_b_1.yaml"),
        manifest("0000_10_b_2.yaml", "Berth", "first", json!({})),
    ];
    let mut definition = berths("0000_10_b_1.yaml");
    definition.annotations = Arc::new(
        [("release.openshift.io/delete".to_owned(), "true".to_owned())].into_iter().collect(),
    );
    let after = [manifest("0000_10_a_1.yaml", "Namespace", "pier", delete), definition];
    let forecast = files(&before, &after);
    assert_eq!(reported(&forecast), ["pier deleted", "berths deleted", "in-quay vanished"]);
}

#[test]
fn what_an_operator_reports_is_no_change_of_the_release() {
    let operator = |version: &str| {
        let status = json!({"versions": [{"name": "operator", "version": version}]});
        [manifest("0000_10_a_9.yaml", "ClusterOperator", "crane", json!({ "status": status }))]
    };
    let forecast = files(&operator("1"), &operator("2"));
    assert_eq!(reported(&forecast), ["crane unchanged"]);
    assert_eq!(forecast.gates.len(), 1);
    assert_eq!(forecast.gates[0].expects[0].version, "2");
    assert!(forecast.stops().is_empty());
    let without = [manifest("0000_10_a_9.yaml", "ClusterOperator", "crane", json!({}))];
    let forecast = files(&operator("1"), &without);
    assert_eq!(forecast.stops()[0].reason, Reason::ClusterOperatorNoVersions.as_str());
}

#[test]
fn levels_follow_each_other_and_hold_their_chains() {
    let plan = Arc::new(release(
        "1.0.0",
        &[
            manifest("0000_10_a_1.yaml", "ConfigMap", "a1", json!({})),
            manifest("0000_10_b_1.yaml", "ConfigMap", "b1", json!({})),
            manifest("0000_10_a_2.yaml", "ConfigMap", "a2", json!({})),
            manifest("0000_9_c_1.yaml", "ConfigMap", "c1", json!({})),
        ],
    ));
    let forecast = between(None, plan, &BTreeSet::new());
    assert!(forecast.from.is_none());
    let levels: Vec<_> = forecast
        .levels()
        .into_iter()
        .map(|level| {
            let components =
                level.components.into_iter().map(|component| component.steps).collect::<Vec<_>>();
            (level.level, components)
        })
        .collect();
    assert_eq!(levels, [(Some(9), vec![vec![3]]), (Some(10), vec![vec![0, 2], vec![1]])]);
}

/// A definition of the kind Berth.
fn berths(file: &str) -> Manifest {
    berths_of(file, &json!([{"name": "v1", "served": true}]))
}

fn berths_of(file: &str, versions: &Value) -> Manifest {
    let spec = json!({"group": "apps", "names": {"kind": "Berth"}, "versions": versions});
    manifest(file, "CustomResourceDefinition", "berths", json!({ "spec": spec }))
}

#[test]
fn what_comes_before_its_definition_is_deferred_until_that_is_there() {
    let check = |before: &[Manifest], definition: &str, object: &str, expected: bool| {
        let mut after = [berths(definition), manifest(object, "Berth", "first", json!({}))];
        after.sort_by_key(|manifest| manifest.file.clone());
        let plan = Arc::new(release("1.1.0", &after));
        let position = |name| plan.steps.iter().position(|it| it.manifest.key.name == name);
        let object = position("first").expect("it is planned");
        let definition = position("berths").expect("it is planned");
        let expected: Vec<_> = expected.then_some((object, definition)).into_iter().collect();
        let from = release("1.0.0", before);
        let of_files = between(Some(&from), Arc::clone(&plan), &BTreeSet::new());
        assert_eq!(of_files.deferred.into_iter().collect::<Vec<_>>(), expected);
        let answer = match before {
            [] => DryRunOutcome::Blocked(StepBlocker::KindNotServed(plan.steps[object].kind())),
            _ => DryRunOutcome::Would(json!({})),
        };
        let mut observed_objects =
            vec![
                ObservedObject { before: None, answer: DryRunOutcome::Would(json!({})) };
                plan.steps.len()
            ];
        observed_objects[object].answer = answer;
        let of_cluster =
            of_cluster(None, plan, &observed_objects, &BTreeSet::new(), &BTreeSet::new());
        assert_eq!(of_cluster.deferred.into_iter().collect::<Vec<_>>(), expected);
    };
    check(&[], "0000_10_a_1.yaml", "0000_05_b_1.yaml", true);
    check(&[], "0000_05_a_1.yaml", "0000_10_b_1.yaml", false);
    check(&[], "0000_10_a_1.yaml", "0000_10_a_2.yaml", false);
    check(&[], "0000_10_a_2.yaml", "0000_10_a_1.yaml", true);
    check(&[], "0000_10_a_1.yaml", "0000_10_b_2.yaml", true);
    check(&[berths("0000_10_a_1.yaml")], "0000_10_a_1.yaml", "0000_05_b_1.yaml", false);
}

#[test]
fn a_definition_keeps_the_version_that_objects_are_stored_in() {
    let check = |before: &[(&str, bool)], after: &[(&str, bool)], dropped: Option<&str>| {
        let plan = |release_version: &str, versions: &[(&str, bool)]| {
            let versions = versions
                .iter()
                .map(|(name, storage)| json!({"name": name, "served": true, "storage": storage}));
            let definition = berths_of("0000_10_a_1.yaml", &versions.collect());
            release(release_version, &[definition])
        };
        let forecast =
            between(Some(&plan("1.0.0", before)), Arc::new(plan("1.1.0", after)), &BTreeSet::new());
        let stops = forecast.stops();
        let found = stops.first().map(|stop| {
            assert_eq!(stop.reason, Reason::UpdatePayloadResourceInvalid.as_str());
            assert!(!stop.forcible, "the server decides");
            stop.message.split('"').nth(3).expect("a version").to_owned()
        });
        assert_eq!(found.as_deref(), dropped, "{before:?} {after:?}: {stops:?}");
    };
    let (alpha, beta, stable) = ("v1alpha1", "v1beta1", "v1");
    check(&[(alpha, true)], &[(alpha, true)], None);
    check(&[(alpha, true)], &[(stable, true)], Some(alpha));
    check(&[(alpha, true)], &[(alpha, false), (stable, true)], None);
    check(&[(alpha, false), (beta, true)], &[(beta, false), (stable, true)], None);
    check(&[(alpha, false), (beta, true)], &[(alpha, false), (stable, true)], Some(beta));
}

#[test]
fn a_forecast_of_a_cluster_says_what_its_server_would_make_of_each_step() {
    let namespaced = |name: &str| {
        let mut manifest = manifest("0000_10_a_5.yaml", "Deployment", name, json!({}));
        manifest.key.namespace = "quay".to_owned();
        manifest
    };
    let plan = Arc::new(release(
        "2.0.0",
        &[
            manifest("0000_10_a_1.yaml", "Namespace", "quay", json!({})),
            manifest("0000_10_a_2.yaml", "ConfigMap", "drifted", json!({})),
            manifest("0000_10_a_3.yaml", "ConfigMap", "same", json!({})),
            namespaced("early"),
            manifest("0000_10_a_6.yaml", "ConfigMap", "unwanted", json!({})),
            manifest("0000_10_a_7.yaml", "ConfigMap", "homeless", json!({})),
            manifest("0000_10_a_8.yaml", "ConfigMap", "frozen", json!({})),
            manifest("0000_10_a_9.yaml", "ConfigMap", "thawed", json!({})),
        ],
    ));
    let live = |value: &str| json!({"metadata": {"uid": value}, "data": {"k": value}});
    let would = |before: Option<Value>, after: Value| ObservedObject {
        before,
        answer: DryRunOutcome::Would(after),
    };
    let not = |answer: DryRunOutcome| ObservedObject { before: None, answer };
    let refusal = TryError {
        reason: Reason::UpdatePayloadResourceForbidden,
        cause: "not on Sundays".to_owned(),
        transience: Transience::Lasting,
        retry_after: None,
    };
    let same = json!({"metadata": {"resourceVersion": "7"}, "data": {}});
    let replaces = || DryRunOutcome::Replaces { fields: vec!["data".to_owned()], with: live("b") };
    let observed_objects = [
        would(None, json!({})),
        would(Some(live("a")), live("b")),
        would(Some(json!({"metadata": {"resourceVersion": "3"}, "data": {}})), same),
        not(DryRunOutcome::Blocked(StepBlocker::NamespaceMissing("quay".to_owned()))),
        not(DryRunOutcome::Refused(refusal)),
        not(DryRunOutcome::Blocked(StepBlocker::NamespaceMissing("pier".to_owned()))),
        ObservedObject { before: Some(live("a")), answer: replaces() },
        // It is deleted before it is inspected.
        not(replaces()),
    ];
    let key = |kind: &str, name: &str| ObjectKey {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let ours = BTreeSet::from([key("Namespace", "quay"), key("ConfigMap", "left")]);
    let kinds = BTreeSet::from([GroupKind::new("", "Namespace")]);
    let forecast = of_cluster(None, plan, &observed_objects, &ours, &kinds);
    let reported = reported(&forecast);
    assert_eq!(
        reported[..5],
        [
            "quay created",
            "drifted changed data.k",
            "same unchanged",
            "early created",
            "unwanted refused UpdatePayloadResourceForbidden not on Sundays",
        ]
    );
    assert!(reported[5].starts_with("homeless waiting NamespaceMissing"), "{}", reported[5]);
    assert_eq!(reported[6], "frozen replaced for data: data.k");
    assert_eq!(reported[7], "thawed created");
    assert_eq!(reported[8], "left vanished");
    assert_eq!(forecast.stops().len(), 2);
}

#[test]
fn fields_that_only_the_new_definition_knows_are_foreseen() {
    let definition = |extra: &str| {
        let spec = json!({
            "group": "apps", "names": {"kind": "Berth"}, "extra": extra,
            "versions": [{"name": "v1", "served": true}],
        });
        let file = "0000_03_a_1.yaml";
        manifest(file, "CustomResourceDefinition", "berths", json!({ "spec": spec }))
    };
    let berth = manifest("0000_05_a_1.yaml", "Berth", "south", json!({"spec": {"power": true}}));
    let plan = Arc::new(release("1.1.0", &[definition("new"), berth]));
    let check = |definition: &str, expected: &str| {
        let seen = |spec: &str| json!({"spec": {"extra": spec}});
        let metadata = json!({"name": "south", "annotations": {"a": "b"}});
        let live = json!({
            "apiVersion": "apps/v1", "kind": "Berth", "metadata": metadata, "spec": {"length": 1},
        });
        let observed_objects = [
            ObservedObject {
                before: Some(seen("old")),
                answer: DryRunOutcome::Would(seen(definition)),
            },
            // The server of the dry run has the old definition and drops what it does not know.
            ObservedObject { before: Some(live.clone()), answer: DryRunOutcome::Would(live) },
        ];
        let none = (BTreeSet::new(), BTreeSet::new());
        let forecast = of_cluster(None, Arc::clone(&plan), &observed_objects, &none.0, &none.1);
        assert_eq!(reported(&forecast)[1], expected);
    };
    check("new", "south changed spec.power");
    check("old", "south unchanged");
}

#[test]
fn managers_that_own_nothing_afterwards_are_taken_over() {
    let map = |file: &str, name: &str| manifest(file, "ConfigMap", name, json!({}));
    let manifests = [
        map("0000_10_a_1.yaml", "theirs"),
        map("0000_10_a_2.yaml", "new"),
        map("0000_10_a_3.yaml", "replaced"),
    ];
    let plan = Arc::new(release("1.1.0", &manifests));
    let object = |managers: &[&str]| {
        let entry = |manager: &&str| json!({ "manager": manager, "operation": "Update" });
        let entries: Vec<Value> = managers.iter().map(entry).collect();
        json!({ "metadata": { "managedFields": entries } })
    };
    let before = object(&["another-client", "helm", "olm"]);
    let observed_objects = [
        ObservedObject {
            before: Some(before.clone()),
            answer: DryRunOutcome::Would(object(&["another-client", "olm"])),
        },
        ObservedObject { before: None, answer: DryRunOutcome::Would(object(&[])) },
        ObservedObject {
            before: Some(before.clone()),
            answer: DryRunOutcome::Replaces { fields: vec!["data".to_owned()], with: before },
        },
    ];
    let none = (BTreeSet::new(), BTreeSet::new());
    let forecast = of_cluster(None, plan, &observed_objects, &none.0, &none.1);
    let taken_over: Vec<_> = forecast.taken_over.into_iter().collect();
    let managers = |names: &[&str]| BTreeSet::from_iter(names.iter().map(|it| (*it).to_owned()));
    assert_eq!(taken_over, [(0, managers(&["helm"])), (2, managers(&["helm", "olm"]))]);
}
