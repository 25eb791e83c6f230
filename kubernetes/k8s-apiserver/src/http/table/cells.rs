//! Functions of cells: those that many kinds share, and in the modules below those of few kinds.
//!
//! `data/cells.tsv` names them; `table::expression` lists them all.
//!
//! Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: AddHandlers
use jiff::Timestamp;
use serde_json::Value;

use super::age;

pub(super) mod events;
pub(super) mod extensions;
pub(super) mod jobs;
pub(super) mod machines;
pub(super) mod network;
pub(super) mod scaling;
pub(super) mod services;
pub(super) mod workloads;

pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

/// What a function of a cell gets besides the value at its path.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// The word that the data file passes to the function; empty if it passes none.
    pub(super) argument: &'static str,
    pub(super) now: Timestamp,
}

/// A function that computes a cell from the value at a path; the value is null where there is none.
pub(super) type Function = fn(&Value, &Context) -> Value;

/// The time since a timestamp.
///
/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: translateTimestampSince
pub(super) fn age(time: &Value, ctx: &Context) -> Value {
    age::since(time.as_str(), ctx.now).into()
}

/// A number of seconds as a duration.
pub(super) fn duration(seconds: &Value, _: &Context) -> Value {
    age::format_seconds(number(seconds)).into()
}

/// How many items a list has.
pub(super) fn count(list: &Value, _: &Context) -> Value {
    items(list).len().into()
}

/// A number; where there is none the argument, or zero without one.
pub(super) fn number_cell(value: &Value, ctx: &Context) -> Value {
    value.as_i64().unwrap_or_else(|| ctx.argument.parse().unwrap_or_default()).into()
}

/// A truth value; where there is none the argument, or `false` without one.
pub(super) fn flag(value: &Value, ctx: &Context) -> Value {
    value.as_bool().unwrap_or(ctx.argument == "true").into()
}

/// A truth value as text with a capital, although the column says that it is a boolean.
///
/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printBoolPtr
pub(super) fn capitalized_flag(value: &Value, _: &Context) -> Value {
    if *value == true { "True" } else { "False" }.into()
}

/// A number or a text as text.
pub(super) fn text_cell(value: &Value, _: &Context) -> Value {
    shown(value).into()
}

/// A text without the white space around it.
pub(super) fn trimmed(value: &Value, _: &Context) -> Value {
    string(value).trim().into()
}

/// The items of a list with commas between them; with an argument that field of each item.
pub(super) fn join(list: &Value, ctx: &Context) -> Value {
    joined(items(list).iter().map(|item| match ctx.argument {
        "" => string(item),
        field => string(&item[field]),
    }))
    .into()
}

/// Labels as `key=value`.
pub(super) fn labels_cell(value: &Value, _: &Context) -> Value {
    labels(value).into()
}

/// A label selector in the form that `kubectl --selector` takes.
pub(super) fn label_selector_cell(value: &Value, _: &Context) -> Value {
    label_selector(value).into()
}

/// Whether the condition of the argument's type is true.
pub(super) fn has_condition_cell(conditions: &Value, ctx: &Context) -> Value {
    has_condition(conditions, ctx.argument).into()
}

/// The status of the condition of the argument's type; null if there is none.
pub(super) fn condition_status(conditions: &Value, ctx: &Context) -> Value {
    items(conditions)
        .iter()
        .find(|condition| condition["type"] == ctx.argument)
        .map_or(Value::Null, |condition| condition["status"].clone())
}

/// A reference as `Kind/name`.
pub(super) fn kind_and_name(reference: &Value, _: &Context) -> Value {
    format!("{}/{}", string(&reference["kind"]), string(&reference["name"])).into()
}

/// A reference as `namespace/name`; null if there is none.
pub(super) fn namespaced_name(reference: &Value, _: &Context) -> Value {
    if reference.is_null() {
        return Value::Null;
    }
    format!("{}/{}", string(&reference["namespace"]), string(&reference["name"])).into()
}

/// The subjects of a role binding whose kind is the argument.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/helpers.go: SubjectsStrings
pub(super) fn subjects(list: &Value, ctx: &Context) -> Value {
    items(list)
        .iter()
        .filter(|subject| subject["kind"] == ctx.argument)
        .map(|subject| match (ctx.argument, string(&subject["namespace"])) {
            ("ServiceAccount", namespace) => format!("{namespace}/{}", string(&subject["name"])),
            _ => string(&subject["name"]).to_owned(),
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

/// How many entries the data of a ConfigMap or Secret has.
///
/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printConfigMap
pub(super) fn data_count(object: &Value, _: &Context) -> Value {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).into()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn joined<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

/// Upstream: k8s.io/apimachinery/pkg/labels/labels.go: FormatLabels
fn labels(labels: &Value) -> String {
    labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", string(value)))
        .collect::<Vec<_>>()
        .join(",")
}

/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go: FormatLabelSelector
fn label_selector(selector: &Value) -> String {
    let mut parts = Vec::new();
    let plain = labels(&selector["matchLabels"]);
    if !plain.is_empty() {
        parts.push(plain);
    }
    for expression in items(&selector["matchExpressions"]) {
        let key = string(&expression["key"]);
        let values = joined(items(&expression["values"]).iter().map(string));
        parts.push(match string(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn has_condition(conditions: &Value, condition_type: &str) -> bool {
    items(conditions)
        .iter()
        .any(|condition| condition["type"] == condition_type && condition["status"] == "True")
}
