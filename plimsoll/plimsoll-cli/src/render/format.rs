//! The output formats of all commands that show objects or lists, as kubectl names them; and
//! readers who have seen enough.

use std::fmt;
use std::io::{self, Write};

use clap::builder::{PossibleValue, TypedValueParser, ValueParserFactory};
use plimsoll_api::ApiKind;
use plimsoll_bundle::object_key;
use serde::Serialize;
use serde_json::Value;

use super::graph::Picture;
use super::json_path::JsonPath;
use super::object::reference;

/// The values of `-o` besides `jsonpath=TEMPLATE`, and their help.
const FORMATS: [(&str, &str, Format); 5] = [
    ("text", "For people", Format::Text),
    ("wide", "For people, with all columns", Format::Wide),
    ("json", "For programs", Format::Json),
    ("yaml", "For programs and people", Format::Yaml),
    ("name", "Names alone, one a line", Format::Name),
];
/// What it may be besides where there is a graph to draw.
const PICTURES: [(&str, &str, Format); 3] = [
    ("svg", "A picture for browsers", Format::Picture(Picture::Svg)),
    ("dot", "A graph for Graphviz", Format::Picture(Picture::Dot)),
    ("mermaid", "A graph for Markdown viewers", Format::Picture(Picture::Mermaid)),
];
/// What it may be besides for plans and rehearsals.
const REPORTS: [(&str, &str, Format); 5] = [
    ("markdown", "For a change request or a ticket", Format::Markdown),
    ("diff", "Every field that changes, with its whole value", Format::Diff),
    ("svg", "The run levels as a picture for browsers", Format::Picture(Picture::Svg)),
    ("dot", "The run levels for Graphviz", Format::Picture(Picture::Dot)),
    ("mermaid", "The run levels for Markdown viewers", Format::Picture(Picture::Mermaid)),
];
/// What it may be besides for plans of changes of Operators.
const CHANGES: [(&str, &str, Format); 5] = [
    ("markdown", "The plan for a change request or a ticket", Format::Markdown),
    ("plan-json", "The plan for programs", Format::PlanJson),
    ("svg", "The plan as a picture for browsers", Format::Picture(Picture::Svg)),
    ("dot", "The plan for Graphviz", Format::Picture(Picture::Dot)),
    ("mermaid", "The plan for Markdown viewers", Format::Picture(Picture::Mermaid)),
];
/// What it may be besides where two things are compared.
const DIFF: [(&str, &str, Format); 1] = [("diff", "What differs, line by line", Format::Diff)];
/// What it may be besides for linters.
const FINDINGS: [(&str, &str, Format); 2] = [
    ("sarif", "For code review, SARIF 2.1.0", Format::Sarif),
    ("junit", "For test reports, JUnit XML", Format::Junit),
];
/// What introduces a template.
const JSON_PATH: &str = "jsonpath=";
/// Fields that name what is shown, the first that exists.
const NAMES: [&str; 4] = ["name", "id", "version", "file"];

/// For whom the output is, and how.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For people, with columns that are left out otherwise
    Wide,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
    /// Names alone
    Name,
    /// What a template finds in the JSON
    JsonPath(JsonPath),
    /// For documents
    Markdown,
    /// The plan for programs, where other formats for programs show objects
    PlanJson,
    /// What changes, line by line
    Diff,
    /// A drawing
    Picture(Picture),
    /// Diagnostics as SARIF 2.1.0
    Sarif,
    /// Diagnostics as JUnit XML
    Junit,
}

impl Format {
    /// Whether people read it, and not programs.
    pub fn is_for_people(&self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// Whether it shows the plan of a change, and not the objects that are written.
    pub fn is_of_plan(&self) -> bool {
        matches!(self, Self::Markdown | Self::PlanJson | Self::Picture(_))
    }

    /// Whether people get all there is.
    pub fn is_wide(&self) -> bool {
        *self == Self::Wide
    }

    /// Writes a value if the format is one for programs; false if it is not.
    ///
    /// # Errors
    ///
    /// When the output cannot be written, or nothing in the value has a name.
    pub fn write(&self, value: &impl Serialize, out: &mut dyn Write) -> anyhow::Result<bool> {
        match self {
            Self::Text
            | Self::Wide
            | Self::Markdown
            | Self::PlanJson
            | Self::Diff
            | Self::Picture(_)
            | Self::Sarif
            | Self::Junit => {
                return Ok(false);
            }
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, value)?;
                writeln!(out)?;
            }
            Self::Yaml => {
                let text = serde_saphyr::to_string(value)?;
                out.write_all(text.as_bytes())?;
                if !text.ends_with('\n') {
                    writeln!(out)?;
                }
            }
            Self::Name => {
                for name in names(&serde_json::to_value(value)?, name)? {
                    writeln!(out, "{name}")?;
                }
            }
            Self::JsonPath(template) => {
                out.write_all(template.render(&serde_json::to_value(value)?).as_bytes())?;
            }
        }
        Ok(true)
    }

    /// Writes a value, or a list of values, as [`Self::write`] does. Each is an object of a kind, or about the one
    /// that it names: `-o name` prints that as kubectl does, without its namespace.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub(crate) fn write_about(
        &self,
        kind: ApiKind,
        value: &impl Serialize,
        out: &mut dyn Write,
    ) -> anyhow::Result<bool> {
        if *self != Self::Name {
            return self.write(value, out);
        }
        for name in names(&serde_json::to_value(value)?, short_name)? {
            writeln!(out, "{}", reference(kind, &name))?;
        }
        Ok(true)
    }
}

/// The names of a value, or of the items of a list.
fn names(value: &Value, name: fn(&Value) -> Option<String>) -> anyhow::Result<Vec<String>> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let named: Option<Vec<String>> = items.iter().map(name).collect();
    named.ok_or_else(|| anyhow::anyhow!("-o name: what is shown has no names; use another format"))
}

/// What the item is called; an object of Kubernetes as kubectl takes it after `get`.
fn name(item: &Value) -> Option<String> {
    let named = NAMES.iter().find_map(|field| item.get(field)?.as_str());
    named.map(str::to_owned).or_else(|| {
        let key = object_key(item);
        (!key.kind.is_empty() && !key.name.is_empty()).then(|| key.reference())
    })
}

/// What the item is called; an object of Kubernetes by its name alone.
fn short_name(item: &Value) -> Option<String> {
    let named = item.pointer("/metadata/name").and_then(Value::as_str);
    named.map(str::to_owned).or_else(|| name(item))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JsonPath(template) => write!(f, "{JSON_PATH}{template}"),
            other => {
                let mut known = FORMATS.iter().chain(&REPORTS).chain(&FINDINGS).chain(&CHANGES);
                let known = known.find(|(_, _, format)| format == other);
                f.write_str(known.map_or("", |(name, _, _)| name))
            }
        }
    }
}

impl ValueParserFactory for Format {
    type Parser = FormatParser;

    fn value_parser() -> FormatParser {
        FormatParser { more: &[] }
    }
}

/// Reads `-o`.
#[derive(Debug, Clone, Copy)]
pub struct FormatParser {
    /// The formats that only some commands have.
    more: &'static [(&'static str, &'static str, Format)],
}

impl FormatParser {
    /// For plans and rehearsals.
    pub const REPORTS: Self = Self { more: &REPORTS };
    /// For plans of changes of Operators.
    pub const CHANGES: Self = Self { more: &CHANGES };
    /// For linters.
    pub const FINDINGS: Self = Self { more: &FINDINGS };
    /// Where two things are compared.
    pub const DIFF: Self = Self { more: &DIFF };
    /// Where there is a graph to draw.
    pub const PICTURES: Self = Self { more: &PICTURES };

    fn known(self) -> impl Iterator<Item = &'static (&'static str, &'static str, Format)> {
        FORMATS.iter().chain(self.more)
    }
}

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Format, clap::Error> {
        let text = value.to_string_lossy();
        if let Some((_, _, format)) = self.known().find(|(name, _, _)| *name == text) {
            return Ok(format.clone());
        }
        let parser = *self;
        let parse = move |text: &str| match text.strip_prefix(JSON_PATH) {
            Some("") => Err(format!("it has no template, such as {JSON_PATH}{{.metadata.name}}")),
            Some(template) => JsonPath::parse(template).map(Format::JsonPath),
            None => {
                let names: Vec<&str> = parser.known().map(|(name, _, _)| *name).collect();
                Err(format!("use {} or {JSON_PATH}TEMPLATE", names.join(", ")))
            }
        };
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let known = self.known().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
        let template = PossibleValue::new("jsonpath=TEMPLATE").help("What a template finds");
        Some(Box::new(known.chain([template])))
    }
}

/// What became of writing: who has seen enough of the output and closes it is no error.
///
/// # Errors
///
/// All others.
pub fn ignore_broken_pipe(written: Result<(), impl Into<anyhow::Error>>) -> anyhow::Result<()> {
    match written.map_err(Into::into) {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Whether an error only says that the output is not read any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = || error.downcast_ref::<serde_json::Error>().and_then(|it| it.io_error_kind());
    io.or_else(json) == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use plimsoll_api::{ACTION, OPERATOR};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_format_shows_the_same_value() {
        let value = json!([{"name": "crane", "size": 2}, {"name": "lamp", "size": 1}]);
        let check = |format: Format, expected: Option<&str>| {
            let mut out = Vec::new();
            let written = format.write(&value, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(written.then_some(text.as_str()), expected, "{format}");
        };
        check(Format::Text, None);
        check(Format::Wide, None);
        check(Format::Name, Some("crane\nlamp\n"));
        check(Format::Yaml, Some("- name: crane\n  size: 2\n- name: lamp\n  size: 1\n"));
        let template = JsonPath::parse("{[*].size}").unwrap();
        check(Format::JsonPath(template), Some("2 1"));
        let object = |kind: &str| {
            json!({"apiVersion": "apps/v1", "kind": kind,
                   "metadata": {"name": "crane", "namespace": "harbour"}})
        };
        let mut out = Vec::new();
        assert!(
            Format::Name.write(&[object("Deployment"), object("DaemonSet")], &mut out).unwrap()
        );
        let expected = "deployment.apps/crane -n harbour\ndaemonset.apps/crane -n harbour\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        assert!(Format::Name.write_about(OPERATOR, &value, &mut out).unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "operator.olm.io/crane\noperator.olm.io/lamp\n"
        );
        let action = json!({"apiVersion": "olm.io/v1", "kind": "Action",
                            "metadata": {"name": "first", "namespace": "harbour"}});
        let mut out = Vec::new();
        assert!(Format::Name.write_about(ACTION, &[&action], &mut out).unwrap());
        assert!(Format::Name.write_about(ACTION, &action, &mut out).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), "action.olm.io/first\naction.olm.io/first\n");
        let refused = Format::Name.write(&json!({"size": 1}), &mut Vec::new()).unwrap_err();
        assert_eq!(refused.to_string(), "-o name: what is shown has no names; use another format");
    }
}
