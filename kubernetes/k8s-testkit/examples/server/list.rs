//! Lists of everything, and in pages.

use kube::Client;

use crate::load::{config_map, rate, send};
use crate::stage::Stage;
use crate::{Figure, compare};

/// Objects listed.
const OBJECTS: usize = 5_000;

/// Lists of each round.
const LISTS: usize = 24;

/// Lists under way at once.
const AT_ONCE: usize = 4;

/// The namespace of the objects.
const NAMESPACE: &str = "/api/v1/namespaces/listed";

pub(crate) async fn measure(stages: &[Stage]) -> Result<Vec<Figure>, anyhow::Error> {
    for stage in stages {
        fill(&stage.client).await?;
    }
    let mut figures = Vec::new();
    for (what, query, lists, objects) in [
        ("list of 5,000 ConfigMaps", "", LISTS, OBJECTS),
        ("list of 500 of them", "?limit=500", 10 * LISTS, 500),
    ] {
        let figure = compare(stages, what, "objects/s", |stage, _| {
            let client = stage.client.clone();
            async move {
                let listed = rate(lists, AT_ONCE, move |_| {
                    let client = client.clone();
                    async move {
                        let path = format!("{NAMESPACE}/configmaps{query}");
                        let length = send(&client, "GET", &path, "", String::new()).await?;
                        anyhow::ensure!(length > 700 * objects, "only {length} bytes");
                        Ok(())
                    }
                });
                Ok(listed.await? * objects as f64)
            }
        });
        figures.push(figure.await?);
    }
    Ok(figures)
}

async fn fill(client: &Client) -> Result<(), anyhow::Error> {
    let namespace = serde_json::json!({ "metadata": { "name": "listed" } }).to_string();
    send(client, "POST", "/api/v1/namespaces", "application/json", namespace).await?;
    let client = client.clone();
    rate(OBJECTS, 16, move |index| {
        let client = client.clone();
        async move {
            let (path, body) =
                (format!("{NAMESPACE}/configmaps"), config_map(&format!("m-{index}"), 0));
            send(&client, "POST", &path, "application/json", body).await.map(drop)
        }
    })
    .await
    .map(drop)
}
