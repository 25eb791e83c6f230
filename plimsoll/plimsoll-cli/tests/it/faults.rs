//! An API server that has a bad day only slows things down.

use std::sync::Arc;

use k8s_testkit::Faults as Weather;

use crate::harness::{Harness, OperatorSetup, on_each_cluster, sample_payloads};

#[test]
fn errors_lost_connections_and_closed_watches_only_slow_it_down() {
    for seed in [1, 2, 3] {
        on_each_cluster(|kind| async move {
            let (first, second) = sample_payloads();
            let operators = OperatorSetup::default();
            let payloads = [Arc::clone(&first), Arc::clone(&second)];
            let mut harness = Harness::start(kind, &payloads, operators).await;
            harness.control_with(harness.cluster.client_with_faults(Weather::seeded(seed, 0.1)));
            harness.completed(&first.release.version).await;
            harness.release(&second);
            harness.completed(&second.release.version).await;
            harness.stop().await;
        });
    }
}
