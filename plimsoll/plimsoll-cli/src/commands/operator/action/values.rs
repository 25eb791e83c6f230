//! Values on the command line, typed by the schema of what they are for.

use plimsoll_content::capability::suggestion;
use serde_json::{Number, Value};

/// The field of a schema that allows fields which it does not name.
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
/// The field of a schema that allows integers and strings.
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Returns the value that a text stands for where a schema is valid; `null` is the schema of what is
/// not known.
///
/// # Errors
///
/// When the text is no value of the type; the error says what to write.
pub(super) fn typed(text: &str, schema: &Value) -> Result<Value, String> {
    if text == "null" && schema["nullable"] == true {
        return Ok(Value::Null);
    }
    let value = match schema["type"].as_str() {
        Some("string") => text.into(),
        Some("boolean") => boolean(text)?.into(),
        Some("integer") => integer(text)?.into(),
        Some("number") => number(text)?.into(),
        Some("array") => list(text, &schema["items"])?,
        Some("object") => object(text)?,
        _ if schema[INT_OR_STRING] == true => {
            integer(text).map_or_else(|_| text.into(), Value::from)
        }
        _ => untyped(text),
    };
    require_allowed(&value, schema)?;
    Ok(value)
}

/// Returns whether a text is true.
///
/// # Errors
///
/// When it is neither `true` nor `false`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn integer(text: &str) -> Result<Number, String> {
    let signed = text.parse().map(|it: i64| Number::from(it));
    let number = signed.or_else(|_| text.parse().map(|it: u64| Number::from(it)));
    number.map_err(|_| "write a whole number, such as 3".to_owned())
}

fn number(text: &str) -> Result<Number, String> {
    serde_json::from_str(text).map_err(|_| "write a number, such as 1.5".to_owned())
}

fn object(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).ok().filter(Value::is_object);
    value.ok_or_else(|| {
        "it has fields: write NAME.FIELD=VALUE for each, or JSON, such as '{\"field\": 1}'"
            .to_owned()
    })
}

/// Returns the list that JSON or `{a,b}` stands for.
fn list(text: &str, items: &Value) -> Result<Value, String> {
    let help = || "it is a list: write {a,b}, or JSON, such as '[\"a\", \"b\"]'".to_owned();
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|_| help());
    }
    let inner = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')).ok_or_else(help)?;
    if items["type"] == "object" {
        return Err("it is a list of objects: write JSON, such as '[{\"field\": 1}]'".to_owned());
    }
    let read = |item: &String| {
        typed(item.trim(), items).map_err(|error| format!("of its item `{}`: {error}", item.trim()))
    };
    let read: Result<Vec<Value>, String> = split(inner, ',').iter().map(read).collect();
    read.map(Value::from)
}

/// Returns the value of a text whose type is not known: JSON is read as such, `{a,b}` as a list, and
/// all else is text.
fn untyped(text: &str) -> Value {
    let value = serde_json::from_str(text).or_else(|_| list(text, &Value::Null));
    value.unwrap_or_else(|_| text.into())
}

/// Fails if a schema names the values that it allows, and it is none of these.
fn require_allowed(value: &Value, schema: &Value) -> Result<(), String> {
    let Some(allowed) = schema["enum"].as_array().filter(|it| !it.contains(value)) else {
        return Ok(());
    };
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    let texts: Vec<String> = allowed.iter().map(text).collect();
    let suggestion = suggestion(&text(value), texts.iter().map(String::as_str));
    Err(format!("write one of {}{suggestion}", texts.join(", ")))
}

/// Returns the parts of a text between separators; none for an empty text. A separator after `\`
/// separates nothing.
pub(super) fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&separator).is_some() => part.push(separator),
            it if it == separator => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    if !text.is_empty() {
        parts.push(part);
    }
    parts
}

/// Returns a sentence that says what to write in a manifest, with what to write on the command line
/// instead.
pub(super) fn as_setting(sentence: &str) -> String {
    sentence.replace("write a list, such as [foo]", "write a list, such as {foo}")
}

/// Returns the schema of a field.
///
/// # Errors
///
/// When the schema has no such field; the error has the names of those that it has, in order.
pub(super) fn field<'s>(schema: &'s Value, name: &str) -> Result<&'s Value, Vec<&'s str>> {
    let properties = schema["properties"].as_object();
    if let Some(found) = properties.and_then(|it| it.get(name)) {
        return Ok(found);
    }
    let additional = &schema["additionalProperties"];
    if additional.is_object() {
        return Ok(additional);
    }
    if schema.is_null() || *additional == true || schema[PRESERVES] == true {
        return Ok(&Value::Null);
    }
    let mut names: Vec<&str> = properties.into_iter().flatten().map(|it| it.0.as_str()).collect();
    names.sort_unstable();
    Err(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_types_of_their_schema() {
        let check = |text: &str, schema: Value, expected: Value| {
            assert_eq!(typed(text, &schema), Ok(expected), "{text} for {schema}");
        };
        check("true", json!({ "type": "string" }), json!("true"));
        check("3", json!({ "type": "string" }), json!("3"));
        check("", json!({ "type": "string" }), json!(""));
        check("true", json!({ "type": "boolean" }), json!(true));
        check("-3", json!({ "type": "integer" }), json!(-3));
        check("18446744073709551615", json!({ "type": "integer" }), json!(u64::MAX));
        check("1.5", json!({ "type": "number" }), json!(1.5));
        check("null", json!({ "type": "string", "nullable": true }), Value::Null);
        check("null", json!({ "type": "string" }), json!("null"));
        check("3", json!({ "x-kubernetes-int-or-string": true }), json!(3));
        check("3%", json!({ "x-kubernetes-int-or-string": true }), json!("3%"));
        check("b", json!({ "type": "string", "enum": ["a", "b"] }), json!("b"));
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        check("{a, b}", texts.clone(), json!(["a", "b"]));
        check("{1,true}", texts.clone(), json!(["1", "true"]));
        check(r"{a\,b,c}", texts.clone(), json!(["a,b", "c"]));
        check("{}", texts.clone(), json!([]));
        check(r#"["a"]"#, texts, json!(["a"]));
        check("{1,2}", json!({ "type": "array", "items": { "type": "integer" } }), json!([1, 2]));
        check(r#"{"a": 1}"#, json!({ "type": "object" }), json!({ "a": 1 }));
    }

    #[test]
    fn values_without_a_schema_are_json_a_list_or_text() {
        let check = |text: &str, expected: Value| {
            assert_eq!(typed(text, &Value::Null), Ok(expected), "{text}");
        };
        check("true", json!(true));
        check("{a,1}", json!(["a", 1]));
        check(r#"{"a": 1}"#, json!({ "a": 1 }));
        check("1.2.3", json!("1.2.3"));
        check("{open", json!("{open"));
    }

    #[test]
    fn texts_of_another_type_are_refused_with_what_to_write() {
        let check = |text: &str, schema: Value, expected: &str| {
            let error = typed(text, &schema).expect_err(text);
            assert!(error.contains(expected), "{text} for {schema}: {error}");
        };
        check("yes", json!({ "type": "boolean" }), "write true or false");
        check("", json!({ "type": "boolean" }), "write true or false");
        check("1.5", json!({ "type": "integer" }), "write a whole number");
        check("one", json!({ "type": "number" }), "write a number");
        check("a", json!({ "type": "object" }), "write NAME.FIELD=VALUE");
        check("[1]", json!({ "type": "object" }), "write NAME.FIELD=VALUE");
        check("a", json!({ "type": "array" }), "write {a,b}");
        check("[a", json!({ "type": "array" }), "write {a,b}");
        let booleans = json!({ "type": "array", "items": { "type": "boolean" } });
        check("{true,no}", booleans, "of its item `no`: write true or false");
        let objects = json!({ "type": "array", "items": { "type": "object" } });
        check("{a}", objects, "write JSON, such as '[{");
        let modes = json!({ "type": "string", "enum": ["orphan", "delete"] });
        check("delet", modes, "write one of orphan, delete, did you mean `delete`?");
    }

    #[test]
    fn what_to_write_in_a_manifest_is_said_as_a_setting() {
        assert_eq!(
            as_setting("spec.parameters.tags is \"a\": write a list, such as [foo]"),
            "spec.parameters.tags is \"a\": write a list, such as {foo}"
        );
    }

    #[test]
    fn fields_are_those_of_the_schema() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert_eq!(field(&schema, "a"), Ok(&json!({ "type": "string" })));
        assert_eq!(field(&schema, "b"), Err(vec!["a"]));
        assert_eq!(field(&json!({ "type": "string" }), "b"), Err(Vec::new()));
        let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        assert_eq!(field(&map, "b"), Ok(&json!({ "type": "integer" })));
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        assert_eq!(field(&open, "b"), Ok(&Value::Null));
    }
}
