//! What is applied: the object that a manifest becomes, how it differs from another, and the sign
//! that another client changed it afterwards; what is taken over from earlier managers, and what is in
//! the way of a change.

pub mod diff;
pub mod fingerprint;
pub mod prepare;
pub mod sensitive;
pub mod takeover;
pub mod union;
