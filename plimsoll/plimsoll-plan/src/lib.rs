//! Decides: which steps a release takes, in what order, what each of them waits for, and what the
//! cluster's status says about it.
//!
//! Everything here is a function from values to values. There is no client, no clock and no
//! random source: time comes in as a timestamp, variation as an attempt number.

pub mod acceptance;
pub mod acknowledge;
pub mod capabilities;
pub mod diff;
pub mod failure;
pub mod features;
pub mod fingerprint;
pub mod forecast;
pub mod gate;
pub mod graph;
pub mod history;
pub mod install_config;
pub mod mode;
pub mod offers;
pub mod overrides;
pub mod parse;
pub mod pause;
pub mod plan;
pub mod preconditions;
pub mod prepare;
pub mod progress;
pub mod readiness;
pub mod reconciler;
pub mod removal;
pub mod status;
pub mod target;
pub mod timeline;
pub mod transitions;
pub mod upgradeable;
pub mod validate;
