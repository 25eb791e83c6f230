//! The objects are what the API server serves and takes.

use k8s_openapi::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ClusterOperator, ClusterVersion, ReleaseProgress};
use crate::{ApiKind, CLUSTER_OPERATOR, CLUSTER_VERSION, RELEASE_PROGRESS};

/// Checks that an object survives being read and written, and that its type is the kind's.
fn check<T: Resource + Serialize + DeserializeOwned>(kind: ApiKind, object: &Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), object);
    assert_eq!(T::API_VERSION, kind.api_version());
}

#[test]
fn objects_survive_reading_and_writing() {
    let version = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "name": "version", "resourceVersion": "7" },
        "spec": {
            "clusterID": "4b6cf0a8-6c40-4f0c-a1f7-9f0f2a0ad9d3",
            "desiredUpdate": { "version": "1.1.0", "acceptRisks": [{ "name": "Slow" }] },
            "signatureStores": [{ "url": "https://example.com", "ca": { "name": "trusted" } }],
        },
    });
    check::<ClusterVersion>(CLUSTER_VERSION, &version);
    let operator = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": { "name": "pier" },
        "spec": {},
        "status": {
            "conditions": [],
            "versions": [{ "name": "operator", "version": "1.0.0" }],
            "relatedObjects": [],
        },
    });
    check::<ClusterOperator>(CLUSTER_OPERATOR, &operator);
    let progress = json!({
        "apiVersion": "plimsoll.io/v1alpha1",
        "kind": "ReleaseProgress",
        "metadata": { "name": "version" },
    });
    check::<ReleaseProgress>(RELEASE_PROGRESS, &progress);
}
