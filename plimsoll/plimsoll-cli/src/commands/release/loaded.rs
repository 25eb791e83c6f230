//! A release by its directory: a payload, or a source, which is built in memory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use plimsoll_content::authoring::{BuiltRelease, Origin};
use plimsoll_content::finding::Finding;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Payload, SourceFile, TemplateContext, parse};
use plimsoll_source::authoring::{build, is_source};
use plimsoll_source::read_directory;

/// A release that was loaded.
pub(super) struct LoadedRelease {
    pub(super) files: Vec<SourceFile>,
    pub(super) payload: Payload,
    /// Where its objects come from, by file; empty for a payload.
    pub(super) origins: BTreeMap<String, Origin>,
}

/// Loads the release in a directory.
///
/// # Errors
///
/// When it has none, or a defective one.
pub(super) fn load(path: &Path) -> Result<LoadedRelease, anyhow::Error> {
    let context = || format!("failed to load release `{}`", path.display());
    let (files, origins) = if is_source(path) {
        let BuiltRelease { files, origins, .. } = build(path, None).with_context(context)?;
        (files, origins)
    } else {
        (read_directory(path).with_context(context)?, BTreeMap::new())
    };
    let payload = parse(&files, &template()).with_context(context)?;
    Ok(LoadedRelease { files, payload, origins })
}

fn template() -> TemplateContext {
    TemplateContext { release_image: String::new(), cluster_profile: DEFAULT_PROFILE.to_owned() }
}

/// Where an object comes from, for people.
pub(super) fn origin_text(origin: &Origin) -> String {
    match origin.line {
        Some(line) => format!("{}:{line}", origin.path),
        None => origin.path.clone(),
    }
}

/// A finding with the place in the source that it is about, if it is about one.
pub(super) fn located(finding: &Finding, origins: &BTreeMap<String, Origin>) -> String {
    match origins.get(&*finding.location.file) {
        Some(origin) => {
            let Finding { severity, code, message, .. } = finding;
            format!("{}: {severity} [{code}]: {message}", origin_text(origin))
        }
        None => finding.to_string(),
    }
}
