//! Why a control plane did not start.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The variable that names the directory of the programs is unset or empty.
    #[error("KUBEBUILDER_ASSETS is not set: it names the directory of etcd and kube-apiserver")]
    AssetsUnset,
    /// A file or directory of the control plane could not be made, or no port was to be had.
    #[error("failed to {action}")]
    Prepare {
        /// What was attempted.
        action: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A program could not be run.
    #[error("failed to run `{program}`")]
    Spawn {
        /// The path of the program.
        program: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A program ended by itself.
    #[error("{program} ended while the control plane started, with {status}; its log ends:\n{log}")]
    Exited {
        /// The name of the program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it logged.
        log: String,
    },
    /// A program runs but does not become ready.
    #[error("{program} was not ready within {}s; its log ends:\n{log}", waited.as_secs())]
    NotReady {
        /// The name of the program.
        program: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// The last lines that it logged.
        log: String,
    },
    /// No client could be made for the server.
    #[error("failed to make a client for the control plane")]
    Client {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
