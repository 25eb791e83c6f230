//! The options for the versions of the packages that a command line names.

use clap::Args;
use plimsoll_operators::RequestedPackage;
use plimsoll_operators::query::range_beside;
use plimsoll_resolve::range::masterminds::Range;
use semver::Version;

use crate::exit::Refusal;

/// The options for the versions of packages that have none of their own.
#[derive(Debug, Clone, Args)]
pub struct VersionChoice {
    /// Version of what is named, such as 1.2.3, to which it is pinned; also written NAME@1.2.3
    #[arg(long, value_name = "VERSION", value_parser = version, conflicts_with = "version_range")]
    version: Option<String>,
    /// Versions that will do for what is named, such as "~1.2"; the Operators then follow the range; also
    /// written NAME@~1.2
    #[arg(long, value_name = "RANGE", value_parser = range, alias = "versionRange")]
    version_range: Option<String>,
}

impl VersionChoice {
    /// Returns the range for all packages; `None` if the command line has no option for it.
    ///
    /// # Errors
    ///
    /// When a package has a range of its own beside the option.
    pub(super) fn range(&self, packages: &[RequestedPackage]) -> Result<Option<String>, Refusal> {
        let (option, range) = match (&self.version, &self.version_range) {
            (Some(version), _) => ("--version", version),
            (None, Some(range)) => ("--version-range", range),
            (None, None) => return Ok(None),
        };
        match range_beside(option, packages) {
            None => Ok(Some(range.clone())),
            Some(message) => Err(Refusal::usage(message)),
        }
    }
}

/// Reads a single version.
fn version(text: &str) -> Result<String, String> {
    let version = text.strip_prefix('v').unwrap_or(text);
    match Version::parse(version) {
        Ok(_) => Ok(version.to_owned()),
        Err(_) => {
            Err("use one whole version, such as 1.2.3; --version-range takes ranges".to_owned())
        }
    }
}

/// Reads a range of versions.
fn range(text: &str) -> Result<String, String> {
    match Range::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
