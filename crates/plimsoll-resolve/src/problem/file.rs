//! Problems as files.

use super::{FORMAT, Problem};

/// Why a text is not a problem.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// It is no JSON, or not of the form.
    #[error("the problem cannot be read")]
    Read(#[source] serde_json::Error),
    /// It was written by another version.
    #[error("the problem has format {found}; this program reads format {FORMAT}")]
    Format {
        /// What it says.
        found: u32,
    },
}

impl Problem {
    /// Reads a written problem.
    ///
    /// # Errors
    /// When it is not one, or of another format.
    pub fn read(bytes: &[u8]) -> Result<Self, ProblemError> {
        let mut problem: Self = serde_json::from_slice(bytes).map_err(ProblemError::Read)?;
        if problem.format != FORMAT {
            return Err(ProblemError::Format { found: problem.format });
        }
        problem.canonicalize();
        Ok(problem)
    }

    /// The problem as a text, the same for the same problem whatever the order of its parts.
    pub fn write(&self) -> String {
        let mut problem = self.clone();
        problem.canonicalize();
        let mut text =
            serde_json::to_string_pretty(&problem).expect("a problem has only keys that are texts");
        text.push('\n');
        text
    }
}
