//! Tests against bundles and definitions.

mod crd_safety;
mod golden;
