//! `cargo xtask bench`: what Plimsoll costs, beside what the same work costs at least.
//!
//! Everything is measured in parallel in one run; what counts are the ratios. Payloads come from
//! `PLIMSOLL_PAYLOAD` and `PLIMSOLL_PAYLOAD_NEXT`, else the sample release is taken. The real
//! control plane takes part when `KUBEBUILDER_ASSETS` names its programs.

mod actions;
mod admission;
mod drift;
mod floor;
mod install;
mod memory;
mod policies;
mod program;
mod stage;
mod update;

use std::process::ExitCode;

use k8s_testkit::clusters;
use serde_json::{Value, json};

/// One figure.
pub(crate) struct Figure {
    what: String,
    on: String,
    value: String,
    limit: String,
    json: Value,
}

impl Figure {
    pub(crate) fn new(what: &str, on: &str, value: String, limit: &str, json: Value) -> Self {
        let (what, on, limit) = (what.to_owned(), on.to_owned(), limit.to_owned());
        Self { what, on, value, limit, json }
    }
}

fn main() -> Result<ExitCode, anyhow::Error> {
    if let Some(ended) = program::run() {
        return ended;
    }
    // A second installation of the TLS provider is a no-op.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Vec::new();
    runtime.block_on(async {
        for kind in clusters() {
            if wanted("install") {
                figures.extend(install::measure(kind).await?);
            }
            if wanted("update") {
                figures.extend(update::measure(kind).await?);
            }
            if wanted("drift") {
                figures.extend(drift::measure(kind).await?);
            }
            if wanted("memory") {
                figures.extend(memory::measure(kind).await?);
            }
        }
        if wanted("actions") {
            figures.extend(actions::measure().await?);
        }
        if wanted("admission") {
            figures.extend(admission::measure().await?);
        }
        anyhow::Ok(())
    })?;
    if wanted("policies") {
        figures.extend(policies::measure()?);
    }
    print(&figures);
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the figures are what the program is run for")]
fn print(figures: &[Figure]) {
    println!("| What | On | Measured | Limit |\n|---|---|---|---|");
    for figure in figures {
        println!("| {} | {} | {} | {} |", figure.what, figure.on, figure.value, figure.limit);
    }
    let all: Vec<Value> = figures
        .iter()
        .map(|figure| json!({ "what": figure.what, "on": figure.on, "measured": figure.json }))
        .collect();
    println!("\n{}", Value::Array(all));
}
