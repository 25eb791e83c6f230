//! Why a registry does not give what it is asked for: one sentence with what, where and what to do.

use std::path::PathBuf;

use crate::store::StoreError;

/// How many tags an error lists at most.
const TAGS_LISTED: usize = 10;

/// Why a registry does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The repository has no such image.
    #[error("the registry has no image `{reference}`{}", tags_text(.tags))]
    NoSuchImage {
        /// The image that was requested.
        reference: String,
        /// Tags that the repository has, or empty if it has none or does not say.
        tags: Vec<String>,
    },
    /// There is no such repository, or none that may be seen.
    #[error("the registry has no repository `{0}`")]
    NoSuchRepository(String),
    /// The registry refuses.
    #[error("the registry refuses access to `{reference}` {credentials}")]
    Unauthorized {
        /// The image or repository.
        reference: String,
        /// With which credentials, and where they are from; no secrets.
        credentials: String,
    },
    /// The certificate of the registry cannot be verified.
    #[error(
        "the certificate of the registry `{host}` cannot be verified ({problem}): give the \
         certificate of its authority with --registry-ca FILE"
    )]
    Certificate {
        /// The registry.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no connection to the registry.
    #[error("the registry `{host}` cannot be reached: {problem}")]
    Unreachable {
        /// The registry.
        host: String,
        /// Why not.
        problem: String,
    },
    /// The registry answers with an error.
    #[error("the registry `{host}` answers with an error for `{reference}`: {problem}")]
    Answer {
        /// The registry.
        host: String,
        /// The image or repository.
        reference: String,
        /// Its status and message.
        problem: String,
    },
    /// What the registry gives is not what it should be.
    #[error("`{reference}`: {problem}")]
    Content {
        /// The image.
        reference: String,
        /// What is wrong, in a clause.
        problem: String,
    },
    /// A file of the configuration cannot be used.
    #[error("cannot use the {what} in {}: {problem}", .path.display())]
    Configuration {
        /// What it has: `credentials`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it, in a clause.
        problem: String,
    },
    /// A credential helper does not give credentials.
    #[error("the credential helper `{program}` gives no credentials for `{host}`: {problem}")]
    Helper {
        /// The program.
        program: String,
        /// The registry.
        host: String,
        /// What it says, or why it cannot be run.
        problem: String,
    },
    /// The client cannot be set up.
    #[error("registries cannot be used here: {0}")]
    Setup(String),
    /// The image layout on disk cannot be read or written.
    #[error(transparent)]
    Layout(#[from] StoreError),
}

fn tags_text(tags: &[String]) -> String {
    match tags {
        [] => String::new(),
        _ if tags.len() <= TAGS_LISTED => format!("; the repository has {}", tags.join(", ")),
        _ => {
            let first = &tags[tags.len() - TAGS_LISTED..];
            format!("; the repository has {} tags, such as {}", tags.len(), first.join(", "))
        }
    }
}

impl From<RegistryError> for StoreError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Layout(error) => error,
            error => Self::Registry(Box::new(error)),
        }
    }
}
