//! Choices of capabilities for new clusters.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Parser;
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_cli::commands::deploy::{ManifestsArguments, manifests};
use plimsoll_cli::commands::run::{RunArguments, new_spec};

use super::{LOOKOUT, enabled, exists};
use crate::harness::{Harness, OperatorSetup, on_any_cluster, sample_payloads};

/// The release that the examples begin with, which the first sample is.
const RELEASE: &str = "../../examples/payloads/v1.0.0";

#[derive(Parser)]
struct RunLine {
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Parser)]
struct ManifestsLine {
    #[command(flatten)]
    arguments: ManifestsArguments,
}

/// What `plimsoll run` creates a ClusterVersion with.
fn created_by(options: &[&str]) -> Option<ClusterVersionSpec> {
    let (first, _) = sample_payloads();
    let options = ["run", "--release", RELEASE].iter().chain(options);
    let arguments = RunLine::parse_from(options).arguments;
    new_spec(&arguments, &first).expect("it is valid")
}

/// The options of the controller that `plimsoll manifests` deploys, but for its release.
fn deployed_with(options: &[&str]) -> Vec<String> {
    let deploy = ["manifests", "--release", RELEASE, "--image", "p", "--release-image", "r"];
    let arguments = ManifestsLine::parse_from(deploy.iter().chain(options)).arguments;
    let mut out = Vec::new();
    manifests(&arguments, &mut out).expect("they are rendered");
    let out = String::from_utf8(out).expect("it is text");
    let objects = plimsoll_content::yaml::parse(&out).into_iter();
    let deployment = objects
        .map(|document| document.value.expect("it is YAML"))
        .find(|object| object["kind"] == "Deployment")
        .expect("there is a Deployment");
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments = arguments.as_array().expect("it has arguments");
    let arguments: Vec<String> =
        arguments.iter().map(|it| it.as_str().expect("it is text").to_owned()).collect();
    assert_eq!(arguments[..2], ["run", "--release=/release"]);
    arguments[2..].to_vec()
}

#[test]
fn a_new_cluster_has_what_was_chosen_and_nothing_else() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let config = "platform: {none: {}}\ncapabilities:\n  baselineCapabilitySet: None\n  \
                  additionalEnabledCapabilities: [Ingress]\n";
    std::fs::write(file.path(), config).expect("it is written");
    let config = file.path().to_str().expect("it is text").to_owned();
    on_any_cluster(move |kind| {
        let config = config.clone();
        async move {
            let choices: [(&[&str], &[&str]); 3] = [
                (&["--baseline", "None"], &[]),
                (&["--baseline", "None", "--capability", "Console"], &["Console"]),
                (&["--install-config", &config], &["Ingress"]),
            ];
            for (options, expected) in choices {
                let by_hand = created_by(&[options, &["--create"]].concat());
                let deployed = deployed_with(options);
                let deployed: Vec<&str> = deployed.iter().map(String::as_str).collect();
                let deployed = created_by(&deployed).expect("it creates a ClusterVersion");
                let by_hand = by_hand.expect("it creates a ClusterVersion");
                assert_eq!(deployed.capabilities, by_hand.capabilities, "{options:?}");

                let (first, _) = sample_payloads();
                let mut harness =
                    Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
                harness.settings.create = Some(deployed.clone());
                harness.control();
                harness.completed(&first.release.version).await;
                let expected = BTreeSet::from_iter(expected.iter().copied());
                let object = harness.get(CLUSTER_VERSION, "version").await;
                assert_eq!(enabled(&object["status"]), expected, "{options:?}");
                assert_eq!(object["spec"]["clusterID"], deployed.cluster_id);
                assert_eq!(exists(&harness, LOOKOUT).await, expected.contains("Console"));
                harness.stop().await;

                // One that exists is not changed.
                harness.settings.create = created_by(&["--create", "--baseline", "v4.18"]);
                harness.control();
                harness.until(|view| view.completed).await;
                let again = harness.get(CLUSTER_VERSION, "version").await;
                assert_eq!(again["spec"], object["spec"], "{options:?}");
                assert_eq!(enabled(&again["status"]), expected, "{options:?}");
                harness.stop().await;
            }
        }
    });
}
