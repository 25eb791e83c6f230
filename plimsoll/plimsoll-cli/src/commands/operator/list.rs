//! `plimsoll operator list`: the Operators of a cluster.

mod watch;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use kube::Client;
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::{Catalog, OPERATOR, Operator};
use plimsoll_content::catalog::IndexedCatalog;
use plimsoll_operators::snapshot::{LoadoutSnapshot, SnapshotCatalog};
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_resolve::{CatalogSource, Package};
use semver::Version;
use serde::Serialize;

use self::watch::WatchedOperators;
use super::catalogs::{CatalogChoice, OpenedCatalogs};
use super::cluster_resolver::read_in_place_of;
use super::selection::OperatorSelection;
use super::state::{AddOnState, status};
use crate::exit::{self, chain};
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::table;

/// The placeholder for a value that is not known.
const UNKNOWN: &str = "<unknown>";

/// Arguments of `plimsoll operator list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    #[command(flatten)]
    catalogs: CatalogChoice,
    /// Print each Operator again when it changes, until the command is interrupted
    #[arg(long, short)]
    watch: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// An Operator in the list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    /// Status of the condition `Installed`; empty before the controller's first report.
    installed: String,
    /// Status of the condition `ConstraintsSatisfied`; empty before the controller's first report.
    satisfied: String,
    /// The requested version and the installed one.
    version: String,
    orphaned: bool,
    /// The newest version of its channel, if it is higher than the installed one; absent if there
    /// is none, or no catalog with the package can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<String>,
    /// Whether a catalog that has the package was read.
    update_known: bool,
    available: String,
    progressing: String,
    catalog: String,
    namespace: String,
    /// Message of the condition `Progressing`; empty before the controller's first report.
    message: String,
    /// The time of its creation; absent if the object does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
}

/// What is known of catalogs.
struct ReadCatalogs {
    catalogs: OpenedCatalogs,
    /// What the cluster's resolver has, if it was asked.
    snapshot: LoadoutSnapshot,
    /// What is to be said of them, a sentence each.
    notes: Vec<String>,
}

impl ReadCatalogs {
    /// Reads the catalogs of the command line, or else those of the cluster. Where nothing is looked up in them, the
    /// resolver is not asked, and there is nothing to say.
    async fn read(
        client: &Client,
        choice: &CatalogChoice,
        in_cluster: &BTreeMap<String, Catalog>,
        is_looked_up: bool,
    ) -> Result<Self, anyhow::Error> {
        let mut catalogs = choice.open(in_cluster)?;
        let (mut snapshot, mut notes) = (LoadoutSnapshot::default(), Vec::new());
        if is_looked_up {
            // The Operators are listed without the catalogs, too.
            match read_in_place_of(&mut catalogs, choice, client, &[]).await {
                Ok(read) => snapshot = read,
                Err(error) => notes.push(chain(&error)),
            }
            notes.extend(catalogs.notes());
        }
        Ok(Self { catalogs, snapshot, notes })
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached or has no Operator of a name, a file or a catalog cannot be read, or the
/// output cannot be written.
pub(super) async fn run(
    client: &Client,
    arguments: &ListArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let selection = &arguments.selection;
    let state = AddOnState::read_selected(client, selection.selector()).await?;
    let names = selection.named()?;
    for name in names.iter().flatten() {
        state.operator(name)?;
    }
    // A list that is watched may get its first Operator later.
    let is_looked_up = arguments.watch || !state.operators.is_empty();
    let ReadCatalogs { catalogs, snapshot, notes } =
        ReadCatalogs::read(client, &arguments.catalogs, &state.catalogs, is_looked_up).await?;
    let opened = catalogs.opened.iter();
    let indexed: Vec<_> = opened.clone().map(|it| IndexedCatalog::new(&it.index)).collect();
    let sources = opened.zip(&indexed).map(|(it, catalog)| CatalogSource {
        name: &it.name,
        namespace: "",
        weight: it.weight,
        catalog,
    });
    let kept = snapshot.catalogs.iter().map(SnapshotCatalog::source);
    let mut sources: Vec<CatalogSource<'_>> = sources.chain(kept).collect();
    sources.sort_by_key(|it| it.weight);
    let listed = state.operators.iter();
    let listed = listed.filter(|(name, _)| names.as_ref().is_none_or(|it| it.contains(name)));
    let rows: Vec<Row> = listed.map(|(name, operator)| row(name, operator, &sources)).collect();
    if let Some(error) = indexed.iter().find_map(IndexedCatalog::failure) {
        bail!("a catalog cannot be read: {error}");
    }
    if arguments.watch {
        notes.iter().for_each(|note| anstream::eprintln!("note: {note}"));
        let watched = WatchedOperators { selector: selection.selector(), names: names.as_deref() };
        watch::watch(client, watched, rows, &sources, &arguments.output, out).await?;
        return Ok(exit::SUCCESS.into());
    }
    write(&rows, &arguments.output, now(), out)?;
    notes.iter().for_each(|note| anstream::eprintln!("note: {note}"));
    Ok(exit::SUCCESS.into())
}

fn row(name: &str, operator: &Operator, catalogs: &[CatalogSource<'_>]) -> Row {
    let status = status(operator);
    let condition = |type_: &str| {
        let found = status.conditions.iter().find(|it| it.type_ == type_);
        found.map(|it| it.status.as_str().to_owned()).unwrap_or_default()
    };
    let newest = newest(name, operator, &status, catalogs);
    let installed = status.bundle.as_ref().and_then(|it| parse_tolerant(&it.version).ok());
    let update =
        newest.clone().flatten().filter(|newest| installed.as_ref().is_some_and(|it| newest > it));
    let progressing = status.conditions.iter().find(|it| it.type_ == "Progressing");
    Row {
        name: name.to_owned(),
        installed: condition("Installed"),
        satisfied: condition("ConstraintsSatisfied"),
        version: status.resolved_version.clone(),
        orphaned: status.orphaned,
        update: update.map(|it| format!("v{it}")),
        update_known: newest.is_some(),
        available: condition("Available"),
        progressing: condition("Progressing"),
        catalog: status.bundle.as_ref().map(|it| it.catalog.clone()).unwrap_or_default(),
        namespace: status.namespace.clone(),
        message: progressing.map(|it| it.message.clone()).unwrap_or_default(),
        created: operator.metadata.creation_timestamp.as_ref().map(|it| it.0),
    }
}

/// Returns the newest version in the channel of an Operator; `None` if no catalog has the package.
fn newest(
    name: &str,
    operator: &Operator,
    status: &OperatorStatus,
    catalogs: &[CatalogSource<'_>],
) -> Option<Option<Version>> {
    let installed = status.bundle.clone().unwrap_or_default();
    let wanted =
        [&operator.spec.repository, &installed.catalog].into_iter().find(|it| !it.is_empty());
    let mut usable = catalogs.iter().filter(|it| wanted.is_none_or(|wanted| wanted == it.name));
    let package = usable.find_map(|it| it.catalog.package(name))?;
    let channel = [&operator.spec.channel, &installed.channel];
    let channel =
        channel.into_iter().find(|it| !it.is_empty()).or(package.default_channel.as_ref());
    Some(channel.and_then(|it| newest_of(&package, it)))
}

/// Returns the highest version in a channel that is not deprecated.
fn newest_of(package: &Package, channel: &str) -> Option<Version> {
    let channel = package.channels.iter().find(|it| it.name == channel)?;
    let listed = |name: &str| channel.entries.iter().any(|entry| entry.name == name);
    let usable = package.bundles.iter();
    let usable = usable.filter(|it| it.defects.is_empty() && it.deprecation.is_none());
    usable.filter(|it| listed(&it.name)).map(|it| it.version.clone()).max()
}

fn write(rows: &[Row], format: &Format, now: Timestamp, out: &mut dyn Write) -> anyhow::Result<()> {
    if format.write_about(OPERATOR, &rows, out)? {
        return Ok(());
    }
    if rows.is_empty() {
        writeln!(out, "No resources found")?;
        return Ok(());
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|it| cells(it, format, now)).collect();
    Ok(table::print(out, &headings(format), &cells)?)
}

fn headings(format: &Format) -> Vec<&'static str> {
    let mut headings = vec!["NAME", "INSTALLED", "SATISFIED", "VERSION", "ORPHANED", "UPDATE"];
    if format.is_wide() {
        headings.extend(["AVAILABLE", "PROGRESSING", "CATALOG", "NAMESPACE", "AGE", "MESSAGE"]);
    }
    headings
}

fn cells(row: &Row, format: &Format, now: Timestamp) -> Vec<String> {
    let update = match (&row.update, row.update_known) {
        (Some(version), _) => version.clone(),
        (None, true) => String::new(),
        (None, false) => UNKNOWN.to_owned(),
    };
    let orphaned = if row.orphaned { "True" } else { "False" };
    let mut cells = vec![
        row.name.clone(),
        row.installed.clone(),
        row.satisfied.clone(),
        row.version.clone(),
        orphaned.to_owned(),
        update,
    ];
    if format.is_wide() {
        let age = row.created.map_or_else(|| UNKNOWN.to_owned(), |created| age(created, now));
        let texts = [&row.available, &row.progressing, &row.catalog, &row.namespace, &age];
        cells.extend(texts.map(Clone::clone));
        cells.push(row.message.clone());
    }
    cells
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use plimsoll_operators::observed::read_object;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn no_catalog_is_left_out_where_nothing_is_looked_up() {
        let refuse = |_: Request<Body>| async {
            Err::<Response<Full<Bytes>>, _>(std::io::Error::other("nothing is served"))
        };
        let client = Client::new(tower::service_fn(refuse), "default");
        let catalog = json!({
            "metadata": { "name": "main" },
            "spec": { "source": { "type": "Directory", "path": "/nowhere/main" } },
        });
        let catalog: Catalog = read_object(&catalog).expect("a Catalog");
        let in_cluster = BTreeMap::from([("main".to_owned(), catalog)]);
        let choice = CatalogChoice { no_cache: true, ..CatalogChoice::default() };
        let note = "Catalog `main` is left out: `/nowhere/main` cannot be read from here";
        for (is_looked_up, expected) in [(false, vec![]), (true, vec![note])] {
            let read = ReadCatalogs::read(&client, &choice, &in_cluster, is_looked_up).await;
            assert_eq!(read.expect("none is opened").notes, expected);
        }
    }
}
