//! What an expression may use: variables and functions.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/environment/base.go: MustBaseEnvSet
//! Upstream: k8s.io/apiserver/pkg/cel/environment/environment.go: EnvSet
use std::sync::Arc;

use crate::declarations::Declarations;
use crate::types::{ObjectType, Type};
use crate::{CompileErrors, Program, check, parse, planner};

/// The variables and functions that expressions are compiled with. The functions are those of
/// Kubernetes.
#[derive(Clone, Debug)]
pub struct Environment {
    declarations: Declarations,
}

impl Environment {
    /// What expressions may use that are written now: the functions that the oldest server of a
    /// cluster under upgrade knows as well.
    pub fn for_new_expressions() -> Self {
        Self::new(false)
    }

    /// What expressions may use that were stored before, perhaps by a newer server.
    pub fn for_stored_expressions() -> Self {
        Self::new(true)
    }

    fn new(stored: bool) -> Self {
        Self { declarations: Declarations { stored, ..Declarations::default() } }
    }

    /// The same with `semver_compare(left, right)`, which constraints of operator bundles may use:
    /// -1, 0 or 1 for two texts that are versions, read leniently.
    #[must_use]
    pub fn with_semver_compare(mut self) -> Self {
        self.declarations.semver_compare = true;
        self
    }

    /// The same with the types of patches, `JSONPatch` and `Object`, and `jsonpatch.escapeKey(key)`,
    /// which mutating policies may use.
    ///
    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/compile.go: hasPatchTypes
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.declarations.patch_types = true;
        self
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.declarations.variables.insert(name.to_owned(), of);
        self
    }

    /// The same with an object type that expressions may make values of: `Name{field: value}`.
    #[must_use]
    pub fn with_object(mut self, of: Arc<ObjectType>) -> Self {
        self.declarations.objects.insert(of.name.clone(), of);
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// When the expression has a syntax error or a type error, or when a constant part of it fails;
    /// messages are those of cel-go.
    pub fn compile(&self, source: &str) -> Result<Program, CompileErrors> {
        let parsed = parse::parse(source)?;
        let checked = check::check(&self.declarations, source, parsed)?;
        let plan = planner::plan(&checked)
            .map_err(|error| CompileErrors::of_program(source, &error.to_string()))?;
        Ok(Program::new(source, checked, plan))
    }
}
