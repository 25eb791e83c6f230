//! Clusters, and what is copied of them.

use k8s_apiserver::faults::{Fault, Faults, Requests};
use kube::api::PostParams;
use plimsoll_content::Manifest;
use plimsoll_content::payload::{TemplateContext, parse};
use serde::Deserialize as _;
use tower::Layer as _;

use super::*;
use crate::sample;

fn webhook(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "webhooks": [{
            "name": "guard.harbour.example",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": { "service": { "name": "guard", "namespace": "harbour" } },
            "rules": [{
                "apiGroups": ["harbour.example"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["cranes"],
            }],
        }],
    })
}

fn service(group: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": { "name": format!("v1.{group}") },
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
            "insecureSkipTLSVerify": true,
            "service": { "name": "guard", "namespace": "harbour" },
        },
    })
}

/// Returns a policy that paints cranes; `parameters` is its `paramKind`.
fn mutating_policy(name: &str, parameters: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["harbour.example"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["cranes"],
            }] },
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": "[JSONPatch{op: 'add', path: '/spec/colour', value: 'red'}]",
                },
            }],
        },
    });
    if !parameters.is_null() {
        policy["spec"]["paramKind"] = parameters.clone();
    }
    policy
}

async fn create(client: &Client, object: &Value, plural: &str) {
    let (group, _) = object["apiVersion"].as_str().expect("text").split_once('/').expect("two");
    let kind = GroupVersionKind::gvk(group, "v1", object["kind"].as_str().expect("text"));
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let object = DynamicObject::deserialize(object).expect("it is an object");
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

#[test]
fn webhooks_and_servers_are_copied_if_the_release_names_them() {
    let (validating, mutating) =
        ("validatingwebhookconfigurations", "mutatingwebhookconfigurations");
    let ours = [
        (webhook("ValidatingWebhookConfiguration", "ours"), validating),
        (webhook("MutatingWebhookConfiguration", "ours"), mutating),
        (service("ours.example"), "apiservices"),
    ];
    let others = [
        (webhook("ValidatingWebhookConfiguration", "others"), validating),
        (service("others.example"), "apiservices"),
    ];
    let mut payload =
        parse(sample::v1(), &TemplateContext::default()).expect("the sample is in order");
    let read = |object: &Value| Manifest::read("a.yaml".into(), 0, object);
    let named = ours.iter().map(|(object, _)| read(object).expect("it is a manifest"));
    payload.manifests.extend(named);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let copy = runtime.expect("a runtime").block_on(async {
        let client = Client::new(ApiServer::new(Options::default()), "default");
        for (object, plural) in ours.iter().chain(&others) {
            create(&client, object, plural).await;
        }
        ClusterSnapshot::of_cluster(&client, &payload).await.expect("it can be copied")
    });
    let names = copy.objects().map(|(resource, object)| {
        format!("{resource} {}", object["metadata"]["name"].as_str().unwrap_or_default())
    });
    let of_test = |it: &String| it.ends_with("ours") || it.ends_with(".example");
    let names: BTreeSet<String> = names.filter(of_test).collect();
    let expected = [
        "apiservices.apiregistration.k8s.io v1.ours.example",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io ours",
        "validatingwebhookconfigurations.admissionregistration.k8s.io ours",
    ];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn kinds_that_may_not_be_listed_are_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let copy = runtime.expect("a runtime").block_on(async {
        let faults = Faults::none();
        for resource in ["configmaps", "nodes"] {
            let requests = Requests::any().verb("list").resource(resource).always();
            faults.add(requests, Fault::refused(403));
        }
        let client = Client::new(faults.layer(ApiServer::new(Options::default())), "default");
        ClusterSnapshot::of_operators(&client).await.expect("it can be copied")
    });
    assert_eq!(copy.unread_kinds, ["configmaps", "nodes"]);
    assert!(copy.not_copied.is_empty(), "{:?}", copy.not_copied);
}

#[test]
fn policies_that_mutate_are_copied_without_parameters() {
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": "crane" },
        "spec": { "policyName": "crane" },
    });
    let parameters = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let created = [
        (mutating_policy("crane", &Value::Null), "mutatingadmissionpolicies"),
        (mutating_policy("with-parameters", &parameters), "mutatingadmissionpolicies"),
        (binding, "mutatingadmissionpolicybindings"),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let copy = runtime.expect("a runtime").block_on(async {
        let client = Client::new(ApiServer::new(Options::default()), "default");
        for (object, plural) in &created {
            create(&client, object, plural).await;
        }
        ClusterSnapshot::of_operators(&client).await.expect("it can be copied")
    });
    let copied = copy.objects().filter(|(resource, _)| resource.starts_with("mutatingadmission"));
    let copied = copied.map(|(resource, object)| {
        format!("{resource} {}", object["metadata"]["name"].as_str().unwrap_or_default())
    });
    let copied: BTreeSet<String> = copied.collect();
    let expected = [
        "mutatingadmissionpolicies.admissionregistration.k8s.io crane",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io crane",
    ];
    assert_eq!(copied.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
