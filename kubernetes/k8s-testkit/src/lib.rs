//! Clusters for tests, embedded and real, behind one type.
//!
//! [`TestCluster`] is either the embedded API server, in process and without a port, or a control
//! plane of real programs on loopback, taken from where `KUBEBUILDER_ASSETS` points. A test is
//! written once and runs on each of [`clusters()`]. [`RequestLog`] tells what a client sent,
//! [`Faults`] makes its server
//! fail; both work with either kind of cluster. [`prerequisites`] records tests that lack what they
//! need.

mod audit;
mod cluster;
mod control_plane;
mod error;
mod poll;
pub mod prerequisites;
mod process;
mod request_log;
mod service;

pub use cluster::{ClusterKind, TestCluster, clusters};
pub use error::StartError;
pub use k8s_apiserver::faults::{self, Fault, Faults};
pub use poll::{TimedOut, poll};
pub use request_log::RequestLog;
