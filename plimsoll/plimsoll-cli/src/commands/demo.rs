//! `plimsoll demo`: the main job in one process, on a cluster that is embedded in it.
//!
//! Version 1 of a sample release is installed, then updated to version 2, while `kubectl` may
//! look on. What needs nodes is played by simulated operators.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use k8s_apiserver::ApiServer;
use kube::Client;
use plimsoll_api::{CLUSTER_OPERATOR, CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_content::payload::{self, Payload, SourceFile, TemplateContext};
use plimsoll_controller::{Controller, Leadership, Settings, SystemClock, View};
use plimsoll_plan::status::Limits;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::exit;
use crate::process::{new_cluster_id, stop_on_signal};
use crate::render::live::LiveView;
use crate::render::{logs, table};
use plimsoll_simulation::cluster_state::api;
use plimsoll_simulation::duration;
use plimsoll_simulation::{operators, sample};

/// How to run the demo.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Keep serving at the end, until interrupted
    #[arg(long)]
    pub keep: bool,
    /// Time that each simulated operator takes
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub delay: Duration,
}

/// Runs the demo to its end.
///
/// # Errors
///
/// When the sample release cannot be installed; which would be a defect of this program.
pub async fn run(arguments: DemoArguments) -> Result<ExitCode, anyhow::Error> {
    let live = LiveView::of_stderr();
    logs::init(true, &live);
    let (first, second) = (sample_payload(&sample::v1())?, sample_payload(&sample::v2())?);
    let stop = stop_on_signal()?;
    let server = ApiServer::new(k8s_apiserver::Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen")?;
    let address = listener.local_addr()?;
    tokio::spawn(k8s_apiserver::serve(server.clone(), listener, stop.clone().cancelled_owned()));
    let client = Client::new(server, "default");
    anstream::println!("An API server is embedded in this process. To watch:");
    anstream::println!("  kubectl --server http://{address} get clusterversion,clusteroperators");
    anstream::println!("Deployments and operators are simulated, since there are no nodes.\n");
    let options = operators::SimulationOptions {
        payloads: vec![Arc::clone(&first), Arc::clone(&second)],
        delay: arguments.delay,
        ..operators::SimulationOptions::default()
    };
    tokio::spawn(operators::run(client.clone(), options, stop.clone()));
    let (release, releases) = watch::channel(Arc::clone(&first));
    let (view, views) = watch::channel(View::default());
    let controller = Controller {
        client: client.clone(),
        clock: Arc::new(SystemClock),
        settings: Settings {
            profile: DEFAULT_PROFILE.to_owned(),
            feature_set: Some(DEFAULT_FEATURE_SET.to_owned()),
            create: Some(new_cluster_id()),
            leadership: Leadership::Alone,
            always_enabled: Vec::new(),
            capability_webhook: None,
            limits: Limits::default(),
        },
        release: releases,
        store: None,
        view,
    };
    let mut working = tokio::spawn(controller.run(stop.clone()));
    for (payload, doing) in [(&first, "Installing"), (&second, "Updating to")] {
        let version = &payload.release.version;
        anstream::println!("{doing} version {version}");
        release.send_replace(Arc::clone(payload));
        let drawn = CancellationToken::new();
        let drawing = std::io::stderr().is_terminal().then(|| {
            let (live, views, drawn) = (live.clone(), views.clone(), drawn.clone());
            tokio::spawn(async move { live.draw(views, drawn).await })
        });
        let done = tokio::select! {
            done = completed(views.clone(), version) => done,
            ended = &mut working => {
                drawn.cancel();
                ended??;
                return Ok(exit::FAILURE.into());
            }
        };
        drawn.cancel();
        if let Some(drawing) = drawing {
            drawing.await?;
        }
        anyhow::ensure!(done, "the controller ended before version {version} was completed");
        anstream::println!();
    }
    print_tables(&client).await?;
    if arguments.keep {
        anstream::println!("\nStaying up at http://{address} until interrupted (Ctrl-C)");
        stop.cancelled().await;
    }
    stop.cancel();
    working.await??;
    Ok(exit::SUCCESS.into())
}

fn sample_payload(files: &[SourceFile]) -> Result<Arc<Payload>, anyhow::Error> {
    let template = TemplateContext {
        release_image: String::new(),
        cluster_profile: DEFAULT_PROFILE.to_owned(),
    };
    let payload = payload::parse(files, &template).context("the sample release is defective")?;
    Ok(Arc::new(payload))
}

/// Waits until a version is completed; false when the controller ended before.
async fn completed(mut views: watch::Receiver<View>, version: &str) -> bool {
    views.wait_for(|view| view.completed && view.version == version).await.is_ok()
}

async fn print_tables(client: &Client) -> Result<(), anyhow::Error> {
    let out = &mut anstream::stdout().lock();
    let version = api(client, CLUSTER_VERSION).get(CLUSTER_VERSION_NAME).await?;
    let version = serde_json::to_value(version)?;
    let history = version["status"]["history"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows: Vec<Vec<String>> = history
        .iter()
        .map(|entry| {
            let took = took(&text(&entry["startedTime"]), &text(&entry["completionTime"]));
            vec![text(&entry["version"]), text(&entry["state"]), took]
        })
        .collect();
    table::print(out, &["VERSION", "STATE", "TOOK"], &rows)?;
    anstream::println!();
    let operators = api(client, CLUSTER_OPERATOR).list(&Default::default()).await?;
    let mut rows = Vec::new();
    for operator in operators {
        let operator = serde_json::to_value(operator)?;
        let mut row = vec![text(&operator["metadata"]["name"])];
        row.push(named(&operator["status"]["versions"], "name", "operator", "version"));
        for condition in ["Available", "Progressing", "Degraded"] {
            row.push(named(&operator["status"]["conditions"], "type", condition, "status"));
        }
        rows.push(row);
    }
    table::print(out, &["NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED"], &rows)?;
    Ok(())
}

fn named(items: &Value, key: &str, name: &str, field: &str) -> String {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    let item = items.iter().find(|item| item[key] == name);
    item.and_then(|item| item[field].as_str()).unwrap_or_default().to_owned()
}

fn took(started: &str, completed: &str) -> String {
    let times = (started.parse::<jiff::Timestamp>(), completed.parse::<jiff::Timestamp>());
    match times {
        (Ok(started), Ok(completed)) => format!("{}s", completed.duration_since(started).as_secs()),
        _ => String::new(),
    }
}
