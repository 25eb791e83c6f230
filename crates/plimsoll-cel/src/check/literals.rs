//! Literals that are wrong though their types are not: patterns, times, and lists and maps of
//! mixed types.
use super::Checked;
use crate::Value;
use crate::ast::{Expr, ExprKind};
use crate::error::CompileError;
use crate::library::{pattern, time};
use crate::parse::Places;
use crate::types::Type;

/// What is wrong with the literals of a checked expression.
pub(super) fn defects(checked: &Checked, places: &Places) -> Vec<CompileError> {
    let mut errors = Vec::new();
    visit(&checked.root, &mut |expr| {
        argument(expr, places, &mut errors);
        mixed(checked, expr, places, &mut errors);
    });
    errors
}

fn visit<'a>(expr: &'a Expr, see: &mut impl FnMut(&'a Expr)) {
    see(expr);
    for child in expr.children() {
        visit(child, see);
    }
}

/// The literal argument of `duration`, `timestamp` and `matches`.
fn argument(expr: &Expr, places: &Places, errors: &mut Vec<CompileError>) {
    let ExprKind::Call(call) = &expr.kind else { return };
    let Some(first) = call.arguments.first() else { return };
    let ExprKind::Literal(literal) = &first.kind else { return };
    let text = match literal {
        Value::String(text) => Some(&**text),
        _ => None,
    };
    let is_wrong = match (call.function.as_str(), text) {
        ("duration", Some(text)) => time::parse_duration(text).is_none(),
        ("timestamp", Some(text)) => time::parse_timestamp(text).is_none(),
        ("timestamp", None) => {
            matches!(literal, Value::Int(at) if time::from_seconds(*at).is_none())
        }
        ("matches", Some(text)) => pattern::compile(text).is_err(),
        _ => false,
    };
    if is_wrong {
        errors.push(places.error(first.id, format!("invalid {} argument", call.function)));
    }
}

fn mixed(checked: &Checked, expr: &Expr, places: &Places, errors: &mut Vec<CompileError>) {
    let mut differ = |expr: &Expr, expected: &Type, found: &Type| {
        let message = format!("expected type '{expected}' but found '{found}'");
        errors.push(places.error(expr.id, message));
    };
    let inner = |of: &Type, optional: bool| match of {
        Type::Optional(inner) if optional => (**inner).clone(),
        other => other.clone(),
    };
    match &expr.kind {
        ExprKind::List(items) => {
            let of =
                |index: usize| inner(checked.type_of(&items[index].value), items[index].optional);
            if let Some(wrong) = (1..items.len()).find(|index| of(*index) != of(0)) {
                differ(&items[wrong].value, &of(0), &of(wrong));
            }
        }
        ExprKind::Map(entries) => {
            let Some(first) = entries.first() else { return };
            let key = checked.type_of(&first.key);
            let value = inner(checked.type_of(&first.value), first.optional);
            for entry in &entries[1..] {
                let of = checked.type_of(&entry.key);
                if of != key {
                    differ(&entry.key, key, of);
                }
                let of = inner(checked.type_of(&entry.value), entry.optional);
                if of != value {
                    differ(&entry.value, &value, &of);
                }
            }
        }
        _ => {}
    }
}
