//! The work of calls that cel-go's cost leaves out. Values share their parts, so that a short expression makes
//! ones whose copies, comparisons and texts are too large for any machine.
use crate::Value;
use crate::value::ListKind;

/// The maximum work of an evaluation: the items that it copies or compares, and the texts that it makes, in
/// units of [`TEXT_UNIT`].
pub(super) const WORK_MAX: u64 = 2_000_000;
/// The number of bytes of a text that count as one item.
const TEXT_UNIT: usize = 16;

/// Returns the work of a call, or a number beyond [`WORK_MAX`] if it is more.
pub(super) fn of_call(function: &str, arguments: &[Value]) -> u64 {
    match (function, arguments) {
        ("_+_", [Value::List(left), Value::List(right)]) => {
            let (left_count, right_count) = (left.items.len() as u64, right.items.len() as u64);
            match left.kind {
                ListKind::Atomic => left_count.saturating_add(right_count),
                ListKind::Set | ListKind::Map(_) => left_count.saturating_mul(right_count),
            }
        }
        ("_==_" | "_!=_", [left, right]) => weight(left).min(weight(right)),
        ("@in", [_, list]) | ("includes" | "indexOf" | "lastIndexOf" | "flatten", [list, ..]) => {
            weight(list)
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [left, right]) => {
            weight(left).saturating_mul(weight(right))
        }
        ("distinct", [Value::List(list)]) => {
            weight(&arguments[0]).saturating_mul(list.items.len() as u64)
        }
        ("join", [Value::List(list), separator @ ..]) => {
            let separators = separator.first().map_or(0, weight);
            weight(&arguments[0]).saturating_add(separators.saturating_mul(list.items.len() as u64))
        }
        ("format", [_, values]) => weight(values),
        ("replace", [Value::String(text), Value::String(old), Value::String(new), ..])
            if new.len() > old.len() =>
        {
            let count = text.matches(&**old).count() as u64;
            of_text(text).saturating_add(of_text(new).saturating_mul(count))
        }
        _ => 0,
    }
}

fn of_text(text: &str) -> u64 {
    1 + (text.len() / TEXT_UNIT) as u64
}

/// Returns the number of values that are a value and in it, those that are shared as often as they are there;
/// or a number beyond [`WORK_MAX`] if there are more.
fn weight(value: &Value) -> u64 {
    let mut open = vec![value];
    let mut found: u64 = 0;
    while let Some(value) = open.pop() {
        found += match value {
            Value::String(text) => of_text(text),
            Value::Bytes(bytes) => 1 + (bytes.len() / TEXT_UNIT) as u64,
            _ => 1,
        };
        if found > WORK_MAX {
            break;
        }
        match value {
            Value::List(list) => open.extend(&list.items),
            Value::Map(map) => open.extend(map.entries.values()),
            Value::Optional(Some(inner)) => open.push(inner),
            _ => {}
        }
    }
    found
}
