//! What changes from one schema to another, field by field, and which rule it breaks.
//!
//! The rules and what they look at are upstream's. Beside each finding stands the reason if the
//! change is harmless after all; the reasons are ours.
//!
//! Upstream: sigs.k8s.io/crdify/pkg/validations/util.go: FlattenCRDVersion, FlattenedCRDVersionDiff
//! Upstream: sigs.k8s.io/crdify/pkg/validations/compare.go: CompareProperties

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::canonical::{Detail, canonical, is_documentation};
use super::{DifferenceReason, UpgradeRule};

/// A schema in canonical form.
pub(super) type CanonicalSchema = Map<String, Value>;

/// What changes from one schema to another.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Broken rules.
    pub(super) findings: Vec<Finding>,
    /// Fields and alternatives that are gone.
    pub(super) removed: Vec<RemovedField>,
}

/// A rule that a field breaks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The field, from `^`.
    pub(super) path: String,
    pub(super) rule: UpgradeRule,
    /// The value that the rule is about, before; of [`UpgradeRule::Unhandled`] a mapping of those
    /// that change. Null if there is none.
    pub(super) old: Value,
    /// The same, after.
    pub(super) new: Value,
    /// The field itself is gone.
    pub(super) is_removed: bool,
    /// Of [`UpgradeRule::Unhandled`]: which of the changes are not known to be harmless.
    pub(super) harmful: Vec<String>,
    /// Why the change is harmless; absent if it is not.
    pub(super) excuse: Option<DifferenceReason>,
}

/// A field that is gone.
#[derive(Debug)]
pub(super) struct RemovedField {
    /// The field, from `^`.
    pub(super) path: String,
    /// Why that is harmless; absent if it is not.
    pub(super) excuse: Option<DifferenceReason>,
}

/// Compares the schemas of two versions.
pub(super) fn compare(old: &CanonicalSchema, new: &CanonicalSchema) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.node("^", old, Some(new), None);
    comparison
}

/// Bounds, their rules, and whether raising one is what tightens it.
const BOUNDS: [(&str, UpgradeRule, bool); 8] = [
    ("maximum", UpgradeRule::Maximum, false),
    ("maxItems", UpgradeRule::MaxItems, false),
    ("maxLength", UpgradeRule::MaxLength, false),
    ("maxProperties", UpgradeRule::MaxProperties, false),
    ("minimum", UpgradeRule::Minimum, true),
    ("minItems", UpgradeRule::MinItems, true),
    ("minLength", UpgradeRule::MinLength, true),
    ("minProperties", UpgradeRule::MinProperties, true),
];
/// Fields that have a rule of their own, or are compared by themselves.
const HANDLED: [&str; 18] = [
    "default",
    "description",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
];
const NOTHING: &Value = &Value::Null;

impl Comparison {
    /// Compares a schema and those below it. `excuse` is why nothing below matters. Returns whether
    /// anything is harmful.
    fn node(
        &mut self,
        path: &str,
        old: &CanonicalSchema,
        new: Option<&CanonicalSchema>,
        excuse: Option<DifferenceReason>,
    ) -> bool {
        let mut harmful = false;
        if new.is_none() {
            self.removed.push(RemovedField { path: path.to_owned(), excuse });
            harmful |= excuse.is_none();
        }
        let mut map_values_harmful = false;
        for (field, below, child) in children(path, old) {
            let counterpart = new.and_then(|new| descend(new, field, &below));
            let excuse = excuse.or_else(|| new.and_then(|new| alternatives(field, old, new)));
            let found = self.node(&below.path, child, counterpart, excuse);
            map_values_harmful |= found && field == "additionalProperties";
            harmful |= found;
        }
        let empty = CanonicalSchema::new();
        let is_removed = new.is_none();
        let mut rules = Rules { path, old, new: new.unwrap_or(&empty), is_removed, found: vec![] };
        rules.all(map_values_harmful);
        for mut finding in rules.found {
            finding.excuse = finding.excuse.filter(|_| !is_removed).or(excuse);
            harmful |= finding.excuse.is_none();
            self.findings.push(finding);
        }
        harmful
    }
}

/// The schemas right below another one: the field they are in, where, and what they are.
fn children<'a>(
    path: &str,
    schema: &'a CanonicalSchema,
) -> Vec<(&'a str, ChildPlace<'a>, &'a CanonicalSchema)> {
    let mut found = Vec::new();
    for (field, value) in schema {
        let named = ["properties", "patternProperties", "definitions", "dependencies"];
        let listed = ["allOf", "anyOf", "oneOf", "items"];
        match value {
            Value::Object(map) if named.contains(&field.as_str()) => {
                for (name, child) in map {
                    let path = if field == "properties" {
                        format!("{path}.{name}")
                    } else {
                        format!("{path}.{field}[{name}]")
                    };
                    let key = ChildKey::Name(name);
                    found.extend(place(field, path, key, child));
                }
            }
            Value::Array(list) if listed.contains(&field.as_str()) => {
                for (index, child) in list.iter().enumerate() {
                    let path = format!("{path}.{field}[{index}]");
                    found.extend(place(field, path, ChildKey::Index(index), child));
                }
            }
            Value::Object(_)
                if ["items", "not", "additionalProperties", "additionalItems"]
                    .contains(&field.as_str()) =>
            {
                found.extend(place(field, format!("{path}.{field}"), ChildKey::Only, value));
            }
            _ => {}
        }
    }
    found
}

/// Where a schema is below another one.
struct ChildPlace<'a> {
    path: String,
    key: ChildKey<'a>,
}

/// Which of the schemas of a field.
enum ChildKey<'a> {
    Only,
    Index(usize),
    Name(&'a str),
}

fn place<'a>(
    field: &'a str,
    path: String,
    key: ChildKey<'a>,
    child: &'a Value,
) -> Option<(&'a str, ChildPlace<'a>, &'a CanonicalSchema)> {
    Some((field, ChildPlace { path, key }, child.as_object()?))
}

/// The schema in the same place of another one.
fn descend<'a>(
    schema: &'a CanonicalSchema,
    field: &str,
    below: &ChildPlace<'_>,
) -> Option<&'a CanonicalSchema> {
    let value = schema.get(field)?;
    match below.key {
        ChildKey::Only => value.as_object(),
        ChildKey::Index(index) => value.get(index)?.as_object(),
        ChildKey::Name(name) => value.get(name)?.as_object(),
    }
}

/// Why a change of alternatives is harmless. Their order has no meaning, and neither have the texts
/// in them, although upstream compares one after the other.
fn alternatives(
    field: &str,
    old: &CanonicalSchema,
    new: &CanonicalSchema,
) -> Option<DifferenceReason> {
    if !["allOf", "anyOf", "oneOf", "not"].contains(&field) {
        return None;
    }
    let branches = |schema: &CanonicalSchema| -> Vec<Value> {
        let listed = match schema.get(field) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        listed.iter().map(|it| Value::Object(canonical(it, Detail::Meaning))).collect()
    };
    let (before, after) = (branches(old), branches(new));
    let covers = |all: &[Value], some: &[Value]| some.iter().all(|branch| all.contains(branch));
    let (kept, added) = (covers(&after, &before), !covers(&before, &after));
    match field {
        _ if before == after => Some(DifferenceReason::Documentation),
        // Any other alternative of oneOf, even one that is there already, may match as well.
        "oneOf" if before.len() != after.len() => None,
        _ if kept && !added => Some(DifferenceReason::SameMeaning),
        "allOf" | "not" if !added => Some(DifferenceReason::Relaxed),
        "anyOf" if after.is_empty() || (kept && !before.is_empty()) => {
            Some(DifferenceReason::Relaxed)
        }
        _ => None,
    }
}

/// The rules, applied to one field.
struct Rules<'a> {
    path: &'a str,
    old: &'a CanonicalSchema,
    new: &'a CanonicalSchema,
    is_removed: bool,
    found: Vec<Finding>,
}

impl<'a> Rules<'a> {
    fn all(&mut self, map_values_harmful: bool) {
        self.bounds();
        self.lists();
        for (field, rule) in [
            ("default", UpgradeRule::Default),
            ("type", UpgradeRule::Type),
            ("pattern", UpgradeRule::Pattern),
            ("nullable", UpgradeRule::Nullable),
        ] {
            let (old, new) = self.values(field);
            if old != new {
                self.found(rule, old.clone(), new.clone(), None);
            }
        }
        self.one_of();
        self.unhandled(map_values_harmful);
    }

    fn values(&self, field: &str) -> (&'a Value, &'a Value) {
        (self.old.get(field).unwrap_or(NOTHING), self.new.get(field).unwrap_or(NOTHING))
    }

    fn list(schema: &CanonicalSchema, field: &str) -> Vec<Value> {
        schema.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn found(
        &mut self,
        rule: UpgradeRule,
        old: Value,
        new: Value,
        excuse: Option<DifferenceReason>,
    ) {
        self.found.push(Finding {
            path: self.path.to_owned(),
            rule,
            old,
            new,
            is_removed: self.is_removed,
            harmful: Vec::new(),
            excuse,
        });
    }

    fn bounds(&mut self) {
        for (field, rule, is_minimum) in BOUNDS {
            let (old, new) = self.values(field);
            let tightened = match (old.as_f64(), new.as_f64()) {
                (None, Some(_)) => true,
                (Some(old), Some(new)) if is_minimum => new > old,
                (Some(old), Some(new)) => new < old,
                (_, None) => false,
            };
            if tightened {
                self.found(rule, old.clone(), new.clone(), None);
            }
        }
    }

    fn lists(&mut self) {
        let (old, new) = (Self::list(self.old, "required"), Self::list(self.new, "required"));
        let added = sorted(new.iter().filter(|name| !old.contains(name)));
        if !added.is_empty() {
            self.found(UpgradeRule::Required, Value::Null, added.into(), None);
        }
        let (old, new) = (Self::list(self.old, "enum"), Self::list(self.new, "enum"));
        let removed = sorted(old.iter().filter(|value| !new.contains(value)));
        if old.is_empty() && !new.is_empty() {
            self.found(UpgradeRule::Enum, Value::Null, sorted(new.iter()).into(), None);
        } else if !removed.is_empty() {
            // Without the list every value is allowed.
            let excuse = new.is_empty().then_some(DifferenceReason::Relaxed);
            self.found(UpgradeRule::Enum, removed.into(), Value::Null, excuse);
        }
    }

    fn one_of(&mut self) {
        let without_description = |branches: Vec<Value>| -> Vec<Value> {
            let mut branches = branches;
            for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
                branch.remove("description");
            }
            branches
        };
        let old = without_description(Self::list(self.old, "oneOf"));
        let new = without_description(Self::list(self.new, "oneOf"));
        let removed = sorted(old.iter().filter(|branch| !new.contains(branch)));
        let has_more = new.len() > old.len() || new.iter().any(|branch| !old.contains(branch));
        if old.is_empty() && !new.is_empty() {
            self.found(UpgradeRule::OneOf, Value::Null, sorted(new.iter()).into(), None);
        } else if !removed.is_empty() {
            let excuse = alternatives("oneOf", self.old, self.new);
            self.found(UpgradeRule::OneOf, removed.into(), Value::Null, excuse);
        } else if has_more {
            // Objects that match another one, too, become invalid.
            let (old, new) = (sorted(old.iter()), sorted(new.iter()));
            self.found(UpgradeRule::OneOf, old.into(), new.into(), None);
        }
    }

    fn unhandled(&mut self, map_values_harmful: bool) {
        let fields: BTreeSet<&String> = self.old.keys().chain(self.new.keys()).collect();
        let (mut before, mut after) = (Map::new(), Map::new());
        let (mut harmful, mut excuse) = (Vec::new(), None);
        for field in fields.into_iter().filter(|field| !HANDLED.contains(&field.as_str())) {
            let (old, new) = self.values(field);
            if old == new {
                continue;
            }
            before.insert(field.clone(), old.clone());
            after.insert(field.clone(), new.clone());
            match self.harmless(field, old, new, map_values_harmful) {
                Some(reason) => excuse = excuse.or(Some(reason)),
                None => harmful.push(field.clone()),
            }
        }
        if before.is_empty() {
            return;
        }
        let excuse = excuse.filter(|_| harmful.is_empty());
        self.found(UpgradeRule::Unhandled, before.into(), after.into(), excuse);
        if let Some(finding) = self.found.last_mut() {
            finding.harmful = harmful;
        }
    }

    /// Why a change of a field without a rule of its own is harmless.
    fn harmless(
        &self,
        field: &str,
        old: &Value,
        new: &Value,
        map_values_harmful: bool,
    ) -> Option<DifferenceReason> {
        if is_documentation(field) {
            return Some(DifferenceReason::Documentation);
        }
        let relaxed = |is: bool| is.then_some(DifferenceReason::Relaxed);
        match field {
            "additionalProperties" if old.is_object() && new.is_object() => {
                (!map_values_harmful).then_some(DifferenceReason::MapValues)
            }
            "allOf" | "anyOf" | "not" => alternatives(field, self.old, self.new),
            "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" | "multipleOf" => {
                relaxed(new.is_null())
            }
            "format" => {
                let wider = [("int32", "int64"), ("float", "double")];
                relaxed(new.is_null() || wider.iter().any(|(from, to)| old == from && new == to))
            }
            "x-kubernetes-preserve-unknown-fields" => relaxed(old.is_null() && *new == true),
            "x-kubernetes-list-type" => same_as_default(old, new, "atomic"),
            "x-kubernetes-map-type" => same_as_default(old, new, "granular"),
            "x-kubernetes-validations" => rules_excuse(self.old, self.new),
            _ => None,
        }
    }
}

/// Whether a field changes between its default and nothing.
fn same_as_default(old: &Value, new: &Value, default: &str) -> Option<DifferenceReason> {
    let is_default = |value: &Value| value.is_null() || *value == default;
    (is_default(old) && is_default(new)).then_some(DifferenceReason::SameMeaning)
}

/// Why a change of the rules of CEL is harmless: none is new.
fn rules_excuse(old: &CanonicalSchema, new: &CanonicalSchema) -> Option<DifferenceReason> {
    let rules = |schema: &CanonicalSchema| {
        let schema = canonical(&Value::Object(schema.clone()), Detail::Meaning);
        Rules::list(&schema, "x-kubernetes-validations")
    };
    let (old, new) = (rules(old), rules(new));
    if !new.iter().all(|rule| old.contains(rule)) {
        return None;
    }
    let same = old.iter().all(|rule| new.contains(rule));
    Some(if same { DifferenceReason::Documentation } else { DifferenceReason::Relaxed })
}

/// Values in an order of their own, each once.
fn sorted<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut values: Vec<Value> = values.cloned().collect();
    values.sort_by_cached_key(Value::to_string);
    values.dedup();
    values
}
