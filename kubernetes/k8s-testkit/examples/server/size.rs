//! A hundred thousand objects: what they take in memory, and how long it takes to list some.

use std::time::Instant;

use serde_json::{Value, json};

use crate::load::{config_map, rate, send};
use crate::stage::Stage;

/// Objects in all.
const OBJECTS: usize = 100_000;

/// How often each list is made; the fastest counts.
const LISTS: usize = 5;

pub(crate) async fn measure() -> Result<Vec<(String, Value)>, anyhow::Error> {
    let stage = Stage::embedded()?;
    let empty = stage.resident()?;
    let client = stage.client.clone();
    let per_second = rate(OBJECTS, 16, move |index| {
        let client = client.clone();
        async move {
            let path = "/api/v1/namespaces/default/configmaps";
            let body = config_map(&format!("map-{index:06}"), index);
            send(&client, "POST", path, "application/json", body).await.map(drop)
        }
    })
    .await?;
    let resident = stage.resident()?;
    let mut notes = vec![(
        format!(
            "100,000 ConfigMaps of 1.1 KiB: {} MiB resident ({} MiB without), {per_second:.0} created a second",
            resident >> 20,
            empty >> 20
        ),
        json!({ "what": "size", "resident": resident, "empty": empty, "created_per_second": per_second }),
    )];
    for limit in [100, 1_000, 10_000, 100_000] {
        let mut best = f64::MAX;
        for _ in 0..LISTS {
            let path = format!("/api/v1/namespaces/default/configmaps?limit={limit}");
            let began = Instant::now();
            send(&stage.client, "GET", &path, "", String::new()).await?;
            best = best.min(began.elapsed().as_secs_f64());
        }
        let micros = best * 1e6 / f64::from(limit);
        notes.push((
            format!("  list of {limit} of them: {:.1} ms, {micros:.1} µs an object", best * 1e3),
            json!({ "what": "list of many", "limit": limit, "seconds": best }),
        ));
    }
    notes.push((
        format!("  after it: {} MiB resident", stage.resident()? >> 20),
        json!({ "what": "resident after lists", "resident": stage.resident()? }),
    ));
    Ok(notes)
}
