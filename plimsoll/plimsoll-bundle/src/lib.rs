//! registry+v1 bundles: what is in them, what is wrong with them, the objects that install them, and
//! what replacing their definitions would break.

pub mod crd_safety;
pub mod render;
