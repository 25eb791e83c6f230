//! Reads and lints release payloads: bytes in, values out.
//!
//! [`payload::parse`] turns the files of a payload into a [`Payload`] or into every defect that
//! keeps it from being one; [`inclusion::decide`] says of each document whether it belongs to a
//! cluster and why not; [`lint::lint`] names what a payload's author should change.

pub mod annotations;
pub mod authoring;
pub mod built_in;
pub mod bundle;
pub mod capability;
pub mod catalog;
pub mod definition;
pub mod diagnostic;
pub mod expressions;
pub mod hash;
mod image_reference;
pub mod immutable;
pub mod inclusion;
pub mod kinds;
pub mod lint;
pub mod location;
pub mod manifest;
mod packed;
pub mod payload;
pub mod position;
pub mod ready_when;
pub mod spelling;
pub mod template;

pub use definition::Definition;
pub use k8s_yaml as yaml;
pub use manifest::Manifest;
pub use packed::Packed;
pub use payload::Payload;
