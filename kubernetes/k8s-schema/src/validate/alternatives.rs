//! Choices between schemas: `allOf`, `anyOf`, `oneOf`, `not`.
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/validate/schema_props.go: schemaPropsValidator
use serde_json::Value;

use super::ratchet::OldValue;
use super::{SchemaValidator, ValidationResult};
use crate::schema::node::{Node, NodeId, Rules};

impl SchemaValidator<'_> {
    pub(super) fn alternatives(
        &self,
        node: &Node,
        value: &Value,
        path: &str,
        old: Option<OldValue<'_>>,
        out: &mut ValidationResult,
    ) {
        let Some(rules) = &node.rules else { return };
        let attempt = |id: &NodeId| {
            let mut result = ValidationResult::default();
            self.plain_node(*id, value, path, old, &mut result);
            result
        };
        any_of(rules, path, attempt, out);
        one_of(rules, path, attempt, out);
        all_of(rules, path, attempt, out);
        if let Some(not) = &rules.not
            && attempt(not).errors.is_empty()
        {
            out.push_general(format!("{path:?} must not validate the schema (not)"));
        }
    }
}

fn any_of(
    rules: &Rules,
    path: &str,
    attempt: impl Fn(&NodeId) -> ValidationResult,
    out: &mut ValidationResult,
) {
    if rules.any_of.is_empty() {
        return;
    }
    let mut tried = Vec::new();
    for id in &rules.any_of {
        let result = attempt(id);
        if result.errors.is_empty() {
            return out.merge(result);
        }
        tried.push(result);
    }
    out.push_general(format!("{path:?} must validate at least one schema (anyOf)"));
    out.merge(furthest(tried));
}

fn one_of(
    rules: &Rules,
    path: &str,
    attempt: impl Fn(&NodeId) -> ValidationResult,
    out: &mut ValidationResult,
) {
    if rules.one_of.is_empty() {
        return;
    }
    let (mut valid, failed): (Vec<ValidationResult>, Vec<ValidationResult>) =
        rules.one_of.iter().map(attempt).partition(|result| result.errors.is_empty());
    let prefix = format!("{path:?} must validate one and only one schema (oneOf).");
    match valid.len() {
        0 => {
            out.push_general(format!("{prefix} Found none valid"));
            out.merge(furthest(failed));
        }
        1 => out.merge(valid.remove(0)),
        count => out.push_general(format!("{prefix} Found {count} valid alternatives")),
    }
}

fn all_of(
    rules: &Rules,
    path: &str,
    attempt: impl Fn(&NodeId) -> ValidationResult,
    out: &mut ValidationResult,
) {
    let tried: Vec<ValidationResult> = rules.all_of.iter().map(attempt).collect();
    let valid = tried.iter().filter(|result| result.errors.is_empty()).count();
    let all = tried.len();
    tried.into_iter().for_each(|result| out.merge(result));
    if valid < all {
        let none = if valid == 0 { ". None validated" } else { "" };
        out.push_general(format!("{path:?} must validate all the schemas (allOf){none}"));
    }
}

/// Of failed alternatives the first of those that made most checks.
fn furthest(tried: Vec<ValidationResult>) -> ValidationResult {
    tried
        .into_iter()
        .reduce(|best, next| if next.checks > best.checks { next } else { best })
        .unwrap_or_default()
}
