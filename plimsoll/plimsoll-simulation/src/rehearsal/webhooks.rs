//! Webhooks in a rehearsal: none is called; in-process services allow every request instead.

use std::collections::BTreeSet;
use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_apiserver::Webhooks;
use serde_json::{Value, json};

/// Answers every webhook that any of the objects configures: admission webhooks let everything
/// pass, conversion webhooks change nothing but the version.
pub(super) fn content(objects: impl Iterator<Item = Value>) -> Webhooks {
    let hosts: BTreeSet<String> = objects.flat_map(|object| hosts(&object)).collect();
    hosts.iter().fold(Webhooks::new(), |webhooks, host| {
        webhooks.in_process(host, tower::service_fn(answer))
    })
}

/// Returns whether an object may configure webhooks, by its kind.
pub(super) fn may_configure(kind: &str) -> bool {
    matches!(
        kind,
        "CustomResourceDefinition"
            | "ValidatingWebhookConfiguration"
            | "MutatingWebhookConfiguration"
    )
}

/// The hosts of the webhooks that an object configures.
fn hosts(object: &Value) -> Vec<String> {
    let admission = object["webhooks"].as_array().into_iter().flatten();
    let admission = admission.map(|webhook| &webhook["clientConfig"]);
    let conversion = &object["spec"]["conversion"]["webhook"]["clientConfig"];
    admission.chain([conversion]).filter_map(host).collect()
}

fn host(config: &Value) -> Option<String> {
    if let (Some(name), Some(namespace)) =
        (config["service"]["name"].as_str(), config["service"]["namespace"].as_str())
    {
        return Some(format!("{name}.{namespace}.svc"));
    }
    let url: http::Uri = config["url"].as_str()?.parse().ok()?;
    url.host().map(str::to_owned)
}

async fn answer(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => match error {},
    };
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = serde_json::to_vec(&agreed(&review)).unwrap_or_default();
    Ok(Response::new(Full::from(answer)))
}

/// The answer to a review.
fn agreed(review: &Value) -> Value {
    let request = &review["request"];
    let response = if review["kind"] == "ConversionReview" {
        let objects = request["objects"].as_array().cloned().unwrap_or_default();
        let converted = objects.into_iter().map(|mut object| {
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            object
        });
        json!({
            "uid": request["uid"],
            "convertedObjects": converted.collect::<Vec<_>>(),
            "result": { "status": "Success" },
        })
    } else {
        json!({ "uid": request["uid"], "allowed": true })
    };
    json!({
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": response,
    })
}

#[cfg(test)]
mod tests {
    //! Where webhooks are, and what they say.

    use serde_json::json;

    use super::{agreed, hosts};

    #[test]
    fn every_webhook_is_found_and_agrees() {
        let configuration = json!({"webhooks": [
            {"clientConfig": {"service": {"name": "guard", "namespace": "harbour", "path": "/x"}}},
            {"clientConfig": {"url": "https://guard.example:8443/y"}},
        ]});
        assert_eq!(hosts(&configuration), ["guard.harbour.svc", "guard.example"]);
        let definition = json!({"spec": {"conversion": {"webhook": {"clientConfig": {
            "service": {"name": "converter", "namespace": "harbour"},
        }}}}});
        assert_eq!(hosts(&definition), ["converter.harbour.svc"]);
        let review = json!({"kind": "AdmissionReview", "apiVersion": "v", "request": {"uid": "u"}});
        assert_eq!(agreed(&review)["response"], json!({"uid": "u", "allowed": true}));
        let review = json!({"kind": "ConversionReview", "request": {
            "uid": "u", "desiredAPIVersion": "a/v2", "objects": [{"apiVersion": "a/v1", "x": 1}],
        }});
        assert_eq!(
            agreed(&review)["response"]["convertedObjects"],
            json!([{"apiVersion": "a/v2", "x": 1}])
        );
    }
}
