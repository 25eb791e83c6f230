//! `plimsoll release images` and `image-for`: the images of a release.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plimsoll_content::authoring::container_images;
use plimsoll_content::payload::Payload;
use serde::Serialize;

use super::loaded::load;
use crate::arguments::name;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// Arguments of `plimsoll release images`.
#[derive(Debug, Args)]
pub struct ImagesArguments {
    /// The release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll release image-for`.
#[derive(Debug, Args)]
pub struct ImageForArguments {
    /// The release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Name of the image in image-references
    #[arg(value_name = "NAME")]
    image: String,
}

/// An image of a release.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseImage<'a> {
    /// Pull specification.
    name: &'a str,
    /// Its names in `image-references`.
    tags: Vec<&'a str>,
    used_by: Vec<ImageUser<'a>>,
}

/// What uses an image.
#[derive(Debug, Serialize)]
struct ImageUser<'a> {
    file: &'a str,
    object: String,
    /// The container or the volume.
    container: String,
}

pub(super) fn run(
    arguments: &ImagesArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let release = load(&arguments.release, &arguments.registry)?;
    let used: Vec<_> = used(&release.payload);
    let images = images(&release.payload, &used);
    if !arguments.output.write(&images, out)? {
        let rows: Vec<Vec<String>> = images.iter().flat_map(rows).collect();
        table::print(out, &["IMAGE", "NAME", "USED BY", "CONTAINER"], &rows)?;
    }
    Ok(exit::SUCCESS.into())
}

pub(super) fn image_for(
    arguments: &ImageForArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let images = load(&arguments.release, &arguments.registry)?.payload.release.images;
    let Some(image) = images.get(&arguments.image) else {
        let hint = name::hint(&arguments.image, images.keys().map(String::as_str));
        bail!("the release has no image `{}`{hint}", arguments.image);
    };
    writeln!(out, "{image}")?;
    Ok(exit::SUCCESS.into())
}

/// A use of an image: its pull specification, the number of the manifest, and the container.
type Use = (String, usize, String);

fn used(payload: &Payload) -> Vec<Use> {
    let mut used = Vec::new();
    for (number, manifest) in payload.manifests.iter().enumerate() {
        let images = container_images(&manifest.object());
        used.extend(images.into_iter().map(|it| (it.image, number, it.user)));
    }
    used
}

/// The images that manifests use or `image-references` names, by their pull specifications.
fn images<'a>(payload: &'a Payload, used: &'a [Use]) -> Vec<ReleaseImage<'a>> {
    let mut images: BTreeMap<&str, ReleaseImage<'a>> = BTreeMap::new();
    let empty = |name| ReleaseImage { name, tags: Vec::new(), used_by: Vec::new() };
    for (tag, image) in &payload.release.images {
        images.entry(image).or_insert_with(|| empty(image)).tags.push(tag);
    }
    for (image, number, container) in used {
        let manifest = &payload.manifests[*number];
        let (object, container) = (manifest.key.reference(), container.clone());
        let user = ImageUser { file: &manifest.file, object, container };
        images.entry(image).or_insert_with(|| empty(image)).used_by.push(user);
    }
    images.into_values().collect()
}

/// A row for each use, and one for an image that nothing uses.
fn rows(image: &ReleaseImage<'_>) -> Vec<Vec<String>> {
    let row = |object: &str, container: &str| {
        vec![image.name.to_owned(), image.tags.join(", "), object.to_owned(), container.to_owned()]
    };
    if image.used_by.is_empty() {
        return vec![row("", "")];
    }
    image.used_by.iter().map(|user| row(&user.object, &user.container)).collect()
}
