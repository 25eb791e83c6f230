//! What to install so that every dependency holds, or why it cannot be done.
//!
//! Pure: a problem goes in, a solution or an explanation comes out; no Kubernetes, no IO.

pub mod range;
pub mod version;
