//! Policies with compiled expressions, cached until they change.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_cel::Type;
use serde_json::Value;

use crate::admission::conditions::Conditions;
use crate::admission::expressions::{Compiled, Declared, compile, environment};
use crate::json::text;
use crate::storage::Stored;

/// One entry of `validations`.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: String,
    pub(super) compiled: Compiled,
    pub(super) message: String,
    pub(super) message_expression: Option<(String, Compiled)>,
    pub(super) reason: String,
}

/// One entry of `auditAnnotations`.
#[derive(Debug)]
pub(super) struct AuditAnnotation {
    pub(super) key: String,
    pub(super) expression: String,
    pub(super) compiled: Compiled,
}

/// A policy with compiled expressions.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) spec: Value,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Compiled)>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<AuditAnnotation>,
}

/// A cache of compiled policies by name, each with its revision.
#[derive(Debug, Default)]
pub(crate) struct PolicyCache {
    compiled: Mutex<BTreeMap<String, (u64, Arc<Policy>)>>,
}

impl PolicyCache {
    /// A compiled policy, from the cache if it did not change.
    pub(super) fn compiled(&self, stored: &Stored) -> Arc<Policy> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((revision, policy)) = compiled.get(&*stored.key.name)
            && *revision == stored.revision
        {
            return Arc::clone(policy);
        }
        let policy = Arc::new(Policy::compile(stored));
        compiled.insert(policy.name.clone(), (stored.revision, Arc::clone(&policy)));
        policy
    }
}

fn entries<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    spec[field].as_array().into_iter().flatten()
}

impl Policy {
    fn compile(stored: &Stored) -> Self {
        let spec = stored.decode()["spec"].take();
        let params = spec["paramKind"].is_object();
        let with_authorizer = Declared { params, authorizer: true };
        let mut types: Vec<(String, Type)> = Vec::new();
        let mut variables = Vec::new();
        for variable in entries(&spec, "variables") {
            let name = text(&variable["name"]).to_owned();
            let source = text(&variable["expression"]).to_owned();
            let compiled = compile(&environment(with_authorizer, Some(&types)), &source, &[]);
            let found =
                compiled.as_ref().map_or(Type::Dyn, |program| program.result_type().clone());
            types.push((name.clone(), found));
            variables.push((name, compiled));
        }
        let full = environment(with_authorizer, Some(&types));
        let for_messages = environment(Declared { params, authorizer: false }, Some(&types));
        let validations = entries(&spec, "validations")
            .map(|validation| Validation {
                expression: text(&validation["expression"]).to_owned(),
                compiled: compile(&full, text(&validation["expression"]), &[Type::Bool]),
                message: text(&validation["message"]).to_owned(),
                message_expression: validation["messageExpression"]
                    .as_str()
                    .filter(|source| !source.is_empty())
                    .map(|source| {
                        (source.to_owned(), compile(&for_messages, source, &[Type::String]))
                    }),
                reason: text(&validation["reason"]).to_owned(),
            })
            .collect();
        let annotations = entries(&spec, "auditAnnotations")
            .map(|annotation| AuditAnnotation {
                key: text(&annotation["key"]).to_owned(),
                expression: text(&annotation["valueExpression"]).to_owned(),
                compiled: compile(
                    &full,
                    text(&annotation["valueExpression"]),
                    &[Type::String, Type::Null],
                ),
            })
            .collect();
        Self {
            name: stored.key.name.to_string(),
            conditions: Conditions::read(&full, &spec),
            variables,
            validations,
            annotations,
            spec,
        }
    }
}
