//! YAML as Kubernetes reads it: text in, JSON values out.
//!
//! The text is cut into documents at lines that begin with `---` before anything is parsed. Each
//! document is then read by the rules of YAML 1.1 that Kubernetes keeps, which general YAML
//! libraries have left behind: `yes`, `on` and `y` are booleans even as keys, `0777` is octal,
//! `1_000` is a number, `<<` merges. A document that begins with `{` is tried as JSON first.
//!
//! # Guarantees
//!
//! Whatever the text, reading it ends, and takes time and memory in proportion to the text and to
//! [`COPIES_MAX`]; nesting is at most [`NESTING_MAX`] deep, so that reading the JSON back never
//! fails. One document's error does not hide the next document.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod build;
mod dialect;
mod edit;
mod json;
mod locate;
mod quoted;
mod resolve;
mod split;
mod write;

use std::fmt;

use serde_json::Value;

pub use edit::{EditError, remove_field, set_field};
pub use locate::{Lines, RepeatedKey, lines};
pub use write::write;

/// Deepest nesting of a document. Real manifests stay under 40; JSON readers stop at 128.
pub const NESTING_MAX: usize = 120;
/// Most that anchors and aliases may copy within a document, in bytes of text and nodes: what a
/// request to an API server can hold several times over, and quickly refused in an alias bomb.
pub const COPIES_MAX: usize = 16 << 20;
/// Most bytes of text in a document. An API server takes requests of 3 MiB; the rest is room for
/// indentation and comments.
pub const DOCUMENT_SIZE_MAX: usize = 8 << 20;

/// A document of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlDocument {
    /// Line of the text on which it begins, from 1.
    pub line: usize,
    /// What it says. A document without content is null.
    pub value: Result<Value, YamlError>,
    /// What is odd about it.
    pub notes: Vec<YamlWarning>,
}

/// Something odd about a document that does not keep it from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlWarning {
    /// Line in the text, from 1, where it is known.
    pub line: Option<usize>,
    /// What was read otherwise than its author may think.
    pub oddity: YamlWarningKind,
}

/// What can be odd about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum YamlWarningKind {
    /// A key occurs twice in a mapping; the last occurrence wins.
    DuplicateKey(String),
    /// A number or boolean occurs twice as a key of a mapping; the last occurrence wins.
    DuplicateScalar(String),
    /// Text after the end of the document, on a line that does not separate documents; ignored.
    IgnoredText,
}

impl fmt::Display for YamlWarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateKey(key) | Self::DuplicateScalar(key) => {
                write!(f, "key {key:?} occurs twice, the last one counts")
            }
            Self::IgnoredText => f.write_str(
                "text after the end of the document is ignored, put `---` on a line of its own",
            ),
        }
    }
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid YAML: {problem}")]
pub struct YamlError {
    /// Line in the text, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What keeps the document from being read.
    pub problem: YamlErrorKind,
}

impl YamlError {
    /// What resolves it; `None` if the problem says so.
    pub fn help(&self) -> Option<&'static str> {
        matches!(self.problem, YamlErrorKind::Key).then_some(
            "render a template such as `{{ .Values.name }}`, and quote a text that begins with a brace",
        )
    }
}

/// What can be wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum YamlErrorKind {
    /// The text is not YAML; the parser says why.
    Syntax(String),
    /// A mapping key is null, a list or a mapping.
    Key,
    /// A number that JSON cannot express.
    NotFinite(String),
    /// A tag does not fit its scalar.
    Tag {
        /// The tag, such as `!!int`.
        tag: String,
        /// The scalar.
        scalar: String,
    },
    /// The value of `<<` is neither a mapping nor a list of mappings.
    Merge,
    /// An alias stands inside the node that it refers to.
    RecursiveAlias,
    /// Nesting exceeds [`NESTING_MAX`].
    Nesting,
    /// Anchors and aliases copy more than [`COPIES_MAX`].
    Copies,
    /// The text of the document exceeds [`DOCUMENT_SIZE_MAX`].
    Size(usize),
}

impl fmt::Display for YamlErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => f.write_str(text),
            Self::Key => f.write_str("a mapping key must be a string, number or boolean"),
            Self::NotFinite(text) => write!(f, "{text} cannot be expressed in JSON"),
            Self::Tag { tag, scalar } => write!(f, "{scalar:?} is not a {tag}"),
            Self::Merge => f.write_str("`<<` needs a mapping or a list of mappings"),
            Self::RecursiveAlias => f.write_str("an alias refers to the node it stands in"),
            Self::Nesting => write!(f, "nested deeper than {NESTING_MAX}"),
            Self::Copies => write!(f, "aliases expand to more than {} MiB", COPIES_MAX >> 20),
            Self::Size(size) => {
                write!(f, "document has {size} bytes, at most {DOCUMENT_SIZE_MAX} are read")
            }
        }
    }
}

/// Why a text is not one value of a form.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not YAML.
    #[error("line {line}, column {column}: {0}", line = .0.line, column = .0.column)]
    Yaml(YamlError),
    /// It has no document, or several.
    #[error("it has {0} documents, one is expected")]
    Documents(usize),
    /// The value has another form.
    #[error("{0}")]
    Form(serde_json::Error),
}

/// Reads the one value of a text.
///
/// # Errors
/// [`ReadError`] when it is not YAML, has not one document, or is of another form.
pub fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let mut documents = parse(text);
    if documents.len() != 1 {
        return Err(ReadError::Documents(documents.len()));
    }
    let value = documents.remove(0).value.map_err(ReadError::Yaml)?;
    serde_json::from_value(value).map_err(ReadError::Form)
}

/// Reads every document of a text.
pub fn parse(text: &str) -> Vec<YamlDocument> {
    split::documents(text).flat_map(|chunk| document(chunk.text, chunk.line)).collect()
}

/// Reads the first document of a text and ignores what follows its end, as kube-apiserver reads the body
/// of a request.
///
/// Upstream: sigs.k8s.io/yaml/yaml.go: YAMLToJSON
pub fn first_document(text: &str) -> YamlDocument {
    yaml_document(without_mark(text), 1)
}

/// Reads one document that begins on a line; JSON documents may follow each other in it.
fn document(text: &str, line: usize) -> Vec<YamlDocument> {
    // The mark may begin every document, for files that were put together from others.
    let text = without_mark(text);
    if text.len() <= DOCUMENT_SIZE_MAX
        && let Some(documents) = json::read(text, line)
    {
        return documents;
    }
    vec![yaml_document(text, line)]
}

/// Removes the byte-order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn yaml_document(text: &str, line: usize) -> YamlDocument {
    let mut notes = Vec::new();
    let value = if text.len() > DOCUMENT_SIZE_MAX {
        Err(YamlError { line, column: 1, problem: YamlErrorKind::Size(text.len()) })
    } else {
        build::build(text, line, &mut notes)
    };
    YamlDocument { line, value, notes }
}

#[cfg(test)]
mod tests;
