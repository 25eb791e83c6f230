//! A release by its location: a payload, a source, which is built in memory, or an image.

use std::collections::BTreeMap;

use anyhow::Context as _;
use plimsoll_content::authoring::{BuiltRelease, Origin};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Payload, SourceFile, TemplateContext, parse};
use plimsoll_source::authoring::is_source;

use crate::arguments::registry::RegistryArguments;
pub(super) use crate::arguments::store::LoadedRelease;
use crate::arguments::store::Location;
use crate::interruption::build;

/// Loads the release at a location.
///
/// # Errors
///
/// When it has none, or a defective one.
pub(super) fn load(
    location: &Location,
    registry: &RegistryArguments,
) -> Result<LoadedRelease, anyhow::Error> {
    let (image, files, origins) = read(location, registry)?;
    let payload = parse(&files, &template(image)).with_context(|| failed(location))?;
    Ok(LoadedRelease { files, payload, origins })
}

/// Loads the release at a location without the name of its image: the same content is equal wherever
/// it is.
///
/// # Errors
///
/// When it has none, or a defective one.
pub(super) fn load_content(
    location: &Location,
    registry: &RegistryArguments,
) -> Result<Payload, anyhow::Error> {
    let (_, files, _) = read(location, registry)?;
    parse(files, &template(String::new())).with_context(|| failed(location))
}

/// The image of a release, its files, and where its objects come from.
type Content = (String, Vec<SourceFile>, BTreeMap<String, Origin>);

fn read(location: &Location, registry: &RegistryArguments) -> Result<Content, anyhow::Error> {
    match location {
        Location::Directory(path) if is_source(path) => {
            let built = build(path, None).with_context(|| failed(location))?;
            let BuiltRelease { files, origins, .. } = built;
            Ok((String::new(), files, origins))
        }
        location => {
            let (image, files) = location.files(registry)?;
            Ok((image, files, BTreeMap::new()))
        }
    }
}

fn failed(location: &Location) -> String {
    format!("failed to load release `{location}`")
}

fn template(release_image: String) -> TemplateContext {
    TemplateContext { release_image, cluster_profile: DEFAULT_PROFILE.to_owned() }
}

/// Where an object comes from, for people.
pub(super) fn origin_text(origin: &Origin) -> String {
    match origin.line {
        Some(line) => format!("{}:{line}", origin.path),
        None => origin.path.clone(),
    }
}
