//! What is applied: the object that a manifest becomes, how it differs from another, and the sign
//! that another client changed it afterwards; and what is taken over from earlier managers.

pub mod diff;
pub mod fingerprint;
pub mod prepare;
pub mod sensitive;
pub mod takeover;
