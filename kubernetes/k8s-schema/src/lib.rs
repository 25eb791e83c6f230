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
//! | What is refused of a new object? | [`refused_of_builtin`], [`refused_of_custom`] |
//! | Is an object acceptable? | [`validate`], [`validate_builtin`], [`validate_metadata`], [`names`], [`FieldError`] |
//! | Does it satisfy the expressions of its CRD? | [`Schema::evaluate_rules`] |
//! | Is a definition acceptable? | [`definition_rules`], [`check_definition_schema`], [`check_definition`] |
//! | How is a value written? | [`canonicalize`], [`go_round_trip`] |
//! | Who owns which field? | [`fields`], [`managed`] |
//! | What does a policy merge into an object? | [`merge_configuration`] |
//! | What does a patch do? | [`patch`] |
//! | What is an object in protocol buffers? | [`protobuf`] |
//! | Which version of an API comes first? | [`versions`] |
//!
//! # Layers
//! Each module uses only modules above it in this list.
//!
//! | Modules | Content |
//! |---|---|
//! | `error`, `quantity`, `numbers`, `go`, `versions`, `builtin_data` | errors, text forms of values, the generated data |
//! | `expressions` | the validation rules of CRDs |
//! | `schema`, `builtin` | types, and the ways to get one |
//! | `canonical`, `decode`, `default`, `prune`, `round_trip`, `validate`, `definition` | what is done to one object by its type |
//! | `fields`, `typed` | sets of fields, and operations on objects by them |
//! | `builtin_defaults`, `builtin_rules`, `metadata`, `name_rule` | what kube-apiserver has in code |
//! | `definition_rules`, `creation` | definitions as a whole, and what is checked of a new object |
//! | `managed`, `patch`, `protobuf` | ownership, patches, the protocol buffer form |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod builtin;
mod builtin_data;
mod builtin_defaults;
mod builtin_rules;
mod canonical;
mod creation;
mod decode;
mod default;
mod definition;
pub mod definition_rules;
mod error;
mod expressions;
pub mod fields;
mod go;
pub mod managed;
mod metadata;
mod name_rule;
mod numbers;
pub mod patch;
pub mod protobuf;
mod prune;
mod quantity;
mod round_trip;
mod schema;
mod typed;
mod validate;
pub mod versions;

pub use builtin_defaults::apply_builtin_defaults;
pub use builtin_rules::{
    changed_immutable_fields, check_review_versions, check_webhook_service, check_webhook_url,
    validate_builtin,
};
pub use canonical::{canonicalize, canonicalize_fields};
pub use creation::{
    CustomKind, ObjectKind, encode_string_data, generate_job_selector, refused_of_builtin,
    refused_of_custom, validate_object_metadata,
};
pub use decode::{decoding_error, undecodable};
pub use default::apply_defaults;
pub use definition::{
    Tolerance, check_definition_schema, compound_set_items, selectable_field, unrecognized_formats,
};
pub use error::{FieldError, FieldErrorKind};
pub use expressions::{RuleViolations, check_definition};
pub use go::{go_kind, go_text, go_type};
pub use k8s_cel::names;
pub use metadata::{MetadataOwner, validate_metadata};
pub use name_rule::NameRule;
pub use numbers::canonicalize_numbers;
pub use prune::{prune, unknown_fields};
pub use round_trip::go_round_trip;
pub use schema::Schema;
pub use typed::{ConfigurationError, merge_configuration};
pub use validate::{
    blocked_expressions, malformed_metadata, validate, validate_lists, validate_status,
    validate_update,
};
