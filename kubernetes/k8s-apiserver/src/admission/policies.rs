//! Policies: expressions that may change or deny a write.
//!
//! What both kinds of policies have in common is here and in `compiled`, `invocation` and `params`.
use std::sync::{Arc, LazyLock};

use k8s_cel::{Authorizer, Bindings, Value as CelValue};
use serde_json::Value;

use super::authorizer::{self, AuthorizationCache};
use super::expressions::shown;
use super::matching::find_namespace;
use super::review;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{GROUP, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::status::Result;
use crate::storage::StorageId;

mod compiled;
mod decision;
mod invocation;
mod mutating;
mod mutation;
mod params;
mod validating;

pub(super) use compiled::PatchType;
pub(crate) use compiled::{Mutations, PolicyCache, Validations};
pub(super) use mutating::mutate;
pub(super) use validating::validate;

/// Where the policies of one kind are stored, and their bindings.
#[derive(Debug)]
pub(super) struct PolicyStorage {
    pub(super) policies: StorageId,
    pub(super) bindings: StorageId,
}

pub(super) static VALIDATING: LazyLock<PolicyStorage> = LazyLock::new(|| PolicyStorage {
    policies: StorageId::new(GROUP, "validatingadmissionpolicies"),
    bindings: StorageId::new(GROUP, "validatingadmissionpolicybindings"),
});
pub(super) static MUTATING: LazyLock<PolicyStorage> = LazyLock::new(|| PolicyStorage {
    policies: StorageId::new(GROUP, "mutatingadmissionpolicies"),
    bindings: StorageId::new(GROUP, "mutatingadmissionpolicybindings"),
});

impl PolicyStorage {
    /// Whether there are policies of this kind.
    pub(super) fn has_any(&self, cluster: &Cluster) -> bool {
        cluster.store.count(&self.policies) > 0
    }
}

/// The variables of all expressions about a write.
///
/// # Errors
/// When the namespace of the write does not exist, or a conversion webhook has to be called first.
pub(super) fn bindings(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
    resource: &ApiResource,
    ledger: &Arc<AuthorizationCache>,
) -> Result<Bindings> {
    let object = object
        .map(|object| convert::between(context, attributes.resource, resource, object.clone()))
        .transpose()?;
    versioned_bindings(cluster, context, attributes, object.as_ref(), resource, ledger)
}

/// [`bindings`] with an object that is in the version of `resource` already.
///
/// # Errors
/// When the namespace of the write does not exist, or a conversion webhook has to be called first.
fn versioned_bindings(
    cluster: &Cluster,
    context: &mut RequestContext,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
    resource: &ApiResource,
    ledger: &Arc<AuthorizationCache>,
) -> Result<Bindings> {
    let old = attributes
        .old
        .map(|old| convert::between(context, attributes.resource, resource, old.clone()))
        .transpose()?;
    let namespace = if attributes.namespace.is_empty() || attributes.resource.is("", "Namespace") {
        None
    } else {
        let mut namespace = find_namespace(cluster, &attributes.namespace)?;
        if let Some(metadata) = namespace["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("ownerReferences");
        }
        Some(namespace)
    };
    let request = Value::Object(review::request(context, attributes, resource));
    let request_resource = authorizer::request_resource(ledger, attributes);
    let authorizer: Arc<dyn Authorizer> = Arc::<AuthorizationCache>::clone(ledger);
    Ok(Bindings::new()
        .with("object", shown(object))
        .with("oldObject", shown(old.as_ref()))
        .with("request", CelValue::from_json(&request))
        .with("namespaceObject", shown(namespace.as_ref()))
        .with("authorizer.requestResource", request_resource)
        .with("authorizer", CelValue::authorizer(authorizer)))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
