//! Recorded answers, and how others differ from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::directory;

/// What the servers answer to one case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Recorded {
    /// The answers of a real server.
    pub(super) answers: Vec<Value>,
    /// Those of the embedded server, if it differs on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) embedded: Vec<Value>,
}

/// Recorded answers of a file, by the title of the case.
pub(super) type Answers = BTreeMap<String, Recorded>;

/// Reads the answers that belong to a case file; none if there are none yet.
pub(super) fn read(file: &str) -> Answers {
    let path = directory().join(format!("{file}.answers.json"));
    let Ok(text) = std::fs::read_to_string(&path) else { return Answers::new() };
    serde_json::from_str(&text)
        .map_err(|error| format!("{}: {error}", path.display()))
        .expect("a file of answers holds answers")
}

/// Writes the answers that belong to a case file, each on a line of its own.
pub(super) fn write(file: &str, answers: &Answers) {
    let mut text = String::from("{");
    for (index, (title, recorded)) in answers.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n{}: {{", Value::from(title.as_str()));
        list(&mut text, "answers", &recorded.answers);
        if !recorded.embedded.is_empty() {
            text.push(',');
            list(&mut text, "embedded", &recorded.embedded);
        }
        text.push('}');
    }
    text.push_str("\n}\n");
    let path = directory().join(format!("{file}.answers.json"));
    std::fs::write(path, text).expect("answers can be written");
}

fn list(text: &mut String, name: &str, answers: &[Value]) {
    let lines: Vec<String> = answers.iter().map(|answer| format!("  {answer}")).collect();
    let _ = write!(text, "\"{name}\": [\n{}\n]", lines.join(",\n"));
}

/// Where two documents differ, a line for each place; nothing if they do not.
pub(super) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", expected, found, &mut lines);
    lines
}

fn compare(path: &str, expected: &Value, found: &Value, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                let path = format!("{path}/{name}");
                match found.get(name) {
                    Some(other) => compare(&path, value, other, lines),
                    None => lines.push(format!("{path}: missing: {value}")),
                }
            }
            for (name, value) in found.iter().filter(|(name, _)| !expected.contains_key(*name)) {
                lines.push(format!("{path}/{name}: unexpected: {value}"));
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            for (index, value) in expected.iter().enumerate() {
                match found.get(index) {
                    Some(other) => compare(&format!("{path}/{index}"), value, other, lines),
                    None => lines.push(format!("{path}/{index}: missing: {value}")),
                }
            }
            for (index, value) in found.iter().enumerate().skip(expected.len()) {
                lines.push(format!("{path}/{index}: unexpected: {value}"));
            }
        }
        _ if expected == found => {}
        _ => lines.push(format!("{path}:\n      expected {expected}\n      found    {found}")),
    }
}
