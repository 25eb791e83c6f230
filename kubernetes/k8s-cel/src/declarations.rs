//! What is declared to an expression: variables, object types and sets of functions.
//!
//! Upstream: github.com/google/cel-go/cel/env.go: Env
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{ObjectType, Type};

/// The declarations that expressions are checked against.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declarations {
    /// The types of variables, by name.
    pub(crate) variables: BTreeMap<String, Type>,
    /// The objects that expressions may make, by name.
    pub(crate) objects: BTreeMap<String, Arc<ObjectType>>,
    /// Whether functions of the newest release are declared as well.
    pub(crate) stored: bool,
    /// Whether `semver_compare` is declared as well.
    pub(crate) semver_compare: bool,
}
