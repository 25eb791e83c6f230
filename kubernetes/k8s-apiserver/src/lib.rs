//! An embeddable, in-memory, deterministic Kubernetes API server.
//!
//! [`ApiServer`] is a `tower::Service`, so that `kube::Client::new(server, "default")` works on it
//! in process, without a port; [`serve()`] puts the same server behind a socket, and
//! [`kubeconfig()`] tells `kubectl` where that is.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use k8s_apiserver::{ApiServer, Options, kubeconfig, serve};
//!
//! let server = ApiServer::new(Options::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let kubeconfig = kubeconfig(&format!("http://{}", listener.local_addr()?));
//! serve(server, listener, std::future::pending()).await
//! # }
//! ```
//!
//! # What it is
//!
//! All built-in kinds in their stable versions and any CustomResourceDefinition; get, list, watch,
//! create, update, the four kinds of patch with field ownership, delete; discovery, tables, and
//! errors in kube-apiserver's words. The controllers without which a cluster makes no sense run
//! inside the write that concerns them: namespaces fill and end, dependents go with their owners,
//! definitions are established. No pod ever runs.
//!
//! Requests come from somebody, whom roles allow what they ask for; admission webhooks, over HTTPS
//! or in process, and ValidatingAdmissionPolicies have their say; conversion webhooks convert. A
//! cluster can be written to a file and started from one, and [`faults`] make requests fail as a
//! script says. `docs/api-server.md` tells users all that, and where it differs from a real one.
//!
//! # What it guarantees
//!
//! The same requests in the same order, under the same clock and seed, give the same cluster: there
//! are no background tasks, and nothing depends on the order of a hash. Every write has a revision
//! of its own, also those of controllers, so watches see each step. Time only comes from the
//! [`Clock`], and from `tokio::time` where a watch waits, so a paused runtime pauses watches too.
//!
//! # How it is built
//!
//! A request is read by `request`, dispatched by `handle`, and carried out by a module of `verbs`
//! on the `cluster` (its `store` of encoded objects, its `registry` of what is served) under one
//! lock that is never held while waiting. `kinds` knows what single built-in kinds do beyond their
//! schemas, `controllers` act on each write, and `encode`, `table` and `discovery` write answers;
//! `access` says who may, `admission` who else has a say. What has to ask a webhook is carried out
//! again with the answer (`asking`): the core stays synchronous, and nothing is locked meanwhile.
//! Shapes, defaults, validation and ownership come from `k8s-schema`.

mod access;
mod admission;
mod clock;
mod controllers;
pub mod faults;
mod http;
mod ids;
mod json;
mod kubeconfig;
mod listen;
mod metrics;
mod names;
mod request;
mod semantics;
mod server;
mod shared_cluster;
mod snapshot;
mod status;
mod storage;
mod user;
mod verbs;
mod webhooks;

pub use access::audit::{
    Audit, AuditGroup, AuditLevel, AuditPolicy, AuditRule, AuditSink, AuditStage, JsonLines,
};
pub use access::options::{AccessOptions, Authorization, FallbackUser, StaticToken};
pub use clock::{Clock, SystemClock};
pub use http::body::Body;
pub use kubeconfig::kubeconfig;
pub use listen::{ServeError, serve, serve_tls};
pub use server::{ApiServer, Options};
pub use snapshot::{SnapshotError, SnapshotProblem};
pub use storage::History;
pub use user::UserInfo;
pub use webhooks::{ServiceResolver, Webhooks};
