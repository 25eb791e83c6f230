//! Test clusters as tests use them, and that the embedded one behaves as a real one does; with a
//! real control plane if there is one.

mod admission;
mod clusters;
