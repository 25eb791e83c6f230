//! Groups of arguments that commands share, and what they name.

pub mod capability;
pub mod catalog;
pub mod cluster;
pub mod store;
