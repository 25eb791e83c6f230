//! What a request asks for, before anything is looked up.

pub(crate) mod accept;
pub(crate) mod content;
pub(crate) mod info;
pub(crate) mod parameters;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod selector;
pub(crate) mod strict;
