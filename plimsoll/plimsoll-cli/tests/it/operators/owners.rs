//! An object that both an Operator and a release contain: it has one owner at a time.

use std::sync::Arc;

use k8s_testkit::ClusterKind;
use plimsoll_content::Payload;
use plimsoll_content::payload::{Directory, SourceFile};
use plimsoll_plan::forecast::StepChange;
use plimsoll_simulation::sample;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};

use super::commands::RunCommand;
use super::{AddOns, Fixture};
use crate::harness::{on_any_cluster, sample_payload, until};
use crate::plans::forecast;

const INSTANCE: &str = "bar.example.com/v1 Bar default/one";
const DEFINITION: &str = "apiextensions.k8s.io/v1 CustomResourceDefinition bars.bar.example.com";

/// Returns the definition of package `bar`, as a manifest of a release. It has the label of an Operator,
/// which means nothing there.
fn definition() -> SourceFile {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
    });
    let profile = "include.release.openshift.io/self-managed-high-availability";
    let manifest = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "bars.bar.example.com",
            "annotations": { profile: "true" },
            "labels": { "olm.io/operator": "bar" },
        },
        "spec": {
            "group": "bar.example.com",
            "names": { "kind": "Bar", "plural": "bars", "singular": "bar" },
            "scope": "Namespaced",
            "versions": [version],
        },
    });
    SourceFile {
        directory: Directory::ReleaseManifests,
        name: "0000_10_beacon_03_bars.yaml".to_owned(),
        bytes: manifest.to_string().into(),
    }
}

/// A cluster at the first release, where an Operator has the definition that the next one contains, with an
/// object of its kind.
struct Contested {
    add_ons: AddOns,
    next: Arc<Payload>,
    /// The version of the next release.
    to: String,
}

impl Contested {
    async fn start(kind: ClusterKind) -> Self {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let mut files = sample::v2();
        files.push(definition());
        let next = sample_payload(&files);
        let store = PayloadSet::new();
        let first = store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        let second = store.add(files, None, Signature::NotSigned).expect("in order");
        add_ons.harness.store = Some(Arc::new(store));
        add_ons.harness.control();
        add_ons.harness.completed(&first.release.version).await;
        add_ons.control();
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        Fixture::publish(&path, "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        Self { add_ons, next, to: second.release.version.clone() }
    }
}

#[test]
fn what_a_release_under_way_contains_stays_before_its_turn_comes() {
    on_any_cluster(|kind| async move {
        let Contested { mut add_ons, to, .. } = Contested::start(kind).await;
        let uid = async |named: &str| add_ons.present(named).await["metadata"]["uid"].clone();
        let before = [uid(INSTANCE).await, uid(DEFINITION).await];
        add_ons.harness.pause(json!("10")).await;
        let forced = json!({ "desiredUpdate": { "version": to, "force": true } });
        add_ons.harness.set_spec(forced).await;
        let progress = || add_ons.harness.progress();
        let is_paused = |it: &Value| it["version"] == *to && it["update"]["pausedBefore"] == 10;
        let paused = until("it is paused", progress, is_paused).await;
        let waits = paused["steps"].to_string();
        assert!(!waits.contains("bars.bar.example.com"), "its turn has not come: {waits}");
        let kept = "customresourcedefinition.apiextensions.k8s.io/bars.bar.example.com is kept: the release \
                    contains it\n";
        RunCommand::new("delete bar --dry-run", kept).play(&add_ons).await;
        add_ons.delete("olm.io/v1 Operator bar").await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        add_ons.absent("apps/v1 Deployment bar/bar-operator").await;
        assert_eq!([uid(INSTANCE).await, uid(DEFINITION).await], before);
        add_ons.harness.pause(Value::Null).await;
        add_ons.harness.completed(&to).await;
        for (named, before) in [INSTANCE, DEFINITION].into_iter().zip(before) {
            assert_eq!(add_ons.present(named).await["metadata"]["uid"], before, "{named}");
        }
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn a_release_waits_for_the_operator_that_has_an_object_and_then_takes_it_over() {
    on_any_cluster(|kind| async move {
        let Contested { mut add_ons, next, to } = Contested::start(kind).await;
        let bar = INSTANCE;
        let uid = async |named: &str| add_ons.present(named).await["metadata"]["uid"].clone();
        let before = [uid(bar).await, uid(DEFINITION).await];

        // The plan and the preconditions name the Operator.
        let owner = "belongs to Operator bar";
        let planned = forecast(&add_ons.harness, &next).await;
        // Neither are its objects orphans, nor what the controllers apply for themselves.
        let orphans = planned.orphans.iter().map(|it| it.key.to_string());
        let foreign = ["bar.example.com", "bar/bar", "olm.io", "plimsoll.io"];
        let foreign: Vec<String> =
            orphans.filter(|it| foreign.iter().any(|part| it.contains(part))).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        let changes = planned.changes;
        let is_refused = |it: &StepChange| match it {
            StepChange::Refused { message, .. } => message.contains(owner),
            _ => false,
        };
        assert!(changes.iter().any(is_refused), "{changes:#?}");
        let message = add_ons.rejected_update(&to).await;
        assert!(message.contains("Operator bar: "), "{message}");
        assert!(message.contains("bars.bar.example.com"), "{message}");

        // An update that is forced is held up at the object.
        let forced = json!({ "desiredUpdate": { "version": to, "force": true } });
        add_ons.harness.set_spec(forced).await;
        let steps = || async { add_ons.harness.progress().await["steps"].clone() };
        until("the step is held up", steps, |it: &Value| it.to_string().contains(owner)).await;
        assert_eq!(uid(DEFINITION).await, before[1]);

        // The label proves nothing: another client has added it to a definition of the release.
        let current = sample_payload(&sample::v1());
        let mut manifests = current.manifests.iter();
        let of_release = manifests.find(|it| it.key.kind == "CustomResourceDefinition");
        let name = &of_release.expect("the sample has definitions").key.name;
        let of_release = format!("apiextensions.k8s.io/v1 CustomResourceDefinition {name}");
        let labels = json!({ "metadata": { "labels": { "olm.io/operator": "bar" } } });
        add_ons.change(&of_release, labels).await;
        let release_uid = uid(&of_release).await;

        // What the release contains stays when the Operator goes, with the objects of its kind.
        add_ons.delete("olm.io/v1 Operator bar").await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        add_ons.absent("apps/v1 Deployment bar/bar-operator").await;
        assert_eq!([uid(bar).await, uid(DEFINITION).await], before);
        assert_eq!(uid(&of_release).await, release_uid);
        let label = || async {
            add_ons.present(DEFINITION).await["metadata"]["labels"]["olm.io/operator"].clone()
        };
        until("the release has taken it over", label, Value::is_null).await;
        add_ons.harness.completed(&to).await;

        // Now it is the release's: nothing of the bundle is applied.
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "False Conflict")]).await;
        add_ons.absent("apps/v1 Deployment bar/bar-operator").await;
        assert_eq!(add_ons.present(DEFINITION).await["metadata"]["uid"], before[1]);
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}
