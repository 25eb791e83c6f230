//! Where admission takes part in writes.
//!
//! The verbs call the functions of this module at the points where admission has its place. What
//! admission consists of is decided above them: the cluster holds an [`Admission`].
use std::fmt::Debug;
use std::sync::Arc;

use k8s_schema::FieldError;
use serde_json::{Map, Value, json};

use super::Cluster;
use crate::request::parameters::{DryRun, FieldValidation};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::{ApiResource, Scope};
use crate::status::Result;
use crate::storage::ObjectKey;

/// The group of the kinds that configure admission.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Webhooks, policies and the other checks that take part in writes.
///
/// Each method does nothing by default.
pub(crate) trait Admission: Debug + Send + Sync {
    /// Whether webhooks or policies may take part in a write.
    fn is_configured(&self, cluster: &Cluster) -> bool {
        let _ = cluster;
        false
    }

    /// Mutating admission: after defaulting and before validation.
    ///
    /// # Errors
    /// When the write is denied, or a webhook failed or has to be called first.
    fn admit(
        &self,
        cluster: &Cluster,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        object: &mut Value,
    ) -> Result<()> {
        let _ = (cluster, context, attributes, object);
        Ok(())
    }

    /// Checks that the user may create an object; see [`authorize_create`].
    ///
    /// # Errors
    /// When the user may not.
    fn authorize_create(
        &self,
        cluster: &Cluster,
        context: &RequestContext,
        resource: &ApiResource,
        key: &ObjectKey,
    ) -> Result<()> {
        let _ = (cluster, context, resource, key);
        Ok(())
    }

    /// Sets and checks the fields that depend on the writer; see [`authorize_content`].
    ///
    /// # Errors
    /// When the user may not write such content.
    fn authorize_content(
        &self,
        cluster: &Cluster,
        context: &RequestContext,
        resource: &ApiResource,
        live: Option<&Value>,
        is_named_by_url: bool,
        object: &mut Value,
    ) -> Result<()> {
        let _ = (cluster, context, resource, live, is_named_by_url, object);
        Ok(())
    }

    /// Validating admission: after validation; a deletion has no object.
    ///
    /// # Errors
    /// When the write is denied, or a webhook failed or has to be called first.
    fn validate(
        &self,
        cluster: &Cluster,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        object: Option<&Value>,
    ) -> Result<()> {
        let _ = (cluster, context, attributes, object);
        Ok(())
    }

    /// The errors of the expressions of an object that configures admission.
    fn problems(&self, resource: &ApiResource, object: &Value, is_new: bool) -> Vec<FieldError> {
        let _ = (resource, object, is_new);
        Vec::new()
    }
}

/// No admission: every write passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoAdmission;

impl Admission for NoAdmission {}

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// Its name in rules and reviews.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

/// The attributes of a write that admission decides on.
#[derive(Clone, Debug)]
pub(crate) struct WriteAttributes<'a> {
    /// The operation.
    pub(crate) operation: Operation,
    /// The resource in the version of the request.
    pub(crate) resource: &'a Arc<ApiResource>,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The namespace; for a namespace itself its own name.
    pub(crate) namespace: String,
    /// The name; empty before it is generated.
    pub(crate) name: String,
    /// The object before the write; none for creations.
    pub(crate) old: Option<&'a Value>,
    /// The options of the operation.
    pub(crate) options: Value,
    /// Whether the write is a dry run.
    pub(crate) dry_run: bool,
}

impl<'a> WriteAttributes<'a> {
    /// The attributes of a write of `resource`.
    pub(crate) fn new(
        context: &RequestContext,
        operation: Operation,
        resource: &'a Arc<ApiResource>,
        namespace: &str,
        name: &str,
    ) -> Self {
        let namespace = match resource.scope {
            Scope::Cluster if resource.is("", "Namespace") => name,
            Scope::Cluster | Scope::Namespaced => namespace,
        };
        Self {
            operation,
            resource,
            subresource: "",
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            old: None,
            options: options(context, operation),
            dry_run: context.parameters.dry_run == DryRun::All,
        }
    }

    /// The same of a subresource and with the object before the write.
    pub(crate) fn of(mut self, subresource: &'a str, old: Option<&'a Value>) -> Self {
        self.subresource = subresource;
        self.old = old;
        self
    }

    /// Group, version and kind of the object: a subresource may have a kind of its own.
    pub(crate) fn kind(&self) -> [&str; 3] {
        kind_of(self.resource, self.subresource)
    }

    /// Whether it writes what configures admission.
    fn is_exempt(&self) -> bool {
        self.resource.group == GROUP
            && matches!(
                self.resource.kind.as_str(),
                "ValidatingWebhookConfiguration"
                    | "MutatingWebhookConfiguration"
                    | "ValidatingAdmissionPolicy"
                    | "ValidatingAdmissionPolicyBinding"
                    | "MutatingAdmissionPolicy"
                    | "MutatingAdmissionPolicyBinding"
            )
    }
}

/// The subresources that do not take the object itself.
const OF_THEIR_OWN_KIND: [&str; 3] = ["binding", "eviction", "scale"];

/// Group, version and kind of what is written through a resource or its subresource.
pub(crate) fn kind_of<'a>(resource: &'a ApiResource, subresource: &str) -> [&'a str; 3] {
    match resource.subresource(subresource) {
        Some(found) if OF_THEIR_OWN_KIND.contains(&subresource) => {
            [&found.group, &found.version, &found.kind]
        }
        Some(_) | None => [&resource.group, &resource.version, &resource.kind],
    }
}

/// The options of an operation in admission reviews.
fn options(context: &RequestContext, operation: Operation) -> Value {
    let parameters = &context.parameters;
    let mut options = Map::new();
    options.insert("kind".to_owned(), operation.options_kind().into());
    options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    if parameters.dry_run == DryRun::All {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
    if let Some(manager) = parameters.field_manager.as_deref().filter(|name| !name.is_empty()) {
        options.insert("fieldManager".to_owned(), manager.into());
    }
    match parameters.field_validation {
        FieldValidation::Strict => {
            options.insert("fieldValidation".to_owned(), "Strict".into());
        }
        FieldValidation::Ignore => {
            options.insert("fieldValidation".to_owned(), "Ignore".into());
        }
        FieldValidation::Warn => {}
    }
    Value::Object(options)
}

/// Whether webhooks or policies may take part in a write.
pub(crate) fn is_configured(cluster: &Cluster) -> bool {
    cluster.admission.is_configured(cluster) || cluster.registry.has_conversion_webhooks()
}

/// Mutating admission; what configures admission is exempt.
///
/// # Errors
/// When the write is denied, or a webhook failed or has to be called first.
pub(crate) fn admit(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: &mut Value,
) -> Result<()> {
    if attributes.is_exempt() {
        return Ok(());
    }
    cluster.admission.admit(cluster, context, attributes, object)
}

/// Checks that the user of an update or a patch may create the object, which is missing.
///
/// The request as such was authorized as an update or a patch.
///
/// # Errors
/// When the user may not.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go: withAuthorization
pub(crate) fn authorize_create(
    cluster: &Cluster,
    context: &RequestContext,
    resource: &ApiResource,
    key: &ObjectKey,
) -> Result<()> {
    cluster.admission.authorize_create(cluster, context, resource, key)
}

/// Sets and checks the fields that depend on the writer, such as the permissions in a role.
///
/// `live` is the object before an update, and `is_named_by_url` whether the URL names the
/// object, so that rules with resource names apply.
///
/// # Errors
/// When the user may not write such content.
pub(crate) fn authorize_content(
    cluster: &Cluster,
    context: &RequestContext,
    resource: &ApiResource,
    live: Option<&Value>,
    is_named_by_url: bool,
    object: &mut Value,
) -> Result<()> {
    let admission = &cluster.admission;
    admission.authorize_content(cluster, context, resource, live, is_named_by_url, object)
}

/// Validating admission; what configures admission is exempt.
///
/// # Errors
/// When the write is denied, or a webhook failed or has to be called first.
pub(crate) fn validate(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    if attributes.is_exempt() {
        return Ok(());
    }
    cluster.admission.validate(cluster, context, attributes, object)
}
