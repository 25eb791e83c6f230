//! The ClusterVersion's spec: whether it can be read and is valid, and which objects it makes unmanaged.

pub mod overrides;
pub mod read;
pub mod validate;
