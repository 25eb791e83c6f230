//! CEL expressions of webhooks and policies: their environment and their values.
use std::sync::{Arc, Mutex, PoisonError};

use k8s_cel::{
    Bindings, Budget, Environment, EvaluationError, HostObject, Program, Type, Value as CelValue,
};
use serde_json::Value;

/// The name of the type of `variables`.
const VARIABLES_TYPE: &str = "kubernetes.variables";

/// The message about expressions that exceed the cost limit.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A compiled expression, or why it does not compile.
pub(super) type Compiled = Result<Program, String>;

/// The optional variables and types of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) params: bool,
    pub(super) authorizer: bool,
    /// The types of patches.
    pub(super) patch_types: bool,
}

fn object_type(name: &str, fields: &[(&str, Type)]) -> Type {
    Type::object(name, fields.iter().map(|(field, of)| ((*field).to_owned(), of.clone())))
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go: BuildRequestType
fn request_type() -> Type {
    let text = || Type::String;
    let kind = object_type(
        "kubernetes.GroupVersionKind",
        &[("group", text()), ("version", text()), ("kind", text())],
    );
    let resource = object_type(
        "kubernetes.GroupVersionResource",
        &[("group", text()), ("version", text()), ("resource", text())],
    );
    let user = object_type(
        "kubernetes.UserInfo",
        &[
            ("username", text()),
            ("uid", text()),
            ("groups", Type::list(text())),
            ("extra", Type::map(text(), Type::list(text()))),
        ],
    );
    object_type(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go: BuildNamespaceType
fn namespace_type() -> Type {
    let text = || Type::String;
    let condition = object_type(
        "kubernetes.NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Type::Timestamp),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object_type(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", Type::map(text(), text())),
            ("annotations", Type::map(text(), text())),
            ("UID", text()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", text()),
            ("finalizers", Type::list(text())),
        ],
    );
    let spec = object_type("kubernetes.NamespaceSpec", &[("finalizers", Type::list(text()))]);
    let status = object_type(
        "kubernetes.NamespaceStatus",
        &[("conditions", Type::list(condition)), ("phase", text())],
    );
    object_type(
        "kubernetes.Namespace",
        &[("metadata", metadata), ("spec", spec), ("status", status)],
    )
}

/// The environment of stored expressions; `variables` are those of the policy with their types,
/// none for webhooks.
pub(super) fn environment(declared: Declared, variables: Option<&[(String, Type)]>) -> Environment {
    declare(Environment::for_stored_expressions(), declared, variables)
}

/// Declares the variables of admission expressions in an environment.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go: mustBuildEnvs
pub(super) fn declare(
    base: Environment,
    declared: Declared,
    variables: Option<&[(String, Type)]>,
) -> Environment {
    let mut environment = base
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("request", request_type())
        .with_variable("namespaceObject", namespace_type());
    if let Some(variables) = variables {
        let of = Type::object(VARIABLES_TYPE, variables.iter().cloned());
        environment = environment.with_variable("variables", of);
    }
    if declared.params {
        environment = environment.with_variable("params", Type::Dyn);
    }
    if declared.authorizer {
        environment = environment.with_variable("authorizer", Type::authorizer()).with_variable(
            "authorizer.requestResource",
            Type::opaque("kubernetes.authorization.ResourceCheck"),
        );
    }
    if declared.patch_types { environment.with_patch_types() } else { environment }
}

/// Compiles an expression whose type has to be one of `expected`, or any if that is empty.
pub(super) fn compile(environment: &Environment, source: &str, expected: &[Type]) -> Compiled {
    let program =
        environment.compile(source).map_err(|errors| format!("compilation failed: {errors}"))?;
    let found = program.result_type();
    if expected.is_empty() || expected.contains(found) {
        return Ok(program);
    }
    Err(match expected {
        [one] => format!("must evaluate to {} but got {}", name_of(one), name_of(found)),
        _ => {
            let listed: Vec<String> = expected.iter().map(name_of).collect();
            format!("must evaluate to one of [{}] but got {}", listed.join(" "), name_of(found))
        }
    })
}

/// The name of a type in kube-apiserver's messages.
fn name_of(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

/// A document as a value of expressions; null if there is none.
pub(super) fn shown(value: Option<&Value>) -> CelValue {
    value.map_or(CelValue::Null, CelValue::from_json)
}

/// Why an evaluation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// This expression failed; others can still be evaluated.
    Expression(String),
    /// The cost limit is exceeded; no other expression is evaluated.
    Budget(String),
}

impl Failure {
    pub(super) fn message(self) -> String {
        match self {
            Self::Expression(message) | Self::Budget(message) => message,
        }
    }
}

/// The variables in scope of the expressions of one policy or webhook.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    bindings: Bindings,
    variables: Arc<Variables>,
}

impl Scope {
    /// A scope of these bindings and of the variables of a policy.
    pub(super) fn new(bindings: Bindings, variables: &[(String, Compiled)]) -> Self {
        let variables = Arc::new(Variables {
            programs: variables.to_vec(),
            bindings: bindings.clone(),
            state: Mutex::default(),
        });
        let host = Lazy(Arc::clone(&variables));
        Self { bindings: bindings.with("variables", CelValue::Host(Arc::new(host))), variables }
    }

    /// The value of a variable; nothing if it is not bound.
    pub(super) fn variable(&self, name: &str) -> Option<&CelValue> {
        self.bindings.find(name)
    }

    /// The value of an expression.
    pub(super) fn evaluate(
        &self,
        compiled: &Compiled,
        source: &str,
        budget: &mut Budget,
    ) -> Result<CelValue, Failure> {
        let program = compiled
            .as_ref()
            .map_err(|why| Failure::Expression(format!("compilation error: {why}")))?;
        let value = program.evaluate(&self.bindings, budget);
        let is_within = budget.spend(self.variables.take_spent());
        match value {
            Err(EvaluationError::OutOfBudget) => Err(Failure::Budget(OUT_OF_BUDGET.to_owned())),
            _ if !is_within => Err(Failure::Budget(OUT_OF_BUDGET.to_owned())),
            Err(error) => Err(Failure::Expression(format!(
                "expression '{source}' resulted in error: {error}"
            ))),
            Ok(value) => Ok(value),
        }
    }
}

/// The variables of a policy, evaluated on their first use.
#[derive(Debug)]
struct Variables {
    programs: Vec<(String, Compiled)>,
    bindings: Bindings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    values: Vec<(String, Result<CelValue, EvaluationError>)>,
    spent: u64,
}

impl Variables {
    fn take_spent(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.spent)
    }
}

/// The value of `variables`.
#[derive(Debug)]
struct Lazy(Arc<Variables>);

impl HostObject for Lazy {
    fn type_name(&self) -> &str {
        VARIABLES_TYPE
    }

    fn field(&self, name: &str) -> Option<Result<CelValue, EvaluationError>> {
        let (_, compiled) = self.0.programs.iter().find(|(known, _)| known == name)?;
        {
            let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, value)) = state.values.iter().find(|(known, _)| known == name) {
                return Some(value.clone());
            }
        }
        let mut budget = Budget::default();
        let failed = |what: &str, why: &dyn std::fmt::Display| {
            EvaluationError::Failed(format!("composited variable {name:?} fails to {what}: {why}"))
        };
        let value = match compiled {
            Err(why) => Err(failed("compile", why)),
            Ok(program) => {
                let bindings = self
                    .0
                    .bindings
                    .clone()
                    .with("variables", CelValue::Host(Arc::new(Self(Arc::clone(&self.0)))));
                program.evaluate(&bindings, &mut budget).map_err(|error| failed("evaluate", &error))
            }
        };
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.spent = state.spent.saturating_add(budget.spent());
        state.values.push((name.to_owned(), value.clone()));
        Some(value)
    }
}
