//! A controller with the rights of `plimsoll rbac`, and no others, does its work.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_api::MAINTENANCE_WINDOW;
use plimsoll_cli::arguments::registry::RegistryArguments;
use plimsoll_cli::commands::deploy::{OperatorRbacArguments, RbacArguments, roles};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::{Leadership, SystemClock, WindowController};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, OperatorSetup, on_each_cluster, sample_payloads, until};
use crate::leadership::holder;
use crate::updates::freeze;

#[test]
fn the_derived_rights_are_enough_to_install_and_update_and_no_more() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [first.clone(), second.clone()];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let arguments = RbacArguments {
            release: Vec::new(),
            registry: RegistryArguments::default(),
            operators: OperatorRbacArguments::default(),
            profile: DEFAULT_PROFILE.to_owned(),
            feature_set: None,
            prune: false,
            capability_webhook: false,
            namespace: "plimsoll".to_owned(),
        };
        let owned = [(*first).clone(), (*second).clone()];
        let roles = roles(&arguments, &owned, &[]);
        apply_roles(&harness, &roles).await;
        let client = limited_client(&harness);
        until_granted(&client, &roles).await;

        harness.settings.leadership = Leadership::Lease("this one".to_owned());
        harness.replaces_deposed = true;
        harness.control_with(client.clone());
        let stop = CancellationToken::new();
        let windows = WindowController {
            client: client.clone(),
            clock: Arc::new(SystemClock),
            leadership: harness.settings.leadership.clone(),
        };
        tokio::spawn(windows.run(stop.clone()));
        harness.completed(&first.release.version).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;

        until("it leads", || holder(&harness), |it| it == "this one").await;
        freeze(&harness, Timestamp::MAX).await;
        let shown = || async { harness.get(MAINTENANCE_WINDOW, "nights").await["status"].clone() };
        until("its window has a status", shown, |it| it["open"] == false).await;
        stop.cancel();
        let secrets: Api<Secret> = Api::all(client.clone());
        let refused = secrets.list(&Default::default()).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
        harness.stop().await;
    });
}

/// Applies roles and their bindings, as an administrator.
pub(crate) async fn apply_roles(harness: &Harness, roles: &[Value]) {
    for object in roles {
        let text = |pointer: &str| object.pointer(pointer).and_then(|it| it.as_str());
        let role = text("/kind").expect("it has a kind");
        let name = text("/metadata/name").expect("it has a name");
        let gvk = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", role);
        let resource = ApiResource::from_gvk(&gvk);
        let client = harness.client.clone();
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let parameters = PatchParams::apply("administrator");
        let applied = api.patch(name, &parameters, &Patch::Apply(object)).await;
        applied.expect("an administrator may apply it");
    }
}

/// Waits until a client may do what roles grant: an API server takes up roles a moment after they are
/// there, each kind of them by itself.
pub(crate) async fn until_granted(client: &Client, roles: &[Value]) {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    for role in roles {
        let rules = role["rules"].as_array().into_iter().flatten();
        let mut rules =
            rules.filter(|it| it["resources"].is_array() && it["resourceNames"].is_null());
        // Those of a role are taken up together.
        let Some(rule) = rules.next() else { continue };
        let attributes = json!({
            "namespace": role["metadata"]["namespace"].as_str().unwrap_or_default(),
            "group": rule["apiGroups"][0],
            "resource": rule["resources"][0],
            "verb": rule["verbs"][0],
        });
        let review = json!({ "spec": { "resourceAttributes": attributes } });
        let review = serde_json::from_value(review).expect("it is a review");
        let granted = || async {
            let answer = reviews.create(&PostParams::default(), &review).await;
            answer.is_ok_and(|it| it.status.is_some_and(|it| it.allowed))
        };
        until(&format!("{attributes} is granted"), granted, |it| *it).await;
    }
}

/// A client with the permissions of the controller's ServiceAccount.
pub(crate) fn limited_client(harness: &Harness) -> Client {
    let groups = ["system:serviceaccounts", "system:authenticated"];
    harness.cluster.client_as("system:serviceaccount:plimsoll:plimsoll", &groups)
}
