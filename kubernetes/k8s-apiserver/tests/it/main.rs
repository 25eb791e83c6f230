//! The server through its clients, in process: HTTP requests, and Rust's `kube` on top.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails by panicking"
)]

mod access;
mod admission;
mod cluster;
mod custom;
mod deletion;
mod discovery;
mod errors;
mod faults;
mod forms;
mod kube_client;
mod listening;
mod listing;
mod metrics;
mod refusals;
mod robustness;
mod settings;
mod snapshot;
mod tables;
mod watching;
mod writing;
