//! Conversion between versions.
use serde_json::Value;

use super::{forbidden, list, not_supported, required, text};
use crate::{FieldError, check_review_versions, check_webhook_service, check_webhook_url};

/// Checks `spec.conversion`.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateCustomResourceConversion
pub(super) fn check(spec: &Value, errors: &mut Vec<FieldError>) {
    let conversion = &spec["conversion"];
    if conversion.is_null() {
        return;
    }
    let strategy = text(conversion, "strategy");
    match strategy {
        "None" | "Webhook" => {}
        "" => errors.push(required("spec.conversion.strategy", "")),
        other => {
            errors.push(not_supported("spec.conversion.strategy", other, &["None", "Webhook"]));
        }
    }
    let webhook = &conversion["webhook"];
    let client = &webhook["clientConfig"];
    const CLIENT: &str = "spec.conversion.webhookClientConfig";
    const REVIEWS: &str = "spec.conversion.conversionReviewVersions";
    if strategy == "Webhook" {
        if client.is_null() {
            errors.push(required(CLIENT, "required when strategy is set to Webhook"));
        } else if client["url"].is_null() == client["service"].is_null() {
            errors.push(required(CLIENT, "exactly one of url or service is required"));
        } else if client["service"].is_null() {
            check_webhook_url(text(client, "url"), &format!("{CLIENT}.url"), errors);
        } else {
            check_webhook_service(&client["service"], &format!("{CLIENT}.service"), errors);
        }
        check_review_versions(list(webhook, "conversionReviewVersions"), "", REVIEWS, errors);
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if !client.is_null() {
            errors.push(forbidden(CLIENT, detail));
        }
        if !list(webhook, "conversionReviewVersions").is_empty() {
            errors.push(forbidden(REVIEWS, detail));
        }
    }
}
