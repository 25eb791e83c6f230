//! Installing a payload, beside the floor; and what it takes in requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_testkit::ClusterKind;
use plimsoll_plan::plan::mode::Mode;
use serde_json::json;

use crate::{Figure, floor, stage};

/// How often each side is measured; the best of each counts, since noise only adds.
const ROUNDS: usize = 3;
/// Applies under way at once in the bare loop of each round: the best of them is the floor.
const CONCURRENCY: [usize; ROUNDS] = [16, 32, 64];
/// How long a cluster is watched at rest.
const REST: Duration = Duration::from_secs(60);

pub(crate) async fn measure(kind: ClusterKind) -> Result<Vec<Figure>, anyhow::Error> {
    let (payload, _) = stage::payloads()?;
    let on = format!("{kind:?}");
    let (mut floors, mut served, mut installs) = (Vec::new(), Vec::new(), Vec::new());
    let mut figures = Vec::new();
    for (round, concurrency) in CONCURRENCY.into_iter().enumerate() {
        let cluster = kind.start().await?;
        let floor = floor::apply(&cluster.client(), &payload, concurrency).await?;
        floors.push(floor.applied);
        served.push(floor.served);
        drop(cluster);

        let cluster = kind.start().await?;
        let client = cluster.client();
        stage::create_cluster_version(&client).await?;
        let (controlled, log) = cluster.client_with_log();
        let began = Instant::now();
        let mut work = stage::work(&client, controlled, &[Arc::clone(&payload)], Duration::ZERO);
        work.completed(&payload.release.version).await?;
        installs.push(began.elapsed());
        if round + 1 == ROUNDS {
            let steps = floor::planned(&payload, Mode::Initializing).steps.len();
            figures.push(requests(&on, &log.requests(), steps));
            tokio::time::sleep(Duration::from_secs(5)).await;
            log.clear();
            tokio::time::sleep(REST).await;
            figures.push(at_rest(&on, &log.requests()));
        }
        work.stop.cancel();
    }
    let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default().as_secs_f64();
    let (floor, ready, install) = (best(&floors), best(&served), best(&installs));
    let text = format!(
        "{install:.2} s; bare loop {floor:.2} s: {:.2} ×; bare loop until every kind is served \
         {ready:.2} s: {:.2} ×",
        install / floor,
        install / ready,
    );
    let all = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
    let json = json!({ "seconds": all(&installs), "floor": all(&floors),
        "floor_served": all(&served), "ratio": install / floor, "ratio_served": install / ready });
    figures.insert(0, Figure::new("payload to Completed", &on, text, "1.3 ×", json));
    Ok(figures)
}

fn requests(on: &str, requests: &[String], steps: usize) -> Figure {
    let mut verbs: BTreeMap<&str, usize> = BTreeMap::new();
    for request in requests {
        *verbs.entry(request.split(' ').next().unwrap_or_default()).or_default() += 1;
    }
    let status = requests.iter().filter(|request| is_write(request) && request.contains("/status"));
    let status = status.count();
    let writes = requests.iter().filter(|request| is_write(request)).count() - status;
    let text = format!("{writes} writes of {steps} manifests, {status} of status; all: {verbs:?}");
    let json = json!({ "manifests": steps, "writes": writes, "status": status, "verbs": verbs });
    Figure::new("requests of an installation", on, text, "one write a manifest", json)
}

fn at_rest(on: &str, requests: &[String]) -> Figure {
    let other: Vec<&String> =
        requests.iter().filter(|request| !request.contains("watch=true")).collect();
    let seconds = REST.as_secs();
    let text = format!("{} in {seconds} s beside watches", other.len());
    let json = json!({ "seconds": seconds, "requests": other });
    Figure::new("requests at rest", on, text, "none", json)
}

fn is_write(request: &str) -> bool {
    !request.starts_with("GET ")
}
