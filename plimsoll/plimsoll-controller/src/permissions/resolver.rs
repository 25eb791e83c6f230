//! The permissions of the service that answers queries, and of its clients.

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Needs, Permissions, secret_rule};
use crate::operators::query::SECRET;

/// The permissions to ask the API server who a client is and what it may do, and to keep a certificate.
pub fn resolver_permissions() -> Permissions {
    let mut needs = Needs::default();
    needs.add("authentication.k8s.io", "tokenreviews", &["create"]);
    needs.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
    Permissions { cluster: needs.rules(), lease_namespace: vec![secret_rule(SECRET)] }
}

/// The permissions of a client to send any query.
pub fn resolver_client_permissions() -> Vec<PolicyRule> {
    vec![PolicyRule {
        non_resource_urls: Some(vec!["/v1/*".to_owned()]),
        verbs: vec!["get".to_owned(), "post".to_owned()],
        ..PolicyRule::default()
    }]
}

#[cfg(test)]
mod tests {
    //! What the service may do, and nothing else.

    use super::*;

    #[test]
    fn the_service_reviews_clients_and_keeps_a_certificate() {
        let Permissions { cluster, lease_namespace } = resolver_permissions();
        let resources = cluster.iter().flat_map(|it| it.resources.iter().flatten());
        let resources: Vec<&str> = resources.map(String::as_str).collect();
        assert_eq!(resources, ["tokenreviews", "subjectaccessreviews"]);
        assert!(cluster.iter().all(|it| it.verbs == ["create"]), "{cluster:?}");
        let secrets = lease_namespace.iter().filter_map(|it| it.resource_names.clone());
        assert_eq!(secrets.collect::<Vec<_>>(), [[SECRET.to_owned()]]);
    }
}
