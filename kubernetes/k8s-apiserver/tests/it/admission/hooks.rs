//! The webhooks that the tests are about: each path of one host answers in its own way.
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_apiserver::Webhooks;
use serde_json::{Value, json};

use crate::cluster::TestCluster;

/// The host of all webhooks of the tests.
pub(crate) const HOST: &str = "hooks.test";

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// What the webhooks were asked, as `PATH OPERATION NAME`.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(String, Value)>>>);

impl Asked {
    /// What was asked since the last time, in the order of asking.
    pub(crate) fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The paths that were asked since the last time.
    pub(crate) fn take_paths(&self) -> Vec<String> {
        self.take().into_iter().map(|(path, _)| path).collect()
    }
}

/// A cluster with the webhooks of the tests, and what they are asked.
pub(crate) fn cluster() -> (TestCluster, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let log = log.clone();
        let answered: BoxFuture<'static, Result<_, String>> = Box::pin(async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            log.0.lock().unwrap().push((path.clone(), review.clone()));
            if path == "/silent" {
                std::future::pending::<()>().await;
            }
            if path == "/lost" {
                return Err("the line is cut".to_owned());
            }
            let (status, text) = answer(&path, &review);
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = status.try_into().unwrap();
            Ok(response)
        });
        answered
    });
    (TestCluster::with_webhooks(Webhooks::new().in_process(HOST, service)), asked)
}

fn patch(operations: &Value) -> Value {
    json!({
        "allowed": true,
        "patchType": "JSONPatch",
        "patch": STANDARD.encode(operations.to_string()),
    })
}

/// The status and the text that a path answers with.
fn answer(path: &str, review: &Value) -> (u16, String) {
    if review["kind"] == "ConversionReview" {
        return (200, convert(path, review).to_string());
    }
    let metadata = &review["request"]["object"]["metadata"];
    let mut response = match path {
        "/allow" => json!({"allowed": true}),
        "/deny" => json!({"allowed": false}),
        "/deny-because" => json!({"allowed": false, "status": {"message": "not today"}}),
        "/deny-fully" => json!({"allowed": false, "status": {
            "code": 418, "reason": "Teapot", "details": {"causes": [{"message": "short and stout"}]},
        }}),
        "/warn" => {
            json!({"allowed": true, "warnings": ["mind the gap", "mind the gap", "so \"it\" is"]})
        }
        "/label" => {
            let mut operations = vec![];
            if metadata.get("labels").is_none() {
                operations.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
            }
            operations.push(json!({"op": "add", "path": "/metadata/labels/hook", "value": "seen"}));
            patch(&Value::Array(operations))
        }
        // Counts the labels that it finds.
        "/count" => patch(&json!([{
            "op": "add",
            "path": "/data",
            "value": {"labels": metadata["labels"].as_object().map_or(0, serde_json::Map::len).to_string()},
        }])),
        "/bad-patch" => patch(&json!([{"op": "remove", "path": "/nowhere"}])),
        "/no-patch-type" => json!({"allowed": true, "patch": "W10="}),
        "/other-uid" => json!({"allowed": true, "uid": "1"}),
        "/error" => return (500, "out of order\n".to_owned()),
        "/missing" => return (404, String::new()),
        "/garbage" => return (200, "{}".to_owned()),
        "/empty" => {
            return (
                200,
                r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#.to_owned(),
            );
        }
        other => panic!("no webhook answers {other}"),
    };
    if response.get("uid").is_none() {
        response["uid"] = review["request"]["uid"].clone();
    }
    let answered = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "response": response,
    });
    (200, answered.to_string())
}

/// Converts between `spec.size` of version `v1` and `spec.width` of `v2`.
fn convert(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let mut objects = request["objects"].as_array().unwrap().clone();
    let (from, to) = if desired.ends_with("v2") { ("size", "width") } else { ("width", "size") };
    for object in &mut objects {
        object["apiVersion"] = desired.into();
        let spec = object["spec"].as_object_mut().unwrap();
        if let Some(value) = spec.remove(from) {
            spec.insert(to.to_owned(), value);
        }
        object["metadata"]["annotations"]["converted"] = desired.into();
        // Only labels and annotations are the webhook's to change.
        object["metadata"]["finalizers"] = json!(["hooks.test/never"]);
    }
    let mut result = json!({"status": "Success"});
    match path {
        "/convert-refuse" => result = json!({"status": "Failure", "message": "too wide"}),
        "/convert-silent" => result = json!({"status": "Failure"}),
        "/convert-drop" => objects.clear(),
        "/convert-rename" => objects[0]["metadata"]["name"] = "other".into(),
        "/convert-wrong" => objects[0]["apiVersion"] = "hooks.test/v3".into(),
        "/convert-bare" => {
            objects[0].as_object_mut().unwrap().remove("metadata");
        }
        _ => {}
    }
    json!({
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "response": {"uid": request["uid"], "result": result, "convertedObjects": objects},
    })
}

/// A webhook that is asked about writes of config maps, with `extra` fields.
pub(crate) fn webhook(path: &str, extra: &str) -> Value {
    let mut webhook = json!({
        "name": format!("{}.hooks.test", path.trim_start_matches('/')),
        "clientConfig": {"url": format!("https://{HOST}{path}")},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    let extra: Value = serde_json::from_str(extra).unwrap();
    for (field, value) in extra.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    webhook
}

/// Configures webhooks; `kind` is `Mutating` or `Validating`.
pub(crate) fn configure(cluster: &TestCluster, kind: &str, name: &str, webhooks: &[Value]) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name},
        "webhooks": webhooks,
    });
    let path = format!("POST {CONFIGURATIONS}/{}webhookconfigurations", kind.to_lowercase());
    cluster.check(&path, &configuration.to_string(), 201, "");
}
