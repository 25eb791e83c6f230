//! Objects that another program applied before a release does.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use plimsoll_plan::forecast::StepChange;
use serde_json::{Value, json};

use crate::harness::{Harness, OperatorSetup, on_each_cluster, sample_with, until};
use crate::install::create_cluster_version;
use crate::plans::forecast;

/// A ConfigMap of a release.
const MANIFEST: (&str, &str) = (
    "0000_30_tally_01.yaml",
    r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: tally
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
data:
  kept: ours
"#,
);

#[test]
fn what_kubectl_applied_and_a_release_lacks_goes_and_what_others_added_stays() {
    on_each_cluster(|kind| async move {
        let payload = sample_with(&[(MANIFEST.0.to_owned(), MANIFEST.1.to_owned())]);
        let payloads = [Arc::clone(&payload)];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        create_cluster_version(&harness, &json!({})).await;
        let api: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let before: ConfigMap = serde_json::from_value(json!({
            "metadata": {
                "name": "tally",
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" },
            },
            "data": { "kept": "theirs", "dropped": "theirs" },
        }))
        .expect("a ConfigMap");
        let kubectl = "kubectl-client-side-apply".to_owned();
        let parameters = PostParams { field_manager: Some(kubectl.clone()), ..Default::default() };
        api.create(&parameters, &before).await.expect("it is created");
        let other = "another-client".to_owned();
        let parameters = PatchParams { field_manager: Some(other), ..Default::default() };
        let patch = Patch::Merge(json!({ "data": { "added": "another" } }));
        api.patch("tally", &parameters, &patch).await.expect("it is changed");

        let forecast = forecast(&harness, &payload).await;
        let mut steps = forecast.plan.steps.iter();
        let step = steps.position(|it| it.manifest.key.name == "tally").expect("it is planned");
        assert_eq!(forecast.taken_over[&step].iter().collect::<Vec<_>>(), [&kubectl]);
        let StepChange::Changed(fields) = &forecast.changes[step] else { panic!("it changes") };
        let gone: Vec<&str> =
            fields.iter().filter(|it| it.after.is_none()).map(|it| it.path.as_str()).collect();
        let annotation = "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']";
        assert_eq!(gone, ["data.dropped", annotation]);

        harness.control();
        harness.completed(&payload.release.version).await;
        let data = || async { data(&api).await };
        let wanted = json!({ "kept": "ours", "added": "another" });
        until("what kubectl applied is gone", data, |it| *it == wanted).await;
        let object = api.get("tally").await.expect("it is there");
        let entries = object.metadata.managed_fields.unwrap_or_default();
        assert!(!entries.iter().any(|it| it.manager.as_ref() == Some(&kubectl)), "{entries:?}");
        harness.stop().await;
    });
}

/// The data of the ConfigMap.
async fn data(api: &Api<ConfigMap>) -> Value {
    json!(api.get("tally").await.expect("it is there").data)
}
