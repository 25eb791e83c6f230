//! Strict reading of an Operator's fields: what an API server refuses or drops, and what nothing reads.

use k8s_schema::{
    CustomKind, FieldError, FieldErrorKind, malformed_metadata, refused_of_custom, unknown_fields,
};
use plimsoll_api::olm::action::CREATED_BY_ANNOTATION;
use plimsoll_api::olm::{
    ABORT_OF_ANNOTATION, CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL,
    INSTALLED_AS_USER, OPERATOR_LABEL,
};
use plimsoll_api::{OPERATOR, crd};
use plimsoll_content::capability::{meant, most_similar};
use plimsoll_content::diagnostic::{LoadoutCode, Severity};
use plimsoll_content::spelling::is_misspelt;
use serde_json::{Map, Value, json};

/// The fields of metadata that people write.
const METADATA_FIELDS: [&str; 6] =
    ["annotations", "finalizers", "generateName", "labels", "name", "ownerReferences"];
/// The fields of metadata that are checked otherwise, or not at all.
const UNCHECKED_METADATA: [&str; 3] = ["annotations", "labels", "managedFields"];
/// The fields that an API server sets: what a file has of them is not used.
const SERVER_FIELDS: [&str; 2] = ["status.", "metadata.managedFields"];
/// The name that an Operator without a usable one is checked with.
const NAME: &str = "operator";
/// The prefix of the annotations and labels of the add-on layer.
const PREFIX: &str = "olm.io/";
/// The annotations of an Operator that are read.
const ANNOTATIONS: [&str; 3] = [CHANGE_SET_ANNOTATION, CREATED_BY_ANNOTATION, ABORT_OF_ANNOTATION];
/// The labels of an Operator that are read.
const LABELS: [&str; 2] = [INSTALLED_AS_LABEL, OPERATOR_LABEL];

/// A defect of a field.
pub(super) struct FieldDefect {
    /// The path of the field in its object; empty for the object.
    pub(super) field: String,
    pub(super) code: LoadoutCode,
    pub(super) severity: Severity,
    pub(super) message: String,
}

impl FieldDefect {
    /// Creates a defect of what cannot be read.
    pub(super) fn unreadable(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        Self { field, code: LoadoutCode::Unreadable, severity: Severity::Error, message }
    }
}

/// The definition of Operator.
pub(super) struct OperatorSchema {
    kind: CustomKind,
    /// The schema as the definition has it.
    schema: Value,
}

impl OperatorSchema {
    pub(super) fn new() -> Self {
        let definitions = crd::operator_manifests();
        let is_it = |it: &&Value| it["spec"]["names"]["kind"] == OPERATOR.kind;
        let definition = definitions.iter().find(is_it).expect("there is a definition of Operator");
        let version = &definition["spec"]["versions"][0];
        let kind = CustomKind::of(definition, version).expect("our definitions are structural");
        Self { kind, schema: version["schema"]["openAPIV3Schema"].clone() }
    }

    /// Returns the defects of an Operator. `name` is empty if it has no usable one.
    pub(super) fn defects(&self, name: &str, object: &Value) -> Vec<FieldDefect> {
        let mut object = object.clone();
        let mut defects = Vec::new();
        keep_form(&mut object, &mut defects);
        self.keep_metadata(&mut object, &mut defects);
        for field in ["annotations", "labels"] {
            keep_texts(&mut object, field, &mut defects);
        }
        unread(&object, "annotation", &ANNOTATIONS, &LABELS, &mut defects);
        unread(&object, "label", &LABELS, &ANNOTATIONS, &mut defects);
        installed_as(&object, &mut defects);
        let unknown = unknown_fields(&self.kind.schema, &object).into_iter();
        let unknown = unknown.filter(|path| !SERVER_FIELDS.iter().any(|it| path.starts_with(it)));
        defects.extend(unknown.map(|path| self.unknown_field(name, &object, path)));
        let refused = refused_of_custom(OPERATOR.group, OPERATOR.kind, &self.kind, object);
        defects.extend(refused.iter().map(refused_field));
        defects
    }

    /// Keeps the fields of metadata that have the right type, so that everything else can be checked: an API server
    /// reports no other field then.
    fn keep_metadata(&self, object: &mut Value, defects: &mut Vec<FieldDefect>) {
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        metadata.retain(|field, value| {
            if value.is_null() || UNCHECKED_METADATA.contains(&field.as_str()) {
                return true;
            }
            let alone = Map::from_iter([(field.clone(), value.clone())]);
            let problem = malformed_metadata(&self.kind.schema, &json!({ "metadata": alone }));
            let is_right = problem.is_none();
            defects.extend(problem.map(|problem| {
                let path = format!("metadata.{field}");
                FieldDefect::unreadable(&path, format!("{path}: {problem}"))
            }));
            is_right
        });
    }

    fn unknown_field(&self, name: &str, object: &Value, path: String) -> FieldDefect {
        let package = object["spec"]["package"].as_str();
        let package = package.filter(|it| !name.is_empty() && *it != name);
        if let ("spec.package", Some(package)) = (path.as_str(), package) {
            let message = format!(
                "the name of an Operator is that of its package: name it {package} instead of {name}, and \
                 remove spec.package"
            );
            let code = LoadoutCode::Duplicate;
            return FieldDefect { code, ..FieldDefect::unreadable(path, message) };
        }
        let (parent, field) = path.rsplit_once('.').unwrap_or(("", path.as_str()));
        let known = self.known(parent);
        let instead = match most_similar(field, known.iter().copied()) {
            None if known.is_empty() => String::new(),
            None => format!("; there is {}", known.join(", ")),
            similar => meant(similar),
        };
        let message = format!("an Operator has no field {path}{instead}");
        FieldDefect::unreadable(path, message)
    }

    /// Returns the fields of a mapping.
    fn known(&self, path: &str) -> Vec<&str> {
        if path == "metadata" {
            return METADATA_FIELDS.to_vec();
        }
        let mut schema = &self.schema;
        for part in path.split('.').filter(|it| !it.is_empty()) {
            let field = part.split('[').next().unwrap_or_default();
            schema = &schema["properties"][field];
            if part.contains('[') {
                schema = &schema["items"];
            }
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(|(field, _)| field.as_str()).collect()
    }
}

/// Replaces metadata, the name and the spec if they are of a wrong form, so that everything else can be checked.
fn keep_form(object: &mut Value, defects: &mut Vec<FieldDefect>) {
    if !matches!(object["spec"], Value::Null | Value::Object(_)) {
        defects.push(FieldDefect::unreadable("spec", "spec is not a mapping"));
        object["spec"] = json!({});
    }
    let (metadata, name) = (&object["metadata"], &object["metadata"]["name"]);
    let defect = match (metadata, name) {
        (Value::Object(_), Value::String(name)) if !name.is_empty() => return,
        (Value::Object(_) | Value::Null, Value::Null | Value::String(_)) => {
            let message = "metadata.name is missing: it is the name of the package";
            FieldDefect::unreadable("metadata", message)
        }
        (Value::Object(_), other) => {
            let message = format!("metadata.name is {other}, and must be a text: put it in quotes");
            FieldDefect::unreadable("metadata.name", message)
        }
        _ => {
            let message = "metadata is not a mapping with the name of the package";
            FieldDefect::unreadable("metadata", message)
        }
    };
    defects.push(defect);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = NAME.into();
}

/// Keeps the annotations or labels that are texts, so that everything else can be checked.
fn keep_texts(object: &mut Value, field: &str, defects: &mut Vec<FieldDefect>) {
    let path = format!("metadata.{field}");
    let Some(found) = object.get_mut("metadata").and_then(|it| it.get_mut(field)) else { return };
    match found {
        Value::Null => {}
        Value::Object(texts) => texts.retain(|key, value| {
            let is_text = value.is_string() || value.is_null();
            if !is_text {
                let message =
                    format!("{path}.{key} is {value}, and must be a text: put it in quotes");
                defects.push(FieldDefect::unreadable(format!("{path}.{key}"), message));
            }
            is_text
        }),
        other => {
            let message = format!("{path} is not a mapping of keys to texts");
            defects.push(FieldDefect::unreadable(path, message));
            *other = Value::Null;
        }
    }
}

/// Reports annotations or labels of the add-on layer that nothing reads. `others` are the keys of the other
/// of the two.
fn unread(
    object: &Value,
    what: &str,
    known: &[&str],
    others: &[&str],
    defects: &mut Vec<FieldDefect>,
) {
    let path = format!("metadata.{what}s");
    let written = object["metadata"][format!("{what}s")].as_object();
    for key in written.into_iter().flatten().map(|(key, _)| key.as_str()) {
        if known.contains(&key) {
            continue;
        }
        let near = known.iter().find(|it| is_misspelt(key, it)).copied();
        let (severity, message) = if others.contains(&key) {
            let other = if what == "label" { "an annotation" } else { "a label" };
            (Severity::Error, format!("{key} is {other}, and is not read as {what}"))
        } else if near.is_some() {
            (Severity::Error, format!("nothing reads the {what} {key}{}", meant(near)))
        } else if key.starts_with(PREFIX) {
            (Severity::Warning, format!("nothing reads the {what} {key}: remove it"))
        } else {
            continue;
        };
        let field = format!("{path}.{key}");
        defects.push(FieldDefect { field, code: LoadoutCode::UnreadLabel, severity, message });
    }
}

/// Reports a value of the label that says why the Operator is there, if it means nothing.
fn installed_as(object: &Value, defects: &mut Vec<FieldDefect>) {
    let values = [INSTALLED_AS_USER, INSTALLED_AS_DEPENDENCY];
    let Some(value) = object["metadata"]["labels"][INSTALLED_AS_LABEL].as_str() else { return };
    if values.contains(&value) {
        return;
    }
    let instead = match most_similar(value, values.into_iter()) {
        None => format!("; there is {}", values.join(" and ")),
        similar => meant(similar),
    };
    let (code, severity) = (LoadoutCode::UnreadLabel, LoadoutCode::UnreadLabel.severity());
    let field = format!("metadata.labels.{INSTALLED_AS_LABEL}");
    let message = format!(
        "the label {INSTALLED_AS_LABEL} has no value {value:?}, and counts for nothing{instead}"
    );
    defects.push(FieldDefect { field, code, severity, message });
}

/// Returns what an API server refuses as a defect.
fn refused_field(error: &FieldError) -> FieldDefect {
    if matches!(error.path.as_str(), "" | "<nil>") {
        return FieldDefect::unreadable("", error.message());
    }
    let is_unquoted = error.kind == FieldErrorKind::TypeInvalid
        && error.detail.contains("must be of type string")
        && matches!(
            error.value.as_ref().and_then(Value::as_str),
            Some("number" | "integer" | "boolean")
        );
    let help = if is_unquoted { ": put it in quotes" } else { "" };
    FieldDefect::unreadable(&error.path, format!("{error}{help}"))
}
