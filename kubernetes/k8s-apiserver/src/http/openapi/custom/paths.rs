//! The paths of custom resources and the operations on them.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: buildRoute
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::{META_DOCUMENT, META_PREFIX, SCALE_DOCUMENT, SCALE_PREFIX, kind_of, recorded};
use super::{list_type_name, type_name};
use crate::semantics::registry::{ApiResource, Scope};

/// A path of [`META_DOCUMENT`] whose operations have the parameters of custom resources.
const RECORDED_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// A path of [`SCALE_DOCUMENT`] in a namespace.
const RECORDED_NAMESPACED_PATH: &str = "/apis/apps/v1/namespaces/{namespace}/deployments";

/// The media types of objects.
const OBJECT_TYPES: [&str; 2] = ["application/json", "application/yaml"];
/// The media types of patches.
const PATCH_TYPES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

/// An operation of a path.
#[derive(Clone, Copy)]
struct Operation {
    method: &'static str,
    action: &'static str,
    /// The verb of its description and id.
    verb: &'static str,
}

const LIST: Operation = Operation { method: "get", action: "list", verb: "list" };
const CREATE: Operation = Operation { method: "post", action: "post", verb: "create" };
const DELETE_COLLECTION: Operation =
    Operation { method: "delete", action: "deletecollection", verb: "deletecollection" };
const READ: Operation = Operation { method: "get", action: "get", verb: "read" };
const REPLACE: Operation = Operation { method: "put", action: "put", verb: "replace" };
const DELETE: Operation = Operation { method: "delete", action: "delete", verb: "delete" };
const PATCH: Operation = Operation { method: "patch", action: "patch", verb: "patch" };

const COLLECTION: [Operation; 3] = [LIST, CREATE, DELETE_COLLECTION];
const OBJECT: [Operation; 4] = [READ, REPLACE, DELETE, PATCH];
const SUBRESOURCE: [Operation; 3] = [READ, REPLACE, PATCH];

/// Adds the paths of a resource.
pub(super) fn add(paths: &mut Map<String, Value>, resource: &ApiResource) {
    let base = format!("/apis/{}/{}", resource.group, resource.version);
    let all = format!("{base}/{}", resource.plural);
    let collection = match resource.scope {
        Scope::Namespaced => format!("{base}/namespaces/{{namespace}}/{}", resource.plural),
        Scope::Cluster => all.clone(),
    };
    let object = format!("{collection}/{{name}}");
    let mut add = |path: String, operations: &[Operation], part: &str| {
        let operations = operations
            .iter()
            .map(|operation| (operation.method.to_owned(), describe(resource, *operation, part)));
        let mut fields: Map<String, Value> = operations.collect();
        fields.insert("parameters".to_owned(), path_parameters(resource, &path).into());
        paths.insert(path, fields.into());
    };
    add(collection, &COLLECTION, "");
    add(object.clone(), &OBJECT, "");
    for subresource in &resource.subresources {
        add(format!("{object}/{}", subresource.name), &SUBRESOURCE, &subresource.name);
    }
    if resource.scope == Scope::Namespaced {
        let mut operation = describe(resource, LIST, "");
        operation["operationId"] =
            operation_id(resource, "list", &format!("{}ForAllNamespaces", resource.kind)).into();
        // What all operations of a path have in common is said once.
        let own = operation.as_object_mut().and_then(|fields| fields.remove("parameters"));
        let mut parameters = path_parameters(resource, &all);
        parameters.extend(own.as_ref().and_then(Value::as_array).into_iter().flatten().cloned());
        parameters.sort_by(|left, right| left["name"].as_str().cmp(&right["name"].as_str()));
        paths.insert(all, json!({"get": operation, "parameters": parameters}));
    }
}

/// An operation on an object, on the objects of a namespace or cluster, or on a subresource.
fn describe(resource: &ApiResource, operation: Operation, part: &str) -> Value {
    let Operation { action, verb, .. } = operation;
    let kind = &resource.kind;
    let scope = if resource.scope == Scope::Namespaced { "Namespaced" } else { "" };
    let (answer, codes): (String, &[(&str, &str)]) = match action {
        "list" => (list_type_name(resource), &[("200", "OK")]),
        "deletecollection" => (format!("{META_PREFIX}Status"), &[("200", "OK")]),
        "delete" => (format!("{META_PREFIX}Status"), &[("200", "OK"), ("202", "Accepted")]),
        "post" => (type_name(resource), &[("200", "OK"), ("201", "Created"), ("202", "Accepted")]),
        "put" => (object_type(resource, part), &[("200", "OK"), ("201", "Created")]),
        _ => (object_type(resource, part), &[("200", "OK")]),
    };
    let mut responses: Map<String, Value> = codes
        .iter()
        .map(|(code, description)| {
            let content = content(&OBJECT_TYPES, &answer);
            ((*code).to_owned(), json!({"description": description, "content": content}))
        })
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut operation = json!({
        "tags": [format!("{}_{}", camel_case(group_tag(resource), false), resource.version)],
        "description": description(kind, verb, part),
        "operationId": operation_id(resource, verb, &format!("{scope}{kind}{}", capitalized(part))),
        "parameters": parameters().get(action).cloned().unwrap_or_default(),
        "responses": responses,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_of(resource, kind),
    });
    let body = match action {
        "post" | "put" => Some((content(&OBJECT_TYPES, &object_type(resource, part)), true)),
        "patch" => Some((content(&PATCH_TYPES, &format!("{META_PREFIX}Patch")), true)),
        "delete" => Some((content(&OBJECT_TYPES, &format!("{META_PREFIX}DeleteOptions")), false)),
        _ => None,
    };
    if let Some((content, is_required)) = body {
        operation["requestBody"] = json!({"content": content});
        if is_required {
            operation["requestBody"]["required"] = true.into();
        }
    }
    operation
}

/// The type of what is read and written at a part of an object.
fn object_type(resource: &ApiResource, part: &str) -> String {
    if part == "scale" { SCALE_PREFIX.to_owned() } else { type_name(resource) }
}

fn content(media_types: &[&str], name: &str) -> Value {
    let schema = json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    media_types.iter().map(|media_type| ((*media_type).to_owned(), schema.clone())).collect()
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: descriptionFor
fn description(kind: &str, verb: &str, part: &str) -> String {
    let part = if part.is_empty() { String::new() } else { format!(" {part} of") };
    match verb {
        "list" => format!("list objects of kind {kind}"),
        "deletecollection" => format!("delete collection of {kind}"),
        "patch" => format!("partially update{part} the specified {kind}"),
        "create" | "delete" => format!("{verb}{}{kind}", article(kind)),
        _ => format!("{verb}{part} the specified {kind}"),
    }
}

/// The article before a kind; none before a plural.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: GetArticleForNoun
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return " ";
    }
    if kind.to_ascii_lowercase().starts_with(['a', 'e', 'i', 'o', 'u']) { " an " } else { " a " }
}

/// The id of an operation: the verb, the group, the version and what it acts on.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go: GetOperationIDAndTags
fn operation_id(resource: &ApiResource, verb: &str, target: &str) -> String {
    // The verb of a collection is split: `deleteExampleV1CollectionWidget`.
    let (verb, rest) = match verb.strip_prefix("delete") {
        Some(rest) => ("delete", rest),
        None => (verb, ""),
    };
    let words = [group_tag(resource), &resource.version, &format!("{rest}{target}")]
        .map(|word| camel_case(word, true));
    format!("{verb}{}", words.concat())
}

/// Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go: GetOperationIDAndTags
fn group_tag(resource: &ApiResource) -> &str {
    resource.group.strip_suffix(".k8s.io").unwrap_or(&resource.group)
}

/// Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go: ToValidOperationID
fn camel_case(text: &str, is_capitalized: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_next_capital = is_capitalized;
    for (at, letter) in text.char_indices() {
        if letter.is_alphabetic() || letter == '_' || (at != 0 && letter.is_ascii_digit()) {
            out.push(if is_next_capital { letter.to_ascii_uppercase() } else { letter });
            is_next_capital = false;
        } else {
            is_next_capital = true;
        }
    }
    out
}

fn capitalized(word: &str) -> String {
    camel_case(word, true)
}

/// The parameters that all operations of a path have, sorted by name.
fn path_parameters(resource: &ApiResource, path: &str) -> Vec<Value> {
    let shared = |name: &str| parameters().get(name).into_iter().flatten().cloned();
    let mut found = Vec::new();
    if path.contains("{name}") {
        found.extend(shared("name").map(|mut name| {
            name["description"] = format!("name of the {}", resource.kind).into();
            name
        }));
    }
    if path.contains("{namespace}") {
        found.extend(shared("namespace"));
    }
    found.extend(shared("pretty"));
    found
}

/// The parameters of each action, and those of paths by their names, as the operations on built-in
/// kinds have them.
fn parameters() -> &'static BTreeMap<&'static str, Vec<Value>> {
    static PARAMETERS: OnceLock<BTreeMap<&'static str, Vec<Value>>> = OnceLock::new();
    PARAMETERS.get_or_init(|| {
        let document = recorded(META_DOCUMENT);
        let object = format!("{RECORDED_PATH}/{{name}}");
        let of = |path: &str, method: &str| list(&document["paths"][path][method]["parameters"]);
        let only = |from: Vec<Value>, name: &str| {
            from.into_iter().filter(|parameter| parameter["name"] == name).collect::<Vec<_>>()
        };
        let of_path = |path: &Value, name: &str| only(list(&path["parameters"]), name);
        let namespaced = recorded(SCALE_DOCUMENT)["paths"][RECORDED_NAMESPACED_PATH].take();
        [
            ("list", of(RECORDED_PATH, "get")),
            ("deletecollection", of(RECORDED_PATH, "get")),
            ("post", of(RECORDED_PATH, "post")),
            ("get", only(of(RECORDED_PATH, "get"), "resourceVersion")),
            ("put", of(&object, "put")),
            ("patch", of(&object, "patch")),
            ("delete", of(&object, "delete")),
            ("name", of_path(&document["paths"][&object], "name")),
            ("pretty", of_path(&document["paths"][&object], "pretty")),
            ("namespace", of_path(&namespaced, "namespace")),
        ]
        .into()
    })
}

fn list(values: &Value) -> Vec<Value> {
    values.as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_article_that_the_first_letter_requires() {
        for (kind, expected) in
            [("Widget", " a "), ("Orb", " an "), ("Glass", " a "), ("Endpoints", " ")]
        {
            assert_eq!(article(kind), expected, "{kind}");
        }
    }

    #[test]
    fn groups_become_words_of_operation_ids() {
        for (group, expected) in [
            ("example.com", "ExampleCom"),
            ("gateway.networking", "GatewayNetworking"),
            ("a-b2.c", "AB2C"),
            ("v1beta1", "V1beta1"),
        ] {
            assert_eq!(camel_case(group, true), expected, "{group}");
        }
        assert_eq!(camel_case("example.com", false), "exampleCom");
    }
}
