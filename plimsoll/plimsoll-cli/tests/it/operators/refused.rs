//! Changes of several Operators of which the API server refuses one: those before it are taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::commands::RunCommand;
use super::{AddOns, Fixture, OPERATOR};
use crate::harness::on_each_cluster;

/// A client whose write of Operators after some others is refused; before that another client
/// changes an Operator, if it is said how.
fn refusing(client: &Client, after: usize, change: Option<(&'static str, Value)>) -> Client {
    let (client, left) = (client.clone(), Arc::new(AtomicUsize::new(after)));
    let service = service_fn(move |request: Request<Body>| {
        let is_write = matches!(*request.method(), Method::POST | Method::PATCH)
            && request.uri().path().starts_with("/apis/olm.io/v1/operators")
            && !request.uri().query().unwrap_or_default().contains("dryRun=All");
        let is_refused = is_write && left.fetch_sub(1, Ordering::SeqCst) == 0;
        let (client, change) = (client.clone(), change.clone());
        async move {
            if !is_refused {
                return client.send(request).await.map_err(tower::BoxError::from);
            }
            if let Some((name, patch)) = change {
                let path = format!("/apis/olm.io/v1/operators/{name}?fieldManager=another-client");
                let patch = Request::patch(path)
                    .header("content-type", "application/merge-patch+json")
                    .body(Body::from(patch.to_string().into_bytes()))?;
                assert!(client.send(patch).await?.status().is_success());
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                "code": 403, "message": "no more than one Operator at a time",
            });
            let response = Response::builder().status(StatusCode::FORBIDDEN);
            Ok(response.body(Body::from(status.to_string().into_bytes()))?)
        }
    });
    Client::new(service, "default")
}

impl AddOns {
    /// Runs a command of which a write is refused.
    async fn refused(
        &mut self,
        line: &str,
        after: usize,
        change: Option<(&'static str, Value)>,
        error: &str,
    ) {
        let client = refusing(&self.harness.client, after, change);
        let client = std::mem::replace(&mut self.harness.client, client);
        RunCommand::failing(line, &[], error).play(self).await;
        self.harness.client = client;
    }

    /// The version and the annotations of an Operator.
    async fn requested(&self, name: &str) -> Value {
        let operator = self.harness.get(OPERATOR, name).await;
        let metadata = &operator["metadata"];
        json!({ "version": operator["spec"]["version"], "annotations": metadata["annotations"] })
    }
}

#[test]
fn what_was_written_before_a_refusal_is_taken_back_unless_it_was_changed() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for (package, version) in
            [("foo", "1.2.3"), ("bar", "1.2.1"), ("bar", "1.2.7"), ("fiz", "2.9.2")]
        {
            Fixture::publish(add_ons.catalog.path(), package, version);
        }
        // Its kind can be listed when one was installed.
        add_ons.request("fiz", json!({ "version": "2.9.2" })).await;
        add_ons.expect("fiz", &[("Installed", "True"), ("Progressing", "False")]).await;
        let install = "install foo --catalog fixture=CATALOG --yes";
        let says = "no more than one Operator at a time";
        let error = format!("failed to create Operator `foo`: {says}");
        add_ons.refused(install, 1, None, &error).await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        add_ons.absent("olm.io/v1 Operator foo").await;

        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        // What is requested for a moment only is not to be installed.
        add_ons.stop().await;
        Fixture::publish(add_ons.catalog.path(), "fiz", "2.9.6");
        let before = add_ons.requested("bar").await;
        let update = "update --for-range bar@~1.2;fiz@~2.9 --catalog fixture=CATALOG --yes";
        let error = format!("failed to update Operator `fiz`: {says}");
        add_ons.refused(update, 1, None, &error).await;
        assert_eq!(add_ons.requested("bar").await, before);
        assert_eq!(add_ons.requested("fiz").await["version"], "2.9.2");

        let theirs = json!({ "spec": { "version": ">=1.2.1" } });
        add_ons.refused(update, 1, Some(("bar", theirs)), &error).await;
        assert_eq!(add_ons.requested("bar").await["version"], ">=1.2.1");
    });
}
