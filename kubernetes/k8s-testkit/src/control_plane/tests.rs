//! What is said when a control plane does not start.

use std::path::Path;

use super::{AuditLog, ControlPlane};
use crate::error::StartError;

async fn error_of(assets: &Path) -> StartError {
    ControlPlane::start(assets, AuditLog::Kept).await.err().expect("it cannot start")
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_named_as_the_cause() {
    let error = error_of(Path::new("/nonexistent")).await;
    assert!(matches!(error, StartError::Prepare { .. }), "{error}");
    assert!(error.to_string().contains("KUBEBUILDER_ASSETS"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let assets = tempfile::tempdir().expect("a temporary directory");
    let error = error_of(assets.path()).await;
    let StartError::Spawn { program, .. } = error else { panic!("{error}") };
    assert!(program.ends_with("/etcd"), "{program}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_ends_at_once_is_reported_with_what_it_said() {
    let assets = tempfile::tempdir().expect("a temporary directory");
    for (name, stand_in) in [("etcd", "sleep"), ("kube-apiserver", "false")] {
        let target = ["/bin", "/usr/bin"].iter().map(|place| Path::new(place).join(stand_in));
        let target = target.into_iter().find(|path| path.exists()).expect("it is everywhere");
        std::os::unix::fs::symlink(target, assets.path().join(name)).expect("a link");
    }
    let error = error_of(assets.path()).await;
    let StartError::Exited { program, log, .. } = error else { panic!("{error}") };
    // Which of the two is seen first is not certain: `sleep` refuses these arguments.
    assert!(["etcd", "kube-apiserver"].contains(&program), "{program}");
    assert!(program != "etcd" || log.contains("--data-dir"), "{log}");
}
