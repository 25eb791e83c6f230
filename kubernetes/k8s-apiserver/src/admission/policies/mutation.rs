//! What the value of a mutation makes of an object: a JSON patch, or what is merged into it.
use std::sync::Arc;

use k8s_cel::{ListValue, Value as CelValue};
use k8s_schema::{Schema, merge_configuration, unknown_fields};
use serde_json::{Map, Value};

use crate::admission::patch;
use crate::json::text;
use crate::status::{ApiError, Result};

/// The largest integer that JSON numbers of all languages have; patches have larger ones as text.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// The object with a JSON patch applied: the value of an expression of the type `list(JSONPatch)`.
///
/// # Errors
/// Within the result, when the patch cannot be applied; a test that fails is no error, but leaves the
/// object as it is.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go: Patch
pub(super) fn json_patched(
    value: &CelValue,
    request: &RequestLists,
    object: &Value,
) -> std::result::Result<Value, String> {
    let CelValue::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let operations = list
        .items
        .iter()
        .map(|item| operation(item, request))
        .collect::<std::result::Result<Vec<_>, String>>()?;
    match patch::apply(object, &operations) {
        Ok(patched) => Ok(patched),
        Err(failure) if failure.is_test => Ok(object.clone()),
        Err(failure) => Err(format!("JSON Patch: {}", failure.message)),
    }
}

/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go: evaluatePatchExpression
fn operation(value: &CelValue, request: &RequestLists) -> std::result::Result<Value, String> {
    let CelValue::Map(fields) = value else {
        return Err(format!(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: cannot \
             convert {} to JSONPatch",
            value.type_of()
        ));
    };
    let mut operation = Map::new();
    for field in ["op", "path", "from"] {
        let set = match fields.field(field) {
            Some(CelValue::String(text)) => text.to_string(),
            _ => String::new(),
        };
        if field != "from" || !set.is_empty() {
            operation.insert(field.to_owned(), set.into());
        }
    }
    if let Some(value) = fields.field("value") {
        check_names(value)?;
        let failed = |why: &str| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
            )
        };
        if let Some(why) = unwritable(value, request) {
            return Err(failed(why));
        }
        let mut json = value.to_json().map_err(|error| failed(&error.to_string()))?;
        spell_out_integers(&mut json);
        operation.insert("value".to_owned(), json);
    }
    Ok(Value::Object(operation))
}

/// The lists in the value of `request`, such as the groups of the user.
///
/// kube-apiserver has them in a form that it does not write into JSON patches, unless they are fields of
/// an `Object`; `request.userInfo.groups.map(group, group)` makes a list that it does write.
#[derive(Debug, Default)]
pub(super) struct RequestLists(Vec<Arc<ListValue>>);

impl RequestLists {
    /// The lists in the value of `request`.
    pub(super) fn of(request: Option<&CelValue>) -> Self {
        let mut lists = Self::default();
        if let Some(request) = request {
            lists.collect(request);
        }
        lists
    }

    fn collect(&mut self, value: &CelValue) {
        match value {
            CelValue::List(list) => self.0.push(Arc::clone(list)),
            CelValue::Map(map) => map.entries.values().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    fn has(&self, list: &Arc<ListValue>) -> bool {
        self.0.iter().any(|known| Arc::ptr_eq(known, list))
    }
}

/// Why kube-apiserver does not write a value into a JSON patch; nothing if it does.
///
/// Upstream: github.com/google/cel-go/common/types/list.go: baseList
/// Upstream: github.com/google/cel-go/common/types/optional.go: Optional
fn unwritable(value: &CelValue, request: &RequestLists) -> Option<&'static str> {
    match value {
        CelValue::List(list) if request.has(list) => {
            Some("type conversion error from 'list(dyn)' to '*structpb.Value'")
        }
        CelValue::List(list) => list.items.iter().find_map(|item| unwritable(item, request)),
        CelValue::Map(map) if map.object.is_none() => {
            map.entries.values().find_map(|value| unwritable(value, request))
        }
        CelValue::Optional(Some(value)) => unwritable(value, request),
        CelValue::Optional(None) => Some("optional.none() dereference"),
        CelValue::Type(_) => Some("type conversion not supported for 'type'"),
        _ => None,
    }
}

/// Checks that the types of objects are named by the fields that lead to them.
fn check_names(value: &CelValue) -> std::result::Result<(), String> {
    let misnamed = value.misnamed_objects();
    if misnamed.is_empty() {
        return Ok(());
    }
    Err(format!("type mismatch: {}", misnamed.join("\n")))
}

/// Makes texts of the integers that floating-point numbers cannot hold.
///
/// Upstream: github.com/google/cel-go/common/types/int.go: isJSONSafe
fn spell_out_integers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_f64() => {
            let size = number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::unsigned_abs))
                .unwrap_or_default();
            if size > INTEGER_MAX {
                *value = number.to_string().into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out_integers),
        Value::Object(fields) => fields.values_mut().for_each(spell_out_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks that a patch has not given fields to an object of a built-in kind that the kind has not.
///
/// # Errors
/// When it has.
pub(super) fn check_fields(schema: &Schema, object: &Value) -> Result<()> {
    let unknown = unknown_fields(schema, object);
    if unknown.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    Err(ApiError::internal(format!("strict decoding error: {}", listed.join(", "))))
}

/// The object with a configuration merged into it: the value of an expression of the type `Object`.
///
/// # Errors
/// When the configuration does not fit the schema, or sets what can only be set as a whole.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go: ApplyStructuredMergeDiff
pub(super) fn merged(
    value: &CelValue,
    schema: &Schema,
    object: &Value,
) -> std::result::Result<Value, String> {
    check_names(value)?;
    let mut configuration =
        value.to_json().map_err(|error| format!("invalid return type: {error}"))?;
    for field in ["apiVersion", "kind"] {
        configuration[field] = text(&object[field]).into();
    }
    // Schemas of definitions do not describe what the server alone writes.
    let mut live = object.clone();
    let managed =
        live["metadata"].as_object_mut().and_then(|fields| fields.remove("managedFields"));
    let mut merged = merge_configuration(schema, &live, &configuration)
        .map_err(|error| format!("error applying patch: {error}"))?;
    if let Some(managed) = managed {
        merged["metadata"]["managedFields"] = managed;
    }
    Ok(merged)
}
