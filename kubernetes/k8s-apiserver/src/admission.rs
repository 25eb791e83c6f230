//! Admission: webhooks and policies that take part in a write.
//!
//! Mutating policies and then mutating webhooks come after defaulting and before validation, and may
//! change the object; then validating policies and webhooks may only deny the write. [`AdmissionChain`] is what the verbs
//! reach through [`crate::semantics::cluster::admission`]. It never waits: a webhook that has not
//! been called suspends the verb, see [`crate::semantics::webhook::replay`].
use std::sync::{Arc, LazyLock};

use k8s_schema::FieldError;
use serde_json::Value;

use crate::access::attributes::{AuthorizationAttributes, ResourceAttributes};
use crate::access::rbac::Authorizer;
use crate::access::{escalation, refusal};
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{Admission, GROUP, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::status::Result;
use crate::storage::{ObjectKey, StorageId};

mod authorizer;
mod changed;
mod check;
mod conditions;
mod expressions;
mod hooks;
mod matching;
mod mutating;
mod patch;
mod policies;
mod reinvocation;
mod review;
mod validating;

use policies::{MUTATING, Mutations, PolicyCache, VALIDATING, Validations};

static MUTATING_WEBHOOKS: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "mutatingwebhookconfigurations"));
static VALIDATING_WEBHOOKS: LazyLock<StorageId> =
    LazyLock::new(|| StorageId::new(GROUP, "validatingwebhookconfigurations"));

/// Webhooks, policies and role escalation checks, as the objects of a cluster configure them.
#[derive(Debug)]
pub(crate) struct AdmissionChain {
    authorizer: Arc<Authorizer>,
    mutating_policies: PolicyCache<Mutations>,
    validating_policies: PolicyCache<Validations>,
}

impl AdmissionChain {
    /// A chain whose expressions and escalation checks ask `authorizer`.
    pub(crate) fn new(authorizer: Arc<Authorizer>) -> Self {
        Self {
            authorizer,
            mutating_policies: PolicyCache::default(),
            validating_policies: PolicyCache::default(),
        }
    }
}

impl Admission for AdmissionChain {
    fn is_configured(&self, cluster: &Cluster) -> bool {
        [&MUTATING.policies, &VALIDATING.policies, &MUTATING_WEBHOOKS, &VALIDATING_WEBHOOKS]
            .into_iter()
            .any(|storage| cluster.store.count(storage) > 0)
    }

    fn admit(
        &self,
        cluster: &Cluster,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        object: &mut Value,
    ) -> Result<()> {
        if MUTATING.has_any(cluster) || cluster.store.count(&MUTATING_WEBHOOKS) > 0 {
            mutating::admit(self, cluster, context, attributes, object)?;
        }
        Ok(())
    }

    fn authorize_create(
        &self,
        cluster: &Cluster,
        context: &RequestContext,
        resource: &ApiResource,
        key: &ObjectKey,
    ) -> Result<()> {
        let about = ResourceAttributes {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: "",
            namespace: if resource.is("", "Namespace") { &key.name } else { &key.namespace },
            name: (&*key.name).into(),
        };
        let wanted = AuthorizationAttributes::on("create", about);
        let decision = self.authorizer.authorize(cluster, &context.user, &wanted);
        if decision.allowed {
            return Ok(());
        }
        Err(refusal::forbidden(&context.user, &wanted, &decision.reason))
    }

    fn authorize_content(
        &self,
        cluster: &Cluster,
        context: &RequestContext,
        resource: &ApiResource,
        live: Option<&Value>,
        is_named_by_url: bool,
        object: &mut Value,
    ) -> Result<()> {
        let authorizer = &*self.authorizer;
        escalation::prepare(authorizer, cluster, context, resource, live, is_named_by_url, object)
    }

    fn validate(
        &self,
        cluster: &Cluster,
        context: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        object: Option<&Value>,
    ) -> Result<()> {
        if VALIDATING.has_any(cluster) {
            policies::validate(self, cluster, context, attributes, object)?;
        }
        if cluster.store.count(&VALIDATING_WEBHOOKS) > 0 {
            validating::validate(self, cluster, context, attributes, object)?;
        }
        Ok(())
    }

    fn problems(&self, resource: &ApiResource, object: &Value, is_new: bool) -> Vec<FieldError> {
        check::problems(resource, object, is_new)
    }
}
