//! Checked trees to plans: selections become attributes, constants are computed once.
//!
//! What is computed here costs nothing when the plan is run, so constants have to be found where
//! cel-go's planner finds them.
//!
//! Upstream: github.com/google/cel-go/interpreter/planner.go: Plan
//! Upstream: github.com/google/cel-go/interpreter/decorators.go: decOptimize
use crate::ast::{Call, Comprehension, Expr, ExprKind, operator};
use crate::check::Checked;
use crate::evaluate;
use crate::library::pattern;
use crate::plan::{
    Attribute, AttributeRoot, CallPlan, ComprehensionPlan, Plan, Qualifier, QualifierKey,
};
use crate::{EvaluationError, Value};

/// Plans a checked expression.
///
/// # Errors
/// When a constant part of it fails.
pub(crate) fn plan(checked: &Checked) -> Result<Plan, EvaluationError> {
    Planner { checked }.expression(&checked.root)
}

struct Planner<'a> {
    checked: &'a Checked,
}

impl Planner<'_> {
    fn expression(&self, expr: &Expr) -> Result<Plan, EvaluationError> {
        Ok(match &expr.kind {
            ExprKind::Unspecified => Plan::Constant(Value::Null),
            ExprKind::Literal(value) => Plan::Constant(value.clone()),
            ExprKind::Ident(name) => match self.checked.type_names.get(&expr.id) {
                Some(of) => Plan::Constant(Value::Type(of.clone())),
                None => Plan::Attribute(Box::new(Attribute {
                    root: AttributeRoot::Variable(name.clone()),
                    qualifiers: Vec::new(),
                    test_only: false,
                })),
            },
            ExprKind::Select(select) => {
                let mut attribute = into_attribute(self.expression(&select.operand)?);
                let key = QualifierKey::Constant(Value::from(select.field.as_str()));
                attribute.add(&Qualifier { key, optional: false, test: select.test_only });
                attribute.test_only |= select.test_only;
                Plan::Attribute(Box::new(attribute))
            }
            ExprKind::Call(call) => self.call(expr, call)?,
            ExprKind::List(items) => {
                let items = items
                    .iter()
                    .map(|item| Ok((self.expression(&item.value)?, item.optional)))
                    .collect::<Result<Vec<_>, EvaluationError>>()?;
                let constant = items.iter().all(|(item, _)| matches!(item, Plan::Constant(_)));
                folded(Plan::List(items), constant)?
            }
            ExprKind::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|entry| {
                        let key = self.expression(&entry.key)?;
                        Ok((key, self.expression(&entry.value)?, entry.optional))
                    })
                    .collect::<Result<Vec<_>, EvaluationError>>()?;
                let is_constant = |plan: &Plan| matches!(plan, Plan::Constant(_));
                let constant =
                    entries.iter().all(|(key, value, _)| is_constant(key) && is_constant(value));
                folded(Plan::Map(entries), constant)?
            }
            ExprKind::Struct(object) => {
                let fields = object
                    .fields
                    .iter()
                    .map(|field| {
                        Ok((field.name.clone(), self.expression(&field.value)?, field.optional))
                    })
                    .collect::<Result<Vec<_>, EvaluationError>>()?;
                Plan::Object(object.name.clone(), fields)
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension)?,
        })
    }

    fn comprehension(&self, comprehension: &Comprehension) -> Result<Plan, EvaluationError> {
        Ok(Plan::Comprehension(Box::new(ComprehensionPlan {
            range: self.expression(&comprehension.range)?,
            variable: comprehension.variable.clone(),
            second: comprehension.second.clone(),
            accumulator: comprehension.accumulator.clone(),
            start: self.expression(&comprehension.start)?,
            condition: self.expression(&comprehension.condition)?,
            step: self.expression(&comprehension.step)?,
            result: self.expression(&comprehension.result)?,
        })))
    }

    fn call(&self, expr: &Expr, call: &Call) -> Result<Plan, EvaluationError> {
        let mut arguments = call
            .target
            .iter()
            .chain(&call.arguments)
            .map(|argument| self.expression(argument))
            .collect::<Result<Vec<Plan>, EvaluationError>>()?;
        let overload = match self.checked.overloads.get(&expr.id).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            Some(_) | None => None,
        };
        let pair = |arguments: &mut Vec<Plan>| {
            let second = arguments.pop().unwrap_or(Plan::Constant(Value::Null));
            let first = arguments.pop().unwrap_or(Plan::Constant(Value::Null));
            Box::new([first, second])
        };
        Ok(match call.function.as_str() {
            operator::AND => Plan::And(pair(&mut arguments)),
            operator::OR => Plan::Or(pair(&mut arguments)),
            "or" if call.target.is_some() => Plan::OptionalOr(pair(&mut arguments), false),
            "orValue" if call.target.is_some() => Plan::OptionalOr(pair(&mut arguments), true),
            operator::CONDITIONAL => {
                let [truthy, falsy] = *pair(&mut arguments);
                let condition = arguments.pop().unwrap_or(Plan::Constant(Value::Null));
                let root = AttributeRoot::Conditional(
                    condition,
                    Box::new(into_branch(truthy)),
                    Box::new(into_branch(falsy)),
                );
                Plan::Attribute(Box::new(Attribute {
                    root,
                    qualifiers: Vec::new(),
                    test_only: false,
                }))
            }
            operator::INDEX | operator::OPTIONAL_INDEX | operator::OPTIONAL_SELECT => {
                let [operand, index] = *pair(&mut arguments);
                let key = match index {
                    Plan::Constant(value) => QualifierKey::Constant(value),
                    other => QualifierKey::Computed(into_attribute(other)),
                };
                let optional = call.function != operator::INDEX;
                let mut attribute = into_attribute(operand);
                attribute.add(&Qualifier { key, optional, test: false });
                Plan::Attribute(Box::new(attribute))
            }
            operator::IN if overload == Some("in_list") => {
                let [value, list] = *pair(&mut arguments);
                return Ok(set_membership(value, list));
            }
            _ => {
                let pattern = constant_pattern(&call.function, &arguments)?;
                let converts = is_conversion(&call.function)
                    && matches!(arguments.as_slice(), [Plan::Constant(_)]);
                let function = call.function.clone();
                let call = CallPlan { function, overload, arguments, pattern };
                folded(Plan::Call(Box::new(call)), converts)?
            }
        })
    }
}

fn into_attribute(plan: Plan) -> Attribute {
    match plan {
        Plan::Attribute(attribute) => *attribute,
        other => Attribute {
            root: AttributeRoot::Computed(other),
            qualifiers: Vec::new(),
            test_only: false,
        },
    }
}

/// A branch of a choice: asking whether a step is possible is what its last step does already.
fn into_branch(plan: Plan) -> Attribute {
    Attribute { test_only: false, ..into_attribute(plan) }
}

fn folded(plan: Plan, constant: bool) -> Result<Plan, EvaluationError> {
    if constant { evaluate::constant(&plan).map(Plan::Constant) } else { Ok(plan) }
}

/// `value in list`, which is cheap if the list is constant and plain.
///
/// Upstream: github.com/google/cel-go/interpreter/decorators.go: maybeOptimizeSetMembership
fn set_membership(value: Plan, list: Plan) -> Plan {
    if let Plan::Constant(Value::List(items)) = &list {
        let is_plain = |item: &Value| {
            matches!(
                item,
                Value::Bool(_)
                    | Value::Int(_)
                    | Value::Uint(_)
                    | Value::Double(_)
                    | Value::String(_)
            )
        };
        if items.items.is_empty() {
            return Plan::Constant(Value::Bool(false));
        }
        if items.items.iter().all(is_plain) {
            return Plan::SetMembership(Box::new(value), items.items.clone().into());
        }
    }
    Plan::Call(Box::new(CallPlan {
        function: operator::IN.to_owned(),
        overload: Some("in_list"),
        arguments: vec![value, list],
        pattern: None,
    }))
}

// Upstream: github.com/google/cel-go/interpreter/optimizations.go: MatchesRegexOptimization
// Upstream: k8s.io/apiserver/pkg/cel/library/regex.go: FindRegexOptimization
fn constant_pattern(
    function: &str,
    arguments: &[Plan],
) -> Result<Option<pattern::ConstantPattern>, EvaluationError> {
    match (function, arguments) {
        ("matches" | "find" | "findAll", [_, Plan::Constant(Value::String(text)), ..]) => {
            pattern::ConstantPattern::new(text).map(Some).map_err(EvaluationError::Failed)
        }
        _ => Ok(None),
    }
}

// Upstream: github.com/google/cel-go/interpreter/decorators.go: maybeOptimizeConstUnary
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}
