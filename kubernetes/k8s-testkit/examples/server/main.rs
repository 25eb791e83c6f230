//! `cargo xtask bench server`: what the embedded API server takes, beside a real kube-apiserver.
//!
//! Both run as processes of their own on the same machine, behind a socket, and get the same
//! requests from the same client; the best of several rounds that alternate counts. What matters
//! are the ratios. The real one takes part when `KUBEBUILDER_ASSETS` names its programs.

mod apply;
mod day;
mod fan_out;
mod list;
mod load;
mod ready;
mod size;
mod stage;

use std::process::ExitCode;
use std::time::Instant;

use k8s_testkit::{ClusterKind, clusters};
use serde_json::{Value, json};

use stage::Stage;

/// Rounds of each measurement on each kind of server.
const ROUNDS: usize = 3;

/// What was measured.
pub(crate) struct Figure {
    what: &'static str,
    unit: &'static str,
    /// Of the embedded server; more is better.
    embedded: f64,
    /// Of the real one, if there is one.
    real: Option<f64>,
    /// The same by each second of the server's processor time: neither the client nor others on the
    /// machine count there.
    embedded_by_processor: f64,
    /// By each second of kube-apiserver's processor time alone.
    real_by_api_server: Option<f64>,
    /// By each second of processor time of kube-apiserver, etcd and kube-controller-manager.
    real_by_all: Option<f64>,
    /// What is wanted of the ratio.
    wanted: f64,
}

fn main() -> Result<ExitCode, anyhow::Error> {
    // A second installation of the TLS provider is a no-op.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some(stage::SERVE) {
        stage::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let mut notes = Vec::new();
    if wanted("day") {
        notes.push(day::measure()?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(async {
        let mut figures = Vec::new();
        if wanted("ready") {
            notes.push(ready::measure().await?);
        }
        if wanted("size") {
            notes.extend(size::measure().await?);
        }
        if ["apply", "list", "watch"].iter().any(|name| wanted(name)) {
            let mut stages = Vec::new();
            for kind in clusters() {
                stages.push(Stage::start(kind).await?);
            }
            if wanted("apply") {
                figures.extend(apply::measure(&stages).await?);
            }
            if wanted("list") {
                figures.extend(list::measure(&stages).await?);
            }
            if wanted("watch") {
                figures.extend(fan_out::measure(&stages).await?);
            }
        }
        anyhow::Ok(figures)
    })?;
    print(&notes, &figures);
    Ok(ExitCode::SUCCESS)
}

/// Measures something on each server in turns; the best round of each counts.
pub(crate) async fn compare<'a, F>(
    stages: &'a [Stage],
    what: &'static str,
    unit: &'static str,
    measure: impl Fn(&'a Stage, usize) -> F,
) -> Result<Figure, anyhow::Error>
where
    F: Future<Output = Result<f64, anyhow::Error>>,
{
    let mut best = vec![[0.0_f64; 3]; stages.len()];
    for round in 0..ROUNDS {
        for (stage, best) in stages.iter().zip(&mut best) {
            let (began, before) = (Instant::now(), stage.processor_time());
            let measured = measure(stage, round).await?;
            let (elapsed, after) = (began.elapsed().as_secs_f64(), stage.processor_time());
            let by = |used: f64| measured / (used / elapsed).max(0.01);
            let rates =
                [measured, by(after.api_server - before.api_server), by(after.all - before.all)];
            *best = std::array::from_fn(|index| best[index].max(rates[index]));
        }
    }
    let of = |kind| {
        let index = stages.iter().position(|stage| stage.kind == kind);
        index.map(|index| best[index])
    };
    let [embedded, embedded_by_processor, _] = of(ClusterKind::Embedded).unwrap_or_default();
    let real = of(ClusterKind::ControlPlane);
    Ok(Figure {
        what,
        unit,
        embedded,
        real: real.map(|[rate, ..]| rate),
        embedded_by_processor,
        real_by_api_server: real.map(|[_, by, _]| by),
        real_by_all: real.map(|[.., by]| by),
        wanted: 3.0,
    })
}

#[expect(clippy::print_stdout, reason = "the figures are what the program is run for")]
fn print(notes: &[(String, Value)], figures: &[Figure]) {
    for (note, _) in notes {
        println!("{note}");
    }
    if !figures.is_empty() {
        println!(
            "\n| What | Embedded | kube-apiserver | Ratio | By processor time of the API server | \
             With etcd and controllers | Wanted |\n\
             |---|---|---|---|---|---|---|"
        );
    }
    for figure in figures {
        let Figure { what, unit, embedded, real, embedded_by_processor, wanted, .. } = figure;
        let ratio = |embedded: f64, real: Option<f64>| {
            real.map_or("-".to_owned(), |real| format!("**{:.1} ×**", embedded / real))
        };
        let shown = real.map_or("-".to_owned(), |real| format!("{real:.0} {unit}"));
        println!(
            "| {what} | {embedded:.0} {unit} | {shown} | {} | {} | {} | {wanted} × |",
            ratio(*embedded, *real),
            ratio(*embedded_by_processor, figure.real_by_api_server),
            ratio(*embedded_by_processor, figure.real_by_all)
        );
    }
    let figures = figures.iter().map(|figure| {
        json!({
            "what": figure.what, "unit": figure.unit,
            "embedded": figure.embedded, "real": figure.real,
            "embedded_by_processor": figure.embedded_by_processor,
            "real_by_api_server": figure.real_by_api_server,
            "real_by_all": figure.real_by_all,
        })
    });
    let notes = notes.iter().map(|(_, note)| note.clone());
    println!("\n{}", notes.chain(figures).collect::<Value>());
}
