//! The Common Expression Language as Kubernetes evaluates it, as pure functions.
//!
//! An [`Environment`] declares variables with [`Type`]s; [`Environment::compile`] checks an
//! expression and returns a [`Program`] with a [`Program::result_type`]. [`Program::evaluate`]
//! takes [`Bindings`] (a [`Value`] per variable) and a [`Budget`]: it returns a [`Value`], and takes
//! the cost off the budget. Costs are those that cel-go tracks with Kubernetes' estimators, so that
//! what is too expensive for kube-apiserver is too expensive here. [`Program::estimate_cost`]
//! bounds the cost beforehand, from a [`SizeEstimator`].
//!
//! * Errors of compilation print as kube-apiserver reports them: [`CompileErrors`] lists
//!   `ERROR: <input>:1:1: ...` with the source line and a caret.
//! * Objects without a schema are [`Type::Dyn`] and [`Value::from_json`].
//! * `authorizer` is [`Type::authorizer`] and [`Value::authorizer`], over the host's
//!   [`Authorizer`].
//! * Objects whose fields are computed on demand, such as `variables` of a policy, are
//!   [`Type::object`] and [`Value::Host`] over the host's [`HostObject`].
//!
//! # Layers
//! Each module uses only modules above it in this list.
//!
//! | Modules | Content |
//! |---|---|
//! | `error`, `types`, `go`, `names` | errors, types, Go's text forms, rules for names |
//! | `value`, `bindings`, `budget` | what is computed, from what, and for how much |
//! | `patch_types` | the types of the values of mutating policies |
//! | `ast`, `parse`, `escape` | text to syntax trees |
//! | `library`, `functions`, `declarations` | functions: what they do, and their signatures |
//! | `check` | syntax trees to checked trees |
//! | `plan`, `evaluate`, `planner` | the form that is evaluated, evaluation, and how plans are made |
//! | `cost`, `program`, `environment` | estimates; the public types |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod ast;
mod bindings;
mod budget;
mod check;
mod cost;
mod declarations;
mod environment;
mod error;
mod escape;
mod evaluate;
mod functions;
pub mod go;
mod library;
pub mod names;
mod parse;
mod patch_types;
mod plan;
mod planner;
mod program;
mod types;
mod value;

pub use bindings::Bindings;
pub use budget::{Budget, EXPRESSION_COST_LIMIT, MATCH_CONDITIONS_COST_LIMIT, REQUEST_COST_LIMIT};
pub use cost::{CostEstimate, SizeEstimate, SizeEstimator, UnknownSizes};
pub use environment::Environment;
pub use error::{CompileError, CompileErrors, EvaluationError};
pub use escape::escape_field_name;
pub use program::Program;
pub use types::{ObjectType, Type};
pub use value::authorization::{AuthorizationAttributes, AuthorizationDecision, Authorizer};
pub use value::opaque::Opaque;
pub use value::{HostObject, ListKind, ListValue, MapKey, MapValue, Value};
