//! Values of Secrets are sent to the API server, and nowhere else.

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use plimsoll_api::{ApiKind, CLUSTER_VERSION, RELEASE_PROGRESS};
use plimsoll_cli::render::forecast::ForecastReport;

use crate::harness::{Harness, OperatorSetup, on_each_cluster, sample_with, until};
use crate::plans::forecast;

const EVENT: ApiKind = ApiKind { group: "", version: "v1", kind: "Event", plural: "events" };
/// The value that is to be hidden. A number is no value of a Secret: every API server refuses it, and some
/// quote it.
const PIN: &str = "987654321";

#[test]
fn a_secret_that_is_refused_is_quoted_nowhere() {
    on_each_cluster(|kind| async move {
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\n  namespace: harbour-beacon\n  \
             annotations:\n    include.release.openshift.io/self-managed-high-availability: \
             \"true\"\nstringData:\n  pin: {PIN}\n"
        );
        let payload = sample_with(&[("0000_90_keys_10.yaml".to_owned(), secret)]);
        let mut harness =
            Harness::start(kind, std::slice::from_ref(&payload), OperatorSetup::default()).await;
        harness.control();
        harness.until(|view| view.waits.iter().any(|it| it.object.name == "keys")).await;
        until(
            "the progress names the Secret",
            || harness.progress(),
            |progress| progress["steps"].to_string().contains("keys"),
        )
        .await;
        let mut written = harness.progress().await.to_string();
        assert!(written.contains("withheld"), "{kind}: {written}");
        for kind in [CLUSTER_VERSION, RELEASE_PROGRESS, EVENT] {
            let api: Api<DynamicObject> = harness.api(kind);
            // A real server refuses lists of a kind for a moment after it was defined.
            let listed = || async { api.list(&ListParams::default()).await.ok() };
            for object in until("a list", listed, Option::is_some).await.into_iter().flatten() {
                written += &serde_json::to_string(&object).expect("it is JSON");
            }
        }
        let report = ForecastReport::of(&forecast(&harness, &payload).await);
        written += &serde_json::to_string(&report).expect("it is JSON");
        assert!(!written.contains(PIN), "{kind}: {written}");
    });
}
