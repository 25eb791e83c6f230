//! Actions, classes, policies, maintenance windows and the labels of namespaces in files.

use std::collections::BTreeMap;

use k8s_schema::{Schema, unknown_fields, validate};
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec};
use plimsoll_api::olm::policy::ActionPolicySpec;
use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CRON_ACTION, EVENT_ACTION, MAINTENANCE_WINDOW,
    RETRY_ACTION, crd,
};
use plimsoll_content::capability::suggestion;
use plimsoll_content::yaml;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::attributes::NamedClass;
use super::policy::NamedPolicy;
use super::policy::problems::problems;
use crate::loadout::LoadoutFile;
use plimsoll_plan::windows::{NamedWindow, OpeningTimes};

/// The kinds that are read, beside Namespaces.
const KINDS: [ApiKind; 7] = [
    ACTION,
    RETRY_ACTION,
    CRON_ACTION,
    EVENT_ACTION,
    ACTION_CLASS,
    ACTION_POLICY,
    MAINTENANCE_WINDOW,
];

/// The label that every namespace has: its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

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

/// The Actions, classes, policies, MaintenanceWindows and the labels of namespaces in files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionFiles {
    /// The Actions, in order.
    pub actions: Vec<DeclaredAction>,
    /// The classes, in order.
    pub classes: Vec<NamedClass>,
    /// The policies, by name.
    pub policies: Vec<NamedPolicy>,
    /// The labels of Namespaces, by name.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The MaintenanceWindows, in order.
    pub windows: Vec<NamedWindow>,
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
                        let wrong = objects(&value).flat_map(|it| found.add(it));
                        errors.extend(wrong.map(|it| format!("{place}: {it}")));
                    }
                    Err(error) => errors.push(format!("{}:{}: {error}", file.path, error.line)),
                }
            }
        }
        found.policies.sort_by(|a, b| a.name.cmp(&b.name));
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    /// Returns the labels of a namespace: those in the files, and its name, which each has.
    pub fn labels(&self, namespace: &str) -> BTreeMap<String, String> {
        let mut labels = self.namespaces.get(namespace).cloned().unwrap_or_default();
        labels.insert(NAME_LABEL.to_owned(), namespace.to_owned());
        labels
    }

    /// Adds an object, or returns what is wrong with it.
    fn add(&mut self, object: &Value) -> Vec<String> {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let api_version = text("/apiVersion");
        if api_version == "v1" && object["kind"] == "Namespace" {
            let labels = &object["metadata"]["labels"];
            return match Option::<BTreeMap<String, String>>::deserialize(labels) {
                Ok(labels) => {
                    self.namespaces.insert(text("/metadata/name"), labels.unwrap_or_default());
                    Vec::new()
                }
                Err(error) => vec![format!("metadata.labels: {error}")],
            };
        }
        let is_kind = |it: &&ApiKind| it.api_version() == api_version && object["kind"] == it.kind;
        let Some(kind) = KINDS.iter().find(is_kind) else {
            return other_kind(object).into_iter().collect();
        };
        let errors = errors(*kind, object);
        if !errors.is_empty() {
            return errors;
        }
        let name = text("/metadata/name");
        let spec = &object["spec"];
        match *kind {
            ACTION_CLASS => match read(spec) {
                Ok(spec) => self.classes.push(NamedClass::new(name, spec)),
                Err(error) => return vec![error],
            },
            ACTION_POLICY => match read::<ActionPolicySpec>(spec) {
                Ok(spec) => {
                    let problems = problems(&spec);
                    self.policies.push(NamedPolicy { name, spec });
                    return problems;
                }
                Err(error) => return vec![error],
            },
            MAINTENANCE_WINDOW => {
                let window = read(spec).and_then(|spec| {
                    OpeningTimes::parse(&spec)?;
                    Ok(NamedWindow { name, spec })
                });
                match window {
                    Ok(window) => self.windows.push(window),
                    Err(error) => return vec![error],
                }
            }
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

/// Reads the spec of an Action that is not in an object.
///
/// # Errors
///
/// What is wrong, a line each.
pub fn action_spec(spec: &Value) -> Result<ActionSpec, Vec<String>> {
    let object = json!({
        "apiVersion": ACTION.api_version(), "kind": ACTION.kind, "metadata": {}, "spec": spec,
    });
    let errors = errors(ACTION, &object);
    if errors.is_empty() { read(spec).map_err(|error| vec![error]) } else { Err(errors) }
}

/// Returns what is wrong with an object of another kind that is like one of those that are read: its version or its kind.
fn other_kind(object: &Value) -> Option<String> {
    let [version, kind] = ["apiVersion", "kind"].map(|it| object[it].as_str().unwrap_or_default());
    let known = KINDS.iter().find(|it| version.starts_with(&format!("{}/", it.group)))?;
    if KINDS.iter().any(|it| it.kind == kind) {
        return Some(format!("apiVersion is {version}: write {}", known.api_version()));
    }
    let similar = suggestion(kind, KINDS.iter().map(|it| it.kind));
    (!similar.is_empty()).then(|| format!("kind {kind} is not known{similar}"))
}

/// Returns the objects of a document: its items if it is a list, as `kubectl get -o yaml` prints them.
fn objects(document: &Value) -> impl Iterator<Item = &Value> {
    let is_list = document["kind"].as_str().is_some_and(|it| it.ends_with("List"));
    let items = document["items"].as_array().filter(|_| is_list);
    let itself = items.is_none().then_some(document);
    items.into_iter().flatten().chain(itself)
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
        NamedClass::new(name, spec)
    };
    plimsoll_api::classes::built_in().into_iter().map(class).collect()
}

#[cfg(test)]
mod tests;
