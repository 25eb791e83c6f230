//! Actions, classes and policies in files.

use k8s_schema::{Schema, unknown_fields, validate};
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec};
use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CRON_ACTION, EVENT_ACTION, RETRY_ACTION, crd,
};
use plimsoll_content::capability::suggestion;
use plimsoll_content::yaml;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::attributes::NamedClass;
use super::policy::NamedPolicy;
use crate::loadout::LoadoutFile;

/// The kinds that are read.
const KINDS: [ApiKind; 6] =
    [ACTION, RETRY_ACTION, CRON_ACTION, EVENT_ACTION, ACTION_CLASS, ACTION_POLICY];

/// An Action in a file, or the template of a RetryAction, CronAction or EventAction.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredAction {
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; empty if it specifies none.
    pub namespace: String,
    /// The name of the object, or its `generateName`.
    pub name: String,
    /// The spec of the Action.
    pub spec: ActionSpec,
}

/// The Actions, classes and policies in files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionFiles {
    /// The Actions, in order.
    pub actions: Vec<DeclaredAction>,
    /// The classes, in order.
    pub classes: Vec<NamedClass>,
    /// The policies, by name.
    pub policies: Vec<NamedPolicy>,
}

impl ActionFiles {
    /// Reads files. Documents of other kinds are ignored.
    ///
    /// # Errors
    ///
    /// What is wrong, a line each, with its position.
    pub fn read(files: &[LoadoutFile]) -> Result<Self, Vec<String>> {
        let mut found = Self::default();
        let mut errors = Vec::new();
        for file in files {
            for document in yaml::parse(&file.text) {
                let place = format!("{}:{}", file.path, document.line);
                match document.value {
                    Ok(value) => {
                        let wrong = found.add(&value).into_iter();
                        errors.extend(wrong.map(|it| format!("{place}: {it}")));
                    }
                    Err(error) => errors.push(format!("{}:{}: {error}", file.path, error.line)),
                }
            }
        }
        found.policies.sort_by(|a, b| a.name.cmp(&b.name));
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    /// Adds an object, or returns what is wrong with it.
    fn add(&mut self, object: &Value) -> Vec<String> {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let api_version = text("/apiVersion");
        let is_kind = |it: &&ApiKind| it.api_version() == api_version && object["kind"] == it.kind;
        let Some(kind) = KINDS.iter().find(is_kind) else { return Vec::new() };
        let errors = errors(*kind, object);
        if !errors.is_empty() {
            return errors;
        }
        let name = text("/metadata/name");
        let spec = &object["spec"];
        match *kind {
            ACTION_CLASS => match read(spec) {
                Ok(spec) => self.classes.push(NamedClass { name, spec }),
                Err(error) => return vec![error],
            },
            ACTION_POLICY => match read(spec) {
                Ok(spec) => self.policies.push(NamedPolicy { name, spec }),
                Err(error) => return vec![error],
            },
            kind => match read(if kind == ACTION { spec } else { &spec["template"] }) {
                Ok(spec) => self.actions.push(DeclaredAction {
                    kind: kind.kind.to_owned(),
                    namespace: text("/metadata/namespace"),
                    name: if name.is_empty() { text("/metadata/generateName") } else { name },
                    spec,
                }),
                Err(error) => return vec![error],
            },
        }
        Vec::new()
    }
}

fn read<T: DeserializeOwned>(spec: &Value) -> Result<T, String> {
    T::deserialize(spec).map_err(|error| format!("spec: {error}"))
}

/// Validates an object against the CustomResourceDefinition of its kind, and returns what is wrong.
fn errors(kind: ApiKind, object: &Value) -> Vec<String> {
    let definitions = crd::action_manifests();
    let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == kind.kind);
    let Some(definition) = definition else { return Vec::new() };
    let definition = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let Ok(schema) = Schema::from_crd(definition, false) else { return Vec::new() };
    let unknown = unknown_fields(&schema, object);
    let unknown = unknown.iter().map(|it| unknown_field(definition, object, it));
    validate(&schema, object).iter().map(ToString::to_string).chain(unknown).collect()
}

/// Returns the sentence about a field that a kind does not have, with the field that may be meant.
fn unknown_field(definition: &Value, object: &Value, path: &str) -> String {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let fields = parent.split('.').filter(|it| !it.is_empty());
    let known = fields.fold(definition, |schema, field| match field.split_once('[') {
        Some((field, _)) => &schema["properties"][field]["items"],
        None => &schema["properties"][field],
    });
    let pointer = format!("/{}/actionClass", parent.replace('.', "/"));
    let class = object.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
    let built_in = built_in_classes();
    let class = NamedClass::find(&built_in, class);
    if class.is_some_and(|it| it.parameters().any(|it| it == name)) {
        return format!(
            "{path}: unknown field; it is a parameter: write {parent}.parameters.{name}"
        );
    }
    let known = known["properties"].as_object().into_iter().flat_map(|it| it.keys());
    format!("{path}: unknown field{}", suggestion(name, known.map(String::as_str)))
}

/// Returns the built-in classes.
pub fn built_in_classes() -> Vec<NamedClass> {
    let class = |object: Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let spec: ActionClassSpec = read(&object["spec"]).unwrap_or_default();
        NamedClass { name, spec }
    };
    plimsoll_api::classes::built_in().into_iter().map(class).collect()
}

#[cfg(test)]
mod tests;
