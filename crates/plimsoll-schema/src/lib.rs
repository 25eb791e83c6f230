//! Kubernetes schemas, field ownership and patches, as pure functions over JSON.
//!
//! This crate knows what a kube-apiserver knows about the shape of objects, and nothing of HTTP,
//! storage or time: callers pass in the live object, the request's object and the current time, and
//! get back the object to store.
//!
//! | Question | Module |
//! |---|---|
//! | What is the shape of a kind? | [`Schema`], [`builtin`] |
//! | Which fields does it not know, which are missing? | [`prune`], [`apply_defaults`], [`apply_builtin_defaults`] |
//! | Is an object acceptable? | [`validate`], [`Schema::evaluate_rules`], [`FieldError`] |
//! | Are the rules of a CRD acceptable? | [`check_definition`] |
//! | Who owns which field? | [`fields`], [`managed`] |
//! | What does a patch do? | [`patch`] |

pub mod builtin;
mod builtin_defaults;
mod default;
mod error;
mod expressions;
pub mod fields;
pub mod managed;
pub mod patch;
mod prune;
mod schema;
mod typed;
mod validate;

pub use builtin_defaults::apply_builtin_defaults;
pub use default::apply_defaults;
pub use error::{FieldError, FieldErrorKind};
pub use expressions::{Verdict, check_definition};
pub use prune::{prune, unknown_fields};
pub use schema::Schema;
pub use validate::validate;
