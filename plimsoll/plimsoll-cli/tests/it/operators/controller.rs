//! The controller of Operators: its events, its own objects and its permissions.

use clap::Parser;
use kube::api::{DeleteParams, Patch, PatchParams};
use plimsoll_api::{classes, crd, policies};
use plimsoll_cli::commands::deploy::{RbacArguments, rbac};
use plimsoll_controller::OperatorsView;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::events::reported;
use crate::harness::{on_any_cluster, on_each_cluster, until};
use crate::rights::{apply_roles, limited_client, until_granted};

#[derive(Parser)]
struct RbacLine {
    #[command(flatten)]
    arguments: RbacArguments,
}

#[test]
fn what_is_missing_is_an_event_once() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "foo", "1.2.3");
        add_ons.request("foo", json!({ "version": "1.2.3" })).await;
        add_ons.expect("foo", &[("ConstraintsSatisfied", "False"), ("Installed", "True")]).await;
        // The event follows the status, unless the process is killed meanwhile.
        let events = || reported(&add_ons.harness);
        until("the event is written", events, |it| it.contains_key("UnmetDependency")).await;
        add_ons.kill().await;
        add_ons.control();
        // It decides again, and reports nothing new.
        add_ons.change("olm.io/v1 Operator foo", json!({ "spec": { "paused": true } })).await;
        add_ons.expect("foo", &[("Progressing", "False Paused")]).await;
        let mut views = add_ons.view.subscribe();
        let is_paused = |view: &OperatorsView| {
            let conditions = view.operators.get("foo").map(|it| &it.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.type_ == "Progressing" && it.reason == "Paused")
        };
        assert!(views.wait_for(is_paused).await.expect("it is published").is_leader);
        add_ons.stop().await;
        let reported = reported(&add_ons.harness).await;
        let unmet = reported.get("UnmetDependency").map(Vec::as_slice).unwrap_or_default();
        assert_eq!(unmet, ["foo depends on bar >=1.2.3 but bar is not installed"], "{reported:#?}");
        assert_eq!(*add_ons.view.borrow(), OperatorsView::default(), "it leads no more");
    });
}

#[test]
fn what_the_controller_installs_for_itself_comes_back() {
    on_each_cluster(|kind| async move {
        let actions = Some(ActionSettings::default());
        let mut add_ons = AddOns::start_with(kind, "[]", actions).await;
        let installed = [
            policies::operator_policies(),
            policies::action_policies(),
            classes::built_in(),
            crd::operator_manifests(),
            crd::action_manifests(),
        ];
        let installed: Vec<Named> = installed.iter().flatten().map(Named::of).collect();
        assert!(installed.len() > 20, "{}", installed.len());
        let uid = async |named: &Named| {
            let object = add_ons.object(named).await;
            object["metadata"]["uid"].as_str().map(str::to_owned)
        };
        let mut before = Vec::new();
        for named in &installed {
            before.push(until("it is installed", || uid(named), Option::is_some).await);
        }
        let policy = installed.first().expect("there is one");
        let api = policy.api(&add_ons.harness.client);
        let emptied =
            Patch::Merge(json!({ "spec": { "validations": [{ "expression": "true" }] } }));
        let was = add_ons.object(policy).await["spec"]["validations"].clone();
        let parameters = PatchParams::default();
        api.patch(&policy.name, &parameters, &emptied).await.expect("it may be changed");
        let now = || async { add_ons.object(policy).await["spec"]["validations"].clone() };
        until("it is changed back", now, |it| *it == was).await;

        for named in &installed {
            let api = named.api(&add_ons.harness.client);
            api.delete(&named.name, &DeleteParams::default()).await.expect("it may be deleted");
        }
        for (named, before) in installed.iter().zip(&before) {
            let is_another = |it: &Option<String>| it.is_some() && it != before;
            until(&format!("{} comes back", named.name), || uid(named), is_another).await;
        }
        add_ons.add_catalog("fixture", add_ons.catalog.path()).await;
        add_ons.request("anchor", json!({})).await;
        add_ons.expect("anchor", &[("Progressing", "False AsExpected")]).await;
        add_ons.stop().await;
    });
}

#[test]
fn permissions_of_bundles_suffice_to_install_upgrade_and_delete_them() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
        let catalog = &*examples.to_string_lossy();
        let line = ["rbac", "--operators", "--actions", "--catalog", catalog];
        let packages = ["--package", "ledger", "--package", "lantern"];
        let arguments = RbacLine::parse_from(line.into_iter().chain(packages)).arguments;
        let mut out = Vec::new();
        rbac(&arguments, &mut out).expect("they are printed");
        let out = String::from_utf8(out).expect("it is text");
        let roles = plimsoll_content::yaml::parse(&out).into_iter();
        let roles: Vec<Value> =
            roles.map(|it| it.value.expect("it is YAML")).filter(|it| !it.is_null()).collect();
        apply_roles(&add_ons.harness, &roles).await;
        add_ons.actions = Some(ActionSettings::default());
        let client = limited_client(&add_ons.harness);
        until_granted(&client, &roles).await;
        add_ons.control_with(client);
        add_ons.add_catalog("examples", &examples).await;
        add_ons.request("ledger", json!({ "version": "1.4.0" })).await;
        add_ons.request("lantern", json!({ "version": "1.0.0" })).await;
        let installed = [("Progressing", "False AsExpected"), ("ConstraintsSatisfied", "True")];
        add_ons.expect("lantern", &installed).await;
        add_ons.request("lantern", json!({ "version": "1.1.1" })).await;
        let version = ("version", "1.1.1 (@v1.1.1)");
        add_ons.expect("lantern", &[version, ("Progressing", "False AsExpected")]).await;
        add_ons.absent("v1 ConfigMap lantern/lantern-palette").await;
        let beacon = "lantern.example.com/v1 Beacon default/north";
        add_ons
            .apply(json!({
                "apiVersion": "lantern.example.com/v1",
                "kind": "Beacon",
                "metadata": { "name": "north", "namespace": "default" },
                "spec": { "colour": "green" },
            }))
            .await;
        add_ons.has_finalizer(beacon).await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "RetryAction",
                "metadata": { "name": "delete", "namespace": "default" },
                "spec": {
                    "template": { "actionClass": "operator-delete", "package": "lantern" },
                    "requester": { "username": "admin", "groups": ["system:masters"] },
                },
            }))
            .await;
        add_ons.absent("olm.io/v1 Operator lantern").await;
        add_ons.absent("v1 Namespace lantern").await;
        add_ons.present("apps/v1 Deployment ledger-system/ledger-operator").await;
        add_ons.stop().await;
    });
}
