//! What is declared to an expression: variables, object types and sets of functions.
//!
//! Upstream: github.com/google/cel-go/cel/env.go: Env
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::patch_types;
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
    /// Whether the types of patches and `jsonpatch.escapeKey` are declared as well.
    pub(crate) patch_types: bool,
}

impl Declarations {
    /// The type of the objects with this name; nothing if there is none.
    pub(crate) fn object(&self, name: &str) -> Option<Type> {
        let declared = self.objects.get(name).cloned().map(Type::Object);
        declared.or_else(|| self.patch_types.then(|| patch_types::named(name)).flatten())
    }

    /// The type of a field of an object; nothing if it has no such field.
    pub(crate) fn field(&self, object: &ObjectType, field: &str) -> Option<Type> {
        let declared = object.fields.get(field).cloned();
        let of_patch = || patch_types::field(&object.name, field);
        declared.or_else(|| self.patch_types.then(of_patch).flatten())
    }
}
