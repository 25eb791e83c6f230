//! A tenant who may create Actions in a namespace and nothing else, with the webhooks of Actions: who
//! requests is set, and what no policy grants is refused when it is requested.

use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_controller::api_resource;
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_each_cluster, until};
use crate::rights::apply_roles;

/// Returns the roles of a tenant.
fn roles() -> Vec<Value> {
    let metadata = json!({ "name": "tenant", "namespace": "default" });
    let version = "rbac.authorization.k8s.io/v1";
    let resources = ["actions", "retryactions"];
    let verbs = ["create", "get", "list", "watch"];
    let rule = json!({ "apiGroups": ["olm.io"], "resources": resources, "verbs": verbs });
    let group = "rbac.authorization.k8s.io";
    let subject = json!({ "apiGroup": group, "kind": "Group", "name": "dev" });
    let role = json!({ "apiGroup": group, "kind": "Role", "name": "tenant" });
    vec![
        json!({ "apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule] }),
        json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": role, "subjects": [subject],
        }),
    ]
}

/// Requests an Action; answers its name, or why it is refused.
async fn request(client: &Client, spec: &Value) -> Result<String, String> {
    let action: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "olm.io/v1",
        "kind": "Action",
        "metadata": { "generateName": "request-" },
        "spec": spec,
    }))
    .expect("it is an object");
    let resource = api_resource(plimsoll_api::ACTION);
    let actions: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let created = actions.create(&PostParams::default(), &action).await;
    created.map(|it| it.metadata.name.unwrap_or_default()).map_err(|error| error.to_string())
}

#[test]
fn a_tenant_has_done_what_a_policy_grants_and_nothing_else() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start_with_webhook(kind).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.5");
        let catalog = Named::parse("olm.io/v1 Catalog fixture");
        let bundles = || async { add_ons.object(&catalog).await["status"]["bundles"].clone() };
        until("the catalog is read", bundles, |it| *it == 2).await;
        apply_roles(&add_ons.harness, &roles()).await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "ActionPolicy",
                "metadata": { "name": "dev" },
                "spec": {
                    "subjects": [{ "kind": "Group", "name": "dev" }],
                    "classes": ["operator-install"],
                    "enforce": { "attributes": [{ "name": "installDependencies", "values": ["false"] }] },
                },
            }))
            .await;
        let alice = add_ons.harness.cluster.client_as("alice", &["dev"]);
        // Until the webhooks have learned of the policy, a requester is missing or not judged.
        let dependencies = json!({
            "actionClass": "operator-installation", "package": "bar", "installDependencies": true,
        });
        let refused = until(
            "what no policy grants is refused when it is requested",
            || async { request(&alice, &dependencies).await.err().unwrap_or_default() },
            |it| it.contains("attribute installDependencies is true"),
        )
        .await;
        assert!(refused.contains("ActionPolicy dev"), "{refused}");
        let forged = json!({
            "actionClass": "operator-install", "package": "bar", "requester": { "username": "bob" },
        });
        let refused = request(&alice, &forged).await.expect_err("a forged requester is refused");
        assert!(refused.contains("and it is \"alice\" who asks"), "{refused}");
        // A class that no policy is about is not guarded: it is refused when it would be executed.
        let delete = json!({ "actionClass": "operator-delete", "package": "bar" });
        let install = json!({ "actionClass": "operator-install", "package": "bar" });
        for (spec, state) in [(&install, "Succeeded"), (&delete, "Failed")] {
            let name = request(&alice, spec).await.expect("it is admitted");
            let action = Named::parse(&format!("olm.io/v1 Action default/{name}"));
            let status = until(
                "the Action ends",
                || async { add_ons.object(&action).await["status"].clone() },
                |it| it["completionTime"].is_string(),
            )
            .await;
            assert_eq!(status["state"], state, "{status:#}");
            assert_eq!(status["requester"]["username"], "alice", "{status:#}");
        }
        add_ons.present("olm.io/v1 Operator bar").await;
        add_ons.stop().await;
    });
}
