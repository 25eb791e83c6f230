//! Decides: which steps a release takes, in what order, what each of them waits for, and what the
//! cluster's status says about it.
//!
//! Everything here is a function from values to values. There is no client, no clock and no
//! random source: time comes in as a timestamp, variation as an attempt number.

pub mod capabilities;
pub mod failure;
pub mod fingerprint;
pub mod gate;
pub mod graph;
pub mod history;
pub mod mode;
pub mod parse;
pub mod plan;
pub mod prepare;
pub mod progress;
pub mod readiness;
pub mod removal;
pub mod status;
pub mod upgradeable;
pub mod validate;
