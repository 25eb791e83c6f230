//! The rules and selectors that decide which writes a webhook or a policy applies to.
use std::sync::Arc;

use serde_json::Value;

use crate::json::texts;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{Operation, WriteAttributes};
use crate::semantics::metadata;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result, Subject};
use crate::storage::{ObjectKey, StorageId};

/// The selectors and rules of a webhook, or of a policy's `matchConstraints`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Criteria<'a> {
    /// The document with the selectors and rules.
    pub(super) source: &'a Value,
    /// The field of the rules.
    pub(super) rules: &'a str,
}

impl Criteria<'_> {
    /// The resource by which a write matches, its own or an equivalent one; none if it does not
    /// match.
    ///
    /// # Errors
    /// When the namespace of the write does not exist and a selector needs its labels.
    pub(super) fn matched(
        &self,
        cluster: &Cluster,
        attributes: &WriteAttributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Arc<ApiResource>>> {
        let namespace = self.matches_namespace(cluster, attributes, object);
        if matches!(namespace, Ok(false)) || !self.matches_object(attributes, object) {
            return Ok(None);
        }
        if self.by_rules(cluster, attributes, "excludeResourceRules").is_some() {
            return Ok(None);
        }
        let rules = &self.source[self.rules];
        let is_everything =
            self.rules == "resourceRules" && rules.as_array().is_none_or(Vec::is_empty);
        let matched = if is_everything {
            Some(Arc::clone(attributes.resource))
        } else {
            self.by_rules(cluster, attributes, self.rules)
        };
        match matched {
            Some(resource) => namespace.map(|_| Some(resource)),
            None => Ok(None),
        }
    }

    /// The resource by which one of the rules matches.
    fn by_rules(
        &self,
        cluster: &Cluster,
        attributes: &WriteAttributes<'_>,
        field: &str,
    ) -> Option<Arc<ApiResource>> {
        let rules = self.source[field].as_array()?;
        if rules.iter().any(|rule| matches_rule(rule, attributes, attributes.resource)) {
            return Some(Arc::clone(attributes.resource));
        }
        if self.source["matchPolicy"] == "Exact" {
            return None;
        }
        rules.iter().find_map(|rule| {
            equivalents(cluster, attributes.resource)
                .find(|resource| {
                    let serves = attributes.subresource.is_empty()
                        || resource.subresource(attributes.subresource).is_some();
                    serves && matches_rule(rule, attributes, resource)
                })
                .cloned()
        })
    }

    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go: MatchNamespaceSelector
    fn matches_namespace(
        &self,
        cluster: &Cluster,
        attributes: &WriteAttributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool> {
        let selector = &self.source["namespaceSelector"];
        let is_namespace = attributes.resource.is("", "Namespace");
        if is_empty(selector) || (attributes.namespace.is_empty() && !is_namespace) {
            return Ok(true);
        }
        if let Some(object) = object
            && is_namespace
            && attributes.subresource.is_empty()
            && attributes.operation != Operation::Delete
        {
            return Ok(selects(selector, object));
        }
        let namespace = find_namespace(cluster, &attributes.namespace)?;
        Ok(selects(selector, &namespace))
    }

    /// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object/matcher.go: MatchObjectSelector
    fn matches_object(&self, attributes: &WriteAttributes<'_>, object: Option<&Value>) -> bool {
        let selector = &self.source["objectSelector"];
        is_empty(selector)
            || [object, attributes.old]
                .into_iter()
                .flatten()
                .any(|object| selects(selector, object))
    }
}

/// Finds a namespace.
///
/// # Errors
/// When it does not exist.
pub(super) fn find_namespace(cluster: &Cluster, name: &str) -> Result<Value> {
    cluster
        .store
        .find(&StorageId::new("", "namespaces"), &ObjectKey::new("", name))
        .map(|stored| stored.decode_as("v1", "Namespace"))
        .ok_or_else(|| ApiError::not_found(Subject { group: "", noun: "namespaces" }, name))
}

/// The other resources that serve the same objects.
fn equivalents<'a>(
    cluster: &'a Cluster,
    resource: &'a ApiResource,
) -> impl Iterator<Item = &'a Arc<ApiResource>> {
    cluster.registry.all().filter(move |other| {
        other.storage == resource.storage
            && (&other.group, &other.version) != (&resource.group, &resource.version)
    })
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go: Matches
fn matches_rule(rule: &Value, attributes: &WriteAttributes<'_>, resource: &ApiResource) -> bool {
    let has =
        |field: &str, wanted: &str| texts(&rule[field]).any(|text| text == "*" || text == wanted);
    let is_namespaced =
        !attributes.namespace.is_empty() && !attributes.resource.is("", "Namespace");
    let in_scope = match rule["scope"].as_str() {
        Some("Namespaced") => is_namespaced,
        Some("Cluster") => !is_namespaced,
        _ => true,
    };
    let is_named = rule["resourceNames"]
        .as_array()
        .is_none_or(|names| names.is_empty() || names.iter().any(|name| *name == attributes.name));
    in_scope
        && is_named
        && has("operations", attributes.operation.name())
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && texts(&rule["resources"]).any(|text| {
            let (plural, subresource) = text.split_once('/').unwrap_or((text, ""));
            (plural == "*" || plural == resource.plural)
                && (subresource == "*" || subresource == attributes.subresource)
        })
}

fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
}

/// Whether a label selector document selects an object.
pub(super) fn selects(selector: &Value, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let by_labels = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    by_labels
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|requirement| {
            let key = requirement["key"].as_str().unwrap_or_default();
            let value = labels.get(key).and_then(Value::as_str);
            let is_listed =
                value.is_some_and(|value| texts(&requirement["values"]).any(|text| text == value));
            match requirement["operator"].as_str() {
                Some("In") => is_listed,
                Some("NotIn") => !is_listed,
                Some("Exists") => value.is_some(),
                Some("DoesNotExist") => value.is_none(),
                _ => false,
            }
        })
}

/// The name of the object in error messages: its name, its prefix, or that it is unknown.
pub(super) fn shown_name<'a>(
    attributes: &'a WriteAttributes<'_>,
    object: Option<&'a Value>,
) -> &'a str {
    let generated = object.map(|object| metadata::text(object, "generateName")).unwrap_or_default();
    [attributes.name.as_str(), generated, "Unknown"]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}
