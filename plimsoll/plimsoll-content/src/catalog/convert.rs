//! The documents of a file as values, for writing them in another form.

use serde_json::Value;

use super::defect::DefectCode;
use crate::diagnostic::Diagnostic;
use crate::yaml;

/// The documents of a file of a file-based catalog, and what of it cannot be read.
pub fn documents(file: &str, bytes: &[u8]) -> (Vec<Value>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut defects = Vec::new();
    let mut report = |line: usize, message: String| {
        defects.push(DefectCode::Syntax.diagnostic(file, message).at_line(line));
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        report(0, "not UTF-8".to_owned());
        return (found, defects);
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        // Without separators there may be any number of documents.
        let mut all = Vec::new();
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let is_json = stream.all(|value| value.map(|value| all.push(value)).is_ok());
        if is_json {
            return (all, defects);
        }
    }
    for document in yaml::parse(text) {
        match document.value {
            Ok(Value::Null) => {}
            Ok(value @ Value::Object(_)) => found.push(value),
            Ok(_) => report(document.line, "a document that is not an object".to_owned()),
            Err(error) => report(error.line, error.to_string()),
        }
    }
    (found, defects)
}
