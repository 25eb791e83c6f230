//! Groups of arguments that commands share, and what they name.

pub(crate) mod address;
pub mod capability;
pub mod catalog;
pub mod cluster;
pub(crate) mod faults;
pub mod installation;
pub(crate) mod name;
pub mod registry;
pub mod resolver;
pub mod store;
pub(crate) mod value;
