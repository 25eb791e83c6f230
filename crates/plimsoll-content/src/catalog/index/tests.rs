//! Indices that are right, and damaged ones.
