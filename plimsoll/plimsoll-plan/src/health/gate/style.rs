//! Whether a ClusterOperator says what people need to read (CO-5, CO-13, CO-14,
//! CO-17).
//!
//! Nothing of this gates: it is what a component's authors should hear of.

use std::fmt;

use plimsoll_content::lint::related_objects;
use serde_json::Value;

use crate::health::parse::{self, ReportedCondition};

/// Most words of a `Progressing` message: it is a column of a table.
const PROGRESSING_WORDS_MAX: usize = 10;
/// Most sentences of a `Degraded` message.
const DEGRADED_SENTENCES_MAX: usize = 5;

/// Something that a ClusterOperator should say in another way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StyleFinding {
    /// The ClusterOperator.
    pub operator: String,
    /// The condition or field.
    pub place: String,
    /// What is wrong, and what is wanted.
    pub message: String,
}

impl fmt::Display for StyleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clusteroperator {}: {}: {}", self.operator, self.place, self.message)
    }
}

/// Everything that a live ClusterOperator should say in another way.
pub fn style(cluster_operator: &Value) -> Vec<StyleFinding> {
    let mut findings = Vec::new();
    let mut add = |place: &str, message: String| {
        let operator = parse::name(cluster_operator).to_owned();
        findings.push(StyleFinding { operator, place: place.to_owned(), message });
    };
    for type_ in ["Available", "Progressing", "Degraded"] {
        if parse::condition(cluster_operator, type_).is_none() {
            add(type_, "the condition is missing; every operator reports it".to_owned());
        }
    }
    for condition in parse::conditions(cluster_operator) {
        for message in condition_style(&condition) {
            add(condition.type_, message);
        }
    }
    if parse::operator_version(cluster_operator).is_none() {
        add("versions", "there is no version named `operator`; updates wait for it".to_owned());
    }
    if let Some(message) = related_objects(cluster_operator) {
        add("relatedObjects", message);
    }
    findings
}

fn condition_style(condition: &ReportedCondition<'_>) -> Vec<String> {
    let ReportedCondition { type_, status, reason, message } = *condition;
    let mut found = Vec::new();
    if !matches!(status, "True" | "False" | "Unknown") {
        found.push(format!("the status is {status:?}; use True, False or Unknown"));
    }
    if reason.is_empty() {
        found.push(
            "there is no reason; set one for happy conditions too, such as AsExpected".into(),
        );
    } else if !reason.starts_with(|first: char| first.is_ascii_uppercase())
        || !reason.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        found.push(format!("the reason {reason:?} is not a CamelCase word"));
    }
    if message.is_empty() {
        found.push("there is no message; say how things are".to_owned());
        return found;
    }
    if message.starts_with(|first: char| first.is_lowercase()) {
        found.push(format!("the message does not start with a capital letter: {message:?}"));
    }
    let words = message.split_whitespace().count();
    let sentences = message.matches(". ").count() + 1;
    match (type_, status) {
        ("Available", _) if sentences > 1 || message.contains('\n') => {
            found.push("the message is more than a single sentence".to_owned());
        }
        ("Available", _) if message.ends_with(['.', '!']) => {
            found.push("the message ends with punctuation; a single sentence needs none".into());
        }
        ("Progressing", _) if words > PROGRESSING_WORDS_MAX => found.push(format!(
            "the message has {words} words; it is a column of a table, 5 to 10 are enough"
        )),
        ("Degraded", "True") if sentences > DEGRADED_SENTENCES_MAX => {
            found.push(format!("the message has {sentences} sentences; a few are enough"));
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    //! One operator that says all as it should, and what each slip is called.

    use serde_json::{Value, json};

    use super::style;

    fn operator() -> Value {
        let condition = |type_: &str, status: &str, message: &str| json!({"type": type_, "status": status, "reason": "AsExpected", "message": message});
        json!({
            "metadata": {"name": "pier"},
            "status": {
                "versions": [{"name": "operator", "version": "1.0.0"}],
                "conditions": [
                    condition("Available", "True", "The pier is open"),
                    condition("Progressing", "False", "All is at 1.0.0"),
                    condition("Degraded", "False", "All is well"),
                ],
                "relatedObjects": [
                    {"group": "", "resource": "namespaces", "name": "pier"},
                    {"group": "apps", "resource": "deployments", "namespace": "pier", "name": "pier"},
                ],
            },
        })
    }

    fn check(pointer: &str, value: Value, expected: &str) {
        let mut operator = operator();
        *operator.pointer_mut(pointer).expect("it is there") = value;
        let found: Vec<String> = style(&operator).iter().map(ToString::to_string).collect();
        assert_eq!(found, [format!("clusteroperator pier: {expected}")], "{pointer}");
    }

    #[test]
    fn an_operator_that_says_what_people_need_to_read_is_left_in_peace() {
        assert_eq!(style(&operator()), []);
    }

    #[test]
    fn every_slip_is_named() {
        let at = |index: usize, field: &str| format!("/status/conditions/{index}/{field}");
        check(
            &at(0, "message"),
            json!("open"),
            "Available: the message does not start with a capital letter: \"open\"",
        );
        check(
            &at(0, "message"),
            json!("It is open."),
            "Available: the message ends with punctuation; a single sentence needs none",
        );
        check(
            &at(0, "message"),
            json!("It is open. All may come"),
            "Available: the message is more than a single sentence",
        );
        check(
            &at(1, "message"),
            json!("A b c d e f g h i j k"),
            "Progressing: the message has 11 words; it is a column of a table, 5 to 10 are enough",
        );
        check(&at(2, "message"), json!(""), "Degraded: there is no message; say how things are");
        check(
            &at(2, "reason"),
            json!(""),
            "Degraded: there is no reason; set one for happy conditions too, such as AsExpected",
        );
        check(
            &at(2, "reason"),
            json!("all well"),
            "Degraded: the reason \"all well\" is not a CamelCase word",
        );
        check(
            &at(2, "status"),
            json!("false"),
            "Degraded: the status is \"false\"; use True, False or Unknown",
        );
        check(
            &at(2, "type"),
            json!("Other"),
            "Degraded: the condition is missing; every operator reports it",
        );
        check(
            "/status/versions",
            json!([]),
            "versions: there is no version named `operator`; updates wait for it",
        );
        check(
            "/status/relatedObjects",
            json!([{"group": "", "resource": "namespaces", "name": "pier"}]),
            "relatedObjects: there are only namespaces; name at least one other object",
        );
        check(
            "/status/relatedObjects",
            json!([{"group": "apps", "resource": "deployments"}]),
            "relatedObjects: there is no namespace among them; name the component's",
        );
        check(
            "/status/relatedObjects",
            json!([]),
            "relatedObjects: there are none; name a namespace and at least one other object",
        );
    }
}
