//! Test clusters as tests use them, and that the embedded one behaves as a real one does; with a
//! real control plane if there is one.

mod access;
mod admission;
mod clusters;
mod conformance;
mod day;
mod differential;
mod kube_flows;
mod kubectl;
mod python;
