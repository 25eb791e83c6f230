//! Events of one resource to a thousand watches of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use http_body_util::BodyExt as _;
use kube::Client;
use tokio::sync::{Semaphore, mpsc};

use crate::load::{config_map, open, send};
use crate::stage::Stage;
use crate::{Figure, compare};

/// Watches.
const WATCHES: usize = 1_000;

/// Writes in each round.
const WRITES: usize = 100;

/// Watches that are being opened at once.
const OPENING: usize = 50;

/// How long to wait for one watch to hear of something.
const PATIENCE: Duration = Duration::from_secs(60);

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
    let first = config_map(&format!("round-{round}-first"), 0);
    send(client, "POST", &path, "application/json", first).await?;
    let present = present(client, &path).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let opening = Arc::new(Semaphore::new(OPENING));
    let watches: Vec<_> = (0..WATCHES)
        .map(|_| {
            let (client, tell, opening) = (client.clone(), tell.clone(), Arc::clone(&opening));
            tokio::spawn(async move { follow(&client, present, &tell, &opening).await })
        })
        .collect();
    drop(tell);
    hear(&mut told).await?;
    let began = Instant::now();
    for write in 0..WRITES {
        let body = config_map(&format!("round-{round}-{write}"), write);
        send(client, "POST", &path, "application/json", body).await?;
    }
    hear(&mut told).await?;
    let took = began.elapsed().as_secs_f64();
    for watch in watches {
        watch.await??;
    }
    Ok((WATCHES * WRITES) as f64 / took)
}

/// Waits until every watch has told that it is so far.
async fn hear(told: &mut mpsc::UnboundedReceiver<()>) -> Result<(), anyhow::Error> {
    for _ in 0..WATCHES {
        tokio::time::timeout(PATIENCE, told.recv()).await?.context("a watch ended early")?;
    }
    Ok(())
}

/// How many objects there are, which is how many events a watch begins with.
async fn present(client: &Client, path: &str) -> Result<usize, anyhow::Error> {
    let list = open(client, "GET", path, "", String::new()).await?.into_body().collect().await?;
    let list: serde_json::Value = serde_json::from_slice(&list.to_bytes())?;
    Ok(list["items"].as_array().context("a list has items")?.len())
}

/// Reads a watch; tells when what is there has come, and when the last event has.
async fn follow(
    client: &Client,
    present: usize,
    tell: &mpsc::UnboundedSender<()>,
    opening: &Semaphore,
) -> Result<(), anyhow::Error> {
    let path = format!("{NAMESPACE}/configmaps?watch=true");
    let mut permit = Some(opening.acquire().await?);
    let response = open(client, "GET", &path, "", String::new()).await?;
    ensure!(response.status().is_success(), "a watch was refused: {}", response.status());
    let mut body = response.into_body();
    let mut events = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        events += data.iter().filter(|byte| **byte == b'\n').count();
        if events >= present && permit.take().is_some() {
            tell.send(())?;
        }
        if events >= present + WRITES {
            tell.send(())?;
            return Ok(());
        }
    }
    bail!("the watch ended early")
}
