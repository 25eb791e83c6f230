//! What a release deletes goes, what it forgets stays until it is pruned, and nothing of it holds
//! up an update (DEL-4, DEL-6; CVS-63 to CVS-66).

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Directory, SourceFile};
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::sample;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};

use crate::harness::{
    Harness, OperatorSetup, condition, on_any_cluster, on_each_cluster, sample_payload,
    sample_with, sample_with_next, until,
};

const NAMESPACE: &str = "harbour-beacon";

/// The manifest of a ConfigMap of the beacon, with what annotation more.
fn map(name: &str, annotation: &str) -> (String, String) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\n  \
         annotations:\n    include.release.openshift.io/self-managed-high-availability: \
         \"true\"\n{annotation}data:\n  a: b\n"
    );
    (format!("0000_10_beacon_03_{name}.yaml"), text)
}

fn removed(name: &str) -> (String, String) {
    map(name, "    release.openshift.io/delete: \"true\"\n")
}

fn kept(name: &str) -> (String, String) {
    map(name, "")
}

struct Scene {
    harness: Harness,
    maps: Api<ConfigMap>,
    next: Arc<Payload>,
}

impl Scene {
    /// A cluster at a release with ConfigMaps, and the release that follows.
    async fn new(kind: ClusterKind, first: &[(String, String)], next: &[(String, String)]) -> Self {
        let (first, next) = (sample_with(first), sample_with_next(next));
        let harness = Harness::installed(kind, &[first, Arc::clone(&next)]).await;
        let maps = Api::namespaced(harness.client.clone(), NAMESPACE);
        Self { harness, maps, next }
    }

    async fn update(&mut self) {
        self.harness.release(&self.next);
        self.harness.completed(&self.next.release.version).await;
    }

    async fn exists(&self, name: &str) -> bool {
        self.maps.get_opt(name).await.expect("the server answers").is_some()
    }

    async fn patch(&self, name: &str, patch: Value) {
        let parameters = PatchParams::default();
        self.maps.patch(name, &parameters, &Patch::Merge(&patch)).await.expect("a change");
    }

    /// Asks for orphans to be deleted, as `kubectl annotate` does.
    async fn prune(&self, value: &str) {
        self.harness.annotate("plimsoll.io/prune", json!(value)).await;
    }

    /// Waits until what ReleaseProgress lists under a field is as wanted.
    async fn until(&self, field: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let listed = || async {
            self.harness.progress().await[field].as_array().cloned().unwrap_or_default()
        };
        until("ReleaseProgress comes to tell it", listed, |listed| wanted(listed)).await
    }
}

fn states(deletions: &[Value]) -> Vec<(&str, &str)> {
    deletions
        .iter()
        .map(|it| (it["name"].as_str().unwrap_or(""), it["state"].as_str().unwrap_or("")))
        .collect()
}

#[test]
fn an_update_deletes_what_its_release_says_and_an_installation_does_not() {
    on_any_cluster(|kind| async move {
        let maps = [kept("first"), removed("never")];
        let mut scene = Scene::new(kind, &maps, &[removed("first"), removed("never")]).await;
        assert!(scene.exists("first").await);
        assert!(!scene.exists("never").await);
        scene.update().await;
        assert!(!scene.exists("first").await);
        let deletions = scene.until("deletions", |it| states(it) == [("first", "Completed")]).await;
        assert_eq!(deletions[0]["version"], "1.1.0");

        // What comes back is warned about, and stays.
        let again: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "first"}})).expect("a ConfigMap");
        scene.maps.create(&Default::default(), &again).await.expect("it is created");
        scene.until("deletions", |it| states(it) == [("first", "Reappeared")]).await;
        assert!(scene.exists("first").await);
    });
}

#[test]
fn an_object_that_is_held_blocks_only_the_next_minor_version() {
    on_each_cluster(|kind| async move {
        let mut scene = Scene::new(kind, &[kept("first")], &[removed("first")]).await;
        scene.patch("first", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
        scene.update().await;
        let deletions = scene
            .until("deletions", |it| it.first().is_some_and(|it| it["finalizers"].is_array()))
            .await;
        assert_eq!(deletions[0]["finalizers"], json!(["example.com/hold"]));
        assert_eq!(states(&deletions), [("first", "Requested")]);
        let objects = |status: &Value| {
            let upgradeable = condition(status, "Upgradeable");
            upgradeable["reason"] == "ResourceDeletesInProgress"
                && upgradeable["message"].as_str().is_some_and(|message| {
                    message.ends_with("; resources=configmap \"harbour-beacon/first\"")
                })
        };
        scene.harness.cluster_version_until(objects).await;

        // A controller that restarts knows it still.
        scene.harness.kill().await;
        scene.harness.control();
        scene.harness.completed("1.1.0").await;
        scene.harness.cluster_version_until(objects).await;
        scene.patch("first", json!({"metadata": {"finalizers": null}})).await;
        scene.until("deletions", |it| states(it) == [("first", "Completed")]).await;
        scene.harness.cluster_version_until(|status| !objects(status)).await;
    });
}

/// The manifests of a namespace and a ConfigMap in it, or of the namespace's deletion.
fn attic(deleted: bool) -> Vec<(String, String)> {
    let delete = if deleted { "    release.openshift.io/delete: \"true\"\n" } else { "" };
    let (name, text) = map("attic", delete);
    let text = text.replace("kind: ConfigMap", "kind: Namespace");
    let text =
        text.replace(&format!("  namespace: {NAMESPACE}\n"), "").replace("data:\n  a: b\n", "");
    let (inside, content) = map("chest", "");
    let content = content.replace(NAMESPACE, "attic");
    let manifests = [(name, text), (inside, content)];
    manifests.into_iter().take(if deleted { 1 } else { 2 }).collect()
}

#[test]
fn a_namespace_that_does_not_go_names_what_is_left_in_it() {
    on_each_cluster(|kind| async move {
        let mut scene = Scene::new(kind, &attic(false), &attic(true)).await;
        let maps: Api<ConfigMap> = Api::namespaced(scene.harness.client.clone(), "attic");
        let hold = async |finalizers: Value| {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
            maps.patch("chest", &PatchParams::default(), &patch).await.expect("a change");
        };
        hold(json!(["example.com/hold"])).await;
        scene.update().await;
        let deletions = scene
            .until("deletions", |it| {
                let message = it.first().and_then(|it| it["message"].as_str()).unwrap_or_default();
                message.contains("example.com/hold in 1 resource")
            })
            .await;
        let message = deletions[0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("configmaps. has 1 resource"), "{message}");
        hold(Value::Null).await;
        scene.until("deletions", |it| states(it).contains(&("attic", "Completed"))).await;
    });
}

#[test]
fn what_a_release_forgets_is_listed_and_pruned_only_on_request() {
    on_each_cluster(|kind| async move {
        let maps = [kept("first"), kept("second"), kept("third")];
        let mut scene = Scene::new(kind, &maps, &[kept("third")]).await;
        scene.update().await;
        let names = |orphans: &[Value]| -> Vec<String> {
            orphans.iter().filter_map(|it| it["name"].as_str()).map(str::to_owned).collect()
        };
        let orphans = scene.until("orphans", |it| names(it) == ["first", "second"]).await;
        assert_eq!(orphans[0]["version"], "1.0.0");
        assert_eq!(orphans[0]["message"], "not in release 1.1.0");
        assert!(scene.exists("first").await && scene.exists("second").await);

        scene.prune("configmap \"harbour-beacon/first\"").await;
        scene.until("orphans", |it| names(it) == ["second"]).await;
        assert!(!scene.exists("first").await);
        assert!(scene.exists("second").await && scene.exists("third").await);
        scene.prune("all").await;
        scene.until("orphans", <[Value]>::is_empty).await;
        assert!(!scene.exists("second").await);
        assert!(scene.exists("third").await);
    });
}

#[test]
fn a_name_asks_for_what_is_left_behind_now_and_not_for_what_will_be() {
    on_any_cluster(|kind| async move {
        let first = sample_with(&[kept("first"), kept("second")]);
        let mut scene = Scene::new(kind, &[kept("first"), kept("second")], &[]).await;
        scene.patch("second", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
        scene.update().await;
        scene.until("orphans", |it| it.len() == 2).await;
        let (name, held) =
            ("configmap \"harbour-beacon/first\"", "configmap \"harbour-beacon/second\"");
        let requested = async |scene: &Scene, expected: Value| {
            let found = || async {
                let object = scene.harness.get(plimsoll_api::CLUSTER_VERSION, "version").await;
                object["metadata"]["annotations"]["plimsoll.io/prune"].clone()
            };
            until("the request is brought up to date", found, |it| *it == expected).await;
        };
        // What is not gone yet is still asked for.
        scene.prune(&format!("{name}, {held}")).await;
        requested(&scene, json!(held)).await;
        assert!(!scene.exists("first").await && scene.exists("second").await);
        scene.patch("second", json!({"metadata": {"finalizers": null}})).await;
        requested(&scene, Value::Null).await;
        assert!(!scene.exists("second").await);

        scene.harness.release(&first);
        scene.harness.completed("1.0.0").await;
        assert!(scene.exists("first").await);
        scene.update().await;
        scene.until("orphans", |it| it.len() == 2).await;
        assert!(
            scene.exists("first").await && scene.exists("second").await,
            "they are not pruned again"
        );
        scene.prune(name).await;
        scene.until("orphans", |it| it.len() == 1).await;
        assert!(!scene.exists("first").await);
        requested(&scene, Value::Null).await;
        scene.harness.stop().await;
    });
}

/// The manifest of a ClusterRole, which has no namespace whatever the manifest says.
fn role(namespace: &str) -> (String, String) {
    let text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  \
         name: beacon-reader\n{namespace}  annotations:\n    \
         include.release.openshift.io/self-managed-high-availability: \"true\"\nrules: []\n"
    );
    ("0000_10_beacon_03_role.yaml".to_owned(), text)
}

#[test]
fn a_namespace_that_a_kind_does_not_have_makes_no_orphan() {
    on_any_cluster(|kind| async move {
        let first = [role("  namespace: harbour-beacon\n"), kept("first")];
        let mut scene = Scene::new(kind, &first, &[role("")]).await;
        scene.update().await;
        let orphans = scene.until("orphans", |it| !it.is_empty()).await;
        assert_eq!((orphans.len(), &orphans[0]["name"]), (1, &json!("first")));
        scene.prune("all").await;
        scene.until("orphans", <[Value]>::is_empty).await;
        assert!(!scene.exists("first").await);
        let roles: Api<ClusterRole> = Api::all(scene.harness.client.clone());
        let role = roles.get_opt("beacon-reader").await.expect("the server answers");
        assert!(role.is_some_and(|it| it.metadata.deletion_timestamp.is_none()));
    });
}

#[test]
fn orphans_are_listed_when_started_with_another_release() {
    on_any_cluster(|kind| async move {
        let mut scene = Scene::new(kind, &[kept("first")], &[]).await;
        scene.harness.stop().await;
        scene.harness.release(&scene.next);
        scene.harness.control();
        scene.harness.completed("1.1.0").await;
        let orphans = scene.until("orphans", |it| it.len() == 1).await;
        assert_eq!(
            (&orphans[0]["name"], &orphans[0]["version"]),
            (&json!("first"), &json!("1.0.0"))
        );
        scene.prune("all").await;
        scene.until("orphans", <[Value]>::is_empty).await;
        assert!(!scene.exists("first").await);
    });
}

#[test]
fn an_orphan_that_another_client_deletes_is_forgotten() {
    on_any_cluster(|kind| async move {
        let mut scene = Scene::new(kind, &[kept("first")], &[]).await;
        scene.update().await;
        scene.until("orphans", |it| it.len() == 1).await;
        scene.maps.delete("first", &DeleteParams::default()).await.expect("it is deleted");
        scene.until("orphans", <[Value]>::is_empty).await;
    });
}

/// The files of the sample release under another version, with manifests more.
fn files(version: &str, manifests: &[(String, String)]) -> Vec<SourceFile> {
    let (files, base) = match version.starts_with("1.0.") {
        true => (sample::v1(), "1.0.0"),
        false => (sample::v2(), "1.1.0"),
    };
    let renamed = files.into_iter().map(|mut file| {
        let text = String::from_utf8_lossy(&file.bytes).replace(base, version);
        file.bytes = text.into();
        file
    });
    let more = manifests.iter().map(|(name, text)| SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.clone(),
        bytes: text.clone().into(),
    });
    renamed.chain(more).collect()
}

#[test]
fn a_repeated_deletion_needs_force_in_another_minor_version() {
    let deleting = [removed("first")];
    let releases = [
        files("1.0.0", &[kept("first")]),
        files("1.0.1", &deleting),
        files("1.0.2", &deleting),
        files("1.1.0", &deleting),
    ];
    on_any_cluster(|kind| {
        let releases = releases.clone();
        async move {
            let payloads = releases.each_ref().map(|files| sample_payload(files));
            let store = PayloadSet::new();
            for files in releases {
                store.add(files, None, Signature::NotSigned).expect("in order");
            }
            let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
            harness.store = Some(Arc::new(store));
            harness.control();
            harness.completed("1.0.0").await;
            for payload in &payloads[1..3] {
                let update = json!({"desiredUpdate": {"image": payload.image}});
                harness.set_spec(update).await;
                harness.completed(&payload.release.version).await;
            }
            let minor = &payloads[3].image;
            harness.set_spec(json!({"desiredUpdate": {"image": minor}})).await;
            let status = harness
                .cluster_version_until(|status| {
                    condition(status, "ReleaseAccepted")["reason"] == "PreconditionChecks"
                })
                .await;
            let message = condition(&status, "ReleaseAccepted")["message"].to_string();
            assert!(message.contains("ResourceAlreadyDeleted"), "{message}");
            assert!(message.contains("harbour-beacon/first"), "{message}");
            assert_eq!(status["desired"]["version"], "1.0.2");

            // What `plimsoll update plan` tells of it.
            let cluster =
                ClusterState::read(&harness.client).await.expect("there is a ClusterVersion");
            let target = cluster.target(DEFAULT_PROFILE, None, Timestamp::now());
            let findings = cluster.findings(&payloads[3], &target, Timestamp::now());
            let blocking = findings.iter().filter(|it| it.blocking);
            let reasons: Vec<&str> = blocking.map(|it| it.reason.as_str()).collect();
            assert_eq!(reasons, ["ResourceAlreadyDeleted"], "{findings:?}");
            let findings = cluster.findings(&payloads[2], &target, Timestamp::now());
            assert!(findings.iter().all(|it| !it.blocking));

            harness.set_spec(json!({"desiredUpdate": {"image": minor, "force": true}})).await;
            harness.completed("1.1.0").await;
            let status = harness.cluster_version_until(|_| true).await;
            let risks = status["history"][0]["acceptedRisks"].as_str().unwrap_or_default();
            assert!(risks.contains("ClusterVersionRepeatedDeletions"), "{risks}");
            harness.stop().await;
        }
    });
}
