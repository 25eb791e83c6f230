//! Cells of what extends the API.
use serde_json::Value;

use super::{UNSET, has_condition, items, joined, string};

pub(in crate::http::table) fn definition_versions(object: &Value) -> Value {
    items(&object["spec"]["versions"])
        .iter()
        .map(|version| {
            let name = string(&version["name"]);
            if version["storage"] == true { format!("{name}(storage)") } else { name.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(",")
        .into()
}

pub(in crate::http::table) fn definition_short_names(object: &Value) -> Value {
    joined(items(&object["spec"]["names"]["shortNames"]).iter().map(string)).into()
}

pub(in crate::http::table) fn definition_established(object: &Value) -> Value {
    has_condition(object, "Established").into()
}

pub(in crate::http::table) fn api_service_target(object: &Value) -> Value {
    let service = &object["spec"]["service"];
    if service.is_null() {
        return "Local".into();
    }
    format!("{}/{}", string(&service["namespace"]), string(&service["name"])).into()
}

pub(in crate::http::table) fn api_service_available(object: &Value) -> Value {
    items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Available")
        .map_or_else(
            || "Unknown".into(),
            |condition| match string(&condition["status"]) {
                "True" => "True".into(),
                status => format!("{status} ({})", string(&condition["reason"])).into(),
            },
        )
}

pub(in crate::http::table) fn webhook_count(object: &Value) -> Value {
    items(&object["webhooks"]).len().into()
}

pub(in crate::http::table) fn validation_count(object: &Value) -> Value {
    items(&object["spec"]["validations"]).len().into()
}

pub(in crate::http::table) fn policy_parameter_kind(object: &Value) -> Value {
    let kind = &object["spec"]["paramKind"];
    if kind.is_null() {
        return UNSET.into();
    }
    format!("{}/{}", string(&kind["apiVersion"]), string(&kind["kind"])).into()
}

pub(in crate::http::table) fn policy_parameter(object: &Value) -> Value {
    let parameter = &object["spec"]["paramRef"];
    if parameter.is_null() {
        return UNSET.into();
    }
    match string(&parameter["namespace"]) {
        "" => string(&parameter["name"]).into(),
        namespace => format!("{namespace}/{}", string(&parameter["name"])).into(),
    }
}
