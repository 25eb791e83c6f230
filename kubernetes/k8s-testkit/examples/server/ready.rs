//! From the start of the process to the first answer.

use std::time::Instant;

use serde_json::{Value, json};

use crate::load::send;
use crate::stage::Stage;

/// Starts; the fastest counts.
const STARTS: usize = 5;

pub(crate) async fn measure() -> Result<(String, Value), anyhow::Error> {
    let (mut best, mut library) = (f64::MAX, f64::MAX);
    for _ in 0..STARTS {
        let began = Instant::now();
        let stage = Stage::embedded()?;
        send(&stage.client, "GET", "/readyz", "", String::new()).await?;
        best = best.min(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        drop(k8s_apiserver::ApiServer::new(k8s_apiserver::Options::default()));
        library = library.min(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((
        format!(
            "ready after {best:.1} ms from the start of the process, in process after {library:.2} ms"
        ),
        json!({ "what": "ready", "milliseconds": best, "in_process": library }),
    ))
}
