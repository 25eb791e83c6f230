//! Walks through published schemas, for tests of data files that name fields.
use serde_json::Value;

use super::Resource;

/// The schema of a kind; none if the definitions have none.
pub(crate) fn root<'a>(definitions: &'a Value, resource: &Resource) -> Option<&'a Value> {
    definitions.as_object()?.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|known| {
            known["group"] == resource.group.as_str()
                && known["version"] == resource.version.as_str()
                && known["kind"] == resource.kind.as_str()
        })
    })
}

/// The schema of a field (`name`, `name?`), or of the items of a list (`name[]`); null if there is
/// none.
pub(crate) fn below<'a>(definitions: &'a Value, schema: &'a Value, name: &str) -> &'a Value {
    let (field, is_list) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
    let field = field.trim_end_matches('?');
    let found = &resolve(definitions, schema)["properties"][field];
    if is_list { &resolve(definitions, found)["items"] } else { found }
}

/// The schema that a schema refers to, or itself.
pub(crate) fn resolve<'a>(definitions: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    match reference.and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => &definitions[name],
        None => schema,
    }
}
