//! The Python client runs its ordinary flow on both kinds of cluster, with the same output.
//!
//! `PLIMSOLL_PYTHON` names an interpreter that has the `kubernetes` package; without it there is
//! nothing to run.

use std::path::Path;

use k8s_apiserver::{kubeconfig, serve};
use k8s_testkit::prerequisites::required;
use k8s_testkit::{ClusterKind, TestCluster, clusters};
use tokio::net::TcpListener;

/// The variable that names the interpreter.
const PYTHON: &str = "PLIMSOLL_PYTHON";

/// What the flow prints, on whichever server.
const EXPECTED: &str = include_str!("python/flow.txt");

/// Runs the flow with a kubeconfig, and returns what it prints.
async fn flow(python: &str, kubeconfig: &Path) -> String {
    let script = "tests/it/python/flow.py";
    let mut command = std::process::Command::new(python);
    command.arg(script).arg(kubeconfig).env("PYTHONWARNINGS", "ignore");
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("the task ends")
        .expect("the interpreter runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "the flow fails after\n{printed}\n{errors}");
    printed
}

async fn flow_on(cluster: &TestCluster, python: &str) -> String {
    let Some(server) = cluster.server() else {
        let kubeconfig = cluster.kubeconfig().expect("a control plane has a kubeconfig");
        return flow(python, kubeconfig).await;
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig(&format!("http://{address}"))).expect("it is written");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(server.clone(), listener, async {
        // Whether told or dropped, it is over.
        let _ = stopped.await;
    }));
    let printed = flow(python, &path).await;
    drop(stop);
    serving.await.expect("the task ends").expect("it serves until the end");
    printed
}

async fn prints_the_same(kind: ClusterKind) {
    let Some(python) = required(PYTHON).and_then(|path| path.into_string().ok()) else { return };
    let cluster = kind.start().await.expect("the cluster starts");
    let printed = flow_on(&cluster, &python).await;
    assert_eq!(printed, EXPECTED, "{kind}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_works_on_an_embedded_cluster() {
    prints_the_same(ClusterKind::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_works_on_a_real_control_plane() {
    if clusters().contains(&ClusterKind::ControlPlane) {
        prints_the_same(ClusterKind::ControlPlane).await;
    }
}
