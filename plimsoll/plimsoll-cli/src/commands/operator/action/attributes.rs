//! The spec of a request, as the command line gives it.

use std::time::Duration;

use clap::ValueEnum;
use plimsoll_api::duration;
use plimsoll_api::olm::action::ActionSpec;
use plimsoll_content::capability::suggestion;
use plimsoll_operators::RequestedPackage;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check;
use plimsoll_operators::query::range_beside;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::RunArguments;
use super::values::{boolean, field, split, typed};
use crate::exit::Refusal;

/// What precedes the name of a parameter for `--set`, if an attribute has the same name.
const PARAMETERS: &str = "parameters.";
/// The parameter with the packages after the first one.
const PACKAGES: &str = "packages";
/// The option that sets attributes and parameters.
const SET: &str = "--set";
/// The option that sets parameters alone.
const PARAM: &str = "--param";
/// The attribute that says how long an Action may take.
const DEADLINE: &str = "deadline";

/// The type of an attribute that is not a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttributeType {
    /// Any text.
    Text,
    /// True or false.
    Flag,
    /// A duration, such as `10m`.
    Duration,
}

/// The attributes that are not parameters. Each class has those with durations.
const ATTRIBUTES: [(&str, AttributeType); 9] = [
    ("package", AttributeType::Text),
    ("version", AttributeType::Text),
    ("channel", AttributeType::Text),
    ("repository", AttributeType::Text),
    ("installDependencies", AttributeType::Flag),
    ("ensureConstraintSatisfiability", AttributeType::Flag),
    ("dryRun", AttributeType::Flag),
    (DEADLINE, AttributeType::Duration),
    ("ttlAfterFinished", AttributeType::Duration),
];

/// A value for an attribute or a parameter, such as `cascade=true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    name: String,
    text: String,
}

impl Setting {
    /// Reads a setting.
    ///
    /// # Errors
    ///
    /// When it has no name or no value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
        let (name, text) = parts.ok_or("expected NAME=VALUE, such as cascade=true")?;
        Ok(Self { name: name.trim().to_owned(), text: text.to_owned() })
    }
}

/// Reads a duration that specs can have.
///
/// # Errors
///
/// When it is none, or not one of whole seconds.
pub(super) fn whole_duration(text: &str) -> Result<Duration, String> {
    let quoted = format!("`{text}`");
    // That a unit, such as a year, has no length of its own, is said in words of a library.
    let duration = duration::parse(text).map_err(|error| match error.contains(&quoted) {
        true => error,
        false => {
            format!("{quoted} is not a duration; use units, such as 90s, 40m, 1h30m or 2d")
        }
    })?;
    match duration.subsec_nanos() {
        0 => Ok(duration),
        _ => Err(format!("{quoted} has a part of a second; use whole seconds, such as 90s")),
    }
}

/// Reads how long an Action may take.
///
/// # Errors
///
/// When it is no duration of whole seconds, or none at all.
pub(super) fn deadline_duration(text: &str) -> Result<Duration, String> {
    let duration = whole_duration(text)?;
    match duration.is_zero() {
        false => Ok(duration),
        true => Err(format!("`{text}` is too short: write at least 1s")),
    }
}

/// Returns a duration as specs have it.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}

/// Returns the requested spec, without the fields that the command line leaves out. Names and types
/// of values are those of the class, if that is known.
///
/// # Errors
///
/// When something is given twice, or the class has no attribute or parameter of a name, or one of
/// another type.
pub(super) fn spec_of(
    arguments: &RunArguments,
    class: Option<&NamedClass>,
) -> Result<Value, Refusal> {
    let mut spec = SpecBuilder { class, spec: flat(arguments)?, parameters: Map::new() };
    spec.add_packages(arguments.packages.get(1..).unwrap_or_default())?;
    for setting in &arguments.parameters {
        let path = split(&setting.name, '.');
        spec.set_parameter(&path, setting).map_err(|it| refused(PARAM, setting, &it))?;
    }
    for setting in &arguments.settings {
        spec.set(setting).map_err(|it| refused(SET, setting, &it))?;
    }
    let SpecBuilder { mut spec, parameters, .. } = spec;
    if !parameters.is_empty() {
        spec.insert("parameters".to_owned(), parameters.into());
    }
    let names = arguments.preconditions.iter().filter_map(ValueEnum::to_possible_value);
    let mut conditions: Map<String, Value> =
        names.map(|it| (it.get_name().to_owned(), true.into())).collect();
    // A schedule has the window itself.
    if let Some(window) =
        arguments.maintenance_window.as_ref().filter(|_| arguments.schedule.is_none())
    {
        conditions.insert("withinMaintenanceWindow".to_owned(), json!({ "name": window }));
    }
    if !conditions.is_empty() {
        spec.insert("preconditions".to_owned(), conditions.into());
    }
    Ok(spec.into())
}

fn refused(option: &str, Setting { name, text }: &Setting, problem: &str) -> Refusal {
    Refusal::usage(format!("`{option} {name}={text}`: {problem}"))
}

/// Returns the fields that options of their own set.
fn flat(arguments: &RunArguments) -> Result<Map<String, Value>, Refusal> {
    let package = arguments.packages.first();
    let own = package.and_then(|it| it.range.as_ref());
    if arguments.version.is_some()
        && let Some(message) = range_beside("--version", &arguments.packages)
    {
        return Err(Refusal::usage(message));
    }
    let texts = [
        ("actionClass", Some(arguments.class.clone())),
        ("package", package.map(|it| it.name.clone())),
        ("version", own.or(arguments.version.as_ref()).cloned()),
        ("channel", arguments.channel.clone()),
        ("repository", arguments.repository.clone()),
        (DEADLINE, arguments.deadline.map(seconds)),
        ("ttlAfterFinished", arguments.own_ttl().map(seconds)),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, json!(text?))));
    let flags = [
        ("installDependencies", arguments.install_dependencies),
        ("ensureConstraintSatisfiability", arguments.ensure_constraint_satisfiability),
        ("dryRun", arguments.options.trial.is_plan().then_some(true)),
    ];
    let flags = flags.into_iter().filter_map(|(name, flag)| Some((name, json!(flag?))));
    Ok(texts.chain(flags).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A spec that is being made.
struct SpecBuilder<'c> {
    /// The class; `None` if the user may not read it.
    class: Option<&'c NamedClass>,
    spec: Map<String, Value>,
    parameters: Map<String, Value>,
}

impl SpecBuilder<'_> {
    /// Adds the packages after the first one.
    fn add_packages(&mut self, packages: &[RequestedPackage]) -> Result<(), Refusal> {
        if packages.is_empty() {
            return Ok(());
        }
        if let Some(class) = self.class
            && class.spec.schema.as_ref().is_none_or(|it| field(it, PACKAGES).is_err())
        {
            let message = match class.spec.attributes.iter().any(|it| it == "package") {
                true => "takes one package: request an Action for each",
                false => "takes no packages",
            };
            return Err(Refusal::usage(format!("class {} {message}", class.name)));
        }
        let text = |it: &RequestedPackage| match &it.range {
            Some(range) => format!("{}@{range}", it.name),
            None => it.name.clone(),
        };
        let packages: Vec<String> = packages.iter().map(text).collect();
        self.parameters.insert(PACKAGES.to_owned(), json!(packages));
        Ok(())
    }

    /// Sets an attribute, or a parameter of the class.
    fn set(&mut self, setting: &Setting) -> Result<(), String> {
        let Setting { name, text } = setting;
        let attribute = ATTRIBUTES.iter().find(|(attribute, _)| attribute == name);
        let Some((_, type_)) = attribute.filter(|it| self.has_attribute(it.0)) else {
            let path = name.strip_prefix(PARAMETERS).unwrap_or(name);
            return self.set_parameter(&split(path, '.'), setting);
        };
        let value = match type_ {
            AttributeType::Text if text.is_empty() => return Err("it has no value".to_owned()),
            AttributeType::Text => text.as_str().into(),
            AttributeType::Flag => boolean(text)?.into(),
            AttributeType::Duration if name == DEADLINE => seconds(deadline_duration(text)?).into(),
            AttributeType::Duration => seconds(whole_duration(text)?).into(),
        };
        match self.spec.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is given twice: give it once")),
        }
    }

    /// Returns whether the class has an attribute; true if the class is not known.
    fn has_attribute(&self, name: &str) -> bool {
        let of_all = ATTRIBUTES.contains(&(name, AttributeType::Duration));
        of_all || self.class.is_none_or(|it| it.spec.attributes.iter().any(|it| it == name))
    }

    /// Sets a parameter, or a field of one.
    fn set_parameter(&mut self, path: &[String], setting: &Setting) -> Result<(), String> {
        let schema = match self.class {
            Some(class) => parameter_schema(class, path)?,
            None => &Value::Null,
        };
        let value = typed(&setting.text, schema)?;
        insert(&mut self.parameters, path, value)
    }
}

/// Adds a value to an object, at a path.
fn insert(object: &mut Map<String, Value>, path: &[String], value: Value) -> Result<(), String> {
    let twice = |name: &str| format!("{name} is given twice: give it once");
    match path {
        [] => Err("it has no name".to_owned()),
        [name] if object.contains_key(name) => Err(twice(name)),
        [name] => {
            object.insert(name.clone(), value);
            Ok(())
        }
        [name, rest @ ..] => {
            let inner = object.entry(name.clone()).or_insert_with(|| json!({}));
            insert(inner.as_object_mut().ok_or_else(|| twice(name))?, rest, value)
        }
    }
}

/// Returns the schema of a parameter, or of a field of one.
///
/// # Errors
///
/// When the class has no such one; the error names those that it has.
fn parameter_schema<'c>(class: &'c NamedClass, path: &[String]) -> Result<&'c Value, String> {
    let Some((first, rest)) = path.split_first() else { return Err("it has no name".to_owned()) };
    let unknown = |of_class: Vec<&str>| {
        let attributes = class.spec.attributes.iter().map(String::as_str);
        let always = ATTRIBUTES.iter().filter(|it| it.1 == AttributeType::Duration).map(|it| it.0);
        let names: Vec<&str> = attributes.chain(of_class).chain(always).collect();
        let suggestion = suggestion(first, names.iter().copied());
        let (class, names) = (&class.name, names.join(", "));
        format!("class {class} has no attribute or parameter `{first}`{suggestion}; it has {names}")
    };
    let Some(schema) = &class.spec.schema else { return Err(unknown(Vec::new())) };
    let mut schema = field(schema, first).map_err(unknown)?;
    let mut parent = first.as_str();
    for name in rest {
        if schema["type"] == "array" {
            return Err(format!("{parent} is a list: write the whole of it, as {parent}={{a,b}}"));
        }
        schema = field(schema, name).map_err(|known| match known.as_slice() {
            [] => format!("{parent} has no fields"),
            known => {
                let suggestion = suggestion(name, known.iter().copied());
                let known = known.join(", ");
                format!("{parent} has no field `{name}`{suggestion}; it has {known}")
            }
        })?;
        parent = name;
    }
    Ok(schema)
}

/// Fails if a request is one that admission refuses.
///
/// # Errors
///
/// When it is; the error has all that is wrong with it.
pub(super) fn require_valid(spec: &Value, class: &NamedClass) -> Result<(), Refusal> {
    let spec = ActionSpec::deserialize(spec);
    let spec =
        spec.map_err(|error| Refusal::usage(format!("the request cannot be read: {error}")))?;
    let problems: Vec<String> =
        check::request(&spec, class).into_iter().map(|it| it.message).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Refusal::usage(problems.join("\n"))),
    }
}

#[cfg(test)]
mod tests;
