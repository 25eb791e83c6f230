//! What the controller decides, as state machines without a client: what happened goes in, what to
//! do comes out.
//!
//! The controller turns watches, timers and answers into calls of these machines and carries out
//! what they return. Time comes in as a value: [`Timestamp`](jiff::Timestamp) where the time of day
//! matters, because it is written into objects or compared with what they say, and [`Uptime`] where
//! only a distance does, so that an adjusted clock neither hurries nor stalls a retry.

pub mod counters;
pub mod discovery;
pub mod execution;
pub mod levels;
pub mod operators;
pub mod rejected_capabilities;
pub mod removals;
pub mod status_report;
mod uptime;
pub mod watches;

pub use uptime::Uptime;
