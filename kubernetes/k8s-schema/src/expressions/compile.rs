//! Schemas to trees of compiled rules.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go: Compile
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_cel::{Environment, Program, Type};
use serde_json::{Map, Value};

use super::declare::{self, Declared, DeclaredSizes, ListType, text};
use super::path;
use k8s_cel::escape_field_name;

/// The rules at a place of a schema, and below it.
#[derive(Debug)]
pub(super) struct Node {
    /// The type that messages name.
    pub(super) type_name: String,
    pub(super) declared: Option<Arc<Declared>>,
    pub(super) rules: Vec<Rule>,
    pub(super) items: Option<Box<Node>>,
    pub(super) additional: Option<Box<Node>>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) all_of: Vec<Node>,
    pub(super) list_type: ListType,
}

/// A rule as written and as compiled.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) message: String,
    pub(super) reason: String,
    pub(super) optional_old: bool,
    pub(super) reads_old: bool,
    /// Nothing if the rule is blank.
    pub(super) program: Option<Result<Program, String>>,
    pub(super) message_program: Option<Result<Program, String>>,
    /// The place that errors name, below that of the rule.
    pub(super) field_path: Option<String>,
    pub(super) cost: u64,
    pub(super) message_cost: u64,
}

/// What kind of environment rules are compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Stored,
}

/// Compiles all rules of a stored schema.
pub(super) fn compile(schema: &Value) -> Option<Node> {
    let declared = declare::declare(schema, true, "self");
    node(schema, schema, declared)
}

/// The rules of `validations` on data of the type that `schema` declares; the two differ below
/// `allOf`.
fn node(validations: &Value, schema: &Value, declared: Option<Arc<Declared>>) -> Option<Node> {
    let own = validations.as_object()?;
    let types = schema.as_object()?;
    let element = declared.as_ref().and_then(|declared| declared.element.clone());
    let child = |key: &str| match (own.get(key), types.get(key)) {
        (Some(validations), Some(schema)) => {
            node(validations, schema, element.clone()).map(Box::new)
        }
        _ => None,
    };
    let rules = match &declared {
        Some(declared) => rules(own, schema, declared, Age::Stored),
        None => Vec::new(),
    };
    let all_of = own.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let found = Node {
        type_name: text(types, "type").to_owned(),
        rules,
        items: child("items"),
        additional: child("additionalProperties"),
        properties: properties(own, types, declared.as_deref()),
        all_of: all_of.filter_map(|nested| node(nested, schema, declared.clone())).collect(),
        list_type: declare::list_type(types),
        declared,
    };
    let is_empty = found.rules.is_empty()
        && found.items.is_none()
        && found.additional.is_none()
        && found.properties.is_empty()
        && found.all_of.is_empty();
    (!is_empty).then_some(found)
}

fn properties(
    own: &Map<String, Value>,
    types: &Map<String, Value>,
    declared: Option<&Declared>,
) -> BTreeMap<String, Node> {
    let mut found = BTreeMap::new();
    let (Some(own), Some(types)) = (
        own.get("properties").and_then(Value::as_object),
        types.get("properties").and_then(Value::as_object),
    ) else {
        return found;
    };
    for (name, validations) in own {
        let Some(schema) = types.get(name) else { continue };
        let of = match escape_field_name(name) {
            Some(escaped) => declared
                .and_then(|declared| declared.fields.get(&escaped))
                .map(|field| field.declared.clone()),
            None => declare::declare(schema, declare::is_embedded(schema), "self"),
        };
        let Some(of) = of else { continue };
        if let Some(node) = node(validations, schema, Some(of)) {
            found.insert(name.clone(), node);
        }
    }
    found
}

/// Compiles the rules at one place.
pub(super) fn rules(
    own: &Map<String, Value>,
    schema: &Value,
    declared: &Declared,
    age: Age,
) -> Vec<Rule> {
    let written = own.get("x-kubernetes-validations").and_then(Value::as_array);
    let Some(written) = written.filter(|written| !written.is_empty()) else { return Vec::new() };
    let base = || match age {
        Age::New => Environment::for_new_expressions(),
        Age::Stored => Environment::for_stored_expressions(),
    };
    let with_self = base().with_variable("self", declared.of.clone());
    let plain = with_self.clone().with_variable("oldSelf", declared.of.clone());
    let optional = with_self.with_variable("oldSelf", Type::optional(declared.of.clone()));
    written
        .iter()
        .filter_map(Value::as_object)
        .map(|written| {
            let optional_old = declare::flag(written, "optionalOldSelf");
            rule(written, schema, declared, if optional_old { &optional } else { &plain })
        })
        .collect()
}

fn rule(
    written: &Map<String, Value>,
    schema: &Value,
    declared: &Declared,
    environment: &Environment,
) -> Rule {
    let source = text(written, "rule");
    let sizes = DeclaredSizes(declared);
    let mut rule = Rule {
        text: source.to_owned(),
        message: text(written, "message").to_owned(),
        reason: text(written, "reason").to_owned(),
        optional_old: declare::flag(written, "optionalOldSelf"),
        reads_old: false,
        program: None,
        message_program: None,
        field_path: None,
        cost: 0,
        message_cost: 0,
    };
    if source.trim().is_empty() {
        return rule;
    }
    let program = program(environment, source, &Type::Bool, "");
    if let Ok(program) = &program {
        rule.reads_old = program.reads("oldSelf");
        rule.cost = program.estimate_cost(&sizes).max;
    }
    let compiled = program.is_ok();
    rule.program = Some(program);
    if !compiled {
        return rule;
    }
    let message = text(written, "messageExpression");
    if !message.is_empty() {
        let program = self::program(environment, message, &Type::String, "messageExpression ");
        if let Ok(program) = &program {
            rule.message_cost = program.estimate_cost(&sizes).max;
        }
        rule.message_program = Some(program);
    }
    let field_path = text(written, "fieldPath");
    if !field_path.is_empty() {
        rule.field_path = path::normalize(field_path, schema);
    }
    rule
}

fn program(
    environment: &Environment,
    source: &str,
    expected: &Type,
    prefix: &str,
) -> Result<Program, String> {
    match environment.compile(source) {
        Ok(program) if program.result_type() == expected => Ok(program),
        Ok(_) if *expected == Type::Bool => {
            Err("cel expression must evaluate to a bool".to_owned())
        }
        Ok(_) => Err(format!("{prefix}must evaluate to a string")),
        Err(errors) if errors.program.is_some() => {
            let what = if prefix.is_empty() { "program instantiation" } else { "instantiation" };
            Err(format!("{prefix}{what} failed: {errors}"))
        }
        Err(errors) => Err(format!("{prefix}compilation failed: {errors}")),
    }
}
