//! Conversion of custom resources by a webhook: `ConversionReview`.
use std::sync::Arc;

use serde_json::{Value, json};

use crate::json::text;
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ConversionWebhook;
use crate::semantics::webhook::replay::{WebhookCall, WebhookResponse};
use crate::status::{ApiError, Result, StatusReason};

/// Converts objects of one kind, each of which is in another version than `desired`.
///
/// # Errors
/// When the webhook has to be asked first, or does not answer with the same objects converted.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go: Convert
pub(crate) fn convert(
    context: &mut RequestContext,
    conversion: &ConversionWebhook,
    desired: &str,
    objects: Vec<Value>,
) -> Result<Vec<Value>> {
    let Some(first) = objects.first() else {
        return Ok(objects);
    };
    let text = |field: &str| first[field].as_str().unwrap_or_default();
    let subject = format!("conversion webhook for {}, Kind={}", text("apiVersion"), text("kind"));
    let failed = |why: String| ApiError::new(StatusReason::Unknown, format!("{subject} {why}"));
    let endpoint = match &conversion.endpoint {
        Ok(endpoint) => Arc::clone(endpoint),
        Err(why) => return Err(failed(format!("failed: {why}"))),
    };
    let call = WebhookCall {
        caller: format!("convert {}", conversion.definition),
        endpoint,
        review: json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", conversion.review_version),
            "request": {"desiredAPIVersion": desired, "objects": objects},
        }),
    };
    let response = context.replay.call(call)?.map_err(|why| failed(format!("failed: {why}")))?;
    let converted = read(&response, conversion.review_version)
        .map_err(|why| failed(format!("failed: {why}")))?;
    if converted.len() != objects.len() {
        return Err(failed(format!(
            "returned {} objects, expected {}",
            converted.len(),
            objects.len()
        )));
    }
    objects
        .iter()
        .zip(converted)
        .map(|(original, converted)| checked(original, converted, desired).map_err(failed))
        .collect()
}

/// The objects of an answer.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go: getConvertedObjectsFromResponse
fn read(
    received: &WebhookResponse,
    review_version: &str,
) -> std::result::Result<Vec<Value>, String> {
    let review = &received.review;
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let is_strict = review_version == "v1";
    if is_strict && (api_version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             {api_version}, Kind={kind}"
        ));
    }
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let uid = response["uid"].as_str().unwrap_or_default();
    if is_strict && uid != received.uid {
        return Err(format!("expected response.uid={:?}, got {uid:?}", received.uid));
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let message = result["message"].as_str().filter(|message| !message.is_empty());
        return Err(message.map_or_else(
            || {
                let status = result["status"].as_str().unwrap_or_default();
                format!("response.result.status was '{status}', not 'Success'")
            },
            str::to_owned,
        ));
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// A converted object with the metadata of its original, but for labels and annotations.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go: validateConvertedObject
fn checked(
    original: &Value,
    mut converted: Value,
    desired: &str,
) -> std::result::Result<Value, String> {
    let invalid = |why: String| format!("returned invalid object at index 0: {why}");
    for (field, noun, expected) in
        [("apiVersion", "groupVersion", desired), ("kind", "kind", text(&original["kind"]))]
    {
        let found = text(&converted[field]);
        if found != expected {
            return Err(invalid(format!("invalid {noun} (expected {expected}, received {found})")));
        }
    }
    for (field, noun) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, found) =
            (text(&original["metadata"][field]), text(&converted["metadata"][field]));
        if expected != found {
            return Err(format!(
                "returned invalid object: must have the same {noun}: {expected} != {found}"
            ));
        }
    }
    let metadata = match converted.get("metadata") {
        Some(metadata) if metadata.is_object() => metadata.clone(),
        Some(_) => {
            return Err("returned invalid metadata: invalid metadata of type in converted object"
                .to_owned());
        }
        None => {
            return Err(
                "returned invalid metadata: missing metadata in converted object".to_owned()
            );
        }
    };
    converted["metadata"] = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        let Some(fields) = converted["metadata"].as_object_mut() else {
            continue;
        };
        match metadata.get(field).filter(|value| !value.is_null()) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
    Ok(converted)
}
