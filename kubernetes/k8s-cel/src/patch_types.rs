//! The types of the values that mutating policies are made of: `JSONPatch{...}`, and `Object{...}`
//! with a type for each of its fields, such as `Object.spec.template`.
//!
//! The fields of objects are not known: each may have any name and any value, and the names of types
//! are compared with the fields that they are the values of only when they are evaluated.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/mutation/typeresolver.go: DynamicTypeResolver
//! Upstream: k8s.io/apiserver/pkg/cel/mutation/jsonpatch.go: JSONPatchType
use crate::types::Type;
use crate::value::{MapKey, MapValue};
use crate::{EvaluationError, Value};

const JSON_PATCH: &str = "JSONPatch";
const OBJECT: &str = "Object";

impl Type {
    /// The type of an operation of a JSON patch: `JSONPatch`.
    pub fn json_patch() -> Self {
        Self::object(JSON_PATCH, [])
    }

    /// The type of a partial object that is merged into another: `Object`.
    pub fn patch_object() -> Self {
        Self::object(OBJECT, [])
    }
}

/// The patch type with this name; nothing if none has it.
pub(crate) fn named(name: &str) -> Option<Type> {
    (name == JSON_PATCH || is_object(name)).then(|| Type::object(name, []))
}

fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The type of a field of a patch type; nothing if no patch type has the name `of`.
///
/// Upstream: k8s.io/apiserver/pkg/cel/mutation/dynamic/objects.go: ObjectType
pub(crate) fn field(of: &str, field: &str) -> Option<Type> {
    if is_object(of) {
        return Some(Type::Dyn);
    }
    (of == JSON_PATCH).then(|| match field {
        "op" | "path" | "from" => Type::String,
        "value" => Type::Dyn,
        // Unknown fields have no type, and that has no name.
        _ => Type::opaque(""),
    })
}

/// Checks the values of the fields of a patch type that is made.
///
/// # Errors
/// When a field of `JSONPatch` that is text is something else.
pub(crate) fn check_fields(of: &str, fields: &[(String, Value)]) -> Result<(), EvaluationError> {
    if of != JSON_PATCH {
        return Ok(());
    }
    let wrong =
        fields.iter().find(|(field, value)| field != "value" && !matches!(value, Value::String(_)));
    match wrong {
        None => Ok(()),
        Some((field, value)) => Err(EvaluationError::new(format!(
            "unexpected type {} for JSONPatchType '{field}' field",
            go_type(value)
        ))),
    }
}

/// The type that cel-go has a value in.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) => "map[ref.Val]ref.Val",
        Value::Optional(_) | Value::Type(_) | Value::Opaque(_) | Value::Host(_) => "interface {}",
    }
}

impl Value {
    /// The objects within this one whose type is not named by the fields that lead to them, as
    /// messages, in the order of the fields; none if this is no object of a patch type.
    ///
    /// Upstream: k8s.io/apiserver/pkg/cel/mutation/dynamic/objects.go: CheckTypeNamesMatchFieldPathNames
    pub fn misnamed_objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Self::Map(map) = self
            && let Some(name) = object_name(map)
        {
            misnamed(self, name, &mut found);
        }
        found
    }
}

fn object_name(map: &MapValue) -> Option<&str> {
    map.object.as_deref().filter(|name| is_object(name))
}

fn misnamed(value: &Value, expected: &str, found: &mut Vec<String>) {
    match value {
        Value::Map(map) => match object_name(map) {
            Some(name) => {
                if name != expected {
                    found.push(format!(
                        "unexpected type name {name:?}, expected {expected:?}, which matches field \
                         name path from root Object type"
                    ));
                }
                for (key, value) in &map.entries {
                    let MapKey::String(key) = key else { continue };
                    misnamed(value, &format!("{expected}.{key}"), found);
                }
            }
            None => map.entries.values().for_each(|value| misnamed(value, expected, found)),
        },
        Value::List(list) => list.items.iter().for_each(|item| misnamed(item, expected, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bindings, Budget, Environment, Value};

    fn environment() -> Environment {
        Environment::for_new_expressions().with_patch_types()
    }

    fn evaluate(source: &str) -> Result<Value, String> {
        let program = environment().compile(source).map_err(|errors| errors.to_string())?;
        program
            .evaluate(&Bindings::new(), &mut Budget::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn patch_types_have_the_types_that_kubernetes_gives_them() {
        for (source, expected) in [
            (r#"[JSONPatch{op: "add"}]"#, "list(JSONPatch)"),
            ("true ? [JSONPatch{}] : []", "list(JSONPatch)"),
            (r#"JSONPatch{?op: optional.of("add")}"#, "JSONPatch"),
            (r#"JSONPatch{op: "add"}.op"#, "string"),
            ("JSONPatch{value: 1}.value", "dyn"),
            ("Object{}", "Object"),
            (".Object{}", "Object"),
            ("Object.spec{}", "Object.spec"),
            ("Object{a: Object.b{c: 1}}.a", "dyn"),
            ("has(Object{a: 1}.a) ? Object{a: 1} : Object{}", "Object"),
            (r#"jsonpatch.escapeKey("a/b")"#, "string"),
        ] {
            let program = environment().compile(source).expect(source);
            assert_eq!(program.result_type().to_string(), expected, "{source}");
        }
    }

    #[test]
    fn what_does_not_fit_patch_types_is_refused_with_the_messages_of_kubernetes() {
        for (source, expected) in [
            ("JSONPatch{foo: 1}", "expected type of field 'foo' is '' but provided type is 'int'"),
            (
                "JSONPatch{op: 1}",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            ("Foo{}", "undeclared reference to 'Foo' (in container '')"),
            ("Objects{}", "undeclared reference to 'Objects' (in container '')"),
            ("Object{?a: 1}", "expected type 'optional_type(int)' but found 'int'"),
            (
                "Object{} == Object.spec{}",
                "found no matching overload for '_==_' applied to '(Object, Object.spec)'",
            ),
            (
                "Object{x: [Object.x{}, Object.y{}]}",
                "expected type 'Object.x' but found 'Object.y'",
            ),
            (
                "jsonpatch.escapeKey(1)",
                "found no matching overload for 'jsonpatch.escapeKey' applied to '(int)'",
            ),
            ("JSONPatch{op: dyn(1)}", "unexpected type int64 for JSONPatchType 'op' field"),
        ] {
            let message = evaluate(source).expect_err(source);
            assert!(message.contains(expected), "{source}: {message}");
        }
        let without = Environment::for_new_expressions();
        for source in ["Object{}", "JSONPatch{}", "jsonpatch.escapeKey('a')"] {
            let errors = without.compile(source).expect_err(source).to_string();
            assert!(errors.contains("undeclared reference to"), "{errors}");
        }
    }

    #[test]
    fn patches_are_values() {
        for (source, expected) in [
            (r#"jsonpatch.escapeKey("k8s.io/my~label")"#, r#""k8s.io~1my~0label""#),
            (
                r#"Object{spec: Object.spec{list: [Object.spec.list{a: 1u}], n: null}}"#,
                r#"{"spec":{"list":[{"a":1}],"n":null}}"#,
            ),
            (r#"Object{?a: optional.none(), ?b: optional.of(1)}"#, r#"{"b":1}"#),
            (r#"JSONPatch{op: "add", path: "/a"}.path"#, r#""/a""#),
            (r#"has(JSONPatch{op: "add"}.path)"#, "false"),
        ] {
            let value = evaluate(source).expect(source).to_json().expect(source);
            assert_eq!(value.to_string(), expected, "{source}");
        }
    }

    #[test]
    fn names_of_types_are_compared_with_the_fields_that_lead_to_them() {
        for (source, expected) in [
            ("Object{spec: Object.spec{a: Object.spec.a{}}}", vec![]),
            ("Object.spec.a{b: Object.spec.a.b{}}", vec![]),
            (r#"Object{spec: Object.spec{a: {"k": [Object.spec.a{}]}}}"#, vec![]),
            ("1", vec![]),
            (
                "Object{spec: Object.other{a: Object.a{}}}",
                vec![
                    r#"unexpected type name "Object.other", expected "Object.spec", which matches field name path from root Object type"#,
                    r#"unexpected type name "Object.a", expected "Object.spec.a", which matches field name path from root Object type"#,
                ],
            ),
        ] {
            assert_eq!(evaluate(source).expect(source).misnamed_objects(), expected, "{source}");
        }
    }
}
