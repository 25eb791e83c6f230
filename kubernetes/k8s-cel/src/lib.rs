//! The Common Expression Language as Kubernetes evaluates it, as pure functions.
//!
//! # How it is used
//! An [`Environment`] declares variables with [`Type`]s; [`Environment::compile`] checks an
//! expression and returns a [`Program`] with a [`Program::result_type`]. [`Program::evaluate`]
//! takes [`Bindings`] (a [`Value`] per variable) and a [`Budget`]: it returns a [`Value`], and what
//! it costs is taken off the budget. Costs are those that cel-go tracks with Kubernetes' estimators,
//! so that what is too expensive for kube-apiserver is too expensive here.
//! [`Program::estimate_cost`] bounds the cost before, from a [`SizeEstimator`].
//!
//! * Errors of compilation print as kube-apiserver reports them: [`CompileErrors`] lists
//!   `ERROR: <input>:1:1: ...` with the source line and a caret.
//! * Objects of no known schema are [`Type::Dyn`] and [`Value::from_json`].
//! * `authorizer` is [`Type::authorizer`] and [`Value::authorizer`], over the host's
//!   [`Authorizer`].
//! * Objects whose fields are computed on demand, such as `variables` of a policy, are
//!   [`Type::object`] and [`Value::Host`] over the host's [`HostObject`].

mod ast;
mod check;
mod cost;
mod environment;
mod error;
mod escape;
mod evaluate;
mod functions;
mod library;
mod parse;
mod plan;
mod program;
pub mod regexp;
mod types;
mod value;
mod verdicts;

pub use cost::{CostEstimate, SizeEstimate, SizeEstimator, UnknownSizes};
pub use environment::Environment;
pub use error::{CompileError, CompileErrors, EvaluationError};
pub use escape::escape_field_name;
pub use library::Opaque;
pub use library::authorizer::{AuthorizationDecision, AuthorizationQuestion, Authorizer};
pub use program::{
    Bindings, Budget, EXPRESSION_COST_LIMIT, MATCH_CONDITIONS_COST_LIMIT, Program,
    REQUEST_COST_LIMIT,
};
pub use types::{ObjectType, Type};
pub use value::{HostObject, ListKind, ListValue, MapKey, MapValue, Value};
