//! Errors about patches whose result cannot be decoded, which repeat the result.
use k8s_schema::{FieldError, FieldErrorKind, go_text};
use serde_json::{Map, Value};

use super::{Patch, patched};
use crate::request::content::MediaType;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, StatusReason, Subject};
use crate::verbs::update::WriteTarget;

/// The fields of built-in metadata in the order in which Go encodes them.
const METADATA_ORDER: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The fields of an entry of `managedFields` in that order.
const MANAGED_ORDER: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// The document that an error repeats: the result of a JSON or merge patch, or the patch itself.
///
/// kube-apiserver sorts the fields that the patch changed and leaves the others in their order.
fn shown(resource: &ApiResource, patch: &Patch, patched: &Value) -> String {
    if patch.media_type == MediaType::StrategicMergePatch {
        return go_text(&patch.document);
    }
    let Some(fields) = patched.as_object().filter(|_| resource.custom().is_none()) else {
        return patched.to_string();
    };
    let is_touched = touches_metadata(patch);
    object(fields.iter().map(|(name, value)| {
        let text = match value.as_object() {
            Some(value) if name == "metadata" => metadata(value, is_touched),
            _ => value.to_string(),
        };
        (name.as_str(), text)
    }))
}

fn touches_metadata(patch: &Patch) -> bool {
    match &patch.document {
        Value::Array(operations) => operations.iter().any(|operation| {
            ["path", "from"].iter().any(|field| {
                operation[*field].as_str().is_some_and(|path| path.starts_with("/metadata/"))
            })
        }),
        document => document.get("metadata").is_some(),
    }
}

fn metadata(fields: &Map<String, Value>, is_touched: bool) -> String {
    let names: Vec<&str> = if is_touched {
        fields.keys().map(String::as_str).collect()
    } else {
        in_order(fields, &METADATA_ORDER)
    };
    object(names.into_iter().map(|name| {
        let text = match (name, &fields[name]) {
            ("managedFields", Value::Array(entries)) => managed(entries),
            (_, value) => value.to_string(),
        };
        (name, text)
    }))
}

fn managed(entries: &[Value]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|entry| match entry.as_object() {
            Some(fields) => object(
                in_order(fields, &MANAGED_ORDER)
                    .into_iter()
                    .map(|name| (name, fields[name].to_string())),
            ),
            None => entry.to_string(),
        })
        .collect();
    format!("[{}]", entries.join(","))
}

/// The field names in order, the known ones first.
fn in_order<'a>(fields: &'a Map<String, Value>, known: &[&str]) -> Vec<&'a str> {
    let place = |name: &str| known.iter().position(|known| *known == name).unwrap_or(known.len());
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_by_key(|name| place(name));
    names
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<String> =
        fields.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Checks that the result of a patch can be decoded.
pub(super) fn undecodable(
    target: WriteTarget<'_>,
    live: &Value,
    patch: &Patch,
    error: ApiError,
) -> ApiError {
    let is_decoding = error.reason == StatusReason::BadRequest;
    match error.message.split_once(" cannot be handled as a ") {
        Some((_, rest)) if is_decoding => {
            let why = rest.split_once(": ").map_or(rest, |(_, why)| why);
            let why = if patch.media_type == MediaType::StrategicMergePatch {
                unrestorable(why).unwrap_or_else(|| why.to_owned())
            } else {
                why.to_owned()
            };
            let subject = Subject { group: "", noun: "" };
            let Ok(result) = patched(target, live, patch) else { return error };
            let shown = shown(target.resource, patch, &result);
            let problem = FieldError::new("patch", FieldErrorKind::Invalid, why);
            ApiError::invalid(subject, "", &[problem.with_value(shown.into())])
        }
        _ => error,
    }
}

/// The error of a strategic merge patch, whose result Go converts from maps instead of decoding it.
fn unrestorable(why: &str) -> Option<String> {
    let (given, rest) = why.strip_prefix("json: cannot unmarshal ")?.split_once(" into Go ")?;
    let (_, wanted) = rest.rsplit_once(" of type ")?;
    let given = match given {
        "object" => "map",
        "array" => "slice",
        given if given.starts_with("number") => "int64",
        given => given,
    };
    let structure = if wanted.starts_with("[]") {
        "slice"
    } else if wanted.starts_with("map[") {
        "map"
    } else if wanted.contains('.') {
        return Some(format!("cannot restore struct from: {given}"));
    } else {
        return Some(format!("unrecognized type: {wanted}"));
    };
    Some(format!("cannot restore {structure} from {given}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_wrong_types_have_the_messages_of_conversion() {
        let cases = [
            ("object", "[]v1.Container", "cannot restore slice from map"),
            ("array", "map[string]string", "cannot restore map from slice"),
            ("string", "int32", "unrecognized type: int32"),
            ("number 1", "v1.PodSpec", "cannot restore struct from: int64"),
        ];
        for (given, wanted, expected) in cases {
            let why =
                format!("json: cannot unmarshal {given} into Go struct field A.b of type {wanted}");
            assert_eq!(unrestorable(&why).as_deref(), Some(expected));
        }
        assert_eq!(unrestorable("strict decoding error: unknown field \"a\""), None);
    }
}
