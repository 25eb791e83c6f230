//! Random requests, sent to the embedded server and to a real control plane: every answer has to be
//! the same, the record of ownership included.
//!
//! A run is a number of sequences, each determined by its seed. Without a real control plane there
//! is nothing to compare with; `properties` then still holds the embedded server to its own laws.
//!
//! - `PLIMSOLL_DIFFERENTIAL=N` sets the number of sequences,
//! - `PLIMSOLL_DIFFERENTIAL_REQUESTS=N` the number of requests of users with few permissions,
//! - `PLIMSOLL_DIFFERENTIAL_SEED=S` the first seed; a failure prints the seed that repeats it.

mod answer;
mod built_in;
mod definitions;
mod detours;
mod garbage;
mod leniencies;
mod namespaces;
mod properties;
mod random;
mod request;
mod run;
mod sequence;
mod shape;
mod target;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_testkit::{ClusterKind, TestCluster, clusters, poll};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use random::Random;
use request::{Body, Request};
use run::{Pair, send};
use sequence::Maker;
use target::Target;

/// Sequences of a run, unless told otherwise: a minute on two cores.
const SEQUENCES: usize = 300;
/// Sequences that share a definition, which takes a real server longer than a sequence.
const PER_DEFINITION: u64 = 6;
/// Sequences under way at once.
const CONCURRENCY: usize = 8;
/// Failures that are shortened and printed; the others are counted.
const REPORTED: usize = 25;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The target that a seed stands for: two of three are custom kinds.
fn target_of(seed: u64) -> Target {
    let kinds = built_in::all();
    let only = std::env::var("PLIMSOLL_DIFFERENTIAL_KIND").unwrap_or_default();
    if let Some(kind) = kinds.iter().find(|kind| kind.kind == only) {
        return kind.clone();
    }
    let block = seed / PER_DEFINITION;
    if only.is_empty() && block % 3 == 2 {
        let choice = usize::try_from(seed).unwrap_or_default();
        return kinds[choice % kinds.len()].clone();
    }
    definitions::custom(block)
}

/// Makes the definition on a server.
async fn define_on(client: &Client, target: &Target) {
    let Some(definition) = &target.definition else { return };
    let create = Request {
        method: "POST",
        target: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        content_type: "application/json",
        body: Body::Document(definition.clone()),
    };
    let made = send(client, &create, &Value::Null, "").await.expect("the server answers");
    assert!(made.code == 201 || made.code == 409, "{definition}: {made:?}");
}

/// Makes the definition on both servers and waits until it is served.
async fn define(pair: &Pair, target: &Target) {
    define_on(&pair.embedded, target).await;
    define_on(&pair.real, target).await;
    if target.definition.is_none() {
        return;
    }
    for version in 0..target.versions.len() {
        let probe = Request {
            method: "POST",
            target: format!("{}?dryRun=All", target.collection(version)),
            content_type: "application/json",
            body: Body::Document(json!({
                "apiVersion": target.versions[version].api_version,
                "kind": target.kind,
                "metadata": {"name": "probe"},
            })),
        };
        let is_served = || async {
            let made = send(&pair.real, &probe, &Value::Null, "").await?;
            (made.code != 404).then_some(())
        };
        poll("the definition", is_served).await.expect("it is served");
    }
}

/// What became of one sequence.
async fn check(pair: &Pair, seed: u64, reported: &AtomicUsize) -> Option<String> {
    let target = target_of(seed);
    let pair = &Pair { lenient: target.definition.is_none(), ..pair.clone() };
    let requests = Maker { target: &target, random: Random::new(seed, 2) }.sequence();
    let name = format!("o{seed}");
    let difference = pair.run(&requests, &name).await?;
    let mut text = format!("seed {seed}, {} ", target.kind);
    if reported.fetch_add(1, Ordering::Relaxed) >= REPORTED {
        let _ = write!(text, "(not shortened): {}", requests[difference.index]);
        for place in &difference.places {
            let _ = write!(text, "\n    {place}");
        }
        return Some(text);
    }
    let (requests, difference) = pair.shrink(requests, difference, &name).await;
    if let Some(definition) = &target.definition {
        let _ = write!(text, "\n  {definition}");
    }
    for request in &requests {
        let _ = write!(text, "\n  {request}");
    }
    for place in &difference.places {
        let _ = write!(text, "\n    {place}");
    }
    Some(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_are_answered_as_a_real_control_plane_answers_them() {
    if !clusters().contains(&ClusterKind::ControlPlane) {
        return;
    }
    let embedded = TestCluster::embedded();
    let real = TestCluster::control_plane().await.expect("the control plane starts");
    let pair = Arc::new(Pair {
        embedded: embedded.client(),
        real: real.client(),
        lenient: false,
        leniencies: Arc::default(),
    });
    let count = setting("PLIMSOLL_DIFFERENTIAL", SEQUENCES);
    let first = setting("PLIMSOLL_DIFFERENTIAL_SEED", 0);
    let seeds: Vec<u64> = (first..first + count).map(|seed| seed as u64).collect();
    let reported = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    let mut failures = Vec::new();
    for block in seeds.chunk_by(|left, right| left / PER_DEFINITION == right / PER_DEFINITION) {
        if running.len() >= CONCURRENCY {
            failures.extend(running.join_next().await.expect("some run").expect("no panic"));
        }
        let (pair, reported, block) = (Arc::clone(&pair), Arc::clone(&reported), block.to_vec());
        running.spawn(async move {
            define(&pair, &target_of(block[0])).await;
            let mut failures = Vec::new();
            for seed in block {
                failures.extend(check(&pair, seed, &reported).await);
            }
            failures
        });
    }
    while let Some(done) = running.join_next().await {
        failures.extend(done.expect("no panic"));
    }
    let (above, below) = pair.leniencies.against_ceilings();
    println!("tolerated less than leniencies.txt allows: {below:?}");
    assert!(count != SEQUENCES || first != 0 || above.is_empty(), "tolerated: {above:?}");
    assert!(
        failures.is_empty(),
        "{} of {count} sequences differ:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
