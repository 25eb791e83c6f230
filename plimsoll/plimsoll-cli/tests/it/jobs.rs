//! A Job that has completed for a release does not run for it again.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;

use crate::events::reported;
use crate::harness::{Harness, on_any_cluster, sample_with, until};

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
