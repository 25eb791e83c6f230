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

    use serde_json::json;

    use super::agreed;

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
