//! The exit codes, and how an error is told.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

/// All went well.
pub const SUCCESS: Exit = Exit(0);
/// Something went wrong, or what was checked is not in order; the output says what.
pub const FAILURE: Exit = Exit(1);
/// The command line cannot be understood (clap's code).
pub const USAGE: Exit = Exit(2);
/// A plan or a rehearsal shows that the update would not come to its end.
pub const WOULD_STOP: Exit = Exit(3);

/// What was asked for cannot be had; the output says why.
pub const UNSATISFIABLE: Exit = Exit(3);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// An error and its causes on one line, each said once.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}
