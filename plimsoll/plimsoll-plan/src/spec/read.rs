//! Reading of a ClusterVersion's spec. One that cannot be read requests nothing: counted as an empty one, it
//! would enable the default capabilities for good and take overrides back.

use plimsoll_api::config::ClusterVersionSpec;
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Reads the spec of a ClusterVersion; a missing one is empty.
///
/// # Errors
///
/// When it cannot be read: the first field that is wrong, and why.
pub fn read(spec: &Value) -> Result<ClusterVersionSpec, String> {
    if spec.is_null() {
        return Ok(ClusterVersionSpec::default());
    }
    ClusterVersionSpec::deserialize(spec).map_err(|error| {
        let wrong = spec.as_object().into_iter().flatten().find_map(|(field, value)| {
            let alone = Map::from_iter([(field.clone(), value.clone())]);
            let error = ClusterVersionSpec::deserialize(&Value::Object(alone)).err()?;
            Some(format!("spec.{field}: {error}"))
        });
        wrong.unwrap_or_else(|| format!("spec: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spec_that_cannot_be_read_is_said_to_be_wrong_where_it_is() {
        let check = |spec: Value, expected: Result<&str, &str>| {
            let found = read(&spec).map(|spec| spec.channel);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{spec}");
        };
        check(Value::Null, Ok(""));
        check(json!({ "channel": "stable", "later": 1 }), Ok("stable"));
        check(
            json!({ "channel": 4, "overrides": [] }),
            Err("spec.channel: invalid type: integer `4`, expected a string"),
        );
        check(
            json!("none"),
            Err("spec: invalid type: string \"none\", expected struct ClusterVersionSpec"),
        );
    }
}
