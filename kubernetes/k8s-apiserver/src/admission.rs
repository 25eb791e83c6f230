//! Admission: who else has a say in a write.
//!
//! Mutating webhooks and policies come after defaulting and before validation, and may change the
//! object; then validating policies and webhooks may only refuse it. [`admit`] and [`validate`]
//! are called by the verbs at these two points. Neither waits: a webhook that has not been asked
//! interrupts the verb, see [`crate::semantics::webhook::replay`]. What configures admission is itself exempt.
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::request::parameters::{DryRun, FieldValidation};
use crate::semantics::cluster::Cluster;
use crate::semantics::context::Call;
use crate::semantics::registry::{ApiResource, Scope};
use crate::status::Result;
use crate::storage::StorageId;

mod authorizer;
mod check;
mod conditions;
mod expressions;
mod hooks;
mod matching;
mod mutating;
mod patch;
mod policies;
mod review;
mod validating;

pub(crate) use check::problems;
pub(crate) use policies::PolicyCache;

/// The group of what configures admission.
const GROUP: &str = "admissionregistration.k8s.io";

static MUTATING_WEBHOOKS: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "mutatingwebhookconfigurations"));
static VALIDATING_WEBHOOKS: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "validatingwebhookconfigurations"));

/// What a write does.
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

/// A write, as admission looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    /// What is done.
    pub(crate) operation: Operation,
    /// The resource in the version of the request.
    pub(crate) resource: &'a Arc<ApiResource>,
    /// The subresource, or nothing.
    pub(crate) subresource: &'a str,
    /// The namespace; for a namespace itself its own name.
    pub(crate) namespace: String,
    /// The name; nothing before it is generated.
    pub(crate) name: String,
    /// The object before the write.
    pub(crate) old: Option<&'a Value>,
    /// The options of the operation.
    pub(crate) options: Value,
    /// Whether the write is only tried.
    pub(crate) dry_run: bool,
}

impl<'a> Attributes<'a> {
    /// The attributes of a write of `resource`.
    pub(crate) fn new(
        call: &Call,
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
            options: options(call, operation),
            dry_run: call.parameters.dry_run == DryRun::All,
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
fn kind_of<'a>(resource: &'a ApiResource, subresource: &str) -> [&'a str; 3] {
    match resource.subresource(subresource) {
        Some(found) if OF_THEIR_OWN_KIND.contains(&subresource) => {
            [&found.group, &found.version, &found.kind]
        }
        Some(_) | None => [&resource.group, &resource.version, &resource.kind],
    }
}

/// The options of an operation, as they are shown to webhooks.
fn options(call: &Call, operation: Operation) -> Value {
    let parameters = &call.parameters;
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

/// Whether anybody but the server itself has a say in writes.
pub(crate) fn is_configured(cluster: &Cluster) -> bool {
    cluster.store.count(&policies::POLICIES) > 0
        || cluster.store.count(&MUTATING_WEBHOOKS) > 0
        || cluster.store.count(&VALIDATING_WEBHOOKS) > 0
        || cluster.registry.has_conversion_webhooks()
}

/// Lets those who may change an object before it is validated do so.
///
/// # Errors
/// When one refuses it or cannot be asked, or has to be asked first.
pub(crate) fn admit(
    cluster: &Cluster,
    call: &mut Call,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> Result<()> {
    if attributes.is_exempt() {
        return Ok(());
    }
    if cluster.store.count(&MUTATING_WEBHOOKS) > 0 {
        mutating::admit(cluster, call, attributes, object)?;
    }
    Ok(())
}

/// Lets those who may refuse a write do so; a deletion has no object.
///
/// # Errors
/// When one refuses it or cannot be asked, or has to be asked first.
pub(crate) fn validate(
    cluster: &Cluster,
    call: &mut Call,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    if attributes.is_exempt() {
        return Ok(());
    }
    if cluster.store.count(&policies::POLICIES) > 0 {
        policies::validate(cluster, call, attributes, object)?;
    }
    if cluster.store.count(&VALIDATING_WEBHOOKS) > 0 {
        validating::validate(cluster, call, attributes, object)?;
    }
    Ok(())
}
