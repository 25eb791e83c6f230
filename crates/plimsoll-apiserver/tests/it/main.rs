//! The server through its clients, in process: HTTP requests, and Rust's `kube` on top.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails by panicking"
)]

mod admission;
mod cluster;
mod custom;
mod deletion;
mod discovery;
mod errors;
mod kube_client;
mod listing;
mod tables;
mod watching;
mod writing;
