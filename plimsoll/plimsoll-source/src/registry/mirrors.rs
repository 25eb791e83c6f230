//! Where the images of a repository are looked for: `registries.conf`, version 2.
//!
//! Of each `[[registry]]` are read: `prefix`, `location`, `insecure`, `blocked`,
//! `mirror-by-digest-only`, and of each `[[registry.mirror]]`: `location`, `insecure` and
//! `pull-from-mirror`. Directories `registries.conf.d` are not read.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::credentials::Environment;
use super::error::RegistryError;
use super::reference::ImageReference;
use crate::bounded::{WRITTEN_SIZE_MAX, read_text};

/// The system's file.
const SYSTEM: &str = "/etc/containers/registries.conf";

/// A place where a repository's images are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The image, as it is called there.
    pub(super) reference: ImageReference,
    /// Whether plain HTTP will do.
    pub(super) insecure: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Configuration {
    registry: Vec<Registry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Registry {
    prefix: String,
    location: String,
    insecure: bool,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirror: Vec<Mirror>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Mirror {
    location: String,
    insecure: bool,
    pull_from_mirror: PullFromMirror,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PullFromMirror {
    #[default]
    All,
    DigestOnly,
    TagOnly,
}

/// The places where an image is looked for, in their order; never empty.
///
/// # Errors
/// [`RegistryError::Configuration`] when the file cannot be read, blocks the registry, or gives it a
/// location that is none.
pub(super) fn places(
    reference: &ImageReference,
    given: Option<&Path>,
    environment: Environment<'_>,
) -> Result<Vec<Place>, RegistryError> {
    let itself = || vec![Place { reference: reference.clone(), insecure: false }];
    let Some((path, text)) = read(given, environment)? else { return Ok(itself()) };
    let configuration: Configuration = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        unusable(&path, &format!("line {line}: {}", error.message()))
    })?;
    let matching = configuration.registry.iter().filter_map(|it| Some((it.rest(reference)?, it)));
    // What is left of the name is shortest where the prefix is longest.
    let Some((rest, registry)) = matching.min_by_key(|(rest, _)| rest.len()) else {
        return Ok(itself());
    };
    if registry.blocked {
        return Err(unusable(&path, &format!("it blocks the registry of `{reference}`")));
    }
    let place = |location: &str, insecure: bool| -> Result<Place, RegistryError> {
        let name = format!("{location}{rest}");
        let renamed: ImageReference =
            name.parse().map_err(|error| unusable(&path, &format!("location: {error}")))?;
        let renamed = match (reference.tag(), reference.digest()) {
            (_, Some(digest)) => renamed.with_digest(digest),
            (Some(tag), None) => renamed.with_tag(tag),
            (None, None) => renamed,
        };
        Ok(Place { reference: renamed, insecure })
    };
    let mut places = Vec::new();
    for mirror in &registry.mirror {
        if registry.uses(mirror, reference) {
            places.push(place(&mirror.location, mirror.insecure)?);
        }
    }
    places.push(if registry.location.is_empty() {
        Place { reference: reference.clone(), insecure: registry.insecure }
    } else {
        place(&registry.location, registry.insecure)?
    });
    Ok(places)
}

impl Registry {
    /// What of a reference's name follows the prefix; absent if it does not begin with it.
    fn rest(&self, reference: &ImageReference) -> Option<String> {
        let name = reference.name();
        let prefix = if self.prefix.is_empty() { &self.location } else { &self.prefix };
        if let Some(domain) = prefix.strip_prefix("*.") {
            let host = reference.host().strip_suffix(domain)?.strip_suffix('.')?;
            let is_below = !host.is_empty();
            return is_below.then(|| name[reference.host().len()..].to_owned());
        }
        let rest = name.strip_prefix(prefix.as_str()).filter(|_| !prefix.is_empty())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    }

    fn uses(&self, mirror: &Mirror, reference: &ImageReference) -> bool {
        let which = match mirror.pull_from_mirror {
            PullFromMirror::All if self.mirror_by_digest_only => PullFromMirror::DigestOnly,
            which => which,
        };
        match which {
            PullFromMirror::All => true,
            PullFromMirror::DigestOnly => reference.digest().is_some(),
            PullFromMirror::TagOnly => reference.digest().is_none(),
        }
    }
}

/// The file that counts, if there is one.
fn read(
    given: Option<&Path>,
    environment: Environment<'_>,
) -> Result<Option<(PathBuf, String)>, RegistryError> {
    let named = |name: &str| environment(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let required = given.map(Path::to_owned).or_else(|| named("CONTAINERS_REGISTRIES_CONF"));
    let own = named("HOME").map(|home| home.join(".config/containers/registries.conf"));
    let is_required = required.is_some();
    let files = match required {
        Some(file) => vec![file],
        None => own.into_iter().chain([PathBuf::from(SYSTEM)]).collect(),
    };
    for path in files {
        match read_text(&path, WRITTEN_SIZE_MAX) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => {}
            Err(error) => return Err(unusable(&path, &error.to_string())),
        }
    }
    Ok(None)
}

fn unusable(path: &Path, problem: &str) -> RegistryError {
    RegistryError::Configuration {
        what: "settings of registries",
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests;
