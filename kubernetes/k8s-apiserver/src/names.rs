//! Labels and annotations: what is wrong with their keys and values.
use k8s_schema::names;

/// What is wrong with a label or annotation key.
pub(crate) fn qualified_name_problem(key: &str) -> Option<String> {
    let problems = names::qualified(key);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// What is wrong with the value of a label.
pub(crate) fn label_value_problem(value: &str) -> Option<String> {
    let problems = names::label_value(value);
    (!problems.is_empty()).then(|| problems.join("; "))
}
