//! The rules that a CRD's schema states as expressions: `x-kubernetes-validations`.
//!
//! A CRD is checked once, when it is written: [`check_definition`]. Its rules are compiled when the
//! first object is checked and kept beside the schema: [`Expressions`].
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go: Validator
mod compile;
mod convert;
mod declare;
mod definition;
mod evaluate;
mod path;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::FieldError;
pub use definition::check_definition;

/// The rules of one version of a CRD.
#[derive(Clone, Debug)]
pub(crate) struct Expressions {
    schema: Arc<Value>,
    compiled: Arc<OnceLock<Option<compile::Node>>>,
}

/// What is wrong with an object by the rules of its CRD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleViolations {
    /// What is wrong with the object.
    pub errors: Vec<FieldError>,
    /// What is wrong with parts that this write did not change: it is accepted, with a warning.
    pub warnings: Vec<String>,
}

impl Expressions {
    /// The rules of a schema; nothing if it has none.
    pub(crate) fn of(open_api_v3_schema: &Value) -> Option<Self> {
        declare::has_rules(open_api_v3_schema).then(|| Self {
            schema: Arc::new(open_api_v3_schema.clone()),
            compiled: Arc::default(),
        })
    }

    /// Evaluates the rules on an object; `live` is the object before an update.
    pub(crate) fn evaluate(&self, object: &Value, live: Option<&Value>) -> RuleViolations {
        let compiled = self.compiled.get_or_init(|| compile::compile(&self.schema));
        match compiled {
            Some(root) => evaluate::evaluate(root, object, live),
            None => RuleViolations::default(),
        }
    }
}
