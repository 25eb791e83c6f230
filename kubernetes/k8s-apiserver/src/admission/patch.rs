//! JSON patches of mutating webhooks and policies, with the error messages of kube-apiserver.
use k8s_schema::patch::{JsonPatcher, PatchError};
use serde_json::Value;

/// The end of the message about a test that failed.
///
/// Upstream: gopkg.in/evanphx/json-patch.v4/patch.go: ErrTestFailed
const TEST_FAILED: &str = "test failed";

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchFailure {
    pub(super) message: String,
    /// Whether a test failed.
    pub(super) is_test: bool,
}

/// Applies the operations of a patch.
///
/// # Errors
/// With the message of kube-apiserver's JSON patch library.
pub(super) fn apply(object: &Value, operations: &[Value]) -> Result<Value, PatchFailure> {
    let mut patcher = JsonPatcher::new(object.clone());
    for operation in operations {
        let done = match operation.as_object() {
            Some(operation) => patcher.apply(operation),
            None => Err(PatchError::Malformed(String::new())),
        };
        done.map_err(|error| {
            let message = match error {
                PatchError::CopiesTooMuch(_) => error.to_string(),
                _ => explain(&patcher.document, operation),
            };
            let is_test = message.ends_with(TEST_FAILED);
            PatchFailure { message, is_test }
        })?;
    }
    Ok(patcher.document)
}

/// Why an operation cannot be applied.
fn explain(object: &Value, operation: &Value) -> String {
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let (verb, path) = (text("op"), text("path"));
    let (parent, key) = path.rsplit_once('/').unwrap_or_default();
    let Some(parent) = object.pointer(parent).filter(|parent| !parent.is_string()) else {
        return match verb {
            "test" => {
                format!("test operation does not apply: is missing path: {path}: missing value")
            }
            "replace" => format!(
                "replace operation does not apply: doc is missing path: {path}: missing value"
            ),
            "move" | "copy" => format!(
                "{verb} operation does not apply: doc is missing destination path: {path}: missing value"
            ),
            _ => format!(
                "{verb} operation does not apply: doc is missing path: \"{path}\": missing value"
            ),
        };
    };
    let at_key = match (parent, key.parse::<usize>()) {
        (Value::Array(_), Ok(index)) => {
            format!("Unable to access invalid index: {index}: invalid index referenced")
        }
        (Value::Array(_), Err(_)) => format!(
            "value was not a proper array index: '{key}': strconv.Atoi: parsing {key:?}: invalid syntax"
        ),
        _ => format!("Unable to remove nonexistent key: {key}: missing value"),
    };
    match verb {
        "test" => format!("testing value {path} failed: {TEST_FAILED}"),
        "replace" => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        "move" | "copy" => format!(
            "{verb} operation does not apply: doc is missing from path: {}: missing value",
            text("from")
        ),
        "add" | "remove" => format!("error in {verb} for path: '{path}': {at_key}"),
        _ => format!("Unexpected kind: {verb}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_a_bound() {
        let doubled = serde_json::json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let error = apply(&serde_json::json!({"a": [1]}), &vec![doubled; 40]).unwrap_err();
        assert!(error.message.ends_with("exceeding the limit 3145728"), "{error:?}");
    }

    #[test]
    fn an_operation_that_does_not_apply_is_explained() {
        let object = serde_json::json!({"a": [1], "b": {}});
        for (operation, why) in [
            (
                r#"{"op": "remove", "path": "/x"}"#,
                "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                r#"{"op": "add", "path": "/x/y", "value": 1}"#,
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                r#"{"op": "add", "path": "/a/7", "value": 1}"#,
                "error in add for path: '/a/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                r#"{"op": "replace", "path": "/a/7", "value": 1}"#,
                "replace operation does not apply: doc is missing key: /a/7: missing value",
            ),
            (r#"{"op": "test", "path": "/b", "value": 1}"#, "testing value /b failed: test failed"),
        ] {
            let operation: Value = serde_json::from_str(operation).unwrap();
            let failure = apply(&object, std::slice::from_ref(&operation)).unwrap_err();
            assert_eq!(failure.message, why);
            assert_eq!(failure.is_test, operation["op"] == "test");
        }
        let fits = [serde_json::json!({"op": "add", "path": "/a/-", "value": 2})];
        assert_eq!(apply(&object, &fits).unwrap()["a"], serde_json::json!([1, 2]));
    }
}
