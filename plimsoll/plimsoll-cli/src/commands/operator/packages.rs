//! `plimsoll operator search`, `show` and `who-provides`: the packages of catalogs.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use kube::Client;
use plimsoll_content::catalog::{
    ApiProviders, IndexedPackage, NamedIndex, ProvidingPackage, WantedApi, api_providers,
};
use plimsoll_operators::RequestedPackage;
use plimsoll_source::catalog::Bytes;

use super::catalogs::{CatalogChoice, OpenedCatalogs, or_without_cluster};
use super::cluster_resolver::{ClusterResolver, ask_in_place_of, providers_in_cluster};
use super::loadout::{LoadoutState, StateSource};
use super::selection::requested_operator;
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
    #[arg(value_name = "PACKAGE[@RANGE]", value_parser = requested_operator)]
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
    #[arg(value_name = "API")]
    api: WantedApi,
    #[command(flatten)]
    pub(super) lookup: LookupArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Looks something up: in the catalogs of the command line, or else in those of the cluster, of which the resolver
/// is asked if some cannot be read on this machine. Also returns the state of the cluster, which is empty if it was
/// not read.
///
/// # Errors
///
/// When the cluster, a catalog or the resolver cannot be read, or there is no catalog.
async fn looked_up<T>(
    client: Option<&Client>,
    lookup: &LookupArguments,
    ask: impl AsyncFnOnce(&ClusterResolver) -> Result<T, anyhow::Error>,
    here: impl FnOnce(&OpenedCatalogs) -> Result<T, anyhow::Error>,
) -> Result<(AddOnState, T), anyhow::Error> {
    let client = client.filter(|_| !lookup.needs_no_cluster());
    let state = match client {
        Some(client) => {
            let state = AddOnState::read(client).await;
            or_without_cluster(state, lookup.catalogs())?
        }
        None => AddOnState::default(),
    };
    let catalogs = lookup.catalogs.open(&state.catalogs)?;
    if let Some(client) = client
        && let Some(found) = ask_in_place_of(&catalogs, &lookup.catalogs, client, ask).await?
    {
        return Ok((state, found));
    }
    match client {
        Some(_) => catalogs.require()?,
        None => catalogs.require_named()?,
    }
    catalogs.notes().iter().for_each(|note| anstream::eprintln!("note: {note}"));
    let found = here(&catalogs)?;
    Ok((state, found))
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
    let SearchArguments { words, lookup, .. } = arguments;
    let ask = async |resolver: &ClusterResolver| resolver.search(words).await;
    let here = |catalogs: &OpenedCatalogs| {
        let _progress = ProgressLine::begin("searching");
        let mut found = Vec::new();
        for catalog in &catalogs.opened {
            let name = Some(catalog.name.as_str());
            found.extend(catalog_search::packages(&catalog.index, words, name)?);
        }
        anyhow::Ok(found)
    };
    let (_, found) = looked_up(client, lookup, ask, here).await?;
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
    let RequestedPackage { name, range } = &arguments.package;
    let shown = |package: IndexedPackage<'_>| {
        let channel = arguments.channel.as_deref();
        package_text(package, channel, range.as_deref(), &arguments.output)
    };
    // That there is no such package, channel or version is an answer, too.
    let ask = async |resolver: &ClusterResolver| resolver.with_package(name, shown).await;
    let here =
        |catalogs: &OpenedCatalogs| anyhow::Ok(catalogs.with_package(name, |_, it| shown(it)));
    let (_, text) = looked_up(client, &arguments.lookup, ask, here).await?;
    out.write_all(&text?)?;
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
    let WhoProvidesArguments { api, lookup, output } = arguments;
    let ask = async |resolver: &ClusterResolver| resolver.providers(api).await;
    let here = |catalogs: &OpenedCatalogs| {
        let _progress = ProgressLine::begin("searching");
        providers_here(catalogs, api)
    };
    let (state, mut found) = looked_up(client, lookup, ask, here).await?;
    for package in &mut found.packages {
        let status = state.operators.get(&package.name).and_then(|it| it.status.as_ref());
        let bundle = status.and_then(|it| it.bundle.as_ref());
        package.installed = bundle.map(|it| it.version.clone());
    }
    if !output.write(&found.packages, out)? {
        write_providing(&found.packages, out)?;
    }
    if let Some(note) = &found.note {
        anstream::eprintln!("note: {note}");
    }
    // The exit code says whether a package was found, as with grep.
    Ok(if found.packages.is_empty() { exit::FAILURE } else { exit::SUCCESS }.into())
}

/// Returns the packages of opened catalogs that provide an API.
fn providers_here(
    catalogs: &OpenedCatalogs,
    api: &WantedApi,
) -> Result<ApiProviders, anyhow::Error> {
    let opened = catalogs.opened.iter();
    let indexes = opened.map(|it| NamedIndex { name: &it.name, index: &it.index });
    let indexes: Vec<NamedIndex<'_, Bytes>> = indexes.collect();
    Ok(api_providers(api, &indexes)?)
}

/// Returns the sentence about an API that no package of a resolution provides or requires, from all packages of the
/// catalogs, or of the cluster's resolver if that was asked for them; `None` if no more is known than was resolved.
pub(super) async fn unneeded(
    client: Option<&Client>,
    state: &LoadoutState,
    api: &str,
) -> Option<String> {
    let api: WantedApi = api.parse().ok()?;
    let found = match (state.catalogs.opened.is_empty(), client) {
        (false, _) => providers_here(&state.catalogs, &api).ok()?,
        (true, Some(client)) if !matches!(state.source, StateSource::Snapshot(_)) => {
            providers_in_cluster(client, &api).await?
        }
        (true, Some(_) | None) => return None,
    };
    Some(found.unneeded(&api))
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
