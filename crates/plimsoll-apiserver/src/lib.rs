//! An embeddable, in-memory, deterministic Kubernetes API server.
//!
//! [`ApiServer`] is a `tower::Service`, so that `kube::Client::new(server, "default")` works on it
//! in process, without a port; [`serve()`] puts the same server behind a socket for `kubectl`.

mod body;
mod clock;
mod kubeconfig;
mod listen;
mod server;

pub use body::Body;
pub use clock::{Clock, SystemClock};
pub use kubeconfig::kubeconfig;
pub use listen::serve;
pub use server::{ApiServer, Options};
