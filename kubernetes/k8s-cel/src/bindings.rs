//! The values that an expression is evaluated with.
//!
//! Upstream: github.com/google/cel-go/interpreter/activation.go: Activation
use std::collections::BTreeMap;

use crate::Value;

/// The values of an environment's variables.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    values: BTreeMap<String, Value>,
}

impl Bindings {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with the value of one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Sets the value of a variable.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// The value of a variable; nothing if it has none.
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}
