//! Making releases: from a source directory to the files of a payload.
//!
//! [`ReleaseSource::read`] reads `release.yaml`. The shell around this module renders the folder of
//! each component to texts ([`RenderedFile`]), and [`assemble`] makes the files of a payload of
//! them: one object a file, with names that give the order, in bytes that depend on nothing but the
//! input.

mod assemble;
mod documents;
mod fields;
mod generated;
mod hooks;
mod images;
mod layout;
mod order;

use std::fmt;

use crate::diagnostic::Diagnostic;

pub use assemble::{BuiltRelease, RenderedComponent, assemble};
pub use documents::{Origin, RenderedFile};
pub(crate) use images::CONTAINERS;
pub use images::{UsedImage, container_images};
pub use layout::{
    ChartValues, Component, ReleaseSource, SourceCapability, SourceImage, check_name,
};

/// Name of the file that describes a release, in the directory of its source.
pub const RELEASE_FILE: &str = "release.yaml";

/// Key of the release metadata: the name of what is released. Payloads with it were built.
pub const NAME_KEY: &str = "plimsoll.io/release-name";
/// Key of the release metadata: the programs that rendered manifests, with their versions.
pub const RENDERED_WITH_KEY: &str = "plimsoll.io/rendered-with";

/// Everything that keeps a release from being built: never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceProblems(pub Vec<Diagnostic>);

impl fmt::Display for SourceProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the source has {count} problem{}", if count == 1 { "" } else { "s" })?;
        self.0.iter().try_for_each(|it| {
            write!(f, "\n  {}: {}", it.place(), it.message)?;
            it.help.iter().try_for_each(|help| write!(f, " ({help})"))
        })
    }
}

impl std::error::Error for SourceProblems {}

#[cfg(test)]
mod tests;
