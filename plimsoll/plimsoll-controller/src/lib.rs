//! The shell around the plan: watches, executes, reports. It decides nothing.
//!
//! [`Controller::run`] is a loop over four sources: what watches show, how executions went, what
//! is asked for (ClusterVersion, release), and time. Each turn tells the pure
//! [`Progress`](plimsoll_plan::progress::Progress) what happened, starts what it says, and writes
//! status when it changed. One module, `write`, writes to the cluster.

mod bootstrap;
mod clock;
mod controller;
mod dry_run;
mod error;
mod events;
mod fence;
mod implicit;
mod lease;
pub mod metrics;
mod observe;
pub mod permissions;
mod release_loader;
mod report;
mod resources;
mod serving;
mod session;
mod spans;
mod versioned_status;
mod view;
mod webhook;
mod write;

pub use bootstrap::api_resource;
pub use clock::{Clock, SharedClock, SystemClock};
pub use controller::{Controller, Leadership, Settings, cluster_features};
pub use dry_run::{DryRun, dry_run};
pub use error::Error;
pub use metrics::MetricsSnapshot;
pub use plimsoll_plan::reconciler::levels::LevelView;
pub use release_loader::SharedStore;
pub use view::{View, WaitView};
pub use webhook::{CapabilityWebhook, Reached};
