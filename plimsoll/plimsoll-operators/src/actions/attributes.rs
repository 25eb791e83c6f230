//! Attributes of an Action: those that it sets, those that its class defines, and the effective ones.

use std::collections::BTreeMap;

use k8s_schema::{Schema, validate};
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, EffectiveAttribute};
use plimsoll_api::olm::policy::PolicyRules;
use serde_json::{Value, json};

use super::ActionFailure;

/// The prefix of the names of parameters.
pub const PARAMETER_PREFIX: &str = "parameters.";

/// A class with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedClass {
    /// The name of the class.
    pub name: String,
    /// The spec of the class.
    pub spec: ActionClassSpec,
}

impl NamedClass {
    /// Returns the class with a name, else the first one with that alias.
    pub fn find<'a>(classes: impl IntoIterator<Item = &'a Self>, name: &str) -> Option<&'a Self> {
        let mut by_alias = None;
        for class in classes {
            if class.name == name {
                return Some(class);
            }
            if by_alias.is_none() && class.spec.aliases.iter().any(|it| it == name) {
                by_alias = Some(class);
            }
        }
        by_alias
    }

    /// Returns whether a name is that of the class or one of its aliases.
    pub fn goes_by(&self, name: &str) -> bool {
        self.name == name || self.spec.aliases.iter().any(|it| it == name)
    }
}

/// The effective attributes of an Action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EffectiveAction {
    /// The name of the class.
    pub class: String,
    /// The attributes by name, each with the request, policy or class that set it.
    attributes: BTreeMap<String, (Value, String)>,
}

impl EffectiveAction {
    /// Returns an attribute; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name).map(|(value, _)| value)
    }

    /// Returns the text of an attribute; empty if it is not set or not a string.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the text of an attribute; `None` if it is not set, empty or not a string.
    pub fn optional_text(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|it| !it.is_empty()).map(str::to_owned)
    }

    /// Returns whether an attribute is `true`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the attributes as a status lists them.
    pub fn listed(&self) -> Vec<EffectiveAttribute> {
        let listed = self.attributes.iter().map(|(name, (value, set_by))| EffectiveAttribute {
            name: name.clone(),
            value: text(value),
            set_by: set_by.clone(),
        });
        listed.collect()
    }
}

/// Returns a value as text: a string as it is, any other value as JSON.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the attributes that an Action sets, by name.
pub fn given(spec: &ActionSpec) -> BTreeMap<String, Value> {
    let texts = [
        ("package", &spec.package),
        ("version", &spec.version),
        ("channel", &spec.channel),
        ("repository", &spec.repository),
    ];
    let flags = [
        ("installDependencies", spec.install_dependencies),
        ("ensureConstraintSatisfiability", spec.ensure_constraint_satisfiability),
        ("dryRun", spec.dry_run),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(name, text)| (name.to_owned(), json!(text)));
    let flags = flags.into_iter().filter_map(|(name, flag)| Some((name.to_owned(), json!(flag?))));
    let parameters = spec.parameters.as_ref().and_then(Value::as_object).into_iter().flatten();
    let parameters =
        parameters.map(|(name, value)| (format!("{PARAMETER_PREFIX}{name}"), value.clone()));
    texts.chain(flags).chain(parameters).collect()
}

/// Returns the effective attributes: those of the Action, else of the policy that grants it, else of the
/// class.
///
/// # Errors
///
/// When the class does not know an attribute, lacks a required one, or the parameters do not fit its schema.
pub fn effective(
    spec: &ActionSpec,
    class: &NamedClass,
    policy: Option<(&str, &PolicyRules)>,
) -> Result<EffectiveAction, ActionFailure> {
    let invalid = |message: String| ActionFailure::new(Reason::InvalidAction, message);
    let given = given(spec);
    let known = |name: &str| {
        name.starts_with(PARAMETER_PREFIX) || class.spec.attributes.iter().any(|it| it == name)
    };
    if let Some(name) = given.keys().find(|name| !known(name)) {
        let has = match class.spec.attributes.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        return Err(invalid(format!("class {} has no attribute {name}: {has}", class.name)));
    }
    let mut attributes: BTreeMap<String, (Value, String)> =
        given.into_iter().map(|(name, value)| (name, (value, "request".to_owned()))).collect();
    if let Some((policy, rules)) = policy {
        for rule in &rules.attributes {
            if let Some(value) = &rule.default {
                let entry = attributes.entry(rule.name.clone());
                entry.or_insert_with(|| (value.clone(), format!("policy {policy}")));
            }
        }
    }
    for (name, value) in
        class.spec.defaults.as_ref().and_then(Value::as_object).into_iter().flatten()
    {
        let entry = attributes.entry(name.clone());
        entry.or_insert_with(|| (value.clone(), format!("class {}", class.name)));
    }
    if let Some(name) = class.spec.required.iter().find(|name| !attributes.contains_key(*name)) {
        return Err(invalid(format!("class {} needs spec.{name}", class.name)));
    }
    let parameters = attributes.iter().filter_map(|(name, (value, _))| {
        Some((name.strip_prefix(PARAMETER_PREFIX)?.to_owned(), value.clone()))
    });
    let parameters: serde_json::Map<String, Value> = parameters.collect();
    check_parameters(class, &Value::Object(parameters)).map_err(invalid)?;
    Ok(EffectiveAction { class: class.name.clone(), attributes })
}

/// Validates parameters against the schema of their class.
fn check_parameters(class: &NamedClass, parameters: &Value) -> Result<(), String> {
    let Some(schema) = &class.spec.schema else {
        let named = parameters.as_object().and_then(|it| it.keys().next());
        return match named {
            Some(name) => {
                Err(format!("class {} has no parameters, but {name} is given", class.name))
            }
            None => Ok(()),
        };
    };
    let whole = json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": { "parameters": schema } } },
    });
    let read = Schema::from_crd(&whole, false).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("the schema of class {} is no schema: {}", class.name, errors.join("; "))
    })?;
    let value = json!({ "spec": { "parameters": parameters } });
    let mut errors: Vec<String> = validate(&read, &value).iter().map(ToString::to_string).collect();
    if schema["x-kubernetes-preserve-unknown-fields"] != true {
        let known = schema["properties"].as_object();
        let names = parameters.as_object().into_iter().flat_map(|it| it.keys());
        let unknown = names.filter(|name| known.is_none_or(|it| !it.contains_key(*name)));
        errors.extend(unknown.map(|it| format!("spec.parameters.{it}: the class has no such one")));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

#[cfg(test)]
mod tests;
