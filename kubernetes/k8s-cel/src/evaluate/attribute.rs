//! Attributes: from a variable over fields, keys and indices to a value.
use std::sync::Arc;

use super::{EvaluationResult, Evaluator};
use crate::plan::{Attribute, AttributeRoot, Qualifier, QualifierKey};
use crate::value::{MapKey, display_text};
use crate::{EvaluationError, Value};

impl<'a> Evaluator<'a> {
    /// The value of an attribute. The attribute itself is not charged for, its qualifiers are.
    ///
    /// Upstream: github.com/google/cel-go/interpreter/attributes.go: absoluteAttribute
    /// Upstream: github.com/google/cel-go/interpreter/attributes.go: conditionalAttribute
    /// Upstream: github.com/google/cel-go/interpreter/attributes.go: relativeAttribute
    /// Upstream: github.com/google/cel-go/interpreter/attributes.go: applyQualifiers
    pub(super) fn resolve(&mut self, attribute: &'a Attribute) -> EvaluationResult {
        let start = match &attribute.root {
            AttributeRoot::Variable(name) => self.variable(name)?,
            AttributeRoot::Computed(plan) => self.run(plan)?,
            AttributeRoot::Conditional(condition, truthy, falsy) => {
                return match self.run(condition)? {
                    Value::Bool(true) => self.resolve(truthy),
                    Value::Bool(false) => self.resolve(falsy),
                    _ => Err(EvaluationError::no_such_overload()),
                };
            }
        };
        let (mut value, mut optional) = match start {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) if !attribute.qualifiers.is_empty() => {
                ((*value).clone(), true)
            }
            other => (other, false),
        };
        for qualifier in &attribute.qualifiers {
            optional |= qualifier.optional;
            match self.qualify(qualifier, &value, optional)? {
                Some(next) => value = next,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::Optional(Some(Arc::new(value))) } else { value })
    }

    /// The value that a qualifier selects; nothing if it is optional and selects none.
    fn qualify(
        &mut self,
        qualifier: &'a Qualifier,
        value: &Value,
        optional: bool,
    ) -> Result<Option<Value>, EvaluationError> {
        let found = match &qualifier.key {
            QualifierKey::Constant(key) => find(value, key),
            QualifierKey::Computed(attribute) => {
                self.resolve(attribute).and_then(|key| find(value, &key))
            }
        };
        if found == Err(EvaluationError::CostLimit) {
            return found;
        }
        if qualifier.test && !optional {
            self.charge(1)?;
            return found.map(|found| Some(Value::Bool(found.is_some())));
        }
        if optional {
            let found = found?;
            if found.is_some() {
                self.charge(1)?;
            }
            return Ok(found);
        }
        self.charge(1)?;
        match found? {
            Some(found) => Ok(Some(found)),
            None => Err(self.missing(qualifier, value)),
        }
    }

    fn missing(&mut self, qualifier: &'a Qualifier, value: &Value) -> EvaluationError {
        let before = self.cost;
        let key = match &qualifier.key {
            QualifierKey::Constant(key) => key.clone(),
            QualifierKey::Computed(attribute) => self.resolve(attribute).unwrap_or(Value::Null),
        };
        self.cost = before;
        let shown = display_text(&key);
        match value {
            Value::List(_) => EvaluationError::new(format!("index out of bounds: {shown}")),
            _ => EvaluationError::no_such_key(shown),
        }
    }

    /// The value of a variable: of a comprehension, or of the bindings.
    fn variable(&mut self, name: &str) -> EvaluationResult {
        let plain = name.strip_prefix('.');
        if plain.is_none() {
            for index in (0..self.scopes.len()).rev() {
                let scope = &self.scopes[index];
                if scope.comprehension.accumulator == name {
                    return self.accumulator(index);
                }
                if scope.finished {
                    continue;
                }
                if scope.comprehension.variable == name {
                    return Ok(scope.first.clone());
                }
                if scope.comprehension.second.as_deref() == Some(name) {
                    return Ok(scope.second.clone());
                }
            }
        }
        let name = plain.unwrap_or(name);
        match self.bindings.find(name) {
            Some(value) => Ok(value.clone()),
            None => Err(EvaluationError::new(format!("no such attribute(s): {name}"))),
        }
    }

    fn accumulator(&mut self, index: usize) -> EvaluationResult {
        if let Some(value) = &self.scopes[index].accumulator {
            return value.clone();
        }
        // The start value does not see the comprehension's variables.
        let comprehension = self.scopes[index].comprehension;
        let mut inner = self.scopes.split_off(index);
        let value = self.run(&comprehension.start);
        inner[0].accumulator = Some(value.clone());
        self.scopes.append(&mut inner);
        value
    }
}

/// What a value has at a key.
///
/// Upstream: github.com/google/cel-go/interpreter/attributes.go: refQualify
fn find(value: &Value, key: &Value) -> Result<Option<Value>, EvaluationError> {
    match value {
        Value::Map(map) => Ok(map.find(key).cloned()),
        Value::List(list) => {
            let index = match key {
                Value::Int(index) => usize::try_from(*index).ok(),
                Value::Uint(index) => usize::try_from(*index).ok(),
                Value::Double(index) if index.fract() == 0.0 => {
                    (*index >= 0.0).then_some(*index as usize)
                }
                Value::Double(index) => {
                    let message = format!("unsupported index value {index} in list");
                    return Err(EvaluationError::new(message));
                }
                other => {
                    let of = other.type_name();
                    let message = format!("unsupported index type '{of}' in list");
                    return Err(EvaluationError::new(message));
                }
            };
            Ok(index.and_then(|index| list.items.get(index)).cloned())
        }
        Value::Host(object) => match MapKey::from_value(key) {
            Some(MapKey::String(name)) => object.field(&name).transpose(),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}
