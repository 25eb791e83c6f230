//! What changes, line by line: each field with its whole value, as YAML.

use std::io::{self, Write};

use diffy::Line;
use serde_json::Value;

use super::{FieldReport, ForecastReport, StepReport, short};

pub(super) fn write(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    let components = report.levels.iter().flat_map(|level| &level.components);
    for step in components.flat_map(|component| &component.steps) {
        self::step(step, out)?;
    }
    Ok(())
}

fn step(step: &StepReport, out: &mut dyn Write) -> io::Result<()> {
    if step.fields.is_empty() {
        return match super::sign(step) {
            Some(_) => writeln!(out, "{} {} ({})", step.change, short(&step.object), step.file),
            None => Ok(()),
        };
    }
    writeln!(out, "{} {} ({})", step.change, short(&step.object), step.file)?;
    for field in &step.fields {
        self::field(field, out)?;
    }
    Ok(())
}

fn field(field: &FieldReport, out: &mut dyn Write) -> io::Result<()> {
    let FieldReport { path, before, after } = field;
    writeln!(out, "@@ {} @@", if path.is_empty() { "(everything)" } else { path })?;
    let (before, after) = (lines(before.as_ref()), lines(after.as_ref()));
    let patch = diffy::create_patch(&before, &after);
    for (number, hunk) in patch.hunks().iter().enumerate() {
        if number > 0 {
            writeln!(out, " …")?;
        }
        for line in hunk.lines() {
            match line {
                Line::Context(text) => write!(out, " {text}")?,
                Line::Delete(text) => write!(out, "-{text}")?,
                Line::Insert(text) => write!(out, "+{text}")?,
            }
        }
    }
    Ok(())
}

/// A value as YAML, a text of several lines as it is; nothing for none.
fn lines(value: Option<&Value>) -> String {
    let mut text = match value {
        None => return String::new(),
        Some(Value::String(text)) if text.contains('\n') => text.clone(),
        Some(value) => serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string()),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    //! Fields and the lines that show how they change.

    use serde_json::json;

    use super::*;

    fn check(before: Option<Value>, after: Option<Value>, expected: &str) {
        let report = FieldReport { path: "spec.a".to_owned(), before, after };
        let mut out = Vec::new();
        field(&report, &mut out).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("it is text"), expected);
    }

    #[test]
    fn values_are_shown_whole() {
        let list = |last: &str| Some(json!(["--a", "--b", "--c", "--d", "--e", last]));
        check(
            list("--old"),
            list("--new"),
            "@@ spec.a @@\n - --c\n - --d\n - --e\n-- --old\n+- --new\n",
        );
        check(None, Some(json!({"b": {"c": true}})), "@@ spec.a @@\n+b:\n+  c: true\n");
        check(Some(json!(1)), None, "@@ spec.a @@\n-1\n");
        check(
            Some(json!("one\ntwo\nthree")),
            Some(json!("one\n2\nthree")),
            "@@ spec.a @@\n one\n-two\n+2\n three\n",
        );
    }
}
