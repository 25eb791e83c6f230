//! The main job on whole clusters: the embedded API server always, a real control plane too when
//! `KUBEBUILDER_ASSETS` names its programs; the same code for both.
//!
//! Payloads from outside come from `PLIMSOLL_PAYLOAD` and `PLIMSOLL_PAYLOAD_NEXT`.

mod drift;
mod gates;
mod install;
mod removal;
mod restart;
mod rig;
mod weather;
