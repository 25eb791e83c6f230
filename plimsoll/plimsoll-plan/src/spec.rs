//! The ClusterVersion's spec: whether it is valid, and which objects it makes unmanaged.

pub mod overrides;
pub mod validate;
