//! The health of the objects that a plan waits for, and what their failures are called.

pub mod failure;
pub mod gate;
pub mod parse;
pub mod readiness;
