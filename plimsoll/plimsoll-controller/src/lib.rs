//! Connects the state machines of [`plimsoll_plan::reconciler`] to a cluster: it watches, executes
//! and reports, and decides nothing.
//!
//! [`Controller::run`] is a loop over what watches show, how executions ended, what is requested
//! (ClusterVersion, releases) and timers. Each turn hands an event to the state machines, carries
//! out what they return, and writes the statuses when that is due. One module, `write`, writes to
//! the cluster.

pub mod actions;
mod bootstrap;
mod bundle_content;
mod certificates;
mod clock;
mod controller;
mod definition;
mod dry_run;
mod error;
mod events;
mod fence;
mod found;
mod host;
mod implicit;
mod lease;
mod listing_watch;
pub mod metrics;
mod observe;
pub mod operators;
mod owners;
mod ownership;
pub mod permissions;
mod reinstall;
mod relay;
mod release_loader;
mod report;
mod resources;
mod serving;
mod session;
mod spans;
mod versioned_status;
mod view;
mod webhook;
mod windows;
mod workloads;
mod write;

pub use bootstrap::new_cluster_version;
pub use bundle_content::render;
pub use clock::{Clock, SharedClock, SystemClock};
pub use controller::{
    Controller, Settings, cluster_features, maintenance_windows, operators_on_platform,
};
pub use dry_run::{DryRun, dry_run};
pub use error::Error;
pub use lease::Leadership;
pub use ownership::objects_of_release;
pub use plimsoll_plan::reconciler::levels::LevelView;
pub use release_loader::SharedStore;
pub use resources::api_resource;
pub use view::{
    ActionEnds, Durations, MetricsSnapshot, OperatorView, OperatorsView, View, WaitView,
    WaitingActions,
};
pub use webhook::{Reached, WebhookSettings};
pub use windows::WindowController;
pub use workloads::{
    Workload, WorkloadError, include_rollouts, removed_conversions, stuck_workloads, workloads,
};
