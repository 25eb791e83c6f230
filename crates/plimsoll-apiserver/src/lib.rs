//! An embeddable, in-memory, deterministic Kubernetes API server.
//!
//! [`ApiServer`] is a `tower::Service`, so that `kube::Client::new(server, "default")` works on it
//! in process, without a port; [`serve()`] puts the same server behind a socket for `kubectl`.

mod body;
mod clock;
mod cluster;
mod controllers;
mod convert;
mod discovery;
mod encode;
mod handle;
mod ids;
mod kinds;
mod kubeconfig;
mod listen;
mod names;
mod openapi;
mod registry;
mod request;
mod respond;
mod server;
mod status;
mod store;
mod table;
mod verbs;

pub use body::Body;
pub use clock::{Clock, SystemClock};
pub use kubeconfig::kubeconfig;
pub use listen::serve;
pub use server::{ApiServer, Options};
