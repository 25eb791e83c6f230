//! Reads and lints release payloads: bytes in, values out.

pub mod manifest;

pub use manifest::Manifest;
