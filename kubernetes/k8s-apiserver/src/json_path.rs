//! The JSON paths of printer columns.
//!
//! Upstream: k8s.io/client-go/util/jsonpath/jsonpath.go: FindResults
use std::cmp::Ordering;

use serde_json::Value;

mod parse;

/// A step of a path: what it selects of each value that the steps before it found.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name` or `['name']`.
    Field(String),
    /// `[1]`, `[-1:]`, `[0:4:2]` or `[*]`.
    Slice(Slice),
    /// `.*`: the values of a mapping or a list.
    Wildcard,
    /// `..`: a value, and the mappings and lists in it.
    Recursive,
    /// `[0,2]`: what each path finds, one after the other.
    Union(Vec<Vec<Step>>),
    /// `[?(@.type=="Ready")]`: the items of a list for which a comparison holds.
    Filter { left: Operand, operator: Operator, right: Operand },
    /// `[?(@.ready)]`: the items of a list that have something at a path.
    Exists(Vec<Step>),
}

/// The bounds of a slice; absent ones are the ends of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    OfList,
    At(i64),
    /// The end of a slice of one item, as an index selects it.
    AfterStart,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Whether a path can be read.
pub(crate) fn is_valid(path: &str) -> bool {
    parse::path(path).is_some()
}

/// The first value at a path, which may be null; `None` if there is none or the path does not fit the
/// object.
pub(crate) fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let steps = parse::path(path)?;
    find(object, &steps)?.into_iter().next()
}

/// The values at a path; `None` if a step does not fit what it is applied to.
fn find<'a>(object: &'a Value, steps: &[Step]) -> Option<Vec<&'a Value>> {
    let mut found = vec![object];
    for step in steps {
        found = take(&found, step)?;
    }
    Some(found)
}

fn take<'a>(values: &[&'a Value], step: &Step) -> Option<Vec<&'a Value>> {
    let mut found = Vec::new();
    for value in values.iter().copied() {
        match step {
            Step::Field(name) => found.extend(value.get(name)),
            Step::Wildcard => found.extend(children(value)),
            Step::Recursive => descend(value, &mut found),
            Step::Slice(slice) => match value {
                Value::Null => {}
                _ => found.extend(sliced(value.as_array()?, *slice)?),
            },
            Step::Union(_) => {}
            Step::Exists(path) => {
                let has = |item: &&Value| find(item, path).is_some_and(|found| !found.is_empty());
                found.extend(value.as_array()?.iter().filter(has));
            }
            Step::Filter { left, operator, right } => {
                for item in value.as_array()? {
                    if compares(item, left, *operator, right)? {
                        found.push(item);
                    }
                }
            }
        }
    }
    if let Step::Union(paths) = step {
        for path in paths {
            let mut part = values.to_vec();
            for step in path {
                part = take(&part, step)?;
            }
            found.extend(part);
        }
    }
    Some(found)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Adds a value and the mappings and lists in it, unless it is empty.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    let children = children(value);
    if !children.is_empty() {
        found.push(value);
    }
    for child in children {
        descend(child, found);
    }
}

/// Upstream: k8s.io/client-go/util/jsonpath/jsonpath.go: evalArray
fn sliced(items: &[Value], slice: Slice) -> Option<Vec<&Value>> {
    let length = i64::try_from(items.len()).ok()?;
    let from_start = |index: i64| if index < 0 { index + length } else { index };
    let start = slice.start.map_or(0, from_start);
    let end = match slice.end {
        End::OfList => length,
        End::At(end) => from_start(end),
        // The item before the first one is the last.
        End::AfterStart => match slice.start.unwrap_or_default() + 1 {
            end @ ..=0 => end + length,
            end => end,
        },
    };
    if start == end {
        return Some(Vec::new());
    }
    if start < 0 || start >= length || end > length || start > end {
        return None;
    }
    let step = slice.step.unwrap_or(1);
    let step = usize::try_from(step).ok().filter(|step| *step > 0)?;
    let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
    Some(items[range].iter().step_by(step).collect())
}

/// Whether a comparison holds for an item; `None` if the operands cannot be compared. Nothing is compared
/// with what an item does not have.
fn compares(item: &Value, left: &Operand, operator: Operator, right: &Operand) -> Option<bool> {
    let (left, right) = (operand(item, left)?, operand(item, right)?);
    let (left, right) = match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => return Some(false),
        ([left], [right]) => (*left, *right),
        _ => return None,
    };
    match operator {
        Operator::Equal => equal(left, right),
        Operator::NotEqual => equal(left, right).map(|equal| !equal),
        Operator::Less => order(left, right).map(Ordering::is_lt),
        Operator::LessOrEqual => order(left, right).map(Ordering::is_le),
        Operator::Greater => order(left, right).map(Ordering::is_gt),
        Operator::GreaterOrEqual => order(left, right).map(Ordering::is_ge),
    }
}

fn operand<'a>(item: &'a Value, operand: &'a Operand) -> Option<Vec<&'a Value>> {
    match operand {
        Operand::Path(path) => find(item, path),
        Operand::Literal(value) => Some(vec![value]),
    }
}

fn equal(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left == right),
        _ => order(left, right).map(Ordering::is_eq),
    }
}

/// How two texts, two integers or two other numbers compare.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
