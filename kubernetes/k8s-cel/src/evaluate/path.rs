//! Paths: from a variable over fields, keys and indices to a value.
use std::sync::Arc;

use super::{Evaluator, Outcome};
use crate::plan::{Key, Path, Start, Step};
use crate::value::{MapKey, display_text};
use crate::{EvaluationError, Value};

impl<'a> Evaluator<'a> {
    /// Follows a path. The path itself is not charged for, its steps are.
    pub(super) fn resolve(&mut self, path: &'a Path) -> Outcome {
        let start = match &path.start {
            Start::Variable(name) => self.variable(name)?,
            Start::Value(plan) => self.run(plan)?,
            Start::Choice(condition, truthy, falsy) => {
                return match self.run(condition)? {
                    Value::Bool(true) => self.resolve(truthy),
                    Value::Bool(false) => self.resolve(falsy),
                    _ => Err(EvaluationError::no_such_overload()),
                };
            }
        };
        let (mut value, mut optional) = match start {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) if !path.steps.is_empty() => ((*value).clone(), true),
            other => (other, false),
        };
        for step in &path.steps {
            optional |= step.optional;
            match self.step(step, &value, optional)? {
                Some(next) => value = next,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::Optional(Some(Arc::new(value))) } else { value })
    }

    /// The value after a step; nothing if the step is optional and not possible.
    fn step(
        &mut self,
        step: &'a Step,
        value: &Value,
        optional: bool,
    ) -> Result<Option<Value>, EvaluationError> {
        let found = match &step.key {
            Key::Constant(key) => find(value, key),
            Key::Computed(path) => self.resolve(path).and_then(|key| find(value, &key)),
        };
        if found == Err(EvaluationError::CostLimit) {
            return found;
        }
        if step.test && !optional {
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
            None => Err(self.missing(step, value)),
        }
    }

    fn missing(&mut self, step: &'a Step, value: &Value) -> EvaluationError {
        let before = self.cost;
        let key = match &step.key {
            Key::Constant(key) => key.clone(),
            Key::Computed(path) => self.resolve(path).unwrap_or(Value::Null),
        };
        self.cost = before;
        let shown = display_text(&key);
        match value {
            Value::List(_) => EvaluationError::new(format!("index out of bounds: {shown}")),
            _ => EvaluationError::no_such_key(shown),
        }
    }

    /// The value of a variable: of a comprehension, or of the bindings.
    fn variable(&mut self, name: &str) -> Outcome {
        let plain = name.strip_prefix('.');
        if plain.is_none() {
            for index in (0..self.scopes.len()).rev() {
                let scope = &self.scopes[index];
                if scope.fold.accumulator == name {
                    return self.accumulator(index);
                }
                if scope.finished {
                    continue;
                }
                if scope.fold.variable == name {
                    return Ok(scope.first.clone());
                }
                if scope.fold.second.as_deref() == Some(name) {
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

    fn accumulator(&mut self, index: usize) -> Outcome {
        if let Some(value) = &self.scopes[index].accumulator {
            return value.clone();
        }
        // The start value does not see the comprehension's variables.
        let fold = self.scopes[index].fold;
        let mut inner = self.scopes.split_off(index);
        let value = self.run(&fold.start);
        inner[0].accumulator = Some(value.clone());
        self.scopes.append(&mut inner);
        value
    }
}

/// What a value has at a key.
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
