//! Functions on lists and maps.
//!
//! Upstream: github.com/google/cel-go/ext/lists.go: Lists
//! Upstream: github.com/google/cel-go/ext/sets.go: Sets
//! Upstream: k8s.io/apiserver/pkg/cel/library/lists.go: Lists
use std::cmp::Ordering;
use std::sync::Arc;

use super::{EvaluationResult, failed};
use crate::value::{ListValue, MapKey, compare, equal};
use crate::{EvaluationError, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("size", [value]) => Some(Ok(Value::Int(value.size()? as i64))),
        ("@in", [value, Value::List(list)]) => contains(list, value),
        ("@in", [value, Value::Map(map)]) => Some(Ok(Value::Bool(map.find(value).is_some()))),
        ("cel.@mapInsert", [Value::Map(_), ..]) => Some(extend(arguments.to_vec()).0),
        ("lists.range", [Value::Int(count)]) => range(*count),
        ("sets.contains", [Value::List(list), Value::List(part)]) => {
            Some(Ok(Value::Bool(includes_all(list, part))))
        }
        ("sets.equivalent", [Value::List(left), Value::List(right)]) => {
            Some(Ok(Value::Bool(includes_all(left, right) && includes_all(right, left))))
        }
        ("sets.intersects", [Value::List(left), Value::List(right)]) => {
            let common = |item| right.items.iter().any(|other| equal(other, item));
            Some(Ok(Value::Bool(left.items.iter().any(common))))
        }
        ("includes", [Value::List(list), value]) => contains(list, value),
        ("includes", [value, other]) => Some(Ok(Value::Bool(equal(value, other)))),
        (_, [Value::List(list), rest @ ..]) => on_list(function, list, rest),
        _ => None,
    }
}

fn contains(list: &ListValue, value: &Value) -> Option<EvaluationResult> {
    Some(Ok(Value::Bool(list.items.iter().any(|item| equal(item, value)))))
}

fn includes_all(list: &ListValue, part: &ListValue) -> bool {
    part.items.iter().all(|item| list.items.iter().any(|other| equal(other, item)))
}

// Upstream: github.com/google/cel-go/ext/lists.go: genRange
fn range(count: i64) -> Option<EvaluationResult> {
    // What is longer costs more than any expression may.
    const RANGE_MAX: i64 = 1_000_000;
    if count < 0 {
        return failed(format!("lists.range: size must be non-negative, got {count}"));
    }
    if count > RANGE_MAX {
        return Some(Err(EvaluationError::CostLimit));
    }
    Some(Ok(Value::list((0..count).map(Value::Int).collect())))
}

fn on_list(function: &str, list: &Arc<ListValue>, rest: &[Value]) -> Option<EvaluationResult> {
    let items = &list.items;
    match (function, rest) {
        ("isSorted", []) => {
            let sorted =
                items.windows(2).all(|pair| compare(&pair[0], &pair[1]) != Some(Ordering::Greater));
            Some(Ok(Value::Bool(sorted)))
        }
        ("sum", []) => sum(items),
        ("min", []) => extreme(items, "min", Ordering::Less),
        ("max", []) => extreme(items, "max", Ordering::Greater),
        ("indexOf", [value]) => index(items.iter().position(|item| equal(item, value))),
        ("lastIndexOf", [value]) => index(items.iter().rposition(|item| equal(item, value))),
        ("reverse", []) => Some(Ok(Value::list(items.iter().rev().cloned().collect()))),
        ("first", []) => Some(Ok(Value::Optional(items.first().cloned().map(Arc::new)))),
        ("last", []) => Some(Ok(Value::Optional(items.last().cloned().map(Arc::new)))),
        ("distinct", []) => {
            let mut distinct: Vec<Value> = Vec::new();
            for item in items {
                if !distinct.iter().any(|other| equal(other, item)) {
                    distinct.push(item.clone());
                }
            }
            Some(Ok(Value::list(distinct)))
        }
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(items, *start, *end),
        ("flatten", []) => Some(Ok(Value::list(flatten(items, 1)))),
        ("flatten", [Value::Int(depth)]) if *depth < 0 => failed("level must be non-negative"),
        ("flatten", [Value::Int(depth)]) => Some(Ok(Value::list(flatten(items, *depth)))),
        ("sort", []) => sort(items, items),
        ("@sortByAssociatedKeys", [Value::List(keys)]) => sort(items, &keys.items),
        _ => None,
    }
}

fn index(found: Option<usize>) -> Option<EvaluationResult> {
    Some(Ok(Value::Int(found.map_or(-1, |at| at as i64))))
}

fn sum(items: &[Value]) -> Option<EvaluationResult> {
    let mut total = match items.first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(_) => return None,
    };
    for item in items {
        match super::arithmetic::call("_+_", &[total, item.clone()])? {
            Ok(next) => total = next,
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(total))
}

fn extreme(items: &[Value], name: &str, wanted: Ordering) -> Option<EvaluationResult> {
    let mut best: Option<&Value> = None;
    for item in items {
        if best.is_none_or(|best| compare(item, best) == Some(wanted)) {
            best = Some(item);
        }
    }
    match best {
        Some(best) => Some(Ok(best.clone())),
        None => failed(format!("{name} called on empty list")),
    }
}

fn slice(items: &[Value], start: i64, end: i64) -> Option<EvaluationResult> {
    let what = format!("cannot slice({start}, {end})");
    if start < 0 || end < 0 {
        return failed(format!("{what}, negative indexes not supported"));
    }
    if start > end {
        return failed(format!("{what}, start index must be less than or equal to end index"));
    }
    match items.get(start as usize..end as usize) {
        Some(part) => Some(Ok(Value::list(part.to_vec()))),
        None => failed(format!("{what}, list is length {}", items.len())),
    }
}

fn flatten(items: &[Value], depth: i64) -> Vec<Value> {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Value::List(inner) if depth > 0 => flat.extend(flatten(&inner.items, depth - 1)),
            other => flat.push(other.clone()),
        }
    }
    flat
}

/// The items in the order of their keys.
fn sort(items: &[Value], keys: &[Value]) -> Option<EvaluationResult> {
    if items.len() != keys.len() {
        return failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys \
             list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        ));
    }
    let Some(first) = keys.first() else { return Some(Ok(Value::list(Vec::new()))) };
    let comparable =
        compare(first, first).is_some() || matches!(first, Value::Double(value) if value.is_nan());
    if !comparable {
        return failed("list elements must be comparable");
    }
    if keys.iter().any(|key| key.type_of() != first.type_of()) {
        return failed("list elements must have the same type");
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|left, right| compare(&keys[*left], &keys[*right]).unwrap_or(Ordering::Equal));
    Some(Ok(Value::list(order.into_iter().map(|index| items[index].clone()).collect())))
}

/// Extends the first argument, a list or a map, by the others; with what that costs.
pub(crate) fn extend(mut arguments: Vec<Value>) -> (EvaluationResult, u64) {
    let rest = arguments.split_off(1);
    let outcome = match (arguments.remove(0), rest.as_slice()) {
        (Value::List(mut list), [Value::List(more)]) => {
            Arc::make_mut(&mut list).items.extend(more.items.iter().cloned());
            Ok(Value::List(list))
        }
        (Value::Map(mut map), [key, value]) => match MapKey::from_value(key) {
            Some(key) => insert(&mut map, key, value.clone()).map(|()| Value::Map(map)),
            None => Err(EvaluationError::new(format!("unsupported key type: {}", key.type_name()))),
        },
        (Value::Map(mut map), [Value::Map(more)]) => more
            .entries
            .iter()
            .try_for_each(|(key, value)| insert(&mut map, key.clone(), value.clone()))
            .map(|()| Value::Map(map)),
        _ => Err(EvaluationError::no_such_overload()),
    };
    (outcome, 1)
}

fn insert(
    map: &mut Arc<crate::value::MapValue>,
    key: MapKey,
    value: Value,
) -> Result<(), EvaluationError> {
    if map.find(&key.value()).is_some() {
        return Err(EvaluationError::new(format!("insert failed: key {key} already exists")));
    }
    Arc::make_mut(map).entries.insert(key, value);
    Ok(())
}
