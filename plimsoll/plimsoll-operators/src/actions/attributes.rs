//! Attributes of an Action: those that it sets, those that its class defines, and the effective ones.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_schema::Schema;
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, EffectiveAttribute};
use plimsoll_api::olm::policy::PolicyRules;
use serde_json::{Value, json};

use super::cut;

/// The controller name of the classes that this program serves.
pub const CONTROLLER: &str = "olm.io/plimsoll";
/// The prefix of the names of parameters.
pub const PARAMETER_PREFIX: &str = "parameters.";
/// The names of the attributes beside parameters.
pub const ATTRIBUTES: [&str; 7] = [
    "package",
    "version",
    "channel",
    "repository",
    "installDependencies",
    "ensureConstraintSatisfiability",
    "dryRun",
];
/// Those of them that are true or false; the others are texts.
pub const FLAGS: [&str; 3] = ["installDependencies", "ensureConstraintSatisfiability", "dryRun"];
/// The maximum number of attributes that a status lists.
const LISTED_MAX: usize = 100;
/// The maximum length of a value that a status lists, in bytes. Of a longer one it has the beginning.
const VALUE_LENGTH_MAX: usize = 1024;
/// The parameters of our classes that are another spelling of an attribute: they are true where it is false.
pub(super) const SPELLINGS: [(&str, &str); 2] = [
    ("parameters.force", "ensureConstraintSatisfiability"),
    ("parameters.noDependencies", "installDependencies"),
];

/// Attributes by name, each with the request, policy or class that set it.
pub(super) type SetAttributes = BTreeMap<String, (Value, String)>;

/// A class with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedClass {
    /// The name of the class.
    pub name: String,
    /// The spec of the class.
    pub spec: ActionClassSpec,
    /// The schema of its parameters, once it was needed.
    parameters: ParameterSchema,
}

/// The schema of the parameters of a class, or what is wrong with it. It is read once, since every decision needs it.
#[derive(Debug, Clone, Default)]
struct ParameterSchema(OnceLock<Result<Schema, Vec<String>>>);

impl PartialEq for ParameterSchema {
    /// It follows from the spec.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl NamedClass {
    /// Returns a class of a name.
    pub fn new(name: impl Into<String>, spec: ActionClassSpec) -> Self {
        Self { name: name.into(), spec, parameters: ParameterSchema::default() }
    }

    /// Returns the schema of an object with parameters in its spec, or what is wrong with it; `None` if the class has
    /// none.
    pub(super) fn schema(&self) -> Option<Result<&Schema, &[String]>> {
        let schema = self.spec.schema.as_ref()?;
        let read = self.parameters.0.get_or_init(|| {
            Schema::from_crd(&wrapped(schema), false)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect())
        });
        Some(read.as_ref().map_err(Vec::as_slice))
    }

    /// Returns the class with a name, else of those with that alias the one that this program serves, or else
    /// the first by name.
    pub fn find<'a>(classes: impl IntoIterator<Item = &'a Self>, name: &str) -> Option<&'a Self> {
        let mut by_alias: Option<&Self> = None;
        for class in classes {
            if class.name == name {
                return Some(class);
            }
            if class.goes_by(name) && by_alias.is_none_or(|it| class.precedence() < it.precedence())
            {
                by_alias = Some(class);
            }
        }
        by_alias
    }

    /// Returns the order of classes that have the same alias: the least one has it.
    pub(super) fn precedence(&self) -> (bool, &str) {
        (!self.is_ours(), &self.name)
    }

    /// Returns whether this program serves the class.
    pub fn is_ours(&self) -> bool {
        self.spec.controller == CONTROLLER
    }

    /// Returns the names of its parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        let properties = self.spec.schema.as_ref().and_then(|it| it["properties"].as_object());
        properties.into_iter().flat_map(|it| it.keys().map(String::as_str))
    }

    /// Returns whether it has a parameter.
    pub fn has_parameter(&self, name: &str) -> bool {
        let schema = self.spec.schema.as_ref();
        let has_any = |it: &Value| {
            it["x-kubernetes-preserve-unknown-fields"] == true
                || it.get("additionalProperties").is_some_and(|it| *it != false)
        };
        schema.is_some_and(has_any) || self.parameters().any(|it| it == name)
    }

    /// Returns whether it has an attribute.
    pub(super) fn has(&self, attribute: &str) -> bool {
        match attribute.strip_prefix(PARAMETER_PREFIX) {
            Some(parameter) => self.has_parameter(parameter),
            None => self.spec.attributes.iter().any(|it| it == attribute),
        }
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
    pub(super) attributes: SetAttributes,
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

    /// Returns the texts of an attribute that is a list; none if it is not set or not a list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.get(name).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Returns whether an attribute is `true`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the attributes with their values as texts.
    pub(super) fn texts_of_all(&self) -> Vec<EffectiveAttribute> {
        let all = self.attributes.iter().map(|(name, (value, set_by))| EffectiveAttribute {
            name: name.clone(),
            value: text(value),
            set_by: set_by.clone(),
        });
        all.collect()
    }

    /// Returns the attributes as a status lists them: of many the first ones, and of long values the beginnings.
    pub fn listed(&self) -> Vec<EffectiveAttribute> {
        let mut listed = self.texts_of_all();
        listed.truncate(LISTED_MAX);
        for it in &mut listed {
            it.name = cut(&it.name, VALUE_LENGTH_MAX);
            it.value = cut(&it.value, VALUE_LENGTH_MAX);
        }
        listed
    }
}

/// Returns whether a status lists its attributes as they are, and not the first ones or the beginnings of values.
pub(super) fn is_complete(listed: &[EffectiveAttribute]) -> bool {
    listed.len() < LISTED_MAX && listed.iter().all(|it| it.value.len() < VALUE_LENGTH_MAX)
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

/// Returns the attributes that an Action of a class sets, by name: those that it gives, and those of which a
/// given parameter is another spelling.
pub fn requested(spec: &ActionSpec, class: &NamedClass) -> BTreeMap<String, Value> {
    let mut attributes = given(spec);
    for (parameter, attribute) in SPELLINGS {
        if is_spelled(class, parameter, attribute)
            && attributes.get(parameter) == Some(&Value::Bool(true))
        {
            attributes.entry(attribute.to_owned()).or_insert(Value::Bool(false));
        }
    }
    attributes
}

/// Returns whether a parameter of a class is another spelling of an attribute.
pub(super) fn is_spelled(class: &NamedClass, parameter: &str, attribute: &str) -> bool {
    let name = parameter.trim_start_matches(PARAMETER_PREFIX);
    class.is_ours()
        && class.parameters().any(|it| it == name)
        && class.spec.attributes.iter().any(|it| it == attribute)
}

/// Returns the schema of an object with parameters in its spec; `schema` is that of the parameters.
fn wrapped(schema: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": { "parameters": schema } } },
    })
}

/// Returns the attributes of an Action, else of the policy that grants it, else of the class.
pub(super) fn merged(
    spec: &ActionSpec,
    class: &NamedClass,
    policy: Option<(&str, &PolicyRules)>,
) -> SetAttributes {
    let requested = requested(spec, class).into_iter();
    let mut attributes: SetAttributes =
        requested.map(|(name, value)| (name, (value, "request".to_owned()))).collect();
    if let Some((policy, rules)) = policy {
        // What a policy sets of a parameter is for those of its classes that have it.
        let has = |name: &str| match name.strip_prefix(PARAMETER_PREFIX) {
            Some(parameter) => class.has_parameter(parameter),
            None => true,
        };
        for rule in rules.attributes.iter().filter(|it| has(&it.name)) {
            if let Some(value) = rule.fixed.as_ref().or(rule.default.as_ref()) {
                let entry = attributes.entry(rule.name.clone());
                entry.or_insert_with(|| (value.clone(), format!("policy {policy}")));
            }
        }
    }
    let defaults = class.spec.defaults.as_ref().and_then(Value::as_object);
    for (name, value) in defaults.into_iter().flatten() {
        let entry = attributes.entry(name.clone());
        entry.or_insert_with(|| (value.clone(), format!("class {}", class.name)));
    }
    attributes
}

#[cfg(test)]
mod tests;
