//! What holds of the embedded server by itself, over the same random sequences.
use k8s_testkit::TestCluster;
use kube::Client;
use serde_json::Value;

use super::define_on;
use super::definitions;
use super::random::Random;
use super::request::{Body, Request};
use super::run::send;
use super::sequence::Maker;

/// Sequences; they take milliseconds.
const SEQUENCES: u64 = 60;

async fn read(client: &Client, target: &str, name: &str) -> Value {
    let get =
        Request { method: "GET", target: target.to_owned(), content_type: "", body: Body::Nothing };
    send(client, &get, &Value::Null, name).await.expect("it answers").body
}

/// Whether the request is an apply that says all it wants, so that saying it again is nothing new.
fn is_apply(request: &Request) -> bool {
    request.content_type.starts_with("application/apply-patch")
        && !request.target.contains("/scale")
}

/// Who owns what, whenever they last wrote: a second may pass between two requests.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let timeless = entries.iter().cloned().map(|mut entry| {
        entry["time"].take();
        entry.to_string()
    });
    let mut owners: Vec<String> = timeless.collect();
    owners.sort_unstable();
    owners
}

#[tokio::test]
async fn applying_again_and_dry_runs_change_nothing() {
    let cluster = TestCluster::embedded();
    let client = cluster.client();
    let (mut repeated, mut dry) = (0, 0);
    for seed in 0..SEQUENCES {
        let target = definitions::custom(seed);
        define_on(&client, &target).await;
        let name = format!("o{seed}");
        let requests = Maker { target: &target, random: Random::new(seed, 3) }.sequence();
        let place = format!("{}/{{name}}", target.collection(0));
        let mut live = Value::Null;
        for request in &requests {
            let before = read(&client, &place, &name).await;
            let answer = send(&client, request, &live, &name).await.expect("it answers");
            let after = read(&client, &place, &name).await;
            if request.target.contains("dryRun=All") {
                assert_eq!(before, after, "seed {seed}: {request}");
                dry += 1;
            } else if answer.is_object() {
                live = answer.body.clone();
                if answer.code < 300 && is_apply(request) {
                    // The first repetition may lose nulls of the object before; none does after it.
                    send(&client, request, &live, &name).await.expect("it answers");
                    let settled = read(&client, &place, &name).await;
                    send(&client, request, &live, &name).await.expect("it answers");
                    let again = read(&client, &place, &name).await;
                    assert_eq!(settled, again, "seed {seed}: {request}");
                    assert_eq!(owners(&after), owners(&settled), "seed {seed}: {request}");
                    repeated += 1;
                }
            }
        }
    }
    assert!(repeated > 150 && dry > 10, "{repeated} applies repeated, {dry} dry runs");
}
