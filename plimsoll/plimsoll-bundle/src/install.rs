//! The objects of one installation, as an OperatorRevision holds them: rendered, marked with their
//! Operator, and nothing that the bundle may not contain (BUN-20).

mod namespace;
mod permitted;

use k8s_cel::names;
use plimsoll_api::CLUSTER_OPERATOR;
use plimsoll_api::olm::{CertificateProvider, OPERATOR_LABEL};
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, finished};
use crate::config::{BundleConfig, read_config, sole_namespace};
use crate::render::{RenderOptions, ServingCertificate, is_cluster_scoped, object_key, render};
use crate::validate::validate;

use namespace::NamespaceTemplate;

/// Metadata that an API server writes, and that an applied object must not have.
const SERVER_METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Fields of schemas whose null is a value.
const NULL_VALUES: &[&str] = &["default", "example"];

/// What an Operator wants of a bundle.
#[derive(Debug, Clone, Copy)]
pub struct InstallRequest<'r> {
    /// Name of the Operator, which is that of its package.
    pub operator: &'r str,
    /// `spec.namespace`; empty for the namespace that the bundle suggests, or that of the package's
    /// name.
    pub namespace: &'r str,
    /// `spec.config`; absent if nothing is configured.
    pub config: Option<&'r Value>,
    /// Who issues the certificates of webhooks and API services.
    pub certificates: CertificateProvider,
}

/// The objects of an installation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RevisionObjects {
    /// The namespace that the operator runs in.
    pub namespace: String,
    /// The namespace itself, then the rendered objects in their order. Each has the label
    /// [`OPERATOR_LABEL`], and can be applied as it is.
    pub objects: Vec<Value>,
    /// What the built-in provider has to issue.
    pub certificates: Vec<ServingCertificate>,
}

/// The objects that install a bundle for an Operator.
///
/// # Errors
/// Everything that keeps the bundle from being installed so: what [`validate`] finds, what it may not
/// contain, and fields of the Operator (`spec.namespace`, `spec.config.…`) that do not fit it.
pub fn revision_objects(
    bundle: &Bundle,
    request: &InstallRequest<'_>,
) -> Result<RevisionObjects, Vec<Diagnostic>> {
    let mut defects = Vec::new();
    if !bundle.package.is_empty() && bundle.package != request.operator {
        let message = format!(
            "it is a bundle of the package `{}`, not of `{}`",
            bundle.package, request.operator
        );
        defects.push(DefectCode::BundleAnnotation.diagnostic("metadata", message));
    }
    if let Some(error) = names::label_value(request.operator).into_iter().next() {
        let message = format!("`{}` cannot be the value of a label: {error}", request.operator);
        defects.push(DefectCode::PackageName.diagnostic("metadata.name", message));
    }
    let template = NamespaceTemplate::of(bundle).unwrap_or_else(|found| {
        defects.extend(found);
        NamespaceTemplate::default()
    });
    let namespace = match request.namespace {
        "" => bundle.suggested_namespace().unwrap_or_else(|| request.operator.to_owned()),
        given => given.to_owned(),
    };
    let namespace = namespace.as_str();
    if let Some(error) = names::label(namespace).into_iter().next() {
        let message =
            format!("`{namespace}` is not the name of a namespace: {error}; write another one");
        defects.push(DefectCode::TargetNamespaces.diagnostic("spec.namespace", message));
    }
    defects.extend(permitted::defects(bundle, namespace));
    let config = configured(bundle, namespace, request.config).unwrap_or_else(|found| {
        defects.extend(found);
        BundleConfig::default()
    });
    if !defects.is_empty() {
        defects.extend(validate(bundle));
        return Err(finished(defects, request.operator));
    }
    let options = RenderOptions {
        install_namespace: namespace.to_owned(),
        target_namespaces: config.watch_namespace.into_iter().collect(),
        certificates: request.certificates,
        deployment_config: config.deployment,
    };
    let rendered = render(bundle, &options)?;
    let mut objects = rendered.objects;
    let is_own = |object: &Value| {
        object["kind"] == "Namespace" && object["apiVersion"] == "v1" && is_named(object, namespace)
    };
    let written = objects.iter().position(is_own).map(|index| objects.remove(index));
    objects.insert(0, template.object(namespace, written));
    for object in &mut objects {
        finish(object, request.operator);
    }
    Ok(RevisionObjects {
        namespace: namespace.to_owned(),
        objects,
        certificates: rendered.certificates,
    })
}

fn is_named(object: &Value, name: &str) -> bool {
    object["metadata"]["name"] == name
}

/// What an Operator configures. Without a configuration an operator that can watch one namespace
/// only, its own, watches that.
fn configured(
    bundle: &Bundle,
    namespace: &str,
    config: Option<&Value>,
) -> Result<BundleConfig, Vec<Diagnostic>> {
    let mut config = config.cloned().unwrap_or_else(|| json!({}));
    if let Some(own) = sole_namespace(bundle, namespace)
        && let Some(fields) = config.as_object_mut()
    {
        fields.entry("watchNamespace").or_insert_with(|| own.into());
    }
    read_config(bundle, namespace, &config).map_err(|problems| {
        problems
            .into_iter()
            .map(|problem| {
                let field = match problem.field.as_str() {
                    "" => "spec.config".to_owned(),
                    field => format!("spec.config.{field}"),
                };
                DefectCode::BundleConfig.diagnostic(field, problem.message)
            })
            .collect()
    })
}

/// Gives an object the form that is applied.
fn finish(object: &mut Value, operator: &str) {
    let key = object_key(object);
    let is_definition = key.kind == "CustomResourceDefinition";
    drop_absent(object, if is_definition { NULL_VALUES } else { &[] });
    let Some(fields) = object.as_object_mut() else { return };
    // The manifest of a ClusterOperator names there the versions that it is to report (CO-1).
    if !(key.group == CLUSTER_OPERATOR.group && key.kind == CLUSTER_OPERATOR.kind) {
        fields.remove("status");
    }
    let metadata = map(fields.entry("metadata").or_insert_with(|| json!({})));
    metadata.retain(|name, _| !SERVER_METADATA.contains(&name.as_str()));
    if is_cluster_scoped(&key.group, &key.kind) {
        metadata.remove("namespace");
    }
    let labels = map(metadata.entry("labels").or_insert_with(|| json!({})));
    labels.insert(OPERATOR_LABEL.to_owned(), operator.into());
}

/// A value as a mapping; what is none becomes an empty one.
fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was just made a mapping")
}

/// Removes nulls, which are absent fields, but for fields of some names.
fn drop_absent(value: &mut Value, kept: &[&str]) {
    match value {
        Value::Object(entries) => {
            entries.retain(|name, value| !value.is_null() || kept.contains(&name.as_str()));
            entries.values_mut().for_each(|value| drop_absent(value, kept));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_absent(item, kept)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
