//! Compiled rules on objects, with apiextensions' field errors.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go: validateExpressions
use k8s_cel::{Bindings, Budget, EvaluationError, Value as CelValue};
use serde_json::Value;

use super::RuleViolations;
use super::compile::{Node, Rule};
use super::convert;
use super::declare::{Declared, ListType};
use crate::{FieldError, FieldErrorKind};

/// Longest message that a `messageExpression` may make.
const MESSAGE_SIZE_MAX: usize = 5 * 1024;

/// Evaluates all rules on an object; `live` is the object before an update.
pub(super) fn evaluate(root: &Node, object: &Value, live: Option<&Value>) -> RuleViolations {
    let mut evaluator = RuleEvaluator {
        violations: RuleViolations::default(),
        budget: Budget::default(),
        stopped: false,
    };
    let at = EvaluationContext {
        path: String::new(),
        value: object,
        old: live,
        current: live,
        ancestor_unchanged: false,
        is_root: true,
    };
    evaluator.node(root, &at);
    evaluator.violations
}

/// A part of the object, and what it was before.
struct EvaluationContext<'a> {
    path: String,
    value: &'a Value,
    /// What `oldSelf` is.
    old: Option<&'a Value>,
    /// What the part is compared with to see whether it changed.
    current: Option<&'a Value>,
    /// Whether what surrounds the part is what it was before.
    ancestor_unchanged: bool,
    is_root: bool,
}

impl<'a> EvaluationContext<'a> {
    fn is_unchanged(&self) -> bool {
        match self.current {
            Some(current) => current == self.value,
            None => self.ancestor_unchanged,
        }
    }

    fn below(
        &self,
        path: String,
        value: &'a Value,
        old: Option<&'a Value>,
        current: Option<&'a Value>,
    ) -> Self {
        let ancestor_unchanged = self.is_unchanged();
        Self { path, value, old, current, ancestor_unchanged, is_root: false }
    }

    fn field_path(&self) -> String {
        if self.path.is_empty() { "<nil>".to_owned() } else { self.path.clone() }
    }
}

struct RuleEvaluator {
    violations: RuleViolations,
    budget: Budget,
    /// Whether no further rule is to be evaluated.
    stopped: bool,
}

impl RuleEvaluator {
    fn node(&mut self, node: &Node, at: &EvaluationContext<'_>) {
        if self.stopped || at.value.is_null() {
            return;
        }
        self.rules(node, at);
        for nested in &node.all_of {
            // Alternatives are not compared with what was before.
            let at = EvaluationContext { path: at.path.clone(), current: None, ..*at };
            self.node(nested, &at);
        }
        match at.value {
            Value::Array(items) => self.items(node, at, items),
            Value::Object(entries) => self.entries(node, at, entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn items(&mut self, node: &Node, at: &EvaluationContext<'_>, items: &[Value]) {
        let Some(rules) = &node.items else { return };
        for (index, item) in items.iter().enumerate() {
            let old = same_item(&node.list_type, at.old, item);
            let current = same_item(&node.list_type, at.current, item);
            let path = format!("{}[{index}]", at.path);
            self.node(rules, &at.below(path, item, old, current));
        }
    }

    fn entries(
        &mut self,
        node: &Node,
        at: &EvaluationContext<'_>,
        entries: &serde_json::Map<String, Value>,
    ) {
        for (key, value) in entries {
            let of =
                |object: Option<&'_ Value>| object.and_then(|object| object.get(key)).is_some();
            let old = if of(at.old) { at.old.and_then(|old| old.get(key)) } else { None };
            let hides_change = at.is_root && matches!(key.as_str(), "apiVersion" | "kind");
            let current = match at.current {
                Some(current) if !hides_change => current.get(key),
                Some(_) | None => None,
            };
            if let Some(rules) = &node.additional {
                let path = format!("{}[{key}]", at.path);
                self.node(rules, &at.below(path, value, old, current));
            }
            if let Some(rules) = node.properties.get(key) {
                let path =
                    if at.path.is_empty() { key.clone() } else { format!("{}.{key}", at.path) };
                self.node(rules, &at.below(path, value, old, current));
            }
        }
    }

    fn rules(&mut self, node: &Node, at: &EvaluationContext<'_>) {
        let (Some(declared), false) = (&node.declared, node.rules.is_empty()) else { return };
        if self.budget.remaining() == 0 {
            return self.stop(node, at, OUT_OF_BUDGET);
        }
        let (plain, optional) = bindings(declared, at);
        for rule in &node.rules {
            if self.stopped {
                return;
            }
            let bindings = if rule.optional_old { &optional } else { &plain };
            self.rule(node, at, rule, bindings, &plain);
        }
    }

    fn rule(
        &mut self,
        node: &Node,
        at: &EvaluationContext<'_>,
        rule: &Rule,
        bindings: &Bindings,
        message_bindings: &Bindings,
    ) {
        let program = match &rule.program {
            None => return,
            Some(Err(error)) => {
                return self.invalid(node, at, format!("rule compile error: {error}"));
            }
            Some(Ok(program)) => program,
        };
        if rule.reads_old && at.old.is_none() && !rule.optional_old {
            return;
        }
        let shown = if rule.message.is_empty() { &rule.text } else { &rule.message };
        let shown = shown.trim();
        match program.evaluate(bindings, &mut self.budget) {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => self.violated(node, at, rule, message_bindings),
            Err(EvaluationError::OutOfBudget) => self.stop(node, at, OUT_OF_BUDGET),
            Err(error @ EvaluationError::CostLimit) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {shown}"
                );
                self.stop(node, at, &detail);
            }
            Err(EvaluationError::Failed(error)) if error.starts_with("no such overload") => {
                self.invalid(
                    node,
                    at,
                    format!(
                        "'{error}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {shown}"
                    ),
                );
            }
            Err(EvaluationError::Failed(error)) => {
                self.invalid(node, at, format!("{error} evaluating rule: {shown}"));
            }
        }
    }

    fn violated(
        &mut self,
        node: &Node,
        at: &EvaluationContext<'_>,
        rule: &Rule,
        bindings: &Bindings,
    ) {
        let default = || {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.text.trim())
            } else {
                rule.message.trim().to_owned()
            }
        };
        let mut path = at.path.clone();
        if let Some(field) = &rule.field_path {
            if !path.is_empty() && !field.starts_with('[') {
                path.push('.');
            }
            path.push_str(field);
        }
        if path.is_empty() {
            path = "<nil>".to_owned();
        }
        let detail = match self.message(rule, bindings) {
            Ok(message) => message.unwrap_or_else(default),
            Err(reason) => {
                let error = FieldError::new(path, FieldErrorKind::Invalid, reason);
                let error = error.with_value(Value::from(node.type_name.as_str()));
                self.report(rule, at, error);
                self.stopped = true;
                return;
            }
        };
        let kind = match rule.reason.as_str() {
            "FieldValueForbidden" => FieldErrorKind::Forbidden,
            "FieldValueRequired" => FieldErrorKind::Required,
            "FieldValueDuplicate" => FieldErrorKind::Duplicate,
            _ => FieldErrorKind::Invalid,
        };
        let error = FieldError::new(path, kind, detail);
        let shows_value = !matches!(node.type_name.as_str(), "object" | "array");
        let error = if shows_value { error.with_value(at.value.clone()) } else { error };
        self.report(rule, at, error);
    }

    /// What the rule's `messageExpression` says, if it has one and it makes a message.
    ///
    /// # Errors
    /// When it costs too much, which ends the evaluation.
    fn message(&mut self, rule: &Rule, bindings: &Bindings) -> Result<Option<String>, String> {
        let Some(Ok(program)) = &rule.message_program else { return Ok(None) };
        match program.evaluate(bindings, &mut self.budget) {
            Ok(CelValue::String(text)) => {
                let text = text.trim();
                let usable =
                    !text.is_empty() && text.len() <= MESSAGE_SIZE_MAX && !text.contains('\n');
                Ok(usable.then(|| text.to_owned()))
            }
            Ok(_) | Err(EvaluationError::Failed(_)) => Ok(None),
            Err(EvaluationError::OutOfBudget) => Err("messageExpression evaluation failed due to \
                running out of cost budget, no further validation rules will be evaluator"
                .to_owned()),
            Err(EvaluationError::CostLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {:?}",
                program.source()
            )),
        }
    }

    /// Reports a violated rule: as a warning where nothing changed.
    fn report(&mut self, rule: &Rule, at: &EvaluationContext<'_>, error: FieldError) {
        if !rule.reads_old && at.is_unchanged() {
            self.violations.warnings.push(error.to_string());
        } else {
            self.violations.errors.push(error);
        }
    }

    fn invalid(&mut self, node: &Node, at: &EvaluationContext<'_>, detail: String) {
        let error = FieldError::new(at.field_path(), FieldErrorKind::Invalid, detail);
        self.violations.errors.push(error.with_value(Value::from(node.type_name.as_str())));
    }

    fn stop(&mut self, node: &Node, at: &EvaluationContext<'_>, detail: &str) {
        self.invalid(node, at, detail.to_owned());
        self.stopped = true;
    }
}

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be evaluator";

/// The item of a list that an item replaces; only lists that are maps have one.
///
/// Upstream: k8s.io/apiserver/pkg/cel/common/equality.go: correlateOldValueForChildAtNewIndex
fn same_item<'a>(list_type: &ListType, list: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    match list_type {
        ListType::Map(keys) => list?.as_array()?.iter().find(|other| same_key(other, item, keys)),
        ListType::Set | ListType::Atomic => None,
    }
}

/// `self` and `oldSelf`, the latter plain and as an optional.
fn bindings(declared: &Declared, at: &EvaluationContext<'_>) -> (Bindings, Bindings) {
    let base = Bindings::new().with("self", convert::value(at.value, declared));
    let old = at.old.filter(|old| !old.is_null()).map(|old| convert::value(old, declared));
    let optional = CelValue::Optional(old.clone().map(std::sync::Arc::new));
    let mut plain = base.clone();
    if let Some(old) = old {
        plain.set("oldSelf", old);
    }
    (plain, base.with("oldSelf", optional))
}

fn same_key(left: &Value, right: &Value, keys: &[String]) -> bool {
    keys.iter().all(|key| left.get(key) == right.get(key))
}
