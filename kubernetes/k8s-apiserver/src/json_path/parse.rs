//! Parsing of paths.
//!
//! Upstream: k8s.io/client-go/util/jsonpath/parser.go: Parse
use serde_json::Value;

use super::{End, Operand, Operator, Slice, Step};

/// Reads a path; `None` if it is malformed.
pub(super) fn path(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '@', '$']);
        if rest.is_empty() {
            return Some(steps);
        }
        if let Some(filter) = rest.strip_prefix("[?(") {
            let (inside, after) = filter.split_at(closing_parenthesis(filter)?);
            steps.push(filter_step(inside)?);
            rest = after.strip_prefix(")]")?;
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']')?;
            steps.extend(bracket(inside)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            if steps.last() == Some(&Step::Recursive) {
                return None;
            }
            steps.push(Step::Recursive);
            rest = after;
            if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                rest = field(rest, &mut steps);
            }
        } else {
            rest = field(rest.strip_prefix('.')?, &mut steps);
        }
    }
}

/// Reads a field up to the next character that ends it; a backslash takes the next one as it is. Returns
/// the rest.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut rest = "";
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => {
                rest = &text[index..];
                break;
            }
            _ => name.push(character),
        }
    }
    steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name) });
    rest
}

/// Where the parenthesis of a filter closes, those in quotes aside.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, ')') => return Some(index),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character && before != Some('\\') => quote = None,
            _ => {}
        }
        before = Some(character);
    }
    None
}

/// Reads what is between brackets: paths with commas between them, a quoted field, or a slice.
fn bracket(inside: &str) -> Option<Vec<Step>> {
    if inside.contains(',') {
        let paths = inside.split(',').map(|part| bracket(part.trim_matches(' ')));
        return Some(vec![Step::Union(paths.collect::<Option<_>>()?)]);
    }
    let quoted = inside.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    match quoted {
        Some(name) if !name.contains('\'') => path(&format!(".{name}")),
        _ => Some(vec![Step::Slice(slice(inside)?)]),
    }
}

fn slice(text: &str) -> Option<Slice> {
    if text == "*" {
        return Some(Slice { start: None, end: End::OfList, step: None });
    }
    let mut parts = text.split(':');
    let start = bound(parts.next()?)?;
    let end = match parts.next() {
        None => End::AfterStart,
        Some(text) => bound(text)?.map_or(End::OfList, End::At),
    };
    let step = parts.next().map_or(Some(None), bound)?;
    parts.next().is_none().then_some(Slice { start, end, step })
}

/// Reads a bound; absent if the text is empty.
fn bound(text: &str) -> Option<Option<i64>> {
    match text {
        "" => Some(None),
        _ if text.starts_with('+') => None,
        _ => text.parse().ok().map(Some),
    }
}

fn filter_step(text: &str) -> Option<Step> {
    let is_sign = |c: char| "!<>=".contains(c);
    let Some(start) = text.find(is_sign).filter(|start| *start > 0) else {
        return path(text).map(Step::Exists);
    };
    let (left, rest) = text.split_at(start);
    let (sign, right) = rest.split_at(rest.find(|c| !is_sign(c))?);
    let operator = match sign {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return None,
    };
    Some(Step::Filter { left: operand(left)?, operator, right: operand(right)? })
}

/// Reads a path, or a text in quotes, a number or a truth value.
fn operand(text: &str) -> Option<Operand> {
    let text = text.trim_matches(' ');
    let literal = match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if text.starts_with(['\'', '"']) => unquoted(text)?.into(),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) => number(text)?,
        _ => return path(text).map(Operand::Path),
    };
    Some(Operand::Literal(literal))
}

fn unquoted(text: &str) -> Option<String> {
    let inside = ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)))?;
    let mut out = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        out.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(out)
}

fn number(text: &str) -> Option<Value> {
    let integer = text.parse::<i64>().map(Value::from).ok();
    // `1.0` is not an integer: it is compared with numbers that have a fraction.
    integer.or_else(|| serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number))
}
