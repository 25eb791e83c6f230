//! What the program holds in memory once a payload is installed: the program itself, as a process
//! of its own, against a server outside it.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_testkit::ClusterKind;
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_simulation::cluster_state::api;
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Figure, stage};

pub(crate) async fn measure(kind: ClusterKind) -> Result<Vec<Figure>, anyhow::Error> {
    let (Some(path), ClusterKind::ControlPlane) = (std::env::var_os("PLIMSOLL_PAYLOAD"), kind)
    else {
        return Ok(Vec::new());
    };
    let (payload, _) = stage::payloads()?;
    let cluster = kind.start().await?;
    let client = cluster.client();
    stage::create_cluster_version(&client).await?;
    let stop = CancellationToken::new();
    let options = SimulationOptions { payloads: vec![Arc::clone(&payload)], ..Default::default() };
    tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone()));
    let kubeconfig = cluster.kubeconfig().context("a real control plane has a kubeconfig")?;
    let mut program = start(kubeconfig, Path::new(&path))?;
    let mut installed = false;
    for _ in 0..1200 {
        let version = api(&client, CLUSTER_VERSION).get("version").await?;
        if version.data["status"]["history"][0]["state"] == "Completed" {
            installed = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    // What the installation left in flight ends.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()))?;
    program.kill()?;
    program.wait()?;
    stop.cancel();
    anyhow::ensure!(installed, "the payload was not installed");
    let (now, peak) = (kib(&status, "VmRSS:"), kib(&status, "VmHWM:"));
    let mib = |kib: u64| kib as f64 / 1024.0;
    let own = kib(&status, "RssAnon:");
    let text = format!(
        "{:.1} MiB resident (peak {:.1} MiB), of which {:.1} MiB are pages of the program's file",
        mib(now),
        mib(peak),
        mib(now - own)
    );
    let json = json!({ "resident_kib": now, "peak_kib": peak, "anonymous_kib": own });
    Ok(vec![Figure::new("memory after installation", "ControlPlane", text, "40 MiB", json)])
}

/// Starts the program as the image has it.
fn start(kubeconfig: &Path, payload: &Path) -> Result<Child, anyhow::Error> {
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(3).context("an example lies in a target directory")?;
    Command::new(target.join(format!("{ARCH}-unknown-linux-musl/dist/plimsoll")))
        .args(["run", "--plain", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--release")
        .arg(payload)
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .spawn()
        .context("failed to start `plimsoll`; `cargo xtask bench memory` builds it")
}

pub(crate) fn kib(status: &str, field: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}
