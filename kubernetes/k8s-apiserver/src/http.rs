//! HTTP: documents about the API, and the form of answers.
pub(crate) mod body;
pub(crate) mod discovery;
pub(crate) mod encode;
pub(crate) mod health;
pub(crate) mod openapi;
pub(crate) mod render;
pub(crate) mod respond;
pub(crate) mod table;
pub(crate) mod watch;
