//! Errors of rehearsals.

use std::io;

use k8s_apiserver::SnapshotError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::cluster_state::StateError;
use crate::simulated_operators::FaultError;

/// Why an update could not be rehearsed.
#[derive(Debug, Error)]
pub enum RehearsalError {
    /// The runtime cannot be started.
    #[error("failed to start a runtime")]
    Runtime(#[from] io::Error),
    /// The copy of the cluster cannot be loaded.
    #[error(
        "failed to load the copy of the cluster; write one with `plimsoll rehearse --save FILE`"
    )]
    InvalidCopy {
        /// What is wrong, and in which line.
        source: SnapshotError,
    },
    /// The outgoing release cannot be installed.
    #[error(
        "the outgoing release {version} cannot be installed on the simulated cluster: {messages}"
    )]
    NotInstalled {
        /// Version of the release.
        version: String,
        /// What each step waits for.
        messages: String,
    },
    /// A part of the rehearsal ended before the update.
    #[error("{part} ended before the update")]
    Ended {
        /// The controller, or the simulation of operators.
        part: &'static str,
    },
    /// A part of the rehearsal panicked.
    #[error("{part} panicked")]
    Panicked {
        /// The controller, or the simulation of operators.
        part: &'static str,
        /// The error of the task.
        source: JoinError,
    },
    /// The controller failed.
    #[error("the controller failed")]
    Controller(#[from] plimsoll_controller::Error),
    /// The controller of Operators does not begin to work.
    #[error(
        "the controller of Operators does not begin to work on the copy of the cluster: see whether Secret \
         plimsoll-revisions of namespace kube-system has a usable key"
    )]
    NotStarted,
    /// The API server refuses a change of an Operator.
    #[error("the API server refuses the change of Operator `{name}`")]
    Refused {
        /// The name of the Operator.
        name: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// The objects of the copy cannot be read.
    #[error("failed to read the copy of the cluster")]
    Copy {
        /// The error of the encoding.
        source: io::Error,
    },
    /// A fault names an operator that there is not.
    #[error(transparent)]
    Faults(#[from] FaultError),
    /// The state of the cluster cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A request was not answered as expected.
    #[error("failed to {what}")]
    Request {
        /// What was requested.
        what: &'static str,
        /// The error of the client.
        source: kube::Error,
    },
}

/// The result of a task of a rehearsal that has ended.
///
/// # Errors
///
/// When it panicked or failed.
pub(super) fn finished<E>(
    part: &'static str,
    ended: Result<Result<(), E>, JoinError>,
) -> Result<(), RehearsalError>
where
    RehearsalError: From<E>,
{
    Ok(ended.map_err(|source| RehearsalError::Panicked { part, source })??)
}
