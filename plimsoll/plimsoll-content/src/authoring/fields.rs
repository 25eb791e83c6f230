//! Reading a file that people write: every unknown field and every value of a wrong form is a
//! problem with its line, and with what to write instead.

use serde_json::{Map, Value};

use crate::capability::{meant, most_similar};
use crate::diagnostic::{Diagnostic, FindingCode};
use crate::yaml::Lines;

/// Collects what is wrong with the one document of a file.
pub(super) struct FieldReader<'a> {
    file: &'a str,
    lines: &'a Lines,
    pub(super) problems: Vec<Diagnostic>,
}

/// A field and where it is.
#[derive(Debug, Clone)]
pub(super) struct Field<'v> {
    pub(super) path: String,
    pub(super) value: &'v Value,
}

impl<'v> Field<'v> {
    pub(super) fn new(path: impl Into<String>, value: &'v Value) -> Self {
        Self { path: path.into(), value }
    }
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(file: &'a str, lines: &'a Lines) -> Self {
        Self { file, lines, problems: Vec::new() }
    }

    /// Adds a problem of a field.
    pub(super) fn problem(&mut self, path: &str, message: impl AsRef<str>) {
        let separator = if path.is_empty() { "" } else { ": " };
        let message = format!("{path}{separator}{}", message.as_ref());
        self.problems
            .push(FindingCode::Source.diagnostic(self.file, message).at_line(self.lines.of(path)));
    }

    /// The fields of a mapping; those that are not among `known` are problems.
    pub(super) fn fields<'v>(&mut self, of: &Field<'v>, known: &[&str]) -> Fields<'v> {
        let path = of.path.clone();
        let Some(fields) = of.value.as_object() else {
            self.problem(&path, format!("must be a mapping with {}", known.join(", ")));
            return Fields { path, fields: None };
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = match most_similar(name, known.iter().copied()) {
                Some(similar) => format!("unknown field{}", meant(Some(similar))),
                None => format!("unknown field; there are {}", known.join(", ")),
            };
            self.problem(&joined(&path, name), message);
        }
        Fields { path, fields: Some(fields) }
    }

    /// A text that is not empty; `None` where the field is absent or wrong.
    pub(super) fn text(&mut self, field: Option<&Field<'_>>) -> Option<String> {
        let field = field?;
        match field.value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::String(_) => {
                self.problem(&field.path, "must not be empty");
                None
            }
            Value::Number(_) => {
                self.problem(&field.path, "must be text: put it in quotes");
                None
            }
            _ => {
                self.problem(&field.path, "must be text");
                None
            }
        }
    }

    /// The items of a list; none where the field is absent or wrong.
    pub(super) fn items<'v>(&mut self, field: Option<Field<'v>>) -> Vec<Field<'v>> {
        let Some(field) = field else { return Vec::new() };
        let Some(items) = field.value.as_array() else {
            self.problem(&field.path, "must be a list");
            return Vec::new();
        };
        let item = |(index, value)| Field::new(format!("{}[{index}]", field.path), value);
        items.iter().enumerate().map(item).collect()
    }

    /// The texts of a list.
    pub(super) fn texts(&mut self, field: Option<Field<'_>>) -> Vec<String> {
        let items = self.items(field);
        items.iter().filter_map(|item| self.text(Some(item))).collect()
    }
}

/// The fields of a mapping.
pub(super) struct Fields<'v> {
    pub(super) path: String,
    fields: Option<&'v Map<String, Value>>,
}

impl<'v> Fields<'v> {
    /// A field, unless it is absent or null.
    pub(super) fn field(&self, name: &str) -> Option<Field<'v>> {
        let value = self.fields?.get(name).filter(|value| !value.is_null())?;
        Some(Field::new(joined(&self.path, name), value))
    }

    /// Whether the mapping can be read at all.
    pub(super) fn exist(&self) -> bool {
        self.fields.is_some()
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
