//! Errors of compilation and of evaluation.
//!
//! Upstream: github.com/google/cel-go/common/error.go: ToDisplayString
use std::fmt;

/// Longest line that a message repeats.
const SNIPPET_MAX: usize = 16_384;

/// An error in the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The line, from 1; 0 if the error has no position.
    pub line: usize,
    /// The column, from 0, in characters.
    pub column: usize,
    /// The message, without position.
    pub message: String,
}

/// Everything that is wrong with an expression's text; it prints as kube-apiserver reports it,
/// with the line and a caret below each error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileErrors {
    pub(crate) source: String,
    /// The errors, by place.
    pub errors: Vec<CompileError>,
    /// Why an expression without errors can never be evaluated: a constant part of it fails.
    pub program: Option<String>,
}

impl CompileErrors {
    pub(crate) fn new(source: &str, mut errors: Vec<CompileError>) -> Self {
        errors.sort_by(|a, b| (a.line, a.column, &a.message).cmp(&(b.line, b.column, &b.message)));
        Self { source: source.to_owned(), errors, program: None }
    }

    pub(crate) fn of_program(source: &str, message: &str) -> Self {
        let program = Some(message.to_owned());
        Self { source: source.to_owned(), errors: Vec::new(), program }
    }
}

impl fmt::Display for CompileErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.program {
            return out.write_str(message);
        }
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            let (line, column) = (error.line, error.column);
            write!(out, "ERROR: <input>:{line}:{}: {}", column + 1, error.message)?;
            let snippet = line.checked_sub(1).and_then(|line| self.source.split('\n').nth(line));
            let Some(snippet) = snippet.filter(|text| text.len() <= SNIPPET_MAX) else { continue };
            let snippet = snippet.replace('\t', " ");
            write!(out, "\n | {snippet}\n | ")?;
            let mut characters = snippet.chars();
            for before in characters.by_ref().take(column) {
                out.write_str(if before.is_ascii() { "." } else { "\u{ff0e}" })?;
            }
            let wide = characters.next().is_some_and(|at| !at.is_ascii());
            out.write_str(if wide { "\u{ff3e}" } else { "^" })?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileErrors {}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A function or operator failed; the message is cel-go's.
    #[error("{0}")]
    Failed(String),
    /// The expression alone cost more than one expression may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// The budget that all expressions of a request share is used up.
    #[error("out of cost budget")]
    OutOfBudget,
}

impl EvaluationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn no_such_key(key: impl fmt::Display) -> Self {
        Self::Failed(format!("no such key: {key}"))
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::Failed("no such overload".to_owned())
    }
}
