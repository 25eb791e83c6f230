//! Objects that are left alone, and managed again once their override has expired.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::harness::{Harness, condition, on_any_cluster, sample_with, until};

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
async fn override_with(harness: &Harness, annotation: Value) {
    harness
        .change(json!({
            "metadata": { "annotations": { "plimsoll.io/override-terms": annotation } },
            "spec": { "overrides": [{
                "kind": "ConfigMap", "group": "", "namespace": "default", "name": "held",
                "unmanaged": true,
            }] },
        }))
        .await;
}

fn terms(expires: Timestamp) -> Value {
    let terms = json!([{
        "kind": "ConfigMap", "namespace": "default", "name": "held", "reason": "is being repaired",
        "expires": expires,
    }]);
    Value::String(terms.to_string())
}

fn message<'a>(status: &'a Value, type_: &str) -> &'a str {
    condition(status, type_)["message"].as_str().unwrap_or_default()
}

#[test]
fn an_object_is_managed_again_once_its_override_has_expired() {
    on_any_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_held_01.yaml".to_owned(), MAP.to_owned())]);
        let mut harness = Harness::installed(kind, &[release]).await;
        let now = Timestamp::now();
        override_with(&harness, terms(now + SignedDuration::from_hours(1))).await;
        harness
            .cluster_version_until(|status| {
                let text = message(status, "Upgradeable");
                text.contains("configmap \"default/held\": is being repaired, until ")
            })
            .await;
        until(
            "it is in force",
            || harness.progress(),
            |it| it["overrides"][0]["state"] == "InForce",
        )
        .await;
        let maps: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let plan =
            until("it is at rest", || harness.progress(), |it| it["mode"] == "Reconciling").await;
        maps.delete("held", &DeleteParams::default()).await.expect("it is there");
        override_with(&harness, json!("[{}]")).await;
        harness
            .cluster_version_until(|status| {
                message(status, "Invalid")
                    .contains("metadata.annotations[plimsoll.io/override-terms]")
            })
            .await;
        let found = maps.get_opt("held").await.expect("the server answers");
        assert!(found.is_none(), "its expiry is not known, so it is left alone");
        override_with(&harness, terms(Timestamp::now() + SignedDuration::from_millis(300))).await;
        let held = || async { maps.get_opt("held").await.ok().flatten() };
        until("it is applied again", held, Option::is_some).await;
        harness
            .cluster_version_until(|status| {
                message(status, "Upgradeable").is_empty() && message(status, "Invalid").is_empty()
            })
            .await;
        let after = until(
            "it has expired",
            || harness.progress(),
            |it| it["overrides"][0]["state"] == "Expired",
        )
        .await;
        assert_ne!(after["total"], plan["total"]);
        harness.stop().await;
        let events: Api<Event> = Api::namespaced(harness.client.clone(), "default");
        let reasons = || async {
            let list = events.list(&ListParams::default()).await.expect("a list");
            list.items.into_iter().filter_map(|event| event.reason).collect::<Vec<_>>()
        };
        for reason in ["OverrideInForce", "OverrideTermsInvalid", "OverrideExpired"] {
            until(reason, reasons, |found| found.iter().any(|it| it == reason)).await;
        }
    });
}
