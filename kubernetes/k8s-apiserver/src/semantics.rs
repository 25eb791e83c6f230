//! What Kubernetes objects mean: resources, kinds, defaults, validation and conversion.
pub(crate) mod cluster;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod convert;
pub(crate) mod decode;
pub(crate) mod definition;
pub(crate) mod kinds;
pub(crate) mod metadata;
pub(crate) mod ownership;
pub(crate) mod part;
pub(crate) mod registry;
pub(crate) mod settings;
pub(crate) mod storage_key;
pub(crate) mod validation;
pub(crate) mod warnings;
pub(crate) mod webhook;
