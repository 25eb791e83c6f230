//! An API server that has a bad day only slows things down.

use std::sync::Arc;

use k8s_testkit::Faults as Weather;

use crate::rig::{Rig, StandIns, on_each_cluster, sample_payloads};

#[test]
fn errors_lost_connections_and_closed_watches_only_slow_it_down() {
    for seed in [1, 2, 3] {
        on_each_cluster(|kind| async move {
            let (first, second) = sample_payloads();
            let stand_ins = StandIns::default();
            let payloads = [Arc::clone(&first), Arc::clone(&second)];
            let mut rig = Rig::start(kind, &payloads, stand_ins).await;
            rig.control_with(rig.cluster.client_with_faults(Weather::seeded(seed, 0.1)));
            rig.completed(&first.release.version).await;
            rig.release(&second);
            rig.completed(&second.release.version).await;
            rig.stop().await;
        });
    }
}
