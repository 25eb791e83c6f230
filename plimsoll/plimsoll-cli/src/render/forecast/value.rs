//! Values of fields in few words: a line of a report has room for one thought.

use serde_json::Value;

use super::FieldReport;

/// Letters of a value that are shown.
const LETTERS_MAX: usize = 60;

/// `path: before → after`, in a line.
pub(super) fn field(field: &FieldReport) -> String {
    let FieldReport { path, before, after } = field;
    let path = if path.is_empty() { "(everything)" } else { path };
    match (before, after) {
        (None, None) => path.to_owned(),
        (None, Some(after)) => format!("{path}: + {}", shortened(after)),
        (Some(before), None) => format!("{path}: - {}", shortened(before)),
        (Some(Value::String(before)), Some(Value::String(after)))
            if before.contains('\n') || after.contains('\n') =>
        {
            format!("{path}: {}", lines(before, after))
        }
        (Some(Value::String(before)), Some(Value::String(after))) => {
            let (before, after) = (apart(before, after), apart(after, before));
            format!("{path}: \"{before}\" → \"{after}\"")
        }
        (Some(before), Some(after)) => {
            format!("{path}: {} → {}", shortened(before), shortened(after))
        }
    }
}

/// A value in a few words.
fn shortened(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > 3 => format!("[{} items]", items.len()),
        Value::Object(fields) if fields.len() > 3 => format!("{{{} fields}}", fields.len()),
        Value::String(text) if text.contains('\n') => format!("({} lines)", text.lines().count()),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(LETTERS_MAX - 1).collect();
    cut.push('…');
    cut
}

/// A long text, from a little before where it begins to differ from another one.
fn apart(text: &str, other: &str) -> String {
    const BEFORE: usize = 12;
    const AFTER: usize = 12;
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    let common = text.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    if common <= BEFORE {
        return cut(text);
    }
    let mut rest = text.chars().skip(common - BEFORE);
    let shown: String = rest.by_ref().take(BEFORE + AFTER).collect();
    format!("…{shown}{}", if rest.next().is_some() { "…" } else { "" })
}

/// Where two texts of several lines begin to differ.
fn lines(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let first = old.iter().zip(&new).take_while(|(one, two)| one == two).count();
    let shown = |lines: &[&str]| match lines.get(first) {
        Some(line) => cut(line.trim()),
        None => "(end)".to_owned(),
    };
    format!(
        "{} → {} lines, from line {}: {} → {}",
        old.len(),
        new.len(),
        first + 1,
        shown(&old),
        shown(&new)
    )
}

#[cfg(test)]
mod tests {
    //! Pairs of values and the line that tells them.

    use serde_json::{Value, json};

    use super::{FieldReport, field};

    fn check(before: Option<Value>, after: Option<Value>, expected: &str) {
        let report = FieldReport { path: "a".to_owned(), before, after };
        assert_eq!(field(&report), expected);
    }

    #[test]
    fn a_change_is_shown_in_a_line() {
        check(Some(json!(1)), Some(json!(2)), "a: 1 → 2");
        check(None, Some(json!({"b": true})), "a: + {\"b\":true}");
        check(Some(json!([1, 2, 3, 4])), None, "a: - [4 items]");
        check(Some(json!("x")), Some(json!("y")), "a: \"x\" → \"y\"");
        check(
            Some(json!("one\ntwo\nthree")),
            Some(json!("one\n2\nthree\nfour")),
            "a: 3 → 4 lines, from line 2: two → 2",
        );
        check(
            Some(json!("one\ntwo")),
            Some(json!("one\n")),
            "a: 2 → 1 lines, from line 2: two → (end)",
        );
    }

    #[test]
    fn long_texts_are_shown_where_they_differ() {
        let image = |digest: &str| {
            let host = "quay.example/harbour/".repeat(3);
            Some(json!(format!("{host}crane@sha256:{digest}")))
        };
        check(image("aa11"), image("bb22"), "a: \"…rane@sha256:aa11\" → \"…rane@sha256:bb22\"");
    }
}
