//! The rules of a CRD that is written: do they compile, and can objects afford them?
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionOpenAPISchema
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/cel_validation.go: CELSchemaContext
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: getCostErrorMessage
use std::sync::Arc;

use serde_json::{Map, Value};

use super::compile::{self, Age, Rule};
use super::declare::{self, Declared, ListType, bound, list_type, text};
use super::path;
use crate::{FieldError, FieldErrorKind};
use k8s_cel::escape_field_name;

/// Most that one rule may cost on one object.
const RULE_COST_LIMIT: u64 = 10_000_000;
/// Most that all rules of a version may cost on one object.
const DEFINITION_COST_LIMIT: u64 = 100_000_000;
/// How many of the most expensive rules an error names.
const EXPENSIVE_MAX: usize = 4;
const REASONS: [&str; 4] =
    ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];

/// What is wrong with the rules of a CRD version's `openAPIV3Schema`, which lies at `path`. The
/// schema itself is expected to be structural.
pub fn check_definition(open_api_v3_schema: &Value, path: &str) -> Vec<FieldError> {
    if !declare::has_rules(open_api_v3_schema) {
        return Vec::new();
    }
    let mut checker = Checker { errors: Vec::new(), total: 0, expensive: Vec::new() };
    let context = Context {
        path: path.to_owned(),
        cardinality: Some(1),
        declared: declare::declare(open_api_v3_schema, true, "selfType"),
        uncorrelatable: None,
    };
    checker.node(open_api_v3_schema, &context);
    checker.total_cost(path);
    checker.errors
}

/// What is known of a place from those above it.
struct Context {
    path: String,
    /// How often data can be here in one object; nothing if there is no bound.
    cardinality: Option<u64>,
    declared: Option<Arc<Declared>>,
    /// The place above whose data cannot be compared with what it was before.
    uncorrelatable: Option<String>,
}

struct Checker {
    errors: Vec<FieldError>,
    total: u64,
    /// The most expensive rules, the worst first.
    expensive: Vec<(String, u64)>,
}

impl Checker {
    /// Whether the rules at a place and below it are well-formed.
    fn node(&mut self, schema: &Value, context: &Context) -> bool {
        let Some(schema_map) = schema.as_object() else { return true };
        let cardinality =
            context.cardinality.and_then(|count| Some(count.saturating_mul(elements(schema_map)?)));
        let element = context.declared.as_ref().and_then(|of| of.element.clone());
        let mut well_formed = true;
        if let Some(values) = schema_map.get("additionalProperties").filter(|of| of.is_object()) {
            let below = Context {
                path: child(&context.path, "additionalProperties"),
                cardinality,
                declared: element.clone(),
                uncorrelatable: context.uncorrelatable.clone(),
            };
            well_formed &= self.node(values, &below);
        }
        let properties = schema_map.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let known = context.declared.as_ref();
            let declared = escape_field_name(name)
                .and_then(|escaped| Some(known?.fields.get(&escaped)?.declared.clone()))
                .or_else(|| declare::declare(property, declare::is_embedded(property), "selfType"));
            let below = Context {
                path: child(&context.path, &format!("properties[{name}]")),
                cardinality,
                declared,
                uncorrelatable: context.uncorrelatable.clone(),
            };
            well_formed &= self.node(property, &below);
        }
        if let Some(items) = schema_map.get("items") {
            let correlates = matches!(list_type(schema_map), ListType::Map(_));
            let own = (!correlates).then(|| context.path.clone());
            let below = Context {
                path: child(&context.path, "items"),
                cardinality,
                declared: element,
                uncorrelatable: context.uncorrelatable.clone().or(own),
            };
            well_formed &= self.node(items, &below);
        }
        well_formed &= self.shape(schema, schema_map, context);
        if well_formed {
            self.rules(schema, schema_map, context);
        }
        well_formed
    }

    /// Whether the rules at a place are written as rules are.
    fn shape(&mut self, schema: &Value, own: &Map<String, Value>, context: &Context) -> bool {
        let before = self.errors.len();
        for (index, rule) in written(own).enumerate() {
            let at = |field: &str| {
                child(&context.path, &format!("x-kubernetes-validations[{index}].{field}"))
            };
            let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
            let mut report = |error: FieldError| self.errors.push(error);
            let required =
                |field, detail| FieldError::new(at(field), FieldErrorKind::Required, detail);
            let invalid = |field: &str, detail| {
                FieldError::new(at(field), FieldErrorKind::Invalid, detail)
                    .with_value(Value::from(text(rule, field)))
            };
            if source.is_empty() {
                report(required("rule", "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                report(invalid("message", "must be non-empty if specified"));
            } else if message.trim().contains('\n') {
                report(invalid("message", "must not contain line breaks"));
            } else if source.contains('\n') && message.trim().is_empty() {
                report(required(
                    "message",
                    "message must be specified if rule contains line breaks",
                ));
            }
            let expression = text(rule, "messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let detail = "messageExpression must be non-empty if specified";
                report(required("messageExpression", detail));
            }
            if let Some(reason) = rule.get("reason").and_then(Value::as_str)
                && !REASONS.contains(&reason)
            {
                let mut known = REASONS.map(|reason| format!("{reason:?}"));
                known.sort();
                let detail = format!("supported values: {}", known.join(", "));
                let kind = FieldErrorKind::NotSupported;
                report(FieldError::new(at("reason"), kind, detail).with_value(reason.into()));
            }
            let field_path = text(rule, "fieldPath");
            if !field_path.is_empty() {
                if field_path.trim().is_empty() {
                    report(invalid("fieldPath", "must be non-empty if specified"));
                }
                if field_path.contains('\n') {
                    report(invalid("fieldPath", "must not contain line breaks"));
                }
                if path::normalize(field_path, schema).is_none() {
                    report(invalid("fieldPath", "must be a valid path"));
                }
            }
        }
        self.errors.len() == before
    }

    fn rules(&mut self, schema: &Value, own: &Map<String, Value>, context: &Context) {
        if written(own).next().is_none() {
            return;
        }
        let Some(declared) = &context.declared else {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural schema to \
                          CEL declarations";
            let path = child(&context.path, "x-kubernetes-validations");
            self.errors.push(FieldError::new(path, FieldErrorKind::Internal, detail));
            return;
        };
        let compiled = compile::rules(own, schema, declared, Age::New);
        let count = context.cardinality.unwrap_or_else(|| declare::cardinality(declared));
        for (index, (rule, written)) in compiled.iter().zip(written(own)).enumerate() {
            let at = |field: &str| {
                child(&context.path, &format!("x-kubernetes-validations[{index}].{field}"))
            };
            self.rule(rule, written, context, count, &at);
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        written: &Map<String, Value>,
        context: &Context,
        count: u64,
        at: &dyn Fn(&str) -> String,
    ) {
        let cost = rule.cost.saturating_mul(count);
        self.cost(at("rule"), "estimated rule cost", cost);
        if let Some(Err(error)) = &rule.program {
            self.errors.push(about(at("rule"), written, error));
        }
        match &rule.message_program {
            Some(Err(error)) => self.errors.push(about(at("messageExpression"), written, error)),
            Some(Ok(_)) => self.cost(
                at("messageExpression"),
                "estimated messageExpression cost",
                rule.message_cost,
            ),
            None => {}
        }
        if rule.reads_old {
            if let Some(path) = &context.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {path}"
                );
                let error = FieldError::new(at("rule"), FieldErrorKind::Invalid, detail);
                self.errors.push(error.with_value(Value::from(rule.text.as_str())));
            }
        } else if let Some(value) = written.get("optionalOldSelf").filter(|of| of.is_boolean()) {
            let detail = "may not be set if oldSelf is not used in rule";
            let error = FieldError::new(at("optionalOldSelf"), FieldErrorKind::Invalid, detail);
            self.errors.push(error.with_value(value.clone()));
        }
    }

    fn cost(&mut self, path: String, what: &str, cost: u64) {
        if cost > RULE_COST_LIMIT {
            let detail = too_expensive(what, cost, RULE_COST_LIMIT);
            self.errors.push(FieldError::new(&path, FieldErrorKind::Forbidden, detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= DEFINITION_COST_LIMIT / 100 {
            self.expensive.push((path, cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(EXPENSIVE_MAX);
        }
    }

    fn total_cost(&mut self, root: &str) {
        if self.total <= DEFINITION_COST_LIMIT {
            return;
        }
        for (path, _) in std::mem::take(&mut self.expensive) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for \
                          entire OpenAPIv3 schema";
            self.errors.push(FieldError::new(path, FieldErrorKind::Forbidden, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_expensive(what, self.total, DEFINITION_COST_LIMIT);
        self.errors.push(FieldError::new(root, FieldErrorKind::Forbidden, detail));
    }
}

fn written(own: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let rules = own.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(Value::as_object)
}

/// How much more data a schema lets be below it; nothing if there is no bound.
fn elements(schema: &Map<String, Value>) -> Option<u64> {
    match text(schema, "type") {
        "object" if schema.get("additionalProperties").is_some() => bound(schema, "maxProperties"),
        "array" => bound(schema, "maxItems"),
        _ => Some(1),
    }
}

/// An error that shows the rule as Go's encoder writes it: fields in the order of the Go type.
fn about(path: String, written: &Map<String, Value>, error: &str) -> FieldError {
    let quoted = |key: &str| Value::from(text(written, key)).to_string();
    let or_null = |key: &str| written.get(key).map_or("null".to_owned(), Value::to_string);
    let detail = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}: {error}",
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        or_null("reason"),
        quoted("fieldPath"),
        or_null("optionalOldSelf"),
    );
    FieldError::new(path, FieldErrorKind::Invalid, detail)
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
