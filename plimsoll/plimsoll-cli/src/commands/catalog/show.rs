//! `plimsoll catalog show`: one package.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use plimsoll_content::catalog::{IndexedBundle, IndexedChannel, IndexedPackage};
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_operators::{RequestedPackage, version_text};
use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::version::parse_tolerant;
use serde::Serialize;

use super::{ShowArguments, graph};
use crate::arguments::catalog::with_catalog;
use crate::arguments::name::hint;
use crate::exit;
use crate::render::diagnostics;
use crate::render::format::Format;
use crate::render::table;

/// Most versions that an error lists.
const VERSIONS_LISTED: usize = 8;

/// A package as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    display_name: &'a str,
    provider: &'a str,
    description: &'a str,
    default_channel: &'a str,
    deprecated: Option<&'a str>,
    invalid: bool,
    channels: Vec<ShownChannel<'a>>,
    bundles: Vec<ShownBundle<'a>>,
    defects: &'a [Diagnostic],
}

#[derive(Debug, Serialize)]
struct ShownChannel<'a> {
    name: &'a str,
    head: Option<&'a str>,
    /// Names of bundles from the head along what they replace.
    order: Vec<&'a str>,
    /// Why it has no order.
    error: Option<String>,
    deprecated: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownBundle<'a> {
    name: &'a str,
    version: &'a str,
    image: &'a str,
    channels: Vec<&'a str>,
    deprecated: Option<&'a str>,
    invalid: Option<&'a str>,
    provides: Vec<String>,
    requires: Vec<String>,
    install_modes: Vec<&'static str>,
    minimum_kubernetes: &'a str,
}

pub(super) fn run(
    arguments: &ShowArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let text = with_catalog(&arguments.catalog, |index| {
        let RequestedPackage { name, range } = &arguments.package;
        let block = index.package(name)?.with_context(|| {
            let names: Vec<&str> = index.package_names().collect();
            format!("the catalog has no package `{name}`{}", hint(name, names.into_iter()))
        })?;
        let channel = arguments.channel.as_deref();
        package_text(block.read()?, channel, range.as_deref(), &arguments.output)
    })?;
    out.write_all(&text)?;
    Ok(exit::SUCCESS.into())
}

/// A package, or one channel or some versions of it, as it is shown. Pictures show all versions.
///
/// # Errors
///
/// When it has no such channel or version, or has no form in a format.
pub(crate) fn package_text(
    mut package: IndexedPackage<'_>,
    channel: Option<&str>,
    range: Option<&str>,
    output: &Format,
) -> Result<Vec<u8>, anyhow::Error> {
    if let Some(wanted) = channel {
        if package.channel(wanted).is_none() {
            let names: Vec<&str> = package.channels.iter().map(|it| &*it.name).collect();
            let hint = hint(wanted, names.into_iter());
            bail!("package `{}` has no channel `{wanted}`{hint}", package.name);
        }
        package.channels.retain(|channel| *channel.name == *wanted);
    }
    let mut shown = shown(&package);
    if let Some(range) = range {
        restrict(&mut shown, range)?;
    }
    let mut text = Vec::new();
    if let Format::Picture(picture) = output {
        text.extend(graph::of(&package).draw(*picture).into_bytes());
    } else if !output.write(&shown, &mut text)? {
        write_text(&package, &shown, output.is_wide(), &mut text)?;
    }
    Ok(text)
}

/// Leaves out the versions that are not in a range.
fn restrict(shown: &mut Shown<'_>, range: &str) -> Result<(), anyhow::Error> {
    let wanted = Range::parse(range)?;
    let is_wanted = |version: &str| parse_tolerant(version).is_ok_and(|it| wanted.matches(&it));
    if !shown.bundles.iter().any(|it| is_wanted(it.version)) {
        let there = shown.bundles.iter().take(VERSIONS_LISTED).map(|it| version_text(it.version));
        let there: Vec<String> = there.collect();
        let more = if shown.bundles.len() > there.len() { ", …" } else { "" };
        let there = there.join(", ");
        bail!("no version of `{}` matches {range}; there is {there}{more}", shown.name);
    }
    shown.bundles.retain(|it| is_wanted(it.version));
    Ok(())
}

fn shown<'a>(package: &'a IndexedPackage<'a>) -> Shown<'a> {
    let details = package.default_bundle().and_then(|bundle| package.details(bundle));
    Shown {
        name: &package.name,
        display_name: details.map_or("", |it| &it.display_name),
        provider: details.map_or("", |it| &it.provider),
        description: details.map_or("", |it| &it.description),
        default_channel: &package.default_channel,
        deprecated: package.deprecated.as_deref(),
        invalid: package.invalid,
        channels: package.channels.iter().map(shown_channel).collect(),
        bundles: bundles(package).map(|bundle| shown_bundle(package, bundle)).collect(),
        defects: &package.defects,
    }
}

/// The bundles of the channels that are shown.
fn bundles<'a>(package: &'a IndexedPackage<'a>) -> impl Iterator<Item = &'a IndexedBundle<'a>> {
    let listed: BTreeSet<&str> = package
        .channels
        .iter()
        .flat_map(|channel| &channel.entries)
        .map(|entry| &*entry.name)
        .collect();
    package.bundles.iter().filter(move |bundle| listed.contains(&*bundle.name))
}

fn shown_channel<'a>(channel: &'a IndexedChannel<'a>) -> ShownChannel<'a> {
    ShownChannel {
        name: &channel.name,
        head: channel.head().map(|entry| &*entry.name),
        order: channel.ordered().map(|entry| &*entry.name).collect(),
        error: channel.order.as_ref().err().map(ToString::to_string),
        deprecated: channel.deprecated.as_deref(),
    }
}

fn shown_bundle<'a>(
    package: &'a IndexedPackage<'a>,
    bundle: &'a IndexedBundle<'a>,
) -> ShownBundle<'a> {
    let details = package.details(bundle);
    ShownBundle {
        name: &bundle.name,
        version: &bundle.version,
        image: &bundle.image,
        channels: channels_of(package, bundle),
        deprecated: bundle.deprecated.as_deref(),
        invalid: bundle.invalid.as_deref(),
        provides: package.provided(bundle).map(ToString::to_string).collect(),
        requires: package.required(bundle).map(ToString::to_string).collect(),
        install_modes: details
            .and_then(|it| it.install_modes)
            .map(|modes| modes.names().collect())
            .unwrap_or_default(),
        minimum_kubernetes: details.map_or("", |it| &it.minimum_kubernetes),
    }
}

fn channels_of<'a>(package: &'a IndexedPackage<'a>, bundle: &IndexedBundle<'_>) -> Vec<&'a str> {
    let has =
        |channel: &&IndexedChannel<'_>| channel.entries.iter().any(|it| it.name == bundle.name);
    package.channels.iter().filter(has).map(|channel| &*channel.name).collect()
}

fn write_text(
    package: &IndexedPackage<'_>,
    shown: &Shown<'_>,
    is_wide: bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let facts = [
        ("Name", shown.name),
        ("Display name", shown.display_name),
        ("Provider", shown.provider),
        ("Description", shown.description),
        ("Default channel", shown.default_channel),
        ("Deprecated", shown.deprecated.unwrap_or_default()),
        ("Invalid", package.invalid_because().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{:<17}{}", format!("{name}:"), on_one_line(value))?;
    }
    writeln!(out)?;
    let rows: Vec<Vec<String>> =
        package.channels.iter().map(|it| channel_row(package, it)).collect();
    table::print(out, &["CHANNEL", "HEAD", "ENTRIES", "STATE"], &rows)?;
    writeln!(out)?;
    let mut headings = vec!["VERSION", "BUNDLE", "CHANNELS", "REQUIRES", "STATE"];
    headings.extend(is_wide.then_some(["KUBERNETES", "IMAGE"]).into_iter().flatten());
    let mut rows: Vec<Vec<String>> = shown.bundles.iter().map(bundle_row).collect();
    for (row, bundle) in rows.iter_mut().zip(&shown.bundles).filter(|_| is_wide) {
        row.extend([bundle.minimum_kubernetes, bundle.image].map(str::to_owned));
    }
    table::print(out, &headings, &rows)?;
    if let Some(default) = package.default_bundle() {
        let is_default = |it: &&ShownBundle<'_>| *it.name == *default.name;
        let bundle = shown.bundles.iter().find(is_default).or(shown.bundles.first());
        if let Some(bundle) = bundle.filter(|it| !it.provides.is_empty()) {
            writeln!(out, "\n{} provides", on_one_line(bundle.name))?;
            bundle.provides.iter().try_for_each(|api| writeln!(out, "  {}", on_one_line(api)))?;
        }
    }
    if !package.defects.is_empty() {
        writeln!(out)?;
    }
    out.write_all(diagnostics::text(&package.defects).as_bytes())
}

fn channel_row(package: &IndexedPackage<'_>, channel: &IndexedChannel<'_>) -> Vec<String> {
    let versions: BTreeMap<&str, &str> =
        package.bundles.iter().map(|it| (&*it.name, &*it.version)).collect();
    let head = channel.head().and_then(|entry| versions.get(&*entry.name));
    let state = match (&channel.order, &channel.deprecated) {
        (Err(error), _) => error.to_string(),
        (Ok(_), Some(message)) => format!("deprecated: {message}"),
        (Ok(_), None) => String::new(),
    };
    let head = head.map(|version| version_text(version)).unwrap_or_default();
    vec![channel.name.to_string(), head, channel.entries.len().to_string(), state]
}

fn bundle_row(bundle: &ShownBundle<'_>) -> Vec<String> {
    let state = match (bundle.invalid, bundle.deprecated) {
        (Some(reason), _) => format!("invalid: {reason}"),
        (None, Some(message)) => format!("deprecated: {message}"),
        (None, None) => String::new(),
    };
    vec![
        version_text(bundle.version),
        bundle.name.to_owned(),
        bundle.channels.join(","),
        bundle.requires.join(", "),
        state,
    ]
}
