//! Webhooks in a rehearsal: none is called; in-process services allow every request instead.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_apiserver::Webhooks;
use serde_json::{Value, json};

/// Answers every webhook: admission webhooks let everything pass, conversion webhooks change nothing but the
/// version.
pub(super) fn agreeing() -> Webhooks {
    Webhooks::new().otherwise_in_process(tower::service_fn(answer))
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
    //! What webhooks answer.

    use k8s_apiserver::{ApiServer, Options};
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::PostParams;
    use kube::{Api, Client};
    use serde_json::{from_value, json};

    use super::{agreed, agreeing};

    #[test]
    fn a_webhook_that_comes_later_agrees_too() {
        let configuration = json!({
            "metadata": { "name": "guard" },
            "webhooks": [{
                "name": "guard.harbour.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": { "service": { "name": "guard", "namespace": "harbour" } },
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["configmaps"],
                }],
            }],
        });
        let map = json!({ "metadata": { "name": "one", "namespace": "default" } });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let options = Options { webhooks: agreeing(), ..Options::default() };
            let client = Client::new(ApiServer::new(options), "default");
            let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
            let configuration = from_value(configuration).expect("it is a configuration");
            let created = webhooks.create(&PostParams::default(), &configuration).await;
            created.expect("it is created");
            let maps: Api<ConfigMap> = Api::namespaced(client, "default");
            let map = from_value(map).expect("it is a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("nothing refuses it");
        });
    }

    #[test]
    fn every_webhook_agrees() {
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
