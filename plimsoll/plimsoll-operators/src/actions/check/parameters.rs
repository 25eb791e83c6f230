//! Checks of parameters against the schema of a class.

use k8s_schema::{FieldError, FieldErrorKind, unknown_fields, validate};
use plimsoll_api::olm::action::ActionSpec;
use plimsoll_content::capability::suggestion;
use serde_json::{Map, Value, json};

use super::Problems;
use crate::actions::attributes::{NamedClass, PARAMETER_PREFIX, SetAttributes, text};
use crate::actions::{cut, enumerated};

/// The path of the parameters.
const PATH: &str = "spec.parameters";
/// The maximum length of a value that a sentence repeats, in bytes.
const VALUE_LENGTH_MAX: usize = 256;

/// Adds what is wrong with the parameters of a request, with those that others set.
pub(super) fn given(
    spec: &ActionSpec,
    class: &NamedClass,
    attributes: &SetAttributes,
    found: &mut Problems,
) {
    if let Some(other) = spec.parameters.as_ref().filter(|it| !it.is_object() && !it.is_null()) {
        let other = shown(other);
        return found.add(|| format!("{PATH} is {other}: write fields, each as NAME: VALUE"));
    }
    let parameters = attributes.iter().filter_map(|(name, (value, _))| {
        Some((name.strip_prefix(PARAMETER_PREFIX)?.to_owned(), value.clone()))
    });
    let parameters: Map<String, Value> = parameters.collect();
    check(class, &Value::Object(parameters), found);
}

/// Returns everything that is wrong with parameters, which are an object.
pub(in crate::actions) fn problems(class: &NamedClass, parameters: &Value) -> Vec<String> {
    let mut found = Problems::up_to(usize::MAX);
    check(class, parameters, &mut found);
    found.listed()
}

/// Adds what is wrong with parameters, which are an object.
fn check(class: &NamedClass, parameters: &Value, found: &mut Problems) {
    let (Some(schema), Some(read)) = (&class.spec.schema, class.schema()) else {
        let names = parameters.as_object().into_iter().flat_map(|it| it.keys());
        return found.add_each(names, |name: &String| unknown(class, name));
    };
    let read = match read {
        Ok(read) => read,
        Err(errors) => {
            let errors = errors.join("; ");
            return found
                .add(|| format!("the schema of class {} is no schema: {errors}", class.name));
        }
    };
    let value = json!({ "spec": { "parameters": parameters } });
    let wrong = validate(read, &value);
    found.add_each(&wrong, |error: &FieldError| wrong_value(class, schema, parameters, error));
    let others = unknown_fields(read, &value);
    found.add_each(&others, |path: &String| match path.strip_prefix(PATH) {
        Some(name) => unknown(class, name.trim_start_matches('.')),
        None => format!("{path}: unknown field"),
    });
}

/// Returns the sentence about a parameter that a class does not have; `name` may be the path of a field in one.
fn unknown(class: &NamedClass, name: &str) -> String {
    let path = format!("{PATH}.{name}");
    if class.spec.attributes.iter().any(|it| it == name) {
        return format!("{path}: it is no parameter: write spec.{name}");
    }
    if name.contains(['.', '[']) {
        return format!("{path}: unknown field");
    }
    let names: Vec<String> = class.parameters().map(str::to_owned).collect();
    if names.is_empty() {
        return format!("{path}: class {} has no parameters, but {name} is given", class.name);
    }
    let similar = suggestion(name, names.iter().map(String::as_str));
    let has = match similar.as_str() {
        "" => format!(": it has {}", enumerated(&names)),
        _ => similar,
    };
    format!("{path}: class {} has no parameter {name}{has}", class.name)
}

/// Returns the sentence about a parameter that is missing.
pub(super) fn missing(class: &NamedClass, name: &str) -> String {
    let schema = class.spec.schema.as_ref();
    let of_it = schema.map(|it| it["properties"][name].clone()).unwrap_or_default();
    let example = match of_it["type"].as_str() {
        Some("boolean") => "true",
        Some("integer" | "number") => "1",
        Some("array") => "[foo]",
        Some("object") => "{}",
        _ => "foo",
    };
    format!(
        "class {} needs {PATH}.{name}: write for example \"{name}: {example}\" to {PATH}",
        class.name
    )
}

/// Returns the sentence about a value that the schema of a class does not allow.
fn wrong_value(
    class: &NamedClass,
    schema: &Value,
    parameters: &Value,
    error: &FieldError,
) -> String {
    let Some(path) = error.path.strip_prefix(PATH) else { return error.to_string() };
    let name = path.trim_start_matches('.');
    if error.kind == FieldErrorKind::Required && !name.contains(['.', '[']) {
        return missing(class, name);
    }
    let Some((schema, value)) = find(schema, parameters, name) else { return error.to_string() };
    let wanted = match error.kind {
        FieldErrorKind::TypeInvalid => wanted(schema, value),
        FieldErrorKind::NotSupported => {
            let allowed = schema["enum"].as_array().into_iter().flatten();
            let allowed: Vec<String> = allowed.map(text).collect();
            (!allowed.is_empty()).then(|| match allowed.split_last() {
                Some((last, others)) if !others.is_empty() => {
                    format!("{} or {last}", others.join(", "))
                }
                _ => allowed.join(""),
            })
        }
        _ => None,
    };
    match wanted {
        Some(wanted) => format!("{PATH}{path} is {}: write {wanted}", shown(value)),
        None => error.to_string(),
    }
}

/// Returns a value as a sentence repeats it.
fn shown(value: &Value) -> String {
    cut(&value.to_string(), VALUE_LENGTH_MAX)
}

/// Returns what to write instead of a value of another type; `None` if the schema has no type.
fn wanted(schema: &Value, value: &Value) -> Option<String> {
    let is_simple = !value.is_object() && !value.is_array() && !value.is_null();
    Some(match schema["type"].as_str()? {
        "boolean" => "true or false".to_owned(),
        "string" if is_simple => format!("a text, such as \"{}\"", shown(value)),
        "string" => "a text".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "array" if is_simple => format!("a list, such as [{}]", shown(value)),
        "array" => "a list, such as [foo]".to_owned(),
        _ => "fields, each as NAME: VALUE".to_owned(),
    })
}

/// Returns the schema and the value at a path such as `a.b[0].c`; `None` if there is no value.
fn find<'v>(
    mut schema: &'v Value,
    mut value: &'v Value,
    path: &str,
) -> Option<(&'v Value, &'v Value)> {
    for part in path.split('.').filter(|it| !it.is_empty()) {
        let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !name.is_empty() {
            schema = &schema["properties"][name];
            value = value.get(name)?;
        }
        for index in indexes.split(['[', ']']).filter(|it| !it.is_empty()) {
            schema = &schema["items"];
            value = value.get(index.parse::<usize>().ok()?)?;
        }
    }
    Some((schema, value))
}
