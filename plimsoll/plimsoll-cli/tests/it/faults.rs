//! An API server that has a bad day only slows things down.

use std::sync::Arc;

use k8s_testkit::{ClusterKind, Faults as Weather};

use crate::harness::{Harness, OperatorSetup, on_any_cluster, on_each_cluster, sample_payloads};

#[test]
fn errors_lost_connections_and_closed_watches_only_slow_it_down() {
    on_each_cluster(|kind| bad_day(kind, 1));
}

#[test]
fn other_errors_only_slow_it_down_too() {
    for seed in [2, 3] {
        on_any_cluster(|kind| bad_day(kind, seed));
    }
}

async fn bad_day(kind: ClusterKind, seed: u64) {
    let (first, second) = sample_payloads();
    let payloads = [Arc::clone(&first), Arc::clone(&second)];
    let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
    harness.control_with(harness.cluster.client_with_faults(Weather::seeded(seed, 0.1)));
    harness.completed(&first.release.version).await;
    harness.release(&second);
    harness.completed(&second.release.version).await;
    harness.stop().await;
}
