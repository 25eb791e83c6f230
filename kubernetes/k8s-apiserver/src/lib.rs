//! An embeddable, in-memory, deterministic Kubernetes API server.
//!
//! [`ApiServer`] is a `tower::Service`, so that `kube::Client::new(server, "default")` works on it
//! in process, without a port; [`serve()`] puts the same server behind a socket, and
//! [`kubeconfig()`] is the kubeconfig for `kubectl`.
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
//! # Features
//!
//! All built-in kinds in their stable versions and any CustomResourceDefinition; get, list, watch,
//! create, update, the four kinds of patch with field ownership, and delete; discovery, tables, and
//! kube-apiserver's error messages. The controllers that clients rely on run inside the write that
//! they react to: namespaces, garbage collection, definitions, aggregated roles. No pod ever runs.
//!
//! Requests are authenticated, and authorized by RBAC. Admission webhooks and conversion webhooks
//! are called over HTTPS or in process; admission policies are evaluated. A cluster can be
//! written to a snapshot and restored, and [`faults`] injects failures. The `README.md` of this
//! crate lists what it supports and what it does not.
//!
//! # Guarantees
//!
//! The same requests in the same order, under the same clock, seed and [`KeySource::Seed`], give the
//! same cluster: there are no background tasks, and nothing depends on hash order. Keys are random
//! by default, which shows in the certificates that a cluster contains. Every write has a revision of its
//! own, those of controllers included, so watches see each step. Times come from the [`Clock`], and
//! from `tokio::time` where a watch waits, so a paused runtime pauses watches too.
//!
//! A panic inside a write poisons the cluster: it may be half done, so every later request is
//! answered with `500 InternalError`. A panic in any other part of a request ends that request
//! only.
//!
//! # Layers
//!
//! A module only imports from layers above it in this list, and no two modules import each other:
//!
//! 1. `status`, `clock`, `ids`, `names`, `user`, `json`: values that everything uses.
//! 2. `request`: parsed paths, parameters, media types, selectors and bodies.
//! 3. `storage`: encoded objects, their revision, and the event log. It knows nothing of kinds.
//! 4. `semantics`: resources, kinds, definitions, decoding, validation, conversion; the state of a
//!    `Cluster`, and the trait through which admission takes part in its writes.
//! 5. `verbs`: what requests do to objects. `controllers`: what reacts to each write.
//! 6. `webhooks`: calls to webhooks. `shared_cluster`: the cluster behind its one lock, which is
//!    never held while waiting.
//! 7. `http`: documents and renderings. `access`: authentication, RBAC and audit. `admission`:
//!    webhooks and policies. `metrics`.
//! 8. `server`: the `tower::Service` and its dispatch.
//! 9. `faults`, `snapshot`, `listen`, `kubeconfig`: what is put around a server.
//! 10. `envtest`: a listening server in place of kube-apiserver.
//!
//! Verbs are synchronous. One that needs the response of a webhook is suspended before it has
//! changed anything, and runs again with the response (`semantics::webhook::replay`).

mod access;
mod admission;
mod clock;
mod controllers;
pub mod envtest;
pub mod faults;
mod http;
mod ids;
mod json;
mod json_path;
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
pub use access::keys::KeySource;
pub use access::options::{AccessOptions, Authorization, FallbackUser, StaticToken};
pub use clock::{Clock, SystemClock};
pub use http::body::Body;
pub use kubeconfig::kubeconfig;
pub use listen::{ServeError, TlsCertificates, serve, serve_tls, serve_tls_with};
pub use semantics::settings::{
    AdmissionPlugin, ClusterSettings, InvalidServiceRange, ServiceRange,
};
pub use server::{ApiServer, Options};
pub use snapshot::{SnapshotError, SnapshotProblem};
pub use storage::History;
pub use user::UserInfo;
pub use webhooks::{ServiceResolver, Webhooks};
