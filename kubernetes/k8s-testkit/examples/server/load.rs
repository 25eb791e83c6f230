//! Requests as raw as a client sends them: what it costs to make and read them is not measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::bail;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;

/// The namespace that everything happens in.
pub(crate) const NAMESPACE: &str = "/api/v1/namespaces/default";

/// Sends a request and reads its answer, of which only the length is kept.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: String,
) -> Result<usize, anyhow::Error> {
    let response = open(client, method, path, content_type, body).await?;
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let told = body.collect().await?.to_bytes();
        bail!("{method} {path}: {}", String::from_utf8_lossy(&told));
    }
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, |piece| piece.len());
    }
    Ok(length)
}

/// Sends a request; its answer is still to be read.
pub(crate) async fn open(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: String,
) -> Result<Response<Body>, anyhow::Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", "application/json")
        .body(Body::from(body.into_bytes()))?;
    Ok(client.send(request).await?)
}

/// Does something `count` times, so many at once; returns how often it was done in a second.
pub(crate) async fn rate<F>(
    count: usize,
    at_once: usize,
    work: impl Fn(usize) -> F + Send + Sync + 'static,
) -> Result<f64, anyhow::Error>
where
    F: Future<Output = Result<(), anyhow::Error>> + Send,
{
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let began = Instant::now();
    let workers: Vec<_> = (0..at_once)
        .map(|_| {
            let (next, work) = (Arc::clone(&next), Arc::clone(&work));
            tokio::spawn(async move {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return anyhow::Ok(());
                    }
                    work(index).await?;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// A ConfigMap of about one KiB.
pub(crate) fn config_map(name: &str, value: usize) -> String {
    let filling = "x".repeat(700);
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": "bench", "part": name } },
        "data": { "value": value.to_string(), "filling": filling },
    })
    .to_string()
}

/// A Deployment as charts write it.
pub(crate) fn deployment(name: &str, value: usize) -> String {
    serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "main",
                    "image": format!("example.com/image:{value}"),
                    "ports": [{ "containerPort": 8080, "name": "http" }],
                    "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
                    "resources": { "requests": { "cpu": "10m", "memory": "20Mi" } },
                }]},
            },
        },
    })
    .to_string()
}
