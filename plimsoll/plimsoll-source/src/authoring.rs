//! Builds releases: reads a source directory, has its components rendered, and writes the payload.
//!
//! What a source means is decided by [`plimsoll_content::authoring`]. The programs `helm` and
//! `kustomize` (or `kubectl`) run only for components that are for them.

mod child;
mod folder;
mod links;
mod output;
mod program;

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_content::authoring::{
    BuiltRelease, RELEASE_FILE, ReleaseSource, RenderedComponent, SourceProblems, assemble,
};

pub use child::kill_programs;
pub use output::{WriteError, check_output, write_payload};

use crate::bounded::{WRITTEN_SIZE_MAX, read_text};

/// Why a release cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The directory is no source.
    #[error("`{}` has no {RELEASE_FILE}: `plimsoll release new` makes a source", .0.display())]
    NotASource(PathBuf),
    /// Its `release.yaml` cannot be read.
    #[error("failed to read `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// What is wrong with the source.
    #[error("{0}")]
    Problems(SourceProblems),
}

/// Whether a directory is the source of a release.
pub fn is_source(directory: &Path) -> bool {
    directory.join(RELEASE_FILE).is_file()
}

/// Builds the release of a source directory; `version` replaces the one that it names.
///
/// # Errors
/// [`BuildError`] with everything that is wrong with the source.
pub fn build(directory: &Path, version: Option<&str>) -> Result<BuiltRelease, BuildError> {
    let path = directory.join(RELEASE_FILE);
    let text = match read_text(&path, WRITTEN_SIZE_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BuildError::NotASource(directory.to_owned()));
        }
        Err(source) => return Err(BuildError::Read { path, source }),
    };
    let source = ReleaseSource::read(&text, version).map_err(BuildError::Problems)?;
    let mut problems = Vec::new();
    let mut render = |component| {
        folder::render(directory, &source, component).unwrap_or_else(|found| {
            problems.extend(found);
            RenderedComponent::default()
        })
    };
    let rendered: Vec<_> = source.components.iter().map(&mut render).collect();
    if !problems.is_empty() {
        return Err(BuildError::Problems(SourceProblems(problems)));
    }
    assemble(&source, &rendered).map_err(BuildError::Problems)
}

#[cfg(test)]
mod tests;
