//! Decides: which steps a release takes, in what order, what each of them waits for, and what the
//! cluster's status says about it.
//!
//! Everything here is a function from values to values. There is no client, no clock and no
//! random source: time comes in as a timestamp, the order of a sweep follows its number.

pub mod apply;
pub mod capabilities;
pub mod forecast;
pub mod health;
pub mod plan;
pub mod progress;
pub mod reconciler;
pub mod removal;
pub mod spec;
pub mod status;
pub mod update;
mod uptime;
pub mod windows;
