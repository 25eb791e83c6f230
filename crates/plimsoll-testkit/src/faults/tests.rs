//! What a request meets: by script, by chance, and what of it is seen.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::choice::choose;
use super::{Fault, Faults};

/// How a stack of layers answers without any server behind it.
fn client(faults: &Faults) -> (Client, crate::RequestLog) {
    crate::TestCluster::embedded().client_with_faults_and_log(faults.clone())
}

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

#[tokio::test]
async fn a_scripted_fault_meets_the_next_request_of_its_pattern_once() {
    let faults = Faults::none();
    faults.add("PATCH /api/v1/namespaces/default/configmaps/a", Fault::Refused(409));
    faults.add("PATCH /api/v1/namespaces/default/configmaps/a", Fault::ConnectionLost);
    let (client, log) = client(&faults);
    let api = config_maps(client);
    let patch = Patch::Merge(json!({"data": {}}));
    let parameters = PatchParams::default();

    let first = api.patch("a", &parameters, &patch).await.expect_err("it was refused");
    let kube::Error::Api(status) = first else { panic!("not a refusal: {first:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let second = api.patch("a", &parameters, &patch).await.expect_err("nothing came back");
    assert!(!matches!(second, kube::Error::Api(_)), "{second:?}");
    assert_eq!(faults.fired().len(), 2);
    let _ = api.list(&ListParams::default()).await;
    assert_eq!(faults.fired().len(), 2);

    assert_eq!((log.count(), log.count_writes(), log.count_watches()), (3, 2, 0));
    let key = ("PATCH".to_owned(), "/api/v1/namespaces/default/configmaps/a".to_owned());
    assert_eq!(log.counts()[&key], 2);
    log.clear();
    assert!(log.requests().is_empty());
}

#[test]
fn chance_is_the_same_for_the_same_seed_and_as_frequent_as_said() {
    for seed in [0, 1, u64::MAX] {
        let draw = || -> Vec<Option<Fault>> {
            (0..10_000).map(|position| choose(seed, position, 0.1, true, false)).collect()
        };
        let faults = draw();
        assert_eq!(faults, draw());
        let hits = faults.iter().flatten().count();
        assert!((900..1_100).contains(&hits), "{hits} of 10000 with seed {seed}");
    }
    assert_eq!(choose(7, 3, 0.0, true, true), None);
    assert!(choose(7, 3, 1.0, true, true).is_some());
}

#[test]
fn a_fault_fits_its_request() {
    for position in 0..1_000 {
        let read = choose(5, position, 1.0, false, false);
        assert_ne!(read, Some(Fault::Refused(409)), "a read does not conflict");
        assert!(!closes(read), "only watches are closed");
        let watch = choose(5, position, 1.0, false, true);
        assert_ne!(watch, Some(Fault::AnswerLost), "a watch has no end to lose");
    }
    assert!((0..100).any(|position| closes(choose(5, position, 1.0, false, true))));
}

fn closes(fault: Option<Fault>) -> bool {
    matches!(fault, Some(Fault::WatchClosed(_) | Fault::WatchBroken(_)))
}

#[test]
fn nothing_goes_wrong_after_stop() {
    let faults = Faults::seeded(1, 1.0);
    faults.add("GET", Fault::WatchClosed(Duration::ZERO));
    faults.stop();
    let request = http::Request::get("/api").body(kube::client::Body::empty());
    assert_eq!(faults.draw(&request.expect("it is well-formed")), None);
    assert!(faults.fired().is_empty());
}
