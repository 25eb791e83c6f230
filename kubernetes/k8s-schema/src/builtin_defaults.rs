//! Defaults that kube-apiserver has in code and its OpenAPI does not declare.
//!
//! They are rules of a data file, `data/defaults.txt`: a path and a value, or a path and the name of
//! a function where a default depends on other fields. What depends on the cluster (addresses of
//! services, names of nodes) is not here.

mod functions;
mod path;
mod rules;
#[cfg(test)]
mod tests;

use serde_json::Value;

/// Fills in the defaults of a built-in kind that its OpenAPI schema does not declare. Kinds
/// without any are left alone.
pub fn apply_builtin_defaults(group: &str, version: &str, kind: &str, value: &mut Value) {
    rules::apply(group, version, kind, value);
}
