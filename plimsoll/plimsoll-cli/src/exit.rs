//! The exit codes, and the printing of errors.

use std::error::Error;
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

/// A person, or the absence of one, declined what was planned; nothing was changed.
pub const DECLINED: Exit = Exit(3);

/// A person interrupted a wait; the output says what goes on.
pub const INTERRUPTED: Exit = Exit(130);

/// What an operation does not do, in the words of the design document.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is not done, and why.
    pub message: String,
    /// How the command ends.
    pub exit: Exit,
}

impl Refusal {
    /// Returns the refusal of a command line whose parts contradict each other.
    pub(crate) fn usage(message: String) -> Self {
        Self { message, exit: USAGE }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// An error and its causes on one line, each said once.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let Some(cause) = worded(cause) else { continue };
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// A cause in words for people; `None` if it says no more than the next one.
fn worded(cause: &(dyn Error + 'static)) -> Option<String> {
    match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(match status.message.as_str() {
            "" => format!("the API server answered with status {}", status.code),
            message => message.to_owned(),
        }),
        Some(kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::HttpError(_)) => {
            None
        }
        Some(_) | None if cause.is::<Box<kube::core::Status>>() => None,
        Some(_) | None => {
            // Errors of the YAML parser go on with the lines of the file.
            let text = cause.to_string();
            Some(text.split("\n -->").next().unwrap_or_default().replace("error: line", "line"))
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::chain;

    #[test]
    fn an_answer_of_the_api_server_is_quoted_and_nothing_else_of_it() {
        let check = |status: Status, expected: &str| {
            let error = anyhow::Error::new(kube::Error::Api(status.boxed()));
            assert_eq!(chain(&error.context("failed to read the lamp")), expected);
        };
        check(
            Status::failure("lamps is forbidden", "Forbidden").with_code(403),
            "failed to read the lamp: lamps is forbidden",
        );
        check(
            Status::failure("", "").with_code(502),
            "failed to read the lamp: the API server answered with status 502",
        );
        let source = anyhow::anyhow!("the wire is cut");
        let error = anyhow::Error::new(kube::Error::Service(source.into()));
        assert_eq!(chain(&error.context("no lamp")), "no lamp: the wire is cut");
    }
}
