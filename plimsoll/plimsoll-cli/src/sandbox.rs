//! The sandbox: an embedded cluster with stand-ins for what needs nodes.

pub mod sample;
pub mod snapshot;
pub mod standins;
