//! Events of one resource to a thousand watches of it.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::BodyExt as _;
use kube::Client;
use tokio::sync::{Barrier, watch};

use crate::load::{config_map, open, send};
use crate::stage::Stage;
use crate::{Figure, compare};

/// Watches.
const WATCHES: usize = 1_000;

/// Writes in each round.
const WRITES: usize = 100;

/// The namespace of the objects.
const NAMESPACE: &str = "/api/v1/namespaces/watched";

pub(crate) async fn measure(stages: &[Stage]) -> Result<Vec<Figure>, anyhow::Error> {
    for stage in stages {
        let body = serde_json::json!({ "metadata": { "name": "watched" } }).to_string();
        send(&stage.client, "POST", "/api/v1/namespaces", "application/json", body).await?;
    }
    let what = "fan-out to 1,000 watches";
    let figure = compare(stages, what, "events/s", |stage, round| fan_out(&stage.client, round));
    Ok(vec![figure.await?])
}

/// Opens watches, writes, and waits until everybody has heard of everything.
async fn fan_out(client: &Client, round: usize) -> Result<f64, anyhow::Error> {
    let path = format!("{NAMESPACE}/configmaps");
    send(client, "POST", &path, "application/json", config_map(&format!("start-{round}"), 0))
        .await?;
    let opened = Arc::new(Barrier::new(WATCHES + 1));
    let (stop, stopped) = watch::channel(());
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let (client, opened, stopped) = (client.clone(), Arc::clone(&opened), stopped.clone());
        watches.push(tokio::spawn(async move {
            let marker = format!("\"name\":\"start-{round}\"");
            let last = format!("\"name\":\"round-{round}-{}\"", WRITES - 1);
            follow(&client, &marker, &last, &opened).await?;
            drop(stopped);
            anyhow::Ok(())
        }));
    }
    opened.wait().await;
    let began = Instant::now();
    for write in 0..WRITES {
        let body = config_map(&format!("round-{round}-{write}"), write);
        send(client, "POST", &path, "application/json", body).await?;
    }
    drop(stopped);
    stop.closed().await;
    let took = began.elapsed().as_secs_f64();
    for watch in watches {
        watch.await??;
    }
    Ok((WATCHES * WRITES) as f64 / took)
}

/// Reads a watch until the event of `last` has come; tells when that of `marker` has.
async fn follow(
    client: &Client,
    marker: &str,
    last: &str,
    opened: &Barrier,
) -> Result<(), anyhow::Error> {
    let path = format!("{NAMESPACE}/configmaps?watch=true");
    let mut body = open(client, "GET", &path, "", String::new()).await?.into_body();
    let mut awaited = marker;
    // Names may be cut by the end of a frame.
    let mut tail = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        tail.extend_from_slice(&data);
        if contains(&tail, awaited) {
            if awaited == last {
                return Ok(());
            }
            awaited = last;
            opened.wait().await;
        }
        let keep = tail.len().saturating_sub(256);
        tail.drain(..keep);
    }
    anyhow::bail!("the watch ended early")
}

/// Whether a text is in some bytes: names come early in an event, so that lines are looked at from
/// their beginnings only.
fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
