//! Checks of requests that need no cluster: the same in admission, in the controller and on the command line.
//! Each message names the field and says what to write.

mod parameters;
mod problem_list;
mod values;

use std::io::{self, Write};

use k8s_cel::{Environment, Type};
use plimsoll_api::olm::action::{ActionPreconditions, ActionSpec};
use plimsoll_api::olm::policy::PolicyRules;
use plimsoll_api::olm::window::{WindowReference, WindowTimes};
use plimsoll_api::{Reason, duration};
use plimsoll_content::capability::{hint, suggestion};
use plimsoll_plan::windows::own_times;
use plimsoll_plan::windows::problems::window_problems;
use serde_json::Value;

use super::attributes::{
    EffectiveAction, FLAGS, NamedClass, PARAMETER_PREFIX, SPELLINGS, SetAttributes, is_spelled,
    merged, requested,
};
use super::{ActionFailure, enumerated};

use self::problem_list::Problems;

pub(super) use self::parameters::problems as parameter_problems;

/// The maximum length of the spec of an Action as JSON, in bytes. It is stored with the status, and each decision
/// copies it.
const SPEC_BYTES_MAX: usize = 256 * 1024;

/// Returns the effective attributes: those of the Action, else of the policy that grants it, else of the
/// class.
///
/// # Errors
///
/// Everything that is wrong with the request, in one message.
pub fn effective(
    spec: &ActionSpec,
    class: &NamedClass,
    policy: Option<(&str, &PolicyRules)>,
) -> Result<EffectiveAction, ActionFailure> {
    if let Some(failure) = length_failure(spec) {
        return Err(failure);
    }
    let attributes = merged(spec, class, policy);
    let problems = problems(spec, class, &attributes).listed();
    if !problems.is_empty() {
        return Err(ActionFailure::new(Reason::InvalidAction, problems.join("; ")));
    }
    Ok(EffectiveAction { class: class.name.clone(), attributes })
}

/// Returns a failure for each thing that is wrong with a request, whatever is in the cluster. What a policy gives
/// by default counts as missing here. Of many, the last one says how many others there are.
pub fn request(spec: &ActionSpec, class: &NamedClass) -> Vec<ActionFailure> {
    if let Some(failure) = length_failure(spec) {
        return vec![failure];
    }
    let problems = problems(spec, class, &merged(spec, class, None)).listed().into_iter();
    problems.map(|it| ActionFailure::new(Reason::InvalidAction, it)).collect()
}

/// Returns the failure of an Action whose spec is too long to be dealt with; `None` if it is not. The spec is not
/// copied.
pub fn length_failure(spec: &ActionSpec) -> Option<ActionFailure> {
    let is_too_long = serde_json::to_writer(Remaining(SPEC_BYTES_MAX), spec).is_err();
    let message = || format!("spec is longer than {} KiB", SPEC_BYTES_MAX / 1024);
    is_too_long.then(|| ActionFailure::new(Reason::InvalidAction, message()))
}

/// A writer that keeps nothing, and fails once this number of bytes is exceeded.
struct Remaining(usize);

impl Write for Remaining {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or_else(|| io::Error::other("it is too long"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the sentence about a class that does not exist.
pub fn unknown_class(name: &str, classes: &[NamedClass]) -> String {
    let names = classes.iter().flat_map(|it| std::iter::once(&it.name).chain(&it.spec.aliases));
    format!("there is no ActionClass `{name}`{}", hint(name, names.map(String::as_str)))
}

/// Returns what is wrong with a request and its attributes, which are those that count.
fn problems(spec: &ActionSpec, class: &NamedClass, attributes: &SetAttributes) -> Problems {
    let mut found = Problems::of_request();
    unknown(spec, class, &mut found);
    found.extend(missing(class, attributes));
    found.extend(contradictions(spec, class));
    parameters::given(spec, class, attributes, &mut found);
    if class.is_ours() {
        values::check(class, attributes, &mut found);
    }
    for (field, text) in
        [("deadline", &spec.deadline), ("ttlAfterFinished", &spec.ttl_after_finished)]
    {
        found.extend(duration::problem(text).map(|why| format!("spec.{field} {why}")));
    }
    if duration::parse(&spec.deadline).is_ok_and(|it| it.as_secs() == 0) {
        found.add(|| format!("spec.deadline is {:?}: write at least 1s", spec.deadline));
    }
    found.extend(preconditions("spec.preconditions", &spec.preconditions));
    found
}

/// Adds the attributes that a request gives and its class does not have.
fn unknown(spec: &ActionSpec, class: &NamedClass, found: &mut Problems) {
    let has = |name: &str| class.spec.attributes.iter().any(|it| it == name);
    let requested = requested(spec, class);
    let names = requested.keys().filter(|it| !it.starts_with(PARAMETER_PREFIX) && !has(it));
    let sentence = |name: &String| {
        let attributes = class.spec.attributes.iter().map(String::as_str);
        let similar = suggestion(name, attributes);
        let what = match class.spec.attributes.as_slice() {
            _ if class.parameters().any(|it| it == name) => {
                return format!("spec.{name}: it is a parameter: write spec.parameters.{name}");
            }
            _ if !similar.is_empty() => similar,
            [] => ": it has none".to_owned(),
            names => format!(": it has {}", enumerated(names)),
        };
        format!("spec.{name}: class {} has no attribute {name}{what}", class.name)
    };
    found.add_each(names, sentence);
}

/// Returns the required attributes that nothing sets.
fn missing(class: &NamedClass, attributes: &SetAttributes) -> Vec<String> {
    let is_missing = |it: &&String| !attributes.contains_key(*it);
    let sentence = |name: &String| match name.strip_prefix(PARAMETER_PREFIX) {
        Some(name) => parameters::missing(class, name),
        None => format!(
            "class {} needs spec.{name}: write for example \"{name}: {}\"",
            class.name,
            example(name)
        ),
    };
    class.spec.required.iter().filter(is_missing).map(sentence).collect()
}

/// Returns a value that an attribute may have.
fn example(attribute: &str) -> &'static str {
    match attribute {
        "version" => "^1.2",
        "channel" => "stable",
        "repository" => "main",
        name if FLAGS.contains(&name) => "true",
        _ => "foo",
    }
}

/// Returns a sentence for each attribute that is given in two spellings that say the opposite.
fn contradictions(spec: &ActionSpec, class: &NamedClass) -> Vec<String> {
    let given = requested(spec, class);
    let spellings = SPELLINGS.into_iter().filter(|(parameter, attribute)| {
        is_spelled(class, parameter, attribute)
            && given.get(*parameter) == Some(&Value::Bool(true))
            && given.get(*attribute) == Some(&Value::Bool(true))
    });
    let sentence = |(parameter, attribute)| {
        format!("spec.{parameter} says the opposite of spec.{attribute}: leave out one of them")
    };
    spellings.map(sentence).collect()
}

/// Returns what is wrong with preconditions, which are the field `at`.
pub(super) fn preconditions(at: &str, preconditions: &ActionPreconditions) -> Vec<String> {
    let window = preconditions.within_maintenance_window.as_ref();
    let mut found: Vec<String> =
        window.into_iter().flat_map(|it| reference_problems(at, it)).collect();
    for (index, it) in preconditions.expressions.iter().enumerate() {
        if let Some(why) = expression_problem(&it.expression) {
            found.push(format!("{at}.expressions[{index}].expression: {why}"));
        }
    }
    found
}

/// Returns what is wrong with the maintenance window of preconditions.
fn reference_problems(at: &str, window: &WindowReference) -> Vec<String> {
    let at = format!("{at}.withinMaintenanceWindow");
    let times = own_times(window);
    if window.name.is_empty() {
        return window_problems(&times, &at);
    }
    let is_whole = times == WindowTimes::default();
    let problem = || format!("{at} has a name: leave out schedule, timeZone and duration");
    if is_whole { Vec::new() } else { vec![problem()] }
}

/// Returns the reason that an expression over a plan cannot be evaluated; `None` if it can.
fn expression_problem(expression: &str) -> Option<String> {
    let environment = Environment::for_stored_expressions().with_variable("plan", Type::Dyn);
    match environment.compile(expression) {
        Err(errors) => Some(errors.to_string()),
        Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => Some(format!(
            "its value is {}: write one that is true or false, such as plan.changes.size() < 5",
            program.result_type()
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests;
