//! The handle to a type, and the ways to get one.
//!
//! Types live in an arena and refer to each other by number, because Kubernetes' own types are
//! recursive (`JSONSchemaProps`). A [`Schema`] is an arena and the number of a root.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/schema/elements.go: Schema
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/structural.go: Structural

mod build;
mod fixups;
pub(crate) mod node;
pub(crate) mod structural;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::expressions::Expressions;
use crate::{FieldError, RuleViolations, builtin_data};
pub(crate) use build::Builder;
use node::{Edge, Node, NodeId};

/// Where a type comes from; some behaviour of kube-apiserver differs between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// A Go type of Kubernetes: nulls vanish, unknown fields cannot be stored.
    BuiltIn,
    /// A custom resource, stored as JSON.
    Custom,
}

/// All types that a schema can reach.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) nodes: Vec<Node>,
    pub(crate) flavor: Flavor,
    /// Some type has `x-kubernetes-validations`.
    pub(crate) has_expression_rules: bool,
}

/// A handle to a type of the Kubernetes API; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) arena: Arc<Arena>,
    pub(crate) root: NodeId,
    /// What a CRD says about `metadata` beyond its type (patterns of names).
    pub(crate) metadata_rules: Option<NodeId>,
    /// The rules that a CRD states as expressions.
    pub(crate) expressions: Option<Expressions>,
}

impl Schema {
    /// No schema: every field is kept, and types are deduced (atomic lists, granular maps).
    pub fn untyped() -> Self {
        static UNTYPED: OnceLock<Arc<Arena>> = OnceLock::new();
        let arena =
            UNTYPED.get_or_init(|| Arc::new(Builder::new(&Value::Null, Flavor::Custom).finish()));
        Self {
            arena: Arc::clone(arena),
            root: node::DEDUCED,
            metadata_rules: None,
            expressions: None,
        }
    }

    /// The type that a CRD version's `schema.openAPIV3Schema` declares, completed by `apiVersion`,
    /// `kind` and `metadata`.
    ///
    /// `preserve_unknown_fields` is the CRD's deprecated `spec.preserveUnknownFields`. A schema of
    /// `null` is no schema.
    ///
    /// # Errors
    /// When the schema is not structural.
    pub fn from_crd(
        open_api_v3_schema: &Value,
        preserve_unknown_fields: bool,
    ) -> Result<Self, Vec<FieldError>> {
        if open_api_v3_schema.is_null() {
            return Ok(Self::untyped());
        }
        let errors = structural::check(open_api_v3_schema, "");
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut builder = Builder::new(builtin_data::meta_definitions(), Flavor::Custom);
        let (root, metadata_rules) =
            builder.custom_root(open_api_v3_schema, preserve_unknown_fields);
        let expressions = Expressions::of(open_api_v3_schema);
        Ok(Self { arena: Arc::new(builder.finish()), root, metadata_rules, expressions })
    }

    /// Evaluates the rules that the CRD states as expressions; `live` is the object before an
    /// update. The object is expected to satisfy the schema otherwise.
    pub fn evaluate_rules(&self, object: &Value, live: Option<&Value>) -> RuleViolations {
        let rules = self.expressions.as_ref();
        rules.map(|rules| rules.evaluate(object, live)).unwrap_or_default()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.arena.nodes[id]
    }

    pub(crate) fn root_edge(&self) -> Edge {
        Edge::plain(self.root)
    }

    pub(crate) fn is_builtin(&self) -> bool {
        self.arena.flavor == Flavor::BuiltIn
    }

    /// Whether this is no schema at all.
    pub fn is_untyped(&self) -> bool {
        self.root == node::DEDUCED
    }
}
