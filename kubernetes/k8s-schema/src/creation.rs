//! What kube-apiserver refuses of a new object, as far as the object alone tells: no cluster is asked,
//! and nothing is admitted.

mod complete;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use complete::{encode_string_data, generate_job_selector};

use crate::builtin::{self, Resource};
use crate::definition_rules;
use crate::{
    FieldError, FieldErrorKind, MetadataOwner, NameRule, Schema, apply_builtin_defaults,
    apply_defaults, canonicalize_fields, canonicalize_numbers, malformed_metadata, prune,
    undecodable, validate, validate_builtin, validate_lists, validate_metadata,
};

/// What the rules of an object's metadata depend on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectKind<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether a CustomResourceDefinition defines it.
    pub is_custom: bool,
}

impl ObjectKind<'_> {
    fn is(self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

/// A version of a kind that a CustomResourceDefinition defines.
#[derive(Clone, Debug)]
pub struct CustomKind {
    /// Its schema.
    pub schema: Schema,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether the status has an endpoint of its own: other requests do not set it.
    pub has_status: bool,
    /// The definition's deprecated `spec.preserveUnknownFields`.
    pub preserves_unknown_fields: bool,
}

impl CustomKind {
    /// What a definition says of one of the entries of its `spec.versions`.
    ///
    /// # Errors
    /// When the schema is not structural.
    pub fn of(definition: &Value, version: &Value) -> Result<Self, Vec<FieldError>> {
        let spec = &definition["spec"];
        let preserves_unknown_fields = spec["preserveUnknownFields"] == true;
        let schema = &version["schema"]["openAPIV3Schema"];
        Ok(Self {
            schema: Schema::from_crd(schema, preserves_unknown_fields)?,
            is_namespaced: spec["scope"] == "Namespaced",
            has_status: !version["subresources"]["status"].is_null(),
            preserves_unknown_fields,
        })
    }
}

/// Everything that kube-apiserver refuses of a new object of a built-in kind. A value of the wrong
/// type is the only error: nothing else can be checked then.
pub fn refused_of_builtin(resource: &Resource, mut object: Value) -> Vec<FieldError> {
    let Resource { group, version, kind, .. } = resource;
    let Some(schema) = builtin::schema(group, version, kind) else { return Vec::new() };
    begin(&mut object);
    if let Some(error) = undecodable(&schema, &object) {
        return vec![error];
    }
    prune(&schema, &mut object);
    if let Err(error) = canonicalize_fields(&schema, &mut object) {
        return vec![error];
    }
    apply_defaults(&schema, &mut object);
    apply_builtin_defaults(group, version, kind, &mut object);
    let has_status = resource.subresources.iter().any(|it| it.name == "status");
    complete::complete(group, kind, has_status, &mut object);
    let is_namespaced = resource.namespaced;
    let object_kind = ObjectKind { group, kind, is_namespaced, is_custom: false };
    let mut errors = validate_object_metadata(object_kind, None, &object);
    errors.extend(validate_builtin(group, kind, None, &object));
    if object_kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        // The server sets the status itself.
        let found = definition_rules::validate(None, &object).into_iter();
        errors.extend(found.filter(|error| !error.path.starts_with("status.")));
    }
    errors
}

/// Everything that kube-apiserver refuses of a new object of a kind that a definition defines.
pub fn refused_of_custom(
    group: &str,
    kind: &str,
    custom: &CustomKind,
    mut object: Value,
) -> Vec<FieldError> {
    begin(&mut object);
    if !custom.preserves_unknown_fields {
        prune(&custom.schema, &mut object);
    }
    if let Some(problem) = malformed_metadata(&custom.schema, &object) {
        return vec![FieldError::new("metadata", FieldErrorKind::Invalid, problem)];
    }
    apply_defaults(&custom.schema, &mut object);
    if let (true, Some(fields)) = (custom.has_status, object.as_object_mut()) {
        fields.remove("status");
    }
    let is_namespaced = custom.is_namespaced;
    let object_kind = ObjectKind { group, kind, is_namespaced, is_custom: true };
    let mut errors = validate_object_metadata(object_kind, None, &object);
    errors.extend(validate(&custom.schema, &object));
    errors.extend(validate_lists(&custom.schema, &object, None));
    if !errors.iter().any(|error| error.kind.blocks_expressions()) {
        errors.extend(custom.schema.evaluate_rules(&object, None).errors);
    }
    errors
}

/// Does to a document what decoding does before it looks at the type of any value.
fn begin(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.values_mut().for_each(canonicalize_numbers);
    let metadata = fields.entry("metadata").or_insert_with(|| Map::new().into());
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
        metadata.retain(|_, value| !value.is_null());
    }
}

/// Everything wrong with the metadata of an object; `live` is the object before an update.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessor
pub fn validate_object_metadata(
    kind: ObjectKind<'_>,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let is_definition = kind.is("apiextensions.k8s.io", "CustomResourceDefinition");
    let rule = NameRule::of(kind.group, kind.kind);
    let owner = MetadataOwner {
        name: if is_definition { |_| Vec::new() } else { rule.problems() },
        namespaced: kind.is_namespaced,
    };
    let mut errors = Vec::new();
    if is_definition && live.is_none() {
        errors.extend(definition_rules::name_problems(object));
    }
    let before = live.map(|live| &live["metadata"]);
    errors.extend(validate_metadata(owner, before, &object["metadata"], "metadata"));
    // The finalizers of definitions and disruption budgets are not validated.
    let is_lenient = is_definition || kind.is("policy", "PodDisruptionBudget");
    if !kind.is_custom && !is_lenient {
        plain_finalizers(object, &mut errors);
    }
    errors
}

/// Rejects unknown finalizers without a domain: these are reserved for Kubernetes.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateFinalizers
fn plain_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    let finalizers = object["metadata"]["finalizers"].as_array();
    for (index, finalizer) in finalizers.into_iter().flatten().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let is_known = matches!(name, "orphan" | "foregroundDeletion" | "kubernetes");
        if !name.contains('/') && !is_known {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let at = format!("metadata.finalizers[{index}]");
            let error = FieldError::new(at, FieldErrorKind::Invalid, detail);
            errors.push(error.with_value(finalizer.clone()));
        }
    }
}
