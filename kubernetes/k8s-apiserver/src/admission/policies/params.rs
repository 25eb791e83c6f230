//! The parameter objects that the bindings of a policy refer to.
use std::sync::Arc;

use serde_json::Value;

use crate::admission::matching::selects;
use crate::semantics::cluster::Cluster;
use crate::semantics::convert;
use crate::semantics::registry::{ApiResource, Scope};
use crate::storage::ObjectKey;

/// The resource of the parameters of a policy; none if it has no `paramKind`.
///
/// # Errors
/// When no such kind is served.
pub(super) fn kind(cluster: &Cluster, spec: &Value) -> Result<Option<Arc<ApiResource>>, String> {
    let kind = &spec["paramKind"];
    if !kind.is_object() {
        return Ok(None);
    }
    let text = |field: &str| kind[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let slash = if api_version.contains('/') { "" } else { "/" };
    cluster.registry.find_kind(api_version, kind).cloned().map(Some).ok_or_else(|| {
        format!(
            "failed to find resource referenced by paramKind: '{slash}{api_version}, Kind={kind}'"
        )
    })
}

/// The parameter objects of a binding; a single none if the policy or the binding has none.
///
/// # Errors
/// When the reference is invalid, or nothing is found and `parameterNotFoundAction` is `Deny`.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go: CollectParams
pub(super) fn find(
    cluster: &Cluster,
    kind: Option<&Arc<ApiResource>>,
    binding: &Value,
    namespace: &str,
) -> Result<Vec<Option<Value>>, String> {
    let reference = &binding["spec"]["paramRef"];
    let Some(resource) = kind.filter(|_| reference.is_object()) else {
        return Ok(vec![None]);
    };
    let named = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = match (resource.scope, named) {
        (Scope::Cluster, None) => "",
        (Scope::Cluster, Some(_)) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                .to_owned());
        }
        (Scope::Namespaced, Some(named)) => named,
        (Scope::Namespaced, None) if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (Scope::Namespaced, None) => namespace,
    };
    let found: Vec<Option<Value>> = match reference["name"].as_str().filter(|name| !name.is_empty())
    {
        Some(name) => cluster
            .store
            .find(&resource.storage, &ObjectKey::new(namespace, name))
            .map(|stored| Some(convert::read(resource, stored)))
            .into_iter()
            .collect(),
        None => cluster
            .store
            .list(&resource.storage, (resource.scope == Scope::Namespaced).then_some(namespace))
            .map(|stored| convert::read(resource, stored))
            .filter(|object| selects(&reference["selector"], object))
            .map(Some)
            .collect(),
    };
    if found.is_empty() && reference["parameterNotFoundAction"] == "Deny" {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(found)
}
