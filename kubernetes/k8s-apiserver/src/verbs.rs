//! What requests do to objects.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod pods;
pub(crate) mod scale;
pub(crate) mod update;
