//! From the request for an update to its being applied: which updates there are, what is checked
//! before one is accepted, and the plan that it leads to.

pub mod acceptance;
pub mod acknowledge;
pub mod available;
pub mod operators;
pub mod preconditions;
pub mod target;
pub mod upgradeable;
