//! Validation of the expressions of webhooks and policies.
use k8s_cel::{Environment, Type};
use k8s_schema::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::expressions::{Declared, compile, declare};
use super::hooks;
use super::policies::PatchType;
use crate::semantics::cluster::admission::GROUP;
use crate::semantics::registry::ApiResource;

/// Collects the errors of expressions.
struct Problems(Vec<FieldError>);

impl Problems {
    /// Compiles an expression; returns the type of its value.
    fn compile(
        &mut self,
        environment: &Environment,
        path: String,
        source: &Value,
        expected: &[Type],
    ) -> Type {
        let source = source.as_str().unwrap_or_default();
        if source.trim().is_empty() {
            // Validation by the schema reports required fields.
            return Type::Dyn;
        }
        match compile(environment, source, expected) {
            Ok(program) => program.result_type().clone(),
            Err(why) => {
                self.0.push(
                    FieldError::new(path, FieldErrorKind::Invalid, why).with_value(source.into()),
                );
                Type::Dyn
            }
        }
    }

    fn conditions(&mut self, environment: &Environment, path: &str, source: &Value) {
        for (index, condition) in entries(source, "matchConditions") {
            let path = format!("{path}.matchConditions[{index}].expression");
            self.compile(environment, path, &condition["expression"], &[Type::Bool]);
        }
    }
}

fn entries<'a>(source: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    source[field].as_array().into_iter().flatten().enumerate()
}

/// The errors of all expressions of an object that configures admission.
///
/// `is_new` is whether the object is being created; stored expressions may use more functions.
pub(crate) fn problems(resource: &ApiResource, object: &Value, is_new: bool) -> Vec<FieldError> {
    if resource.group != GROUP {
        return Vec::new();
    }
    let base = || {
        if is_new {
            Environment::for_new_expressions()
        } else {
            Environment::for_stored_expressions()
        }
    };
    let mut problems = Problems(Vec::new());
    match resource.kind.as_str() {
        "ValidatingAdmissionPolicy" => validating(&mut problems, base, &object["spec"]),
        "MutatingAdmissionPolicy" => mutating(&mut problems, base, &object["spec"]),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            let environment = declare(base(), hooks::DECLARED, None);
            for (index, webhook) in entries(object, "webhooks") {
                problems.conditions(&environment, &format!("webhooks[{index}]"), webhook);
            }
        }
        _ => {}
    }
    problems.0
}

/// The variables that the expressions of a policy may use, with their types.
struct PolicyVariables<'a> {
    base: &'a dyn Fn() -> Environment,
    params: bool,
    types: Vec<(String, Type)>,
}

impl PolicyVariables<'_> {
    fn declare(&self, authorizer: bool, patch_types: bool) -> Environment {
        let declared = Declared { params: self.params, authorizer, patch_types };
        declare((self.base)(), declared, Some(&self.types))
    }
}

/// Checks the expressions that both kinds of policies have.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateVariable
fn policy<'a>(
    problems: &mut Problems,
    base: &'a dyn Fn() -> Environment,
    spec: &Value,
) -> PolicyVariables<'a> {
    let params = spec["paramKind"].is_object();
    let mut variables = PolicyVariables { base, params, types: Vec::new() };
    let full = Declared { params, authorizer: true, patch_types: false };
    problems.conditions(&declare(base(), full, None), "spec", spec);
    for (index, variable) in entries(spec, "variables") {
        let environment = variables.declare(true, false);
        let path = format!("spec.variables[{index}].expression");
        let found = problems.compile(&environment, path, &variable["expression"], &[]);
        variables.types.push((variable["name"].as_str().unwrap_or_default().to_owned(), found));
    }
    variables
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: ValidateValidatingAdmissionPolicy
fn validating(problems: &mut Problems, base: impl Fn() -> Environment, spec: &Value) {
    let variables = policy(problems, &base, spec);
    let environment = variables.declare(true, false);
    let for_messages = variables.declare(false, false);
    for (index, validation) in entries(spec, "validations") {
        let path = |field: &str| format!("spec.validations[{index}].{field}");
        let expression = &validation["expression"];
        problems.compile(&environment, path("expression"), expression, &[Type::Bool]);
        let message = &validation["messageExpression"];
        problems.compile(&for_messages, path("messageExpression"), message, &[Type::String]);
    }
    for (index, annotation) in entries(spec, "auditAnnotations") {
        let path = format!("spec.auditAnnotations[{index}].valueExpression");
        let expected = [Type::String, Type::Null];
        problems.compile(&environment, path, &annotation["valueExpression"], &expected);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateMutation
fn mutating(problems: &mut Problems, base: impl Fn() -> Environment, spec: &Value) {
    let variables = policy(problems, &base, spec);
    let environment = variables.declare(true, true);
    for (index, mutation) in entries(spec, "mutations") {
        let Some(patch_type) = PatchType::named(&mutation["patchType"]) else { continue };
        let field = patch_type.field();
        let path = format!("spec.mutations[{index}].{field}.expression");
        let expression = mutation[field]["expression"].as_str().unwrap_or_default().trim();
        problems.compile(&environment, path, &expression.into(), &[patch_type.value_type()]);
    }
}
