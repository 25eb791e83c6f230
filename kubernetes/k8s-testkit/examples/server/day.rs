//! A day of a controller on a paused clock.

use std::time::Instant;

use serde_json::{Value, json};

#[path = "../../tests/it/day/controller.rs"]
mod controller;

/// Days; the fastest counts.
const DAYS: usize = 3;

pub(crate) fn measure() -> Result<(String, Value), anyhow::Error> {
    let (mut best, mut reconciled) = (f64::MAX, 0);
    for _ in 0..DAYS {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        let began = Instant::now();
        reconciled = runtime.block_on(controller::day());
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok((
        format!("a controller's day, {reconciled} reconciliations: {:.0} ms", best * 1e3),
        json!({ "what": "day", "seconds": best, "reconciliations": reconciled }),
    ))
}
