//! OpenAPI documents of custom resources, built from their definitions.
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::semantics::cluster::Cluster;
use crate::semantics::definition;
use crate::semantics::registry::ApiResource;

mod paths;

/// The recorded document with the metadata types that custom resources share.
const META_DOCUMENT: &str = "v3/apis/apiextensions.k8s.io/v1";
/// Types of that document that custom resources do not use.
const NOT_SHARED: [&str; 3] = ["APIResource", "APIResourceList", "WatchEvent"];
/// The groups whose kinds the documents of custom resources do not know, because other servers or
/// clients define them.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: generateBuildDefinitionsFunc
const UNKNOWN_GROUPS: [&str; 4] =
    ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];
/// The recorded document with the type of the scale subresource.
const SCALE_DOCUMENT: &str = "v3/apis/apps/v1";
const SCALE_PREFIX: &str = "io.k8s.api.autoscaling.v1.Scale";
const META_PREFIX: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an \
    object. Servers should convert recognized schemas to the latest internal value, and may reject \
    unrecognized values. More info: https://git.k8s.io/community/contributors/devel/\
    sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. \
    Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In \
    CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
    api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this \
    representation of an object. More info: https://git.k8s.io/community/contributors/devel/\
    sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In \
    CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
    api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The document of a group-version that only has custom resources.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: BuildOpenAPIV3
pub(super) fn document(cluster: &Cluster, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> = cluster
        .registry
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    if resources.is_empty() {
        return None;
    }
    let mut schemas = meta_schemas().clone();
    if resources.iter().any(|resource| resource.subresource("scale").is_some()) {
        schemas.extend(scale_schemas().clone());
    }
    let mut described = Map::new();
    for resource in resources {
        paths::add(&mut described, resource);
        add_schemas(&mut schemas, cluster, resource);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": described,
        "components": {"schemas": schemas},
    }))
}

/// A recorded document, or null.
fn recorded(name: &str) -> Value {
    k8s_schema::builtin::document(name)
        .and_then(|document| serde_json::from_slice(&document.text()).ok())
        .unwrap_or_default()
}

/// The types of a recorded document with these names.
fn types_of(document: &str, is_wanted: impl Fn(&str) -> bool) -> Map<String, Value> {
    match recorded(document).pointer_mut("/components/schemas").map(Value::take) {
        Some(Value::Object(mut schemas)) => {
            schemas.retain(|name, _| is_wanted(name));
            schemas
        }
        _ => Map::new(),
    }
}

/// The types that all kinds share, such as `ObjectMeta`.
fn meta_schemas() -> &'static Map<String, Value> {
    static META: OnceLock<Map<String, Value>> = OnceLock::new();
    META.get_or_init(|| {
        let mut types = types_of(META_DOCUMENT, |name| {
            name.strip_prefix(META_PREFIX).is_some_and(|name| !NOT_SHARED.contains(&name))
        });
        let options = format!("{META_PREFIX}DeleteOptions");
        let kinds = "x-kubernetes-group-version-kind";
        let mut known = recorded("v2")["definitions"][&options][kinds].take();
        if let (Some(known), Some(options)) = (known.as_array_mut(), types.get_mut(&options)) {
            known.retain(|kind| {
                kind["group"].as_str().is_some_and(|group| !UNKNOWN_GROUPS.contains(&group))
            });
            options[kinds] = std::mem::take(known).into();
        }
        types
    })
}

/// The types of the scale subresource.
fn scale_schemas() -> &'static Map<String, Value> {
    static SCALE: OnceLock<Map<String, Value>> = OnceLock::new();
    SCALE.get_or_init(|| types_of(SCALE_DOCUMENT, |name| name.starts_with(SCALE_PREFIX)))
}

/// Adds the type of a resource, and of lists of it.
pub(super) fn add_schemas(
    schemas: &mut Map<String, Value>,
    cluster: &Cluster,
    resource: &ApiResource,
) {
    let name = type_name(resource);
    let mut list = json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": API_VERSION, "type": "string"},
            "items": {
                "description": format!(
                    "List of {}. More info: https://git.k8s.io/community/contributors/devel/\
                     sig-architecture/api-conventions.md",
                    resource.plural
                ),
                "type": "array",
                "items": {"$ref": format!("#/components/schemas/{name}")},
            },
            "kind": {"description": KIND, "type": "string"},
            "metadata": metadata("ListMeta", LIST_METADATA),
        },
        "x-kubernetes-group-version-kind": [kind_of(resource, &resource.list_kind)],
    });
    let mut object = schema(cluster, resource);
    let selectable = resource.custom().map_or(&[][..], |custom| &custom.selectable_fields);
    if !selectable.is_empty() {
        let selectable: Value = selectable.iter().map(|path| json!({"fieldPath": path})).collect();
        list["x-kubernetes-selectable-fields"] = selectable.clone();
        object["x-kubernetes-selectable-fields"] = selectable;
    }
    schemas.insert(list_type_name(resource), list);
    schemas.insert(name, object);
}

fn metadata(definition: &str, description: &str) -> Value {
    json!({
        "description": description,
        "allOf": [{"$ref": format!("#/components/schemas/{META_PREFIX}{definition}")}],
    })
}

/// The type name of a kind: the group in reverse order, the version, the kind.
fn type_name(resource: &ApiResource) -> String {
    qualified(resource, &resource.kind)
}

fn list_type_name(resource: &ApiResource) -> String {
    qualified(resource, &resource.list_kind)
}

fn qualified(resource: &ApiResource, kind: &str) -> String {
    let mut labels: Vec<&str> = resource.group.split('.').collect();
    labels.reverse();
    format!("{}.{}.{kind}", labels.join("."), resource.version)
}

fn kind_of(resource: &ApiResource, kind: &str) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": kind})
}

fn schema(cluster: &Cluster, resource: &ApiResource) -> Value {
    let mut schema = declared(cluster, resource).unwrap_or_else(|| json!({"type": "object"}));
    complete(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        properties["apiVersion"] = json!({"description": API_VERSION, "type": "string"});
        properties["kind"] = json!({"description": KIND, "type": "string"});
        properties["metadata"] = metadata("ObjectMeta", METADATA);
    }
    schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource, &resource.kind)]);
    schema
}

/// The schema in the definition; a field that keeps unknown fields at the root has no others.
fn declared(cluster: &Cluster, resource: &ApiResource) -> Option<Value> {
    let definition = definition::of_resource(cluster, resource)?.decode();
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["name"] == *resource.version)?;
    version.pointer("/schema/openAPIV3Schema").cloned()
}

/// Expresses Kubernetes extensions in plain OpenAPI: int-or-string, and embedded objects.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: buildKubeNative
fn complete(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        fields.entry("anyOf").or_insert_with(|| json!([{"type": "integer"}, {"type": "string"}]));
    }
    if fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        embed(fields);
    }
    for (key, value) in fields.iter_mut() {
        match key.as_str() {
            "properties" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, property)| {
                    complete(property);
                });
            }
            "items" | "additionalProperties" => complete(value),
            _ => {}
        }
    }
}

/// The fields that every object has, where one lies in another.
fn embed(fields: &mut Map<String, Value>) {
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"description": EMBEDDED_API_VERSION, "type": "string"});
    properties["kind"] = json!({"description": EMBEDDED_KIND, "type": "string"});
    properties["metadata"] = metadata("ObjectMeta", METADATA);
    let required = fields.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}
