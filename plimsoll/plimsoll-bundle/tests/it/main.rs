//! Tests against bundles.

mod golden;
