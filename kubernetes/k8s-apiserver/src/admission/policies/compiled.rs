//! Policies with compiled expressions, cached until they change.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_cel::{Environment, Type};
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

/// What a validating policy does.
#[derive(Debug)]
pub(crate) struct Validations {
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<AuditAnnotation>,
}

/// How the value of a mutation changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission) enum PatchType {
    /// It is a list of operations.
    JsonPatch,
    /// It is merged into the object.
    ApplyConfiguration,
}

/// One entry of `mutations`.
#[derive(Debug)]
pub(super) struct Mutation {
    pub(super) patch_type: PatchType,
    pub(super) expression: String,
    pub(super) compiled: Compiled,
}

/// What a mutating policy does.
#[derive(Debug)]
pub(crate) struct Mutations {
    pub(super) mutations: Vec<Mutation>,
}

/// What is particular to one kind of policies.
pub(crate) trait PolicyBody: Sized {
    /// Compiles it from the spec of a policy; `environment` declares what its expressions may use.
    fn compile(spec: &Value, environment: &dyn Fn(Declared) -> Environment) -> Self;
}

/// A policy with compiled expressions.
#[derive(Debug)]
pub(super) struct Policy<B> {
    pub(super) name: String,
    pub(super) spec: Value,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Compiled)>,
    /// What it does.
    pub(super) body: B,
}

/// Compiled policies by name, each with its revision.
type ByName<B> = BTreeMap<String, (u64, Arc<Policy<B>>)>;

/// A cache of compiled policies.
#[derive(Debug)]
pub(crate) struct PolicyCache<B> {
    compiled: Mutex<ByName<B>>,
}

impl<B> Default for PolicyCache<B> {
    fn default() -> Self {
        Self { compiled: Mutex::default() }
    }
}

impl<B: PolicyBody> PolicyCache<B> {
    /// A compiled policy, from the cache if it did not change.
    pub(super) fn compiled(&self, stored: &Stored) -> Arc<Policy<B>> {
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

impl<B> Policy<B> {
    /// Whether the write goes on when the policy fails.
    pub(super) fn ignores_failures(&self) -> bool {
        self.spec["failurePolicy"] == "Ignore"
    }
}

impl<B: PolicyBody> Policy<B> {
    fn compile(stored: &Stored) -> Self {
        let spec = stored.decode()["spec"].take();
        let params = spec["paramKind"].is_object();
        let full = Declared { params, authorizer: true, patch_types: false };
        let mut types: Vec<(String, Type)> = Vec::new();
        let mut variables = Vec::new();
        for variable in entries(&spec, "variables") {
            let name = text(&variable["name"]).to_owned();
            let source = text(&variable["expression"]).to_owned();
            let compiled = compile(&environment(full, Some(&types)), &source, &[]);
            let found =
                compiled.as_ref().map_or(Type::Dyn, |program| program.result_type().clone());
            types.push((name.clone(), found));
            variables.push((name, compiled));
        }
        let declare =
            |declared: Declared| environment(Declared { params, ..declared }, Some(&types));
        Self {
            name: stored.key.name.to_string(),
            conditions: Conditions::read(&declare(full), &spec),
            variables,
            body: B::compile(&spec, &declare),
            spec,
        }
    }
}

impl PolicyBody for Validations {
    fn compile(spec: &Value, environment: &dyn Fn(Declared) -> Environment) -> Self {
        let declared = Declared { params: false, authorizer: true, patch_types: false };
        let full = environment(declared);
        let for_messages = environment(Declared { authorizer: false, ..declared });
        let validations = entries(spec, "validations")
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
        let annotations = entries(spec, "auditAnnotations")
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
        Self { validations, annotations }
    }
}

impl PatchType {
    /// The field of a mutation with the expression.
    pub(in crate::admission) fn field(self) -> &'static str {
        match self {
            Self::JsonPatch => "jsonPatch",
            Self::ApplyConfiguration => "applyConfiguration",
        }
    }

    /// The type of the expression's value.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go: jsonPatchType
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go: applyConfigObjectType
    pub(in crate::admission) fn value_type(self) -> Type {
        match self {
            Self::JsonPatch => Type::list(Type::json_patch()),
            Self::ApplyConfiguration => Type::patch_object(),
        }
    }

    /// The type with this name.
    pub(in crate::admission) fn named(name: &Value) -> Option<Self> {
        match name.as_str() {
            Some("JSONPatch") => Some(Self::JsonPatch),
            Some("ApplyConfiguration") => Some(Self::ApplyConfiguration),
            _ => None,
        }
    }
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/compilation.go: compilePolicy
impl PolicyBody for Mutations {
    fn compile(spec: &Value, environment: &dyn Fn(Declared) -> Environment) -> Self {
        let environment =
            environment(Declared { params: false, authorizer: true, patch_types: true });
        let mutations = entries(spec, "mutations")
            .filter_map(|mutation| {
                let patch_type = PatchType::named(&mutation["patchType"])?;
                let expression = text(&mutation[patch_type.field()]["expression"]).to_owned();
                let compiled = compile(&environment, &expression, &[patch_type.value_type()]);
                Some(Mutation { patch_type, expression, compiled })
            })
            .collect();
        Self { mutations }
    }
}
