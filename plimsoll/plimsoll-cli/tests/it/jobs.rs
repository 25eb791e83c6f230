//! A Job that has completed for a release does not run for it again, but for the next one that replaces it.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::events::reported;
use crate::harness::{Harness, on_any_cluster, sample_with, sample_with_next, until};

const MANIFESTS: [(&str, &str); 2] = [
    (
        "0000_10_hoist_40_sails.job.yaml",
        r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: sails
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  ttlSecondsAfterFinished: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: sails, image: "registry.example.com/sails:1"}
"#,
    ),
    (
        "0000_20_hoist_30_moored.configmap.yaml",
        r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: moored
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
data: { of: ours }
"#,
    ),
];

async fn delete_map(maps: &Api<ConfigMap>) -> Option<String> {
    let uid = maps.get("moored").await.expect("it is there").metadata.uid;
    maps.delete("moored", &DeleteParams::default()).await.expect("a deletion");
    uid
}

async fn until_applied_again(maps: &Api<ConfigMap>, deleted: Option<&String>) {
    let map = || async { maps.get_opt("moored").await.expect("the server answers") };
    until("the ConfigMap is applied again", map, |found| {
        found.as_ref().is_some_and(|it| it.metadata.uid.as_ref() != deleted)
    })
    .await;
}

#[test]
fn a_job_that_is_deleted_once_it_has_completed_does_not_run_again() {
    on_any_cluster(|kind| async move {
        let manifests = MANIFESTS.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let release = sample_with(&manifests);
        let mut harness = Harness::installed(kind, &[release]).await;
        let jobs: Api<Job> = Api::namespaced(harness.client.clone(), "default");
        let maps: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let progress = || harness.progress();
        until("all is recorded as done", progress, |it| {
            it["mode"] == "Reconciling" && it["done"] == it["total"]
        })
        .await;

        jobs.delete("sails", &DeleteParams::background()).await.expect("a deletion");
        let deleted = delete_map(&maps).await;
        until_applied_again(&maps, deleted.as_ref()).await;

        // The next process applies the ConfigMap after the Job.
        harness.stop().await;
        let deleted = delete_map(&maps).await;
        harness.control();
        until_applied_again(&maps, deleted.as_ref()).await;
        assert!(jobs.get_opt("sails").await.expect("the server answers").is_none());
        harness.stop().await;
        let repaired = reported(&harness).await.remove("DriftRepaired").unwrap_or_default();
        assert!(!repaired.iter().any(|note| note.contains("sails")), "{repaired:?}");
    });
}

#[test]
fn a_job_that_has_completed_does_not_run_again_for_a_process_of_another_release() {
    on_any_cluster(|kind| async move {
        let manifests = MANIFESTS.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let (first, next) = (sample_with(&manifests), sample_with_next(&manifests));
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;
        let jobs: Api<Job> = Api::namespaced(harness.client.clone(), "default");
        let progress = || harness.progress();
        let recorded = until("it is recorded", progress, |it| {
            it["completedJobs"][0]["name"] == "sails" && it["done"] == it["total"]
        })
        .await;
        harness.stop().await;
        jobs.delete("sails", &DeleteParams::background()).await.expect("a deletion");
        harness.release(&next);
        harness.control();
        harness.completed(&next.release.version).await;
        assert!(jobs.get_opt("sails").await.expect("the server answers").is_none());
        assert_eq!(harness.progress().await["completedJobs"], recorded["completedJobs"]);
        harness.stop().await;
    });
}

#[test]
fn a_job_that_is_replaced_runs_when_the_former_is_gone() {
    on_any_cluster(|kind| async move {
        let manifest = |version: &str| {
            let (name, text) = MANIFESTS[0];
            let annotations = "  finalizers: [example.com/ballast]\n  annotations:\n    \
                               plimsoll.io/replace: \"true\"\n";
            let text = text
                .replace("sails:1", &format!("sails:{version}"))
                .replace("  ttlSecondsAfterFinished: 0\n", "")
                .replace("  annotations:\n", annotations);
            (name.to_owned(), text)
        };
        let (first, next) = (sample_with(&[manifest("1")]), sample_with_next(&[manifest("2")]));
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;
        let jobs: Api<Job> = Api::namespaced(harness.client.clone(), "default");

        harness.release(&next);
        let job = || async { jobs.get("sails").await.expect("it is there") };
        until("the former Job is being deleted", job, |it| {
            it.metadata.deletion_timestamp.is_some()
        })
        .await;
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        jobs.patch("sails", &PatchParams::default(), &patch).await.expect("a patch");
        harness.completed(&next.release.version).await;
        let pod = job().await.spec.and_then(|it| it.template.spec).expect("it has a pod");
        let image = pod.containers[0].image.as_deref();
        assert_eq!(image, Some("registry.example.com/sails:2"));
        harness.stop().await;
    });
}
