//! Plans that change before a person agrees to them.

use kube::api::{DeleteParams, DynamicObject};
use kube::core::ApiResource;
use plimsoll_api::OPERATOR;
use serde_json::json;

use super::commands::{RunCommand, answered_after};
use super::{AddOns, Fixture, Named};
use crate::harness::{on_any_cluster, on_each_cluster, until};

#[test]
fn a_deletion_stops_if_the_cluster_is_not_any_more_as_it_was_shown() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "foo", "1.2.3");
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.5");
        for (name, version) in [("foo", "1.2.3"), ("bar", "1.2.5")] {
            add_ons.request(name, json!({ "version": version })).await;
        }
        add_ons.expect("bar", &[("Progressing", "False AsExpected"), ("dependants", "foo")]).await;
        // Another client creates an object of its kind before the person answers.
        let named = Named::parse("bar.example.com/v1 Bar default/one");
        let bars = named.api(&add_ons.harness.client);
        let meanwhile = async move {
            let object = DynamicObject::new("one", &ApiResource::from_gvk(&named.kind));
            bars.create(&Default::default(), &object).await.expect("it may be created");
        };
        let shows = [
            "bar v1.2.5 will be deleted\n",
            "The cluster has changed since this was planned:\n",
            "+   workloads: 1 Bar.bar.example.com in default\n",
        ];
        let error = "nothing was deleted: run the command again to see the present plan";
        RunCommand::failing("delete bar", &shows, error)
            .play_with(&add_ons, answered_after(meanwhile, "y\n"))
            .await;
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        add_ons.present("olm.io/v1 Operator bar").await;
        add_ons.stop().await;
    });
}

#[test]
fn another_operator_of_the_name_is_not_deleted() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        // No catalog has it: nothing that is shown of the one differs from the other.
        add_ons.request("ghost", json!({ "version": "1.0.0" })).await;
        let named = Named::parse("olm.io/v1 Operator ghost");
        let operators = named.api(&add_ons.harness.client);
        let meanwhile = async move {
            let deleted = operators.delete("ghost", &DeleteParams::default()).await;
            assert!(deleted.is_ok(), "it may be deleted");
            let mut object = DynamicObject::new("ghost", &ApiResource::from_gvk(&named.kind));
            object.data = json!({ "spec": { "version": "1.0.0" } });
            let create = || async {
                let created = operators.create(&Default::default(), &object).await;
                created.map(|_| ()).map_err(|error| error.to_string())
            };
            let created = until("it is created again", create, Result::is_ok).await;
            assert_eq!(created, Ok(()));
        };
        let shows = [
            "ghost will be deleted\n",
            "The cluster has changed since this was planned:\n  \
             ghost was deleted, and another client created it again\n",
        ];
        let error = "nothing was deleted: run the command again to see the present plan";
        RunCommand::failing("delete ghost", &shows, error)
            .play_with(&add_ons, answered_after(meanwhile, "y\n"))
            .await;
        add_ons.present("olm.io/v1 Operator ghost").await;
        add_ons.stop().await;
    });
}

#[test]
fn another_operator_of_the_name_is_not_updated() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.5");
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.7");
        let named = Named::parse("olm.io/v1 Operator bar");
        let operators = named.api(&add_ons.harness.client);
        let meanwhile = async move {
            let deleted = operators.delete("bar", &DeleteParams::default()).await;
            assert!(deleted.is_ok(), "it may be deleted");
            let mut object = DynamicObject::new("bar", &ApiResource::from_gvk(&named.kind));
            object.data = json!({ "spec": { "version": "1.2.5" } });
            let create = || async {
                let created = operators.create(&Default::default(), &object).await;
                created.map(|_| ()).map_err(|error| error.to_string())
            };
            let created = until("it is created again", create, Result::is_ok).await;
            assert_eq!(created, Ok(()));
            let installed = || async {
                let there = operators.get("bar").await.expect("it exists");
                there.data["status"]["bundle"]["version"].clone()
            };
            until("it is installed again", installed, |it| it == "1.2.5").await;
        };
        let shows = [
            "bar@v1.2.5 -> bar@v1.2.7\n",
            "What this was planned from has changed:\n  \
             bar was deleted, and another client created it again\n",
        ];
        let error = "nothing was changed: run the command again to see the present plan";
        RunCommand::failing("update bar --catalog fixture=CATALOG", &shows, error)
            .play_with(&add_ons, answered_after(meanwhile, "y\n"))
            .await;
        assert_eq!(add_ons.harness.get(OPERATOR, "bar").await["spec"]["version"], "1.2.5");
        add_ons.stop().await;
    });
}

#[test]
fn what_is_agreed_to_is_not_done_if_it_is_planned_differently_by_then() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for (package, version) in
            [("foo", "1.2.2"), ("bar", "1.2.7"), ("baz", "1.5.6"), ("fiz", "2.9.2")]
        {
            Fixture::publish(add_ons.catalog.path(), package, version);
        }
        add_ons.request("fiz", json!({ "version": "2.9.2" })).await;
        add_ons.expect("fiz", &[("Installed", "True"), ("Progressing", "False")]).await;
        Fixture::publish(add_ons.catalog.path(), "fiz", "2.9.6");
        let resolve = "resolve foo --version-range <3 --catalog fixture=CATALOG";
        // The bundle that is published before the person answers, and the lines that differ then.
        let cases = [
            (
                "install foo --catalog fixture=CATALOG".to_owned(),
                ("foo", "1.2.3"),
                ["- - foo@v1.2.2\n", "+ - foo@v1.2.3\n"],
            ),
            (
                format!("{resolve} --apply"),
                ("foo", "1.2.9"),
                ["- - foo@v1.2.3\n", "+ - foo@v1.2.9\n"],
            ),
            (
                format!("{resolve} --write FILES/loadout"),
                ("foo", "2.0.1"),
                ["- - foo@v1.2.9\n", "+ - foo@v2.0.1\n"],
            ),
            (
                "update --latest --catalog fixture=CATALOG".to_owned(),
                ("fiz", "3.0.1"),
                ["- fiz@v2.9.2 -> fiz@v2.9.6\n", "+ fiz@v2.9.2 -> fiz@v3.0.1\n"],
            ),
        ];
        for (line, (package, version), [before, after]) in cases {
            let catalog = add_ons.catalog.path().to_owned();
            let meanwhile = async move { Fixture::publish(&catalog, package, version) };
            let shows = ["What this was planned from has changed:\n", before, after];
            let error = "nothing was changed: run the command again to see the present plan";
            RunCommand::failing(&line, &shows, error)
                .play_with(&add_ons, answered_after(meanwhile, "y\n"))
                .await;
        }
        add_ons.absent("olm.io/v1 Operator foo").await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        assert!(!add_ons.files.path().join("loadout").exists());
        assert_eq!(add_ons.harness.get(OPERATOR, "fiz").await["spec"]["version"], "2.9.2");
        add_ons.stop().await;
    });
}
