//! `plimsoll capability enable`: capabilities are requested in the ClusterVersion.

use std::io::Write;

use anyhow::Context as _;
use clap::Args;
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_operators::actions::release::{CapabilityRequest, ObservedRelease};
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use crate::arguments::cluster::ClusterArguments;
use crate::patch::patch;

/// Arguments of `plimsoll capability enable`.
#[derive(Debug, Args)]
pub struct EnableArguments {
    /// Names of capabilities
    #[arg(required = true)]
    names: Vec<String>,
    /// Only print what would be requested
    #[arg(long)]
    dry_run: bool,
    /// Which cluster
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) async fn run(
    arguments: &EnableArguments,
    out: &mut (dyn Write + Send),
) -> Result<(), anyhow::Error> {
    let client = arguments.cluster.client("capability").await?;
    let object = api(&client, CLUSTER_VERSION)
        .get(CLUSTER_VERSION_NAME)
        .await
        .context("failed to read ClusterVersion \"version\"")?;
    let object = serde_json::to_value(object)?;
    let (requested, reported) = request(&object, &arguments.names)?;
    if let Some(requested) = requested.filter(|_| !arguments.dry_run) {
        patch(&client, &requested).await?;
    }
    let suffix = if arguments.dry_run { " (dry run)" } else { "" };
    for line in reported {
        writeln!(out, "{line}{suffix}")?;
    }
    Ok(())
}

/// The patch of a ClusterVersion that requests capabilities, unless it was changed since it was read;
/// `None` if nothing is left to request. And a sentence about each capability.
fn request(
    object: &Value,
    names: &[String],
) -> Result<(Option<Value>, Vec<String>), anyhow::Error> {
    let release = ObservedRelease::read(object);
    if let Some(message) = release.refusal() {
        anyhow::bail!(message);
    }
    let mut requested = release.requested_capabilities().to_vec();
    let before = requested.len();
    let mut reported = Vec::new();
    for name in names {
        let state = match release.capability(name).map_err(anyhow::Error::msg)? {
            CapabilityRequest::Enabled => "is enabled already",
            CapabilityRequest::Requested => "is requested already",
            CapabilityRequest::Missing if requested.contains(name) => continue,
            CapabilityRequest::Missing => {
                requested.push(name.clone());
                "is requested"
            }
        };
        reported.push(format!("capability {name} {state}"));
    }
    let patch = (requested.len() > before).then(|| {
        json!({
            "metadata": { "resourceVersion": object["metadata"]["resourceVersion"] },
            "spec": { "capabilities": { "additionalEnabledCapabilities": requested } },
        })
    });
    Ok((patch, reported))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::request;

    fn check(names: &str, expected: Option<&[&str]>, sentences: &[&str]) {
        let object = json!({
            "metadata": { "resourceVersion": "7" },
            "spec": { "clusterID": "", "capabilities": { "additionalEnabledCapabilities": ["Build"] } },
            "status": { "capabilities": {
                "knownCapabilities": ["Build", "Console", "Insights", "Storage"],
                "enabledCapabilities": ["Storage"],
            }, "desired": { "version": "", "image": "" }, "observedGeneration": 0, "versionHash": "" },
        });
        let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
        let (patch, reported) = request(&object, &names).unwrap();
        let requested = patch.map(|patch| {
            assert_eq!(patch["metadata"]["resourceVersion"], "7");
            patch["spec"]["capabilities"]["additionalEnabledCapabilities"].clone()
        });
        assert_eq!(requested, expected.map(Value::from), "{names:?}");
        assert_eq!(reported, sentences, "{names:?}");
    }

    #[test]
    fn what_is_neither_enabled_nor_requested_is_requested_once() {
        check("Storage", None, &["capability Storage is enabled already"]);
        check("Build", None, &["capability Build is requested already"]);
        check(
            "Console Build Insights Console",
            Some(&["Build", "Console", "Insights"]),
            &[
                "capability Console is requested",
                "capability Build is requested already",
                "capability Insights is requested",
            ],
        );
    }
}
