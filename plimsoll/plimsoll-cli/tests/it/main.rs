//! The main job on whole clusters: the embedded API server always, a real control plane too when
//! `KUBEBUILDER_ASSETS` names its programs; the same code for both.
//!
//! Payloads from outside come from `PLIMSOLL_PAYLOAD` and `PLIMSOLL_PAYLOAD_NEXT`.

mod authoring;
mod bundles;
mod capabilities;
mod conditions;
mod definitions;
mod drift;
mod events;
mod faults;
mod features;
mod gates;
mod harness;
mod inspect;
mod install;
mod invocations;
mod jobs;
mod leadership;
mod operators;
mod overrides;
mod plans;
mod readme;
mod recovery;
mod registries;
mod removal;
mod restart;
mod rights;
mod sandbox;
mod secrets;
mod takeover;
#[cfg(feature = "telemetry")]
mod traces;
mod unions;
mod updates;
