//! The shell around the plan: watches, executes, reports. It decides nothing.
//!
//! [`Controller::run`] is a loop over four sources: what watches show, how executions went, what
//! is asked for (ClusterVersion, release), and time. Each turn tells the pure
//! [`Progress`](plimsoll_plan::progress::Progress) what happened, starts what it says, and writes
//! status when it changed. One module, `write`, writes to the cluster.

mod bootstrap;
mod clock;
mod controller;
mod enquiry;
mod error;
mod events;
mod fence;
mod figures;
mod guarded;
mod implicit;
mod intake;
mod lease;
pub mod metrics;
mod observe;
mod removals;
mod report;
mod resources;
pub mod rights;
mod serving;
mod session;
mod spans;
mod survey;
mod view;
mod webhook;
mod withheld;
mod write;

pub use bootstrap::api_resource;
pub use clock::{Clock, SharedClock, SystemClock};
pub use controller::{Controller, Leadership, Settings, cluster_features};
pub use error::Error;
pub use figures::{Counts, Figures, StepCounts};
pub use intake::SharedStore;
pub use survey::{Survey, survey};
pub use view::{LevelView, View, WaitView};
pub use webhook::{CapabilityWebhook, Reached};
