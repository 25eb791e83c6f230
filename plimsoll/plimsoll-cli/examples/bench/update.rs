//! An update whose operators take their time, beside its critical path.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_testkit::ClusterKind;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::plan::{Plan, Readiness};
use serde_json::json;

use crate::{Figure, floor, stage};

/// How long each operator takes.
const DELAY: Duration = Duration::from_secs(5);

pub(crate) async fn measure(kind: ClusterKind) -> Result<Vec<Figure>, anyhow::Error> {
    let (first, second) = stage::payloads()?;
    let cluster = kind.start().await?;
    let client = cluster.client();
    stage::create_cluster_version(&client).await?;
    let payloads = [Arc::clone(&first), Arc::clone(&second)];
    let mut work = stage::work(&client, client.clone(), &payloads, DELAY);
    work.completed(&first.release.version).await?;
    // The last reports of the installation are written.
    tokio::time::sleep(2 * DELAY).await;
    let began = Instant::now();
    work.release.send_replace(Arc::clone(&second));
    work.completed(&second.release.version).await?;
    let took = began.elapsed().as_secs_f64();
    work.stop.cancel();
    let levels = gated_levels(&floor::planned(&second, Mode::Updating));
    let path = (DELAY * u32::try_from(levels)?).as_secs_f64();
    let text = format!("{took:.1} s, critical path {path:.0} s: {:.2} ×", took / path);
    let json = json!({ "seconds": took, "path": path, "levels": levels, "ratio": took / path });
    Ok(vec![Figure::new("update, operators take 5 s", &format!("{kind:?}"), text, "1.3 ×", json)])
}

/// The longest chain of nodes that hold a gate: each of them takes one delay at least.
fn gated_levels(plan: &Plan) -> usize {
    let nodes = &plan.graph.nodes;
    let gated = |node: &plimsoll_plan::plan::graph::Node| {
        node.tasks.iter().any(|&task| plan.steps[task].readiness == Readiness::Gate)
    };
    let mut longest: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = node.after.iter().map(|&index| longest[index]).max().unwrap_or_default();
        longest.push(before + usize::from(gated(node)));
    }
    longest.into_iter().max().unwrap_or_default()
}
