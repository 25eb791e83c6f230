//! Objects that are left alone, and managed again once their override has expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use plimsoll_api::CLUSTER_VERSION;
use serde_json::{Value, json};

use crate::rig::{PATIENCE, Rig, on_each_cluster, sample_with};

const MAP: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: held
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
data: { of: ours }
"#;

/// Overrides the object on terms, or with an annotation as it is.
async fn override_with(rig: &Rig, annotation: Value) {
    let patch = json!({
        "metadata": { "annotations": { "plimsoll.io/override-terms": annotation } },
        "spec": { "overrides": [{
            "kind": "ConfigMap", "group": "", "namespace": "default", "name": "held",
            "unmanaged": true,
        }] },
    });
    rig.api(CLUSTER_VERSION)
        .patch("version", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .expect("the ClusterVersion can be changed");
}

fn terms(expires: Timestamp) -> Value {
    let terms = json!([{
        "kind": "ConfigMap", "namespace": "default", "name": "held", "reason": "is being repaired",
        "expires": expires,
    }]);
    Value::String(terms.to_string())
}

async fn until<T, F: Future<Output = T>>(ask: impl Fn() -> F, wanted: impl Fn(&T) -> bool) -> T {
    let waiting = async {
        loop {
            let found = ask().await;
            if wanted(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it happens")
}

fn message<'a>(status: &'a Value, type_: &str) -> &'a str {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default()
}

#[test]
fn an_object_is_managed_again_once_its_override_has_expired() {
    on_each_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_held_01.yaml".to_owned(), MAP.to_owned())]);
        let mut rig = Rig::installed(kind, &[release]).await;
        let now = Timestamp::now();
        override_with(&rig, terms(now + SignedDuration::from_hours(1))).await;
        rig.cluster_version_until(|status| {
            let text = message(status, "Upgradeable");
            text.contains("configmap \"default/held\": is being repaired, until ")
        })
        .await;
        until(|| rig.progress(), |it| it["overrides"][0]["state"] == "InForce").await;
        let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
        let plan = until(|| rig.progress(), |it| it["mode"] == "Reconciling").await;
        maps.delete("held", &DeleteParams::default()).await.expect("it is there");
        override_with(&rig, json!("[{}]")).await;
        rig.cluster_version_until(|status| {
            message(status, "Invalid").contains("metadata.annotations[plimsoll.io/override-terms]")
        })
        .await;
        let found = maps.get_opt("held").await.expect("the server answers");
        assert!(found.is_none(), "nobody knows when it expires, so it is left alone");
        override_with(&rig, terms(Timestamp::now() + SignedDuration::from_millis(300))).await;
        until(|| async { maps.get_opt("held").await.ok().flatten() }, Option::is_some).await;
        rig.cluster_version_until(|status| {
            message(status, "Upgradeable").is_empty() && message(status, "Invalid").is_empty()
        })
        .await;
        let after = until(|| rig.progress(), |it| it["overrides"][0]["state"] == "Expired").await;
        assert_ne!(after["total"], plan["total"]);
        rig.stop().await;
        let events: Api<Event> = Api::namespaced(rig.client.clone(), "default");
        let reasons = || async {
            let list = events.list(&ListParams::default()).await.expect("a list");
            list.items.into_iter().filter_map(|event| event.reason).collect::<Vec<_>>()
        };
        for reason in ["OverrideInForce", "OverrideTermsInvalid", "OverrideExpired"] {
            until(reasons, |found| found.iter().any(|it| it == reason)).await;
        }
    });
}
