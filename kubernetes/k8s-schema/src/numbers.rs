//! Numbers as Go writes them.
use serde_json::Value;

/// Up to here every floating-point number without a fraction is an integer exactly, and is one to
/// Go once it has been written and read again.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Turns floats without a fraction (`2.0`) into integers, as a document is that Go has read and
/// written again.
pub fn canonicalize_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() <= WHOLE_MAX {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(canonicalize_numbers),
        Value::Object(entries) => entries.values_mut().for_each(canonicalize_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::canonicalize_numbers;

    #[test]
    fn floats_without_a_fraction_are_integers() {
        for (given, expected) in [
            (json!({"a": [2.0, 1.5, -3.0]}), json!({"a": [2, 1.5, -3]})),
            (json!(1e3), json!(1000)),
            (json!(1e300), json!(1e300)),
            (json!("2.0"), json!("2.0")),
        ] {
            let mut value: Value = given;
            canonicalize_numbers(&mut value);
            assert_eq!(value.to_string(), expected.to_string());
        }
    }
}
