//! Problems as files.

use serde::Deserialize;

use super::{CatalogName, CatalogPart, FORMAT, Problem};
use crate::package::Package;

/// A catalog as it may be written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenCatalog {
    #[serde(flatten)]
    name: CatalogName,
    weight: Option<i64>,
    priority: Option<i64>,
    #[serde(default)]
    packages: Vec<Package>,
}

impl TryFrom<WrittenCatalog> for CatalogPart {
    type Error = String;

    fn try_from(written: WrittenCatalog) -> Result<Self, String> {
        let WrittenCatalog { name, weight, priority, packages } = written;
        let weight = match (weight, priority) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "catalog {name} sets both `weight` and `priority`; set only one"
                ));
            }
            (Some(weight), None) => weight,
            (None, Some(priority)) => priority.saturating_neg(),
            (None, None) => 0,
        };
        Ok(Self { name, weight, packages })
    }
}

/// Why a text is not a problem.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// It is no JSON, or not of the form.
    #[error("failed to parse the problem")]
    Read(#[source] serde_json::Error),
    /// It was written by another version.
    #[error("unsupported problem format {found}, expected {FORMAT}")]
    Format {
        /// The format that the text states.
        found: u32,
    },
}

impl Problem {
    /// Reads a written problem.
    ///
    /// # Errors
    /// [`ProblemError::Read`] when the text is not JSON of that form, [`ProblemError::Format`] when it
    /// is of another format.
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

#[cfg(test)]
mod tests {
    //! What may be written, and what is read.

    use super::*;

    #[test]
    fn a_priority_is_the_negative_of_a_weight() {
        let check = |written: &str, weight: Result<i64, &str>| {
            let text = format!(
                r#"{{"format": 1, "requests": [], "catalogs": [{{"name": "c"{written}}}]}}"#
            );
            let read = Problem::read(text.as_bytes());
            let found = read.as_ref().map(|problem| problem.catalogs[0].weight);
            match (found, weight) {
                (Ok(found), Ok(weight)) => assert_eq!(found, weight, "{written}"),
                (Err(ProblemError::Read(source)), Err(part)) => {
                    assert!(source.to_string().contains(part), "{written}: {source}");
                }
                (found, _) => panic!("{written}: {found:?}"),
            }
        };
        check("", Ok(0));
        check(r#", "weight": 3"#, Ok(3));
        check(r#", "priority": 3"#, Ok(-3));
        check(r#", "priority": 3, "weight": -3"#, Err("both `weight` and `priority`"));
    }
}
