//! `plimsoll operator search`, `show` and `who-provides`: the packages of catalogs.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use kube::Client;
use plimsoll_content::capability::most_similar;
use plimsoll_content::catalog::IndexedPackage;
use plimsoll_operators::RequestedPackage;
use plimsoll_resolve::Api as ProvidedApi;
use serde::Serialize;

use super::catalogs::{CatalogChoice, OpenedCatalogs, or_without_cluster};
use super::state::AddOnState;
use crate::commands::catalog::search as catalog_search;
use crate::commands::catalog::show::package_text;
use crate::exit;
use crate::progress::ProgressLine;
use crate::render::format::{Format, FormatParser};
use crate::render::table;

/// The source of the state that is no cluster.
const FILES: &str = "files";

/// Where packages are looked up.
#[derive(Debug, Args)]
pub struct LookupArguments {
    /// Whether the cluster is read: `files` for the catalogs of --catalog alone
    #[arg(long, value_name = "SOURCE", value_parser = [FILES, "cluster"])]
    state: Option<String>,
    #[command(flatten)]
    catalogs: CatalogChoice,
}

impl LookupArguments {
    /// Returns whether the cluster is not to be read.
    pub(super) fn needs_no_cluster(&self) -> bool {
        self.state.as_deref() == Some(FILES)
    }

    /// Returns the catalogs with which a cluster is not needed; `None` if the command line says whether it
    /// is.
    pub(super) fn catalogs(&self) -> Option<&CatalogChoice> {
        self.state.is_none().then_some(&self.catalogs)
    }
}

/// Arguments of `plimsoll operator search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// Words that names, descriptions or provided kinds must contain; all packages without any
    words: Vec<String>,
    #[command(flatten)]
    pub(super) lookup: LookupArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Name of the package, with the versions to show if not all, such as foo@~1.2
    #[arg(value_name = "PACKAGE[@RANGE]")]
    package: RequestedPackage,
    /// Only this channel
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    #[command(flatten)]
    pub(super) lookup: LookupArguments,
    /// Output format; pictures show the update graph
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::PICTURES, default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator who-provides`.
#[derive(Debug, Args)]
pub struct WhoProvidesArguments {
    /// The API, as GROUP/VERSION/KIND, or as KIND or KIND.GROUP for any version
    #[arg(value_name = "API", value_parser = WantedApi::parse)]
    api: WantedApi,
    #[command(flatten)]
    pub(super) lookup: LookupArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// An API as the command line names it; an empty field stands for any value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WantedApi {
    group: String,
    version: String,
    kind: String,
}

impl WantedApi {
    fn parse(text: &str) -> Result<Self, String> {
        let wanted = |group: &str, version: &str, kind: &str| Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        };
        let parts: Vec<&str> = text.split('/').collect();
        let found = match parts.as_slice() {
            [group, version, kind] => wanted(group, version, kind),
            [name] => match name.split_once('.') {
                Some((kind, group)) => wanted(group, "", kind),
                None => wanted("", "", name),
            },
            _ => wanted("", "", ""),
        };
        if found.kind.is_empty() || parts.iter().any(|it| it.is_empty()) {
            return Err("write GROUP/VERSION/KIND, KIND.GROUP or KIND".to_owned());
        }
        Ok(found)
    }

    fn is(&self, api: &ProvidedApi) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        is(&self.group, &api.group)
            && is(&self.version, &api.version)
            && self.kind.eq_ignore_ascii_case(&api.kind)
    }
}

/// A package that provides an API.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProvidingPackage {
    name: String,
    catalog: String,
    api: String,
    /// The versions that provide it, in ascending order.
    versions: Vec<String>,
    /// The installed version; absent if none is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<String>,
}

/// Opens the catalogs of the command line, or else those of the cluster, and prints notes about them. Also
/// returns the state of the cluster, which is empty if it was not read.
async fn opened(
    client: Option<&Client>,
    lookup: &LookupArguments,
) -> Result<(AddOnState, OpenedCatalogs), anyhow::Error> {
    let state = match client.filter(|_| !lookup.needs_no_cluster()) {
        Some(client) => {
            let state = AddOnState::read(client).await;
            or_without_cluster(state, lookup.catalogs())?
        }
        None => AddOnState::default(),
    };
    let catalogs = lookup.catalogs.open(&state.catalogs)?;
    catalogs.require()?;
    catalogs.notes().iter().for_each(|note| anstream::eprintln!("note: {note}"));
    Ok((state, catalogs))
}

/// Runs `plimsoll operator search`.
///
/// # Errors
///
/// When the cluster cannot be reached, a catalog cannot be read, or the output cannot be written.
pub(super) async fn search(
    client: Option<&Client>,
    arguments: &SearchArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (_, catalogs) = opened(client, &arguments.lookup).await?;
    let progress = ProgressLine::begin("searching");
    let mut found = Vec::new();
    for catalog in &catalogs.opened {
        let name = Some(catalog.name.as_str());
        found.extend(catalog_search::packages(&catalog.index, &arguments.words, name)?);
    }
    drop(progress);
    catalog_search::write(&found, &arguments.output, out)?;
    Ok(exit::SUCCESS.into())
}

/// Runs `plimsoll operator show`.
///
/// # Errors
///
/// When the cluster cannot be reached, no catalog has the package, or the output cannot be written.
pub(super) async fn show(
    client: Option<&Client>,
    arguments: &ShowArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (_, catalogs) = opened(client, &arguments.lookup).await?;
    let RequestedPackage { name, range } = &arguments.package;
    let text = catalogs.with_package(name, |_, package| {
        let channel = arguments.channel.as_deref();
        package_text(package, channel, range.as_deref(), &arguments.output)
    })?;
    out.write_all(&text)?;
    Ok(exit::SUCCESS.into())
}

/// Runs `plimsoll operator who-provides`.
///
/// # Errors
///
/// When the cluster cannot be reached, a catalog cannot be read, or the output cannot be written.
pub(super) async fn who_provides(
    client: Option<&Client>,
    arguments: &WhoProvidesArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (state, catalogs) = opened(client, &arguments.lookup).await?;
    let progress = ProgressLine::begin("searching");
    let mut found = Vec::new();
    for catalog in &catalogs.opened {
        for name in catalog.index.package_names() {
            let Some(block) = catalog.index.package(name)? else { continue };
            found.extend(provided_by(&block.read()?, &catalog.name, &arguments.api));
        }
    }
    drop(progress);
    for package in &mut found {
        let status = state.operators.get(&package.name).and_then(|it| it.status.as_ref());
        let bundle = status.and_then(|it| it.bundle.as_ref());
        package.installed = bundle.map(|it| it.version.clone());
    }
    if !arguments.output.write(&found, out)? {
        write_providing(&found, out)?;
    }
    if found.is_empty() {
        let kinds = provided_kinds(&catalogs)?;
        let wanted = &arguments.api.kind;
        if let Some(kind) = most_similar(wanted, kinds.iter().map(String::as_str)) {
            anstream::eprintln!("note: no package provides `{wanted}`, did you mean `{kind}`?");
        }
    }
    // The exit code says whether a package was found, as with grep.
    Ok(if found.is_empty() { exit::FAILURE } else { exit::SUCCESS }.into())
}

fn write_providing(found: &[ProvidingPackage], out: &mut dyn Write) -> anyhow::Result<()> {
    if found.is_empty() {
        writeln!(out, "No packages found")?;
        return Ok(());
    }
    let row = |it: &ProvidingPackage| {
        let versions = match it.versions.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, .., last] => format!("{first} - {last}"),
        };
        let installed = it.installed.as_ref().map(|it| format!("v{it}")).unwrap_or_default();
        vec![it.name.clone(), it.catalog.clone(), versions, installed, it.api.clone()]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    Ok(table::print(out, &["NAME", "CATALOG", "VERSIONS", "INSTALLED", "API"], &rows)?)
}

/// Returns the kinds that the packages of catalogs provide.
fn provided_kinds(catalogs: &OpenedCatalogs) -> Result<BTreeSet<String>, anyhow::Error> {
    let mut kinds = BTreeSet::new();
    for catalog in &catalogs.opened {
        for name in catalog.index.package_names() {
            let Some(block) = catalog.index.package(name)? else { continue };
            let package = block.read()?;
            for bundle in &package.bundles {
                kinds.extend(package.provided(bundle).map(|api| api.kind.to_string()));
            }
        }
    }
    Ok(kinds)
}

/// Returns the versions of a package that provide an API, by group and version of the API.
fn provided_by(
    package: &IndexedPackage<'_>,
    catalog: &str,
    wanted: &WantedApi,
) -> Vec<ProvidingPackage> {
    let mut found: Vec<ProvidingPackage> = Vec::new();
    for bundle in package.bundles.iter().filter(|it| it.invalid.is_none()) {
        for api in package.provided(bundle) {
            let provided = ProvidedApi {
                group: api.group.to_string(),
                version: api.version.to_string(),
                kind: api.kind.to_string(),
            };
            if !wanted.is(&provided) {
                continue;
            }
            let api = api.to_string();
            let version = format!("v{}", bundle.version);
            match found.iter_mut().find(|it| it.api == api) {
                Some(known) => known.versions.push(version),
                None => found.push(ProvidingPackage {
                    name: package.name.to_string(),
                    catalog: catalog.to_owned(),
                    api,
                    versions: vec![version],
                    installed: None,
                }),
            }
        }
    }
    for it in &mut found {
        it.versions
            .sort_by_cached_key(|version| plimsoll_resolve::version::parse_tolerant(version).ok());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apis_are_written_in_three_forms() {
        let check = |text: &str, api: &str, expected: bool| {
            let parts: Vec<&str> = api.split('/').collect();
            let api = ProvidedApi {
                group: parts[0].to_owned(),
                version: parts[1].to_owned(),
                kind: parts[2].to_owned(),
            };
            let found = WantedApi::parse(text).map(|wanted| wanted.is(&api));
            assert_eq!(found, Ok(expected), "{text}");
        };
        check("a.example.com/v1/Lamp", "a.example.com/v1/Lamp", true);
        check("a.example.com/v2/Lamp", "a.example.com/v1/Lamp", false);
        check("lamp.a.example.com", "a.example.com/v1/Lamp", true);
        check("Lamp", "a.example.com/v1/Lamp", true);
        check("Lamps", "a.example.com/v1/Lamp", false);
        for text in ["", "a/b", "a//Lamp", "/v1/Lamp", "a/b/c/d"] {
            assert!(WantedApi::parse(text).is_err(), "{text}");
        }
    }
}
