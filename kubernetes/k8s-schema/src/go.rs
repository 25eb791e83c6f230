//! JSON values as Go names and prints them, for messages.
use serde_json::Value;

/// The type that Go decodes a value into where nothing says otherwise.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's decoder calls the kind of a value.
pub fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go's `%v` prints it.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_named_and_printed_as_go_does_it() {
        for (value, of_type, kind, text) in [
            (json!(null), "<nil>", "null", "<nil>"),
            (json!(true), "bool", "bool", "true"),
            (json!(1), "int64", "number", "1"),
            (json!(1.5), "float64", "number", "1.5"),
            (json!("a"), "string", "string", "a"),
            (json!([1, "b"]), "[]interface {}", "array", "[1 b]"),
            (json!({"a": {"b": 1}}), "map[string]interface {}", "object", "map[a:map[b:1]]"),
        ] {
            assert_eq!((go_type(&value), go_kind(&value)), (of_type, kind), "{value}");
            assert_eq!(go_text(&value), text);
        }
    }
}
