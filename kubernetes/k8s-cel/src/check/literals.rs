//! Literals that are wrong though their types are not: patterns, times, and lists and maps of
//! mixed types.
//!
//! Upstream: github.com/google/cel-go/cel/validator.go: ValidateRegexLiterals
//! Upstream: github.com/google/cel-go/cel/validator.go: ValidateTimestampLiterals
//! Upstream: github.com/google/cel-go/cel/validator.go: ValidateDurationLiterals
//! Upstream: github.com/google/cel-go/cel/validator.go: ValidateHomogeneousAggregateLiterals
//! Upstream: github.com/google/cel-go/ext/formatting.go: stringFormatValidator
use super::Checked;
use crate::Value;
use crate::ast::{Expr, ExprKind};
use crate::error::CompileError;
use crate::go::{parse_duration, regexp};
use crate::library::format;
use crate::parse::SourceInfo;
use crate::types::Type;
use crate::value::time;

/// What is wrong with the literals of a checked expression.
pub(super) fn literal_errors(checked: &Checked, source_info: &SourceInfo) -> Vec<CompileError> {
    let mut errors = Vec::new();
    visit(&checked.root, false, &mut |expr, in_format| {
        argument(expr, source_info, &mut errors);
        if !in_format {
            mixed(checked, expr, source_info, &mut errors);
        }
        format_call(checked, expr, source_info, &mut errors);
    });
    errors
}

/// Sees every expression, and whether it is within the arguments of `format`.
fn visit<'a>(expr: &'a Expr, in_format: bool, see: &mut impl FnMut(&'a Expr, bool)) {
    see(expr, in_format);
    let formats = matches!(&expr.kind, ExprKind::Call(call) if call.function == "format");
    for child in expr.children() {
        visit(child, in_format || formats, see);
    }
}

/// A constant pattern that is formatted with a list literal.
fn format_call(
    checked: &Checked,
    expr: &Expr,
    source_info: &SourceInfo,
    errors: &mut Vec<CompileError>,
) {
    let ExprKind::Call(call) = &expr.kind else { return };
    let (Some(target), [list]) = (&call.target, call.arguments.as_slice()) else { return };
    let ExprKind::Literal(Value::String(pattern)) = &target.kind else { return };
    let ExprKind::List(items) = &list.kind else { return };
    if call.function != "format" {
        return;
    }
    let mut used = 0;
    let mut wrong = None;
    let read = format::clauses(pattern, |kind| {
        let Some(item) = items.get(used) else {
            return Err(format!("index {used} out of range"));
        };
        used += 1;
        let of = checked.type_of(&item.value);
        format::accepts(kind, of).inspect_err(|_| wrong = Some(item.value.id))
    });
    if let Err(message) = read {
        errors.push(source_info.error(wrong.unwrap_or(expr.id), message));
    } else if items.len() > used {
        let message = format!(
            "too many arguments supplied to string.format (expected {used}, got {})",
            items.len()
        );
        errors.push(source_info.error(expr.id, message));
    }
}

/// The literal argument of `duration`, `timestamp` and `matches`.
fn argument(expr: &Expr, source_info: &SourceInfo, errors: &mut Vec<CompileError>) {
    let ExprKind::Call(call) = &expr.kind else { return };
    let Some(first) = call.arguments.first() else { return };
    let ExprKind::Literal(literal) = &first.kind else { return };
    let text = match literal {
        Value::String(text) => Some(&**text),
        _ => None,
    };
    let is_wrong = match (call.function.as_str(), text) {
        ("duration", Some(text)) => parse_duration(text).is_none(),
        ("timestamp", Some(text)) => time::parse_timestamp(text).is_none(),
        ("timestamp", None) => {
            matches!(literal, Value::Int(at) if time::from_seconds(*at).is_none())
        }
        ("matches", Some(text)) => regexp::check(text).is_err(),
        _ => false,
    };
    if is_wrong {
        errors.push(source_info.error(first.id, format!("invalid {} argument", call.function)));
    }
}

fn mixed(checked: &Checked, expr: &Expr, source_info: &SourceInfo, errors: &mut Vec<CompileError>) {
    let mut differ = |expr: &Expr, expected: &Type, found: &Type| {
        let message = format!("expected type '{expected}' but found '{found}'");
        errors.push(source_info.error(expr.id, message));
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
