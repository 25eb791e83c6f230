//! Conversion between versions, and the addresses of webhooks.
use std::collections::BTreeSet;

use plimsoll_schema::FieldError;
use plimsoll_schema::names::{label_1035, subdomain};
use serde_json::Value;

use super::{forbidden, invalid, list, not_supported, required, text};

const FORM: &str = "; desired format: https://host[/path]";

/// Checks `spec.conversion`.
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
            check_url(text(client, "url"), &format!("{CLIENT}.url"), errors);
        } else {
            check_service(&client["service"], &format!("{CLIENT}.service"), errors);
        }
        check_reviews(list(webhook, "conversionReviewVersions"), REVIEWS, errors);
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

fn check_reviews(versions: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        return errors.push(required(path, ""));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = version.as_str().unwrap_or_default();
        if !seen.insert(name) {
            errors.push(invalid(at, version, "duplicate version"));
            continue;
        }
        let problems = label_1035(name);
        errors.extend(problems.into_iter().map(|problem| invalid(&at, version, problem)));
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(invalid(path, &versions.to_vec().into(), detail));
    }
}

/// Checks the address of a webhook.
pub(crate) fn check_url(url: &str, path: &str, errors: &mut Vec<FieldError>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(invalid(path, &scheme.into(), detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().filter(|_| url.contains("://")).unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        errors.push(invalid(path, &host.into(), format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        let detail = "user information is not permitted in the URL";
        errors.push(invalid(path, &user.into(), detail));
    }
    if !fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.push(invalid(path, &fragment.into(), detail));
    }
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(invalid(path, &query.into(), detail));
    }
}

/// Checks the service of a webhook.
pub(crate) fn check_service(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["name", "namespace"] {
        if text(service, name).is_empty() {
            errors.push(required(format!("{path}.{name}"), ""));
        }
    }
    if let Some(port) = service["port"].as_i64()
        && !(1..=65_535).contains(&port)
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(invalid(format!("{path}.port"), &port.into(), detail));
    }
    let url_path = text(service, "path");
    if matches!(url_path, "" | "/") {
        return;
    }
    let mut wrong =
        |detail: String| errors.push(invalid(format!("{path}.path"), &url_path.into(), detail));
    if url_path == "//" {
        return wrong("segment[0] may not be empty".to_owned());
    }
    if !url_path.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let rest: String = url_path.chars().skip(1).collect();
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            wrong(format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in subdomain(step) {
            wrong(format!("segment[{index}]: {problem}"));
        }
    }
}
