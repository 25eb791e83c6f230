//! The real `kubectl` against the embedded server and against a real control plane.
//!
//! Each file below `kubectl/scripts` is a session: files, commands, and what a real server let
//! `kubectl` print. Both servers are held to it. `PLIMSOLL_KUBECTL_RECORD=1` with
//! `KUBEBUILDER_ASSETS` writes down again what the real one does; `PLIMSOLL_KUBECTL_ONLY=NAME`
//! runs one script.

mod normalize;
mod run;
mod script;

use std::path::PathBuf;

use k8s_testkit::ClusterKind;
use k8s_testkit::prerequisites::{required, skip};

use run::{Kubectl, Server};
use script::Script;

fn scripts() -> Vec<PathBuf> {
    let directory = std::path::absolute("tests/it/kubectl/scripts").expect("a working directory");
    let only = std::env::var("PLIMSOLL_KUBECTL_ONLY").ok();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("the scripts lie beside this file")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| {
            only.as_ref().is_none_or(|name| path.file_stem().is_some_and(|s| s == name.as_str()))
        })
        .collect();
    paths.sort();
    paths
}

/// Runs all scripts on clusters of one kind; returns where what is printed differs.
async fn run_all(kubectl: &Kubectl, kind: ClusterKind, record: bool) -> Vec<String> {
    let mut differences = Vec::new();
    for path in scripts() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut script = Script::read(&path);
        let cluster = run::start(kind).await;
        let server = Server::of(&cluster).await;
        let printed = kubectl.run(&server, &script).await;
        if record {
            script.record(&printed);
            script.write(&path);
            continue;
        }
        for difference in script.differences(&printed) {
            differences.push(format!("--- {name} on {kind}\n{difference}"));
        }
    }
    differences
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_prints_what_it_prints_for_a_real_server() {
    let Some(kubectl) = Kubectl::find() else {
        assert!(
            std::env::var_os("KUBEBUILDER_ASSETS").is_none(),
            "KUBEBUILDER_ASSETS holds no kubectl"
        );
        skip("there is no kubectl");
        return;
    };
    let has_control_plane = required("KUBEBUILDER_ASSETS").is_some();
    if std::env::var_os("PLIMSOLL_KUBECTL_RECORD").is_some() {
        run_all(&kubectl, ClusterKind::ControlPlane, true).await;
    } else if has_control_plane {
        let differences = run_all(&kubectl, ClusterKind::ControlPlane, false).await;
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
    let differences = run_all(&kubectl, ClusterKind::Embedded, false).await;
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}
