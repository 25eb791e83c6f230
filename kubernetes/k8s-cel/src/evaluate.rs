//! The evaluator: runs plans and counts what they cost.
//!
//! The cost is what cel-go's tracker counts: one for each variable and each qualifier of an attribute, 10,
//! 30 and 40 for each list, map and object that is made, and for calls what [`cost`] says.
//!
//! Upstream: github.com/google/cel-go/interpreter/interpretable.go: InterpretableV2
//! Upstream: github.com/google/cel-go/interpreter/runtimecost.go: CostTracker
mod attribute;
mod cost;
#[cfg(test)]
mod tests;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{ACCUMULATOR, operator};
use crate::bindings::Bindings;
use crate::budget::EXPRESSION_COST_LIMIT;
use crate::library::{self, pattern::ConstantPattern};
use crate::patch_types;
use crate::plan::{AttributeRoot, CallPlan, ComprehensionPlan, Plan};
use crate::value::{EvaluationResult, MapKey, MapValue, display_text, equal};
use crate::{EvaluationError, Value};

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const OBJECT_COST: u64 = 40;

/// The value of a plan and what it cost.
pub(crate) fn run(plan: &Plan, bindings: &Bindings) -> (EvaluationResult, u64) {
    let mut evaluator = Evaluator { bindings, scopes: Vec::new(), cost: 0, work: 0 };
    let outcome = evaluator.run(plan);
    (outcome, evaluator.cost)
}

/// The value of a plan without variables.
pub(crate) fn constant(plan: &Plan) -> EvaluationResult {
    run(plan, &Bindings::new()).0
}

struct Evaluator<'a> {
    bindings: &'a Bindings,
    /// The comprehensions around the current step, innermost last.
    scopes: Vec<Scope<'a>>,
    cost: u64,
    /// What calls did beyond their cost.
    work: u64,
}

/// The variables of a running comprehension.
struct Scope<'a> {
    comprehension: &'a ComprehensionPlan,
    /// Computed when it is first read; absent before.
    accumulator: Option<EvaluationResult>,
    first: Value,
    second: Value,
    /// Whether the result is being computed, which does not see the range's variables.
    finished: bool,
}

impl<'a> Evaluator<'a> {
    /// Counts a cost.
    fn charge(&mut self, cost: u64) -> Result<(), EvaluationError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > EXPRESSION_COST_LIMIT { Err(EvaluationError::CostLimit) } else { Ok(()) }
    }

    fn run(&mut self, plan: &'a Plan) -> EvaluationResult {
        match plan {
            Plan::Constant(value) => Ok(value.clone()),
            Plan::Attribute(attribute) => self.attribute_value(attribute),
            Plan::And(terms) => self.logic(terms, false),
            Plan::Or(terms) => self.logic(terms, true),
            Plan::Call(call) => self.call(call),
            Plan::OptionalOr(terms, unwraps) => self.optional_or(terms, *unwraps),
            Plan::SetMembership(value, list) => {
                let value = self.run(value)?;
                Ok(Value::Bool(list.iter().any(|item| equal(item, &value))))
            }
            Plan::List(items) => self.list(items),
            Plan::Map(entries) => self.map(entries),
            Plan::Object(name, fields) => self.object(name, fields),
            Plan::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn attribute_value(&mut self, attribute: &'a crate::plan::Attribute) -> EvaluationResult {
        let outcome = self.resolve(attribute);
        if matches!(outcome, Err(EvaluationError::CostLimit)) {
            return outcome;
        }
        if !matches!(attribute.root, AttributeRoot::Conditional(..)) && !attribute.test_only {
            self.charge(1)?;
        }
        match outcome {
            Ok(Value::Optional(value)) if attribute.test_only => Ok(Value::Bool(value.is_some())),
            other => other,
        }
    }

    /// `&&` and `||`: what decides alone hides the error of the other side.
    ///
    /// Upstream: github.com/google/cel-go/interpreter/interpretable.go: evalOr
    fn logic(&mut self, terms: &'a [Plan; 2], decides: bool) -> EvaluationResult {
        let mut error = None;
        for term in terms {
            let failed = match self.run(term) {
                Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => continue,
                Err(EvaluationError::CostLimit) => return Err(EvaluationError::CostLimit),
                Ok(_) => EvaluationError::no_such_overload(),
                Err(failed) => failed,
            };
            error.get_or_insert(failed);
        }
        error.map_or(Ok(Value::Bool(!decides)), Err)
    }

    // Upstream: github.com/google/cel-go/cel/library.go: evalOptionalOr
    fn optional_or(&mut self, terms: &'a [Plan; 2], unwraps: bool) -> EvaluationResult {
        match self.run(&terms[0])? {
            Value::Optional(Some(value)) if unwraps => Ok((*value).clone()),
            Value::Optional(Some(value)) => Ok(Value::Optional(Some(value))),
            Value::Optional(None) => self.run(&terms[1]),
            _ => Err(EvaluationError::no_such_overload()),
        }
    }

    fn list(&mut self, items: &'a [(Plan, bool)]) -> EvaluationResult {
        let mut values = Vec::with_capacity(items.len());
        let built = self.items(items, &mut values);
        self.charge_aggregate(built, LIST_COST)?;
        Ok(Value::list(values))
    }

    fn items(
        &mut self,
        items: &'a [(Plan, bool)],
        values: &mut Vec<Value>,
    ) -> Result<(), EvaluationError> {
        for (item, optional) in items {
            match self.run(item)? {
                value if !optional => values.push(value),
                Value::Optional(Some(value)) => values.push((*value).clone()),
                Value::Optional(None) => {}
                other => {
                    let message = format!(
                        "cannot initialize optional list element from non-optional value {}",
                        display_text(&other)
                    );
                    return Err(EvaluationError::new(message));
                }
            }
        }
        Ok(())
    }

    /// Charges for a container, whether making it failed or not.
    fn charge_aggregate(
        &mut self,
        outcome: Result<(), EvaluationError>,
        cost: u64,
    ) -> Result<(), EvaluationError> {
        if outcome != Err(EvaluationError::CostLimit) {
            self.charge(cost)?;
        }
        outcome
    }

    fn map(&mut self, entries: &'a [(Plan, Plan, bool)]) -> EvaluationResult {
        let mut values = BTreeMap::new();
        let built = self.entries(entries, &mut values);
        self.charge_aggregate(built, MAP_COST)?;
        Ok(Value::Map(Arc::new(MapValue { entries: values, object: None })))
    }

    fn entries(
        &mut self,
        entries: &'a [(Plan, Plan, bool)],
        values: &mut BTreeMap<MapKey, Value>,
    ) -> Result<(), EvaluationError> {
        for (key, value, optional) in entries {
            let key = self.run(key)?;
            let value = self.run(value)?;
            let Some(map_key) = MapKey::from_value(&key) else {
                let message = format!("unsupported key type: {}", key.type_name());
                return Err(EvaluationError::new(message));
            };
            match value {
                value if !optional => values.insert(map_key, value),
                Value::Optional(Some(value)) => values.insert(map_key, (*value).clone()),
                Value::Optional(None) => values.remove(&map_key),
                other => {
                    let message = format!(
                        "cannot initialize optional entry '{map_key}' from non-optional value {}",
                        display_text(&other)
                    );
                    return Err(EvaluationError::new(message));
                }
            };
        }
        Ok(())
    }

    fn object(&mut self, name: &str, fields: &'a [(String, Plan, bool)]) -> EvaluationResult {
        let mut values = Vec::new();
        let mut built = Ok(());
        for (field, plan, optional) in fields {
            match self.run(plan) {
                Ok(value) if !optional => values.push((field.clone(), value)),
                Ok(Value::Optional(Some(value))) => values.push((field.clone(), (*value).clone())),
                Ok(_) => {}
                Err(error) => {
                    built = Err(error);
                    break;
                }
            }
        }
        self.charge_aggregate(built, OBJECT_COST)?;
        patch_types::check_fields(name, &values)?;
        Ok(Value::object(name, values))
    }

    fn call(&mut self, call: &'a CallPlan) -> EvaluationResult {
        if call.function == operator::NOT_STRICTLY_FALSE {
            let value = self.run(&call.arguments[0]);
            if let Err(EvaluationError::CostLimit) = value {
                return value;
            }
            self.charge(1)?;
            return Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))));
        }
        let in_place = self.extends_accumulator(call);
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let mut error = None;
        for (index, plan) in call.arguments.iter().enumerate() {
            match self.run(plan) {
                // The scope keeps the only copy, which can be changed then.
                Ok(_) if in_place && index == 0 => arguments.push(Value::Null),
                Ok(value) => arguments.push(value),
                Err(EvaluationError::CostLimit) => return Err(EvaluationError::CostLimit),
                Err(failed) => {
                    // Calls of more than two arguments stop at the first error, uncounted.
                    if call.arguments.len() > 2 {
                        return Err(failed);
                    }
                    error.get_or_insert(failed);
                    arguments.push(Value::Null);
                }
            }
        }
        if let Some(error) = error {
            self.charge(cost::of_call(call, &arguments, None))?;
            return Err(error);
        }
        if in_place && let Some(scope) = self.scopes.last_mut() {
            arguments[0] = scope.accumulator.take().unwrap_or(Ok(Value::Null))?;
            let (extended, cost) = library::collection::extend(arguments);
            self.charge(cost)?;
            return extended;
        }
        self.work = self.work.saturating_add(work::of_call(&call.function, &arguments));
        if self.work > work::WORK_MAX {
            return Err(EvaluationError::CostLimit);
        }
        let pattern = call.pattern.as_ref().and_then(ConstantPattern::regex);
        let outcome = library::call(&call.function, &arguments, pattern);
        self.charge(cost::of_call(call, &arguments, outcome.as_ref().ok()))?;
        outcome
    }

    /// Whether this is `@result + [item]` or the same for maps, in the innermost comprehension:
    /// the accumulator's old value is not needed again.
    fn extends_accumulator(&self, call: &CallPlan) -> bool {
        let extends = call.overload == Some("add_list") || call.function == operator::MAP_INSERT;
        let scope = self.scopes.last().map(|scope| scope.comprehension.accumulator.as_str());
        extends && scope == Some(ACCUMULATOR) && call.arguments.first().is_some_and(is_accumulator)
    }

    // Upstream: github.com/google/cel-go/interpreter/interpretable.go: evalFold
    fn comprehension(&mut self, comprehension: &'a ComprehensionPlan) -> EvaluationResult {
        let range = self.run(&comprehension.range)?;
        let scope = Scope {
            comprehension,
            accumulator: None,
            first: Value::Null,
            second: Value::Null,
            finished: false,
        };
        self.scopes.push(scope);
        let depth = self.scopes.len();
        let outcome = self.iterate(comprehension, &range);
        self.scopes.truncate(depth - 1);
        outcome
    }

    fn iterate(&mut self, comprehension: &'a ComprehensionPlan, range: &Value) -> EvaluationResult {
        match range {
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    let (first, second) = match &comprehension.second {
                        Some(_) => (Value::Int(index as i64), item.clone()),
                        None => (item.clone(), Value::Null),
                    };
                    if !self.iteration(comprehension, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in &map.entries {
                    if !self.iteration(comprehension, key.value(), value.clone())? {
                        break;
                    }
                }
            }
            other => {
                let message = format!("got '{}', expected iterable type", other.type_name());
                return Err(EvaluationError::new(message));
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.finished = true;
        }
        self.run(&comprehension.result)
    }

    /// Whether the next entry is to be looked at.
    fn iteration(
        &mut self,
        comprehension: &'a ComprehensionPlan,
        first: Value,
        second: Value,
    ) -> Result<bool, EvaluationError> {
        if let Some(scope) = self.scopes.last_mut() {
            (scope.first, scope.second) = (first, second);
        }
        match self.run(&comprehension.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(EvaluationError::CostLimit) => return Err(EvaluationError::CostLimit),
            Ok(_) | Err(_) => {}
        }
        let next = self.run(&comprehension.step);
        if let Err(EvaluationError::CostLimit) = next {
            return Err(EvaluationError::CostLimit);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.accumulator = Some(next);
        }
        Ok(true)
    }
}

fn is_accumulator(plan: &Plan) -> bool {
    matches!(plan, Plan::Attribute(attribute) if attribute.qualifiers.is_empty()
        && matches!(&attribute.root, AttributeRoot::Variable(name) if name == ACCUMULATOR))
}
