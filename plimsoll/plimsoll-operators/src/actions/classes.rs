//! Acceptance of ActionClasses: whether what a class says of its Actions agrees with itself and with other
//! classes.

use std::sync::LazyLock;

use plimsoll_api::duration;
use plimsoll_content::capability::suggestion;
use serde_json::{Value, json};

use super::attributes::{ATTRIBUTES, FLAGS, NamedClass, PARAMETER_PREFIX};
use super::check::parameter_problems;
use super::enumerated;
use super::files::built_in_classes;

static BUILT_IN: LazyLock<Vec<NamedClass>> = LazyLock::new(built_in_classes);

/// Returns whether this program serves the Actions that name a class. If there is no such class, it
/// serves those that name a built-in one: they may have begun while it was there.
pub fn is_served(classes: &[NamedClass], name: &str) -> bool {
    NamedClass::find(classes, name).map_or_else(|| is_built_in(name), NamedClass::is_ours)
}

/// Returns whether a name is that of a built-in class, or an alias of one.
pub fn is_built_in(name: &str) -> bool {
    NamedClass::find(&*BUILT_IN, name).is_some()
}

/// Returns whether a class can be served: its schema is a structural one, its attributes, required attributes
/// and defaults agree with it, and no other class has one of its names before it. A name counts before an
/// alias; of two classes with an alias, the one that this program serves has it, else the first by name.
///
/// # Errors
///
/// All that is wrong, as a sentence without a full stop.
pub fn acceptance(class: &NamedClass, others: &[NamedClass]) -> Result<(), String> {
    let mut wrong = schema_problems(class);
    let is_readable = wrong.is_empty();
    wrong.extend(attribute_problems(class));
    if is_readable {
        wrong.extend(default_problems(class));
    }
    if let Some(why) = duration::problem(&class.spec.ttl_after_finished) {
        wrong.push(format!("spec.ttlAfterFinished {why}"));
    }
    if class.spec.by_hand.chars().any(char::is_control) {
        wrong.push("spec.byHand has more than one line: write one command".to_owned());
    }
    wrong.extend(name_problems(class, others));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Returns what is wrong with the schema of a class.
fn schema_problems(class: &NamedClass) -> Vec<String> {
    let Some(schema) = &class.spec.schema else { return Vec::new() };
    if schema["type"] != "object" {
        return vec!["spec.schema.type has to be object: parameters are fields".to_owned()];
    }
    let errors = class.schema().and_then(Result::err).unwrap_or_default();
    errors.iter().map(|it| format!("spec.schema is no structural schema: {it}")).collect()
}

/// Returns what is wrong with the attributes of a class, and with those that it requires.
fn attribute_problems(class: &NamedClass) -> Vec<String> {
    let spec = &class.spec;
    let mut wrong = Vec::new();
    for name in spec.attributes.iter().filter(|it| !ATTRIBUTES.contains(&it.as_str())) {
        let similar = suggestion(name, ATTRIBUTES.into_iter());
        let all = enumerated(&ATTRIBUTES.map(str::to_owned));
        wrong.push(format!(
            "spec.attributes: an Action has no attribute {name}{similar}; it has {all}, and \
             parameters by spec.schema"
        ));
    }
    for name in spec.required.iter().filter(|it| !class.has(it)) {
        wrong.push(format!(
            "spec.required: {name} is neither in spec.attributes nor in spec.schema"
        ));
    }
    wrong
}

/// Returns what is wrong with the defaults of a class.
fn default_problems(class: &NamedClass) -> Vec<String> {
    let Some(defaults) = &class.spec.defaults else { return Vec::new() };
    let Some(defaults) = defaults.as_object() else {
        return vec!["spec.defaults has to be fields: the names of attributes".to_owned()];
    };
    let mut wrong = Vec::new();
    for (name, value) in defaults {
        if name == "parameters" {
            wrong.push(
                "spec.defaults: write a parameter as parameters.NAME, in one line".to_owned(),
            );
        } else if !class.has(name) {
            wrong.push(format!(
                "spec.defaults: {name} is neither in spec.attributes nor in spec.schema"
            ));
        } else if let Some(parameter) = name.strip_prefix(PARAMETER_PREFIX) {
            // What is required beside it may be given by the Action.
            let found = parameter_problems(class, &json!({ parameter: value }));
            let of_it = found.into_iter().filter(|it| it.starts_with(&format!("spec.{name}")));
            wrong.extend(of_it.map(|it| format!("spec.defaults: {it}")));
        } else if FLAGS.contains(&name.as_str()) != value.is_boolean()
            || !matches!(value, Value::Bool(_) | Value::String(_))
        {
            let wanted = if FLAGS.contains(&name.as_str()) { "true or false" } else { "a text" };
            wrong.push(format!("spec.defaults: {name} is {value}: write {wanted}"));
        }
    }
    wrong
}

/// Returns the names of a class that other classes have before it.
fn name_problems(class: &NamedClass, others: &[NamedClass]) -> Vec<String> {
    let mut wrong = Vec::new();
    for alias in &class.spec.aliases {
        let others = others.iter().filter(|it| it.name != class.name);
        let mut before = others.filter(|it| {
            it.name == *alias || (it.goes_by(alias) && it.precedence() < class.precedence())
        });
        if let Some(other) = before.next() {
            let whose = if other.name == *alias { "the name" } else { "an alias" };
            wrong.push(format!(
                "spec.aliases: {alias} is {whose} of class {}: leave it out",
                other.name
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
