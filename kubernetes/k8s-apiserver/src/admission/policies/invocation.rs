//! Which policies apply to a write: under which of their bindings, and with which parameters.
use std::sync::Arc;

use serde_json::Value;

use super::compiled::{Policy, PolicyBody, PolicyCache};
use super::{PolicyStorage, name_of, params};
use crate::admission::matching::Criteria;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::WriteAttributes;
use crate::semantics::registry::ApiResource;
use crate::storage::Stored;

/// A policy that applies to a write, under one binding and with one parameter object.
#[derive(Debug)]
pub(super) struct PolicyInvocation<B> {
    pub(super) policy: Arc<Policy<B>>,
    pub(super) binding: Arc<Value>,
    /// The resource by which the policy matched.
    pub(super) resource: Arc<ApiResource>,
    /// The parameter object; none if the policy or the binding has no parameters.
    pub(super) param: Option<Value>,
}

/// A policy or one of its bindings that cannot be applied.
#[derive(Debug)]
pub(super) struct Misconfiguration<B> {
    pub(super) policy: Arc<Policy<B>>,
    /// The name of the binding; none if the policy itself cannot be applied.
    pub(super) binding: Option<String>,
    pub(super) message: String,
}

/// The policies that apply to a write and those that cannot be applied, in the order of the names of
/// policies and then of bindings. kube-apiserver has them in any order.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go: Dispatch
pub(super) fn invocations<B: PolicyBody>(
    cache: &PolicyCache<B>,
    storage: &PolicyStorage,
    cluster: &Cluster,
    attributes: &WriteAttributes<'_>,
    object: Option<&Value>,
) -> Vec<Result<PolicyInvocation<B>, Misconfiguration<B>>> {
    let bindings: Vec<Arc<Value>> = cluster
        .store
        .list(&storage.bindings, None)
        .map(|stored| Arc::new(stored.decode()))
        .collect();
    let write = Write { cluster, attributes, object };
    let mut found = Vec::new();
    for stored in cluster.store.list(&storage.policies, None) {
        let of_policy: Vec<&Arc<Value>> = bindings
            .iter()
            .filter(|binding| binding["spec"]["policyName"] == *stored.key.name)
            .collect();
        if !of_policy.is_empty() {
            write.invoke(cache, stored, &of_policy, &mut found);
        }
    }
    found
}

/// A write that policies may apply to.
struct Write<'a> {
    cluster: &'a Cluster,
    attributes: &'a WriteAttributes<'a>,
    object: Option<&'a Value>,
}

impl Write<'_> {
    /// The resource by which the criteria match.
    fn matched(&self, source: &Value) -> Result<Option<Arc<ApiResource>>, String> {
        Criteria { source, rules: "resourceRules" }
            .matched(self.cluster, self.attributes, self.object)
            .map_err(|error| error.message)
    }

    /// Adds the invocations of one policy.
    fn invoke<B: PolicyBody>(
        &self,
        cache: &PolicyCache<B>,
        stored: &Stored,
        bindings: &[&Arc<Value>],
        found: &mut Vec<Result<PolicyInvocation<B>, Misconfiguration<B>>>,
    ) {
        let policy = cache.compiled(stored);
        let misconfigured = |binding: Option<&Value>, why: &str| {
            let what = if binding.is_some() { "binding" } else { "policy" };
            Err(Misconfiguration {
                policy: Arc::clone(&policy),
                binding: binding.map(|binding| name_of(binding).to_owned()),
                message: format!("failed to configure {what}: {why}"),
            })
        };
        let matched = self.matched(&policy.spec["matchConstraints"]).and_then(|resource| {
            let Some(resource) = resource else { return Ok(None) };
            let kind = params::kind(self.cluster, &policy.spec)?;
            Ok(Some((resource, kind)))
        });
        let (resource, param_kind) = match matched {
            Ok(Some(matched)) => matched,
            Ok(None) => return,
            Err(why) => return found.push(misconfigured(None, &why)),
        };
        for binding in bindings {
            let params = match self.matched(&binding["spec"]["matchResources"]) {
                Ok(None) => continue,
                Ok(Some(_)) => params::find(
                    self.cluster,
                    param_kind.as_ref(),
                    binding,
                    &self.attributes.namespace,
                ),
                Err(why) => Err(why),
            };
            match params {
                Ok(params) => found.extend(params.into_iter().map(|param| {
                    Ok(PolicyInvocation {
                        policy: Arc::clone(&policy),
                        binding: Arc::clone(binding),
                        resource: Arc::clone(&resource),
                        param,
                    })
                })),
                Err(why) => found.push(misconfigured(Some(binding), &why)),
            }
        }
    }
}
