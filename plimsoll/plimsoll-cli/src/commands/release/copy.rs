//! `plimsoll release push`, `pull` and `mirror`: releases between directories, image layouts and
//! registries.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_source::authoring::{check_output, write_payload};
use plimsoll_source::registry::{CopiedImage, ImageReference, ReferenceError};

use super::loaded::load;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store::{self, Location};
use crate::exit;

/// Arguments of `plimsoll release push`.
#[derive(Debug, Args)]
pub struct PushArguments {
    /// The release: the directory of its payload or its source, or oci:DIR for the images of an OCI
    /// image layout
    #[arg(value_name = "DIR|oci:DIR", value_parser = store::parse)]
    source: Location,
    /// Where to: HOST/REPOSITORY, with :TAG; without a tag, it is the version of the release
    #[arg(value_parser = target)]
    reference: ImageReference,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Arguments of `plimsoll release pull`.
#[derive(Debug, Args)]
pub struct PullArguments {
    /// The release: HOST/REPOSITORY, with :TAG or @DIGEST
    #[arg(value_parser = reference)]
    reference: ImageReference,
    /// Where to: a directory for the payload, which is absent, empty or an earlier build, or oci:DIR
    /// for an OCI image layout, to which the image is added as it is
    #[arg(value_name = "DIR|oci:DIR", value_parser = store::parse)]
    to: Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Arguments of `plimsoll release mirror`.
#[derive(Debug, Args)]
pub struct MirrorArguments {
    /// From where: HOST/REPOSITORY, with :TAG or @DIGEST for one release, or oci:DIR
    #[arg(value_name = "REFERENCE|oci:DIR", value_parser = store::parse)]
    from: Location,
    /// Where to: HOST/REPOSITORY, with :TAG for one release, or oci:DIR
    #[arg(value_name = "REFERENCE|oci:DIR", value_parser = store::parse)]
    to: Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Reads a reference.
fn reference(text: &str) -> Result<ImageReference, String> {
    text.parse().map_err(|error: ReferenceError| error.to_string())
}

/// Reads a reference to what is to be pushed.
fn target(text: &str) -> Result<ImageReference, String> {
    let target = reference(text)?;
    match target.digest() {
        Some(_) => Err("the digest is that of the content: name a tag, or none".to_owned()),
        None => Ok(target),
    }
}

pub(super) fn push(
    arguments: &PushArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let PushArguments { source, reference: to, registry } = arguments;
    let context = || format!("failed to push `{source}` to `{to}`");
    let client = registry.client();
    let copied = match source {
        Location::Directory(_) => {
            let release = load(source, registry)?;
            vec![client.push_release(&release.files, to).with_context(context)?]
        }
        Location::Oci(layout) => client.push_from_layout(layout, to).with_context(context)?,
        Location::Registry(from) => bail!(
            "`{from}` is in a registry already: copy it with `plimsoll release mirror {from} {to}`"
        ),
    };
    write(&copied, "pushed", out)?;
    Ok(exit::SUCCESS.into())
}

pub(super) fn pull(
    arguments: &PullArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let PullArguments { reference, to, registry } = arguments;
    let from = Location::Registry(reference.clone());
    match to {
        Location::Oci(layout) => {
            if reference.tag().is_none() && reference.digest().is_none() {
                bail!(
                    "`{reference}` is a repository: name a release by :TAG or @DIGEST, or copy all \
                     of them with `plimsoll release mirror {reference} {to}`"
                );
            }
            mirror_to_layout(reference, layout, registry, out)?;
        }
        Location::Directory(path) => {
            // What cannot be written need not be pulled.
            check_output(path)?;
            let (image, files) = from.files(registry)?;
            write_payload(&files, path)?;
            let (count, path) = (files.len(), path.display());
            writeln!(out, "{}", on_one_line(&format!("pulled {image}: {count} files in {path}")))?;
        }
        Location::Registry(to) => bail!(
            "`{to}` is in a registry: copy it there with `plimsoll release mirror {reference} {to}`, \
             or name a directory as ./DIR"
        ),
    }
    Ok(exit::SUCCESS.into())
}

pub(super) fn mirror(
    arguments: &MirrorArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let MirrorArguments { from, to, registry } = arguments;
    let context = || format!("failed to mirror `{from}` to `{to}`");
    let client = registry.client();
    match (from, to) {
        (Location::Directory(path), _) => bail!(
            "`{0}` is a directory: push the release in it with `plimsoll release push {0} REFERENCE`",
            path.display()
        ),
        (_, Location::Directory(path)) => bail!(
            "`{0}` is a directory: name oci:{0} for an OCI image layout, or use `plimsoll release \
             pull` for a payload",
            path.display()
        ),
        (Location::Oci(_), Location::Oci(_)) => {
            bail!("both are image layouts: copy the directory instead")
        }
        (_, Location::Registry(to)) if to.digest().is_some() => {
            bail!("`{to}` has a digest, which is that of the content: name a tag, or none")
        }
        (Location::Registry(from), Location::Oci(layout)) => {
            mirror_to_layout(from, layout, registry, out)?;
        }
        (Location::Oci(layout), Location::Registry(to)) => {
            write(&client.push_from_layout(layout, to).with_context(context)?, "copied", out)?;
        }
        (Location::Registry(from), Location::Registry(to)) => {
            write(&client.copy(from, to).with_context(context)?, "copied", out)?;
        }
    }
    Ok(exit::SUCCESS.into())
}

fn mirror_to_layout(
    from: &ImageReference,
    layout: &Path,
    registry: &RegistryArguments,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let context = || format!("failed to copy `{from}` to `oci:{}`", layout.display());
    let copied = registry.client().pull_to_layout(from, layout).with_context(context)?;
    Ok(write(&copied, "copied", out)?)
}

/// One line for each image, by its reference with the digest.
fn write(copied: &[CopiedImage], verb: &str, out: &mut dyn Write) -> io::Result<()> {
    for CopiedImage { reference, digest } in copied {
        let digest = match reference.digest() {
            Some(_) => String::new(),
            None => format!("@{digest}"),
        };
        writeln!(out, "{}", on_one_line(&format!("{verb} {reference}{digest}")))?;
    }
    Ok(())
}
