//! Turns OpenAPI documents into arenas.
//!
//! Upstream: k8s.io/kube-openapi/pkg/schemaconv/openapi.go: ToSchemaFromOpenAPI
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/convert.go: NewStructural
//! Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: BuildOpenAPIV3
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::node::{
    DEDUCED, DeclaredType, Edge, ListType, MapType, Node, NodeId, PatchStrategy, Relationship,
    Rules, Scalar, UNTYPED_ATOMIC,
};
use super::{Arena, Flavor, fixups};

const REFERENCE_PREFIX: &str = "#/components/schemas/";
/// The type of `metadata` of every object.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Builds an arena; named definitions are read when first used.
pub(crate) struct Builder<'a> {
    nodes: Vec<Node>,
    named: BTreeMap<String, NodeId>,
    definitions: &'a Value,
    flavor: Flavor,
    has_expression_rules: bool,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(definitions: &'a Value, flavor: Flavor) -> Self {
        let anything = |list_items: NodeId, map_values: NodeId, atomic: bool| Node {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType {
                items: Edge::plain(list_items),
                relationship: Relationship::Atomic,
            }),
            map: Some(MapType {
                fields: BTreeMap::new(),
                additional: Some(Edge::plain(map_values)),
                free: true,
                atomic,
            }),
            keeps_unknown: true,
            nullable: true,
            ..Node::default()
        };
        let nodes = vec![
            anything(UNTYPED_ATOMIC, UNTYPED_ATOMIC, true),
            anything(UNTYPED_ATOMIC, DEDUCED, false),
        ];
        Self { nodes, named: BTreeMap::new(), definitions, flavor, has_expression_rules: false }
    }

    pub(crate) fn finish(self) -> Arena {
        Arena {
            nodes: self.nodes,
            flavor: self.flavor,
            has_expression_rules: self.has_expression_rules,
        }
    }

    /// The type of a definition; of anything when there is none of that name.
    pub(crate) fn named(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.named.get(name) {
            return *id;
        }
        let id = self.nodes.len();
        self.named.insert(name.to_owned(), id);
        self.nodes.push(Node::default());
        let definitions = self.definitions;
        let node = match definitions.get(name) {
            None => {
                self.named.insert(name.to_owned(), DEDUCED);
                return DEDUCED;
            }
            Some(schema) => {
                let mut node = fixups::node(name).unwrap_or_else(|| self.build(schema, false));
                fixups::mark_fields(name, &mut node);
                node.go_name = go_name(name);
                node.decodes_to = fixups::decodes_to(name).map(|name| self.named(name));
                node
            }
        };
        self.nodes[id] = node;
        id
    }

    /// The type of a custom resource, and what its schema says about `metadata`.
    pub(crate) fn custom_root(
        &mut self,
        schema: &Value,
        preserve: bool,
    ) -> (NodeId, Option<NodeId>) {
        let metadata_rules = schema
            .pointer("/properties/metadata")
            .filter(|metadata| metadata.get("properties").is_some())
            .map(|metadata| self.inline(metadata, false));
        let mut node = self.build(schema, preserve);
        self.add_object_fields(&mut node);
        node.keeps_unknown |= preserve;
        node.embedded = false;
        self.nodes.push(node);
        (self.nodes.len() - 1, metadata_rules)
    }

    /// Adds `apiVersion`, `kind` and `metadata`.
    fn add_object_fields(&mut self, node: &mut Node) {
        let metadata = self.named(OBJECT_META);
        let text = self.push(Node {
            scalar: Some(Scalar::String),
            declared: Some(DeclaredType::String),
            ..Node::default()
        });
        let map = node.map.get_or_insert_with(|| MapType {
            fields: BTreeMap::new(),
            additional: None,
            free: false,
            atomic: false,
        });
        map.fields.entry("apiVersion".to_owned()).or_insert_with(|| Edge::plain(text));
        map.fields.entry("kind".to_owned()).or_insert_with(|| Edge::plain(text));
        map.fields.insert("metadata".to_owned(), Edge::plain(metadata));
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn inline(&mut self, schema: &Value, preserve: bool) -> NodeId {
        let node = self.build(schema, preserve);
        self.push(node)
    }

    /// A use of a type: a reference (alone, or wrapped in `allOf` to carry a default) or an inline
    /// type.
    fn edge(&mut self, schema: &Value, preserve: bool) -> Edge {
        let reference = schema.get("$ref").or_else(|| match schema.get("allOf") {
            Some(Value::Array(all)) if all.len() == 1 => all[0].get("$ref"),
            _ => None,
        });
        let node = match reference.and_then(Value::as_str) {
            Some(reference) => {
                self.named(reference.strip_prefix(REFERENCE_PREFIX).unwrap_or(reference))
            }
            None => self.inline(schema, preserve),
        };
        Edge {
            node,
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            atomic: schema
                .get("x-kubernetes-map-type")
                .and_then(Value::as_str)
                .map(|kind| kind == "atomic"),
            patch: patch_strategy(schema),
            written: false,
            left_out_at_zero: false,
        }
    }

    fn build(&mut self, schema: &Value, inherited_preserve: bool) -> Node {
        let declared = declared_type(schema);
        let own_preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
        let preserve = inherited_preserve || own_preserve;
        let int_or_string = flag(schema, "x-kubernetes-int-or-string");
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let format = schema.get("format").and_then(Value::as_str).map(str::to_owned);
        let has_properties =
            schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        let free_form = !has_properties && schema.get("additionalProperties").is_none();
        let built_in = self.flavor == Flavor::BuiltIn;
        let may_be_object = matches!(declared, None | Some(DeclaredType::Object));
        self.has_expression_rules |= schema.get("x-kubernetes-validations").is_some();
        let mut node = Node {
            declared,
            nullable: flag(schema, "nullable"),
            keeps_unknown: own_preserve || (built_in && free_form && may_be_object),
            embedded,
            int_or_string,
            ..Node::default()
        };
        match declared {
            None if int_or_string => node.scalar = Some(Scalar::Untyped),
            None => {
                node.scalar = Some(Scalar::Untyped);
                node.list = Some(self.list(schema, preserve));
                node.map = Some(self.map(schema, preserve));
            }
            Some(DeclaredType::Object) => node.map = Some(self.map(schema, preserve)),
            Some(DeclaredType::Array) => node.list = Some(self.list(schema, preserve)),
            Some(DeclaredType::Integer | DeclaredType::Number) => {
                node.scalar = Some(Scalar::Numeric);
            }
            Some(DeclaredType::Boolean) => node.scalar = Some(Scalar::Boolean),
            Some(DeclaredType::String) => {
                node.scalar = Some(match format.as_deref() {
                    None | Some("" | "byte") => Scalar::String,
                    Some(_) => Scalar::Untyped,
                });
            }
        }
        if embedded {
            self.add_object_fields(&mut node);
        }
        node.format = format.filter(|format| !format.is_empty());
        node.rules = self.rules(schema);
        node
    }

    fn map(&mut self, schema: &Value, preserve: bool) -> MapType {
        let mut fields = BTreeMap::new();
        let required = strings(schema.get("required"));
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let edge = self.edge(property, preserve);
                let written = required.iter().any(|required| required == name);
                fields.insert(name.clone(), Edge { written, ..edge });
            }
        }
        let (additional, free) = match schema.get("additionalProperties") {
            None => (None, preserve || fields.is_empty()),
            Some(Value::Bool(allowed)) => (allowed.then(|| Edge::plain(DEDUCED)), false),
            Some(value) => (Some(self.edge(value, preserve)), false),
        };
        let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
        MapType { fields, additional, free, atomic }
    }

    fn list(&mut self, schema: &Value, preserve: bool) -> ListType {
        let items = match schema.get("items") {
            Some(items) if items.is_object() => self.edge(items, preserve),
            _ => Edge::plain(UNTYPED_ATOMIC),
        };
        ListType { items, relationship: relationship(schema) }
    }

    fn rules(&mut self, schema: &Value) -> Option<Box<Rules>> {
        let schema = schema.as_object()?;
        let mut rules = Rules {
            required: strings(schema.get("required")),
            allowed: schema.get("enum").and_then(Value::as_array).cloned(),
            pattern: text(schema, "pattern"),
            minimum: number(schema, "minimum"),
            exclusive_minimum: truth(schema, "exclusiveMinimum"),
            maximum: number(schema, "maximum"),
            exclusive_maximum: truth(schema, "exclusiveMaximum"),
            multiple_of: number(schema, "multipleOf"),
            min_length: count(schema, "minLength"),
            max_length: count(schema, "maxLength"),
            min_items: count(schema, "minItems"),
            max_items: count(schema, "maxItems"),
            unique_items: truth(schema, "uniqueItems"),
            min_properties: count(schema, "minProperties"),
            max_properties: count(schema, "maxProperties"),
            ..Rules::default()
        };
        if self.flavor == Flavor::Custom {
            rules.all_of = self.nested(schema, "allOf");
            rules.any_of = self.nested(schema, "anyOf");
            rules.one_of = self.nested(schema, "oneOf");
            rules.not = schema.get("not").map(|not| self.inline(not, false));
        }
        let empty = rules.required.is_empty()
            && rules.allowed.is_none()
            && rules.pattern.is_none()
            && rules.minimum.is_none()
            && rules.maximum.is_none()
            && rules.multiple_of.is_none()
            && rules.min_length.or(rules.max_length).is_none()
            && rules.min_items.or(rules.max_items).is_none()
            && rules.min_properties.or(rules.max_properties).is_none()
            && !rules.unique_items
            && rules.not.is_none()
            && rules.all_of.is_empty()
            && rules.any_of.is_empty()
            && rules.one_of.is_empty();
        (!empty).then(|| Box::new(rules))
    }

    fn nested(&mut self, schema: &Map<String, Value>, key: &str) -> Vec<NodeId> {
        let Some(list) = schema.get(key).and_then(Value::as_array) else { return Vec::new() };
        list.iter().map(|item| self.inline(item, false)).collect()
    }
}

/// `io.k8s.api.core.v1.Container` is `v1.Container` in Go.
fn go_name(definition: &str) -> Option<String> {
    let (rest, name) = definition.rsplit_once('.')?;
    let package = rest.rsplit('.').next()?;
    Some(format!("{package}.{name}"))
}

fn declared_type(schema: &Value) -> Option<DeclaredType> {
    match schema.get("type").and_then(Value::as_str)? {
        "object" => Some(DeclaredType::Object),
        "array" => Some(DeclaredType::Array),
        "string" => Some(DeclaredType::String),
        "integer" => Some(DeclaredType::Integer),
        "number" => Some(DeclaredType::Number),
        "boolean" => Some(DeclaredType::Boolean),
        _ => None,
    }
}

/// List types say how items relate; older types say it only by their patch strategy.
fn relationship(schema: &Value) -> Relationship {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => return Relationship::Set,
        Some("map") => {
            return Relationship::Map(strings(schema.get("x-kubernetes-list-map-keys")));
        }
        Some(_) => return Relationship::Atomic,
        None => {}
    }
    match patch_strategy(schema) {
        Some(PatchStrategy { merge: true, merge_key: Some(key), .. }) => {
            Relationship::Map(vec![key])
        }
        Some(PatchStrategy { merge: true, merge_key: None, .. }) => Relationship::Set,
        _ => Relationship::Atomic,
    }
}

fn patch_strategy(schema: &Value) -> Option<PatchStrategy> {
    let strategy = schema.get("x-kubernetes-patch-strategy")?.as_str()?;
    Some(PatchStrategy {
        merge: strategy.split(',').any(|part| part == "merge"),
        retain_keys: strategy.split(',').any(|part| part == "retainKeys"),
        merge_key: schema
            .get("x-kubernetes-patch-merge-key")
            .and_then(Value::as_str)
            .map(str::to_owned),
    })
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn truth(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn text(schema: &Map<String, Value>, key: &str) -> Option<String> {
    schema.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn count(schema: &Map<String, Value>, key: &str) -> Option<u64> {
    schema.get(key).and_then(Value::as_u64)
}

fn number(schema: &Map<String, Value>, key: &str) -> Option<serde_json::Number> {
    match schema.get(key) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let Some(list) = value.and_then(Value::as_array) else { return Vec::new() };
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
