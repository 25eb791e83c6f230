//! `plimsoll operator list --watch`: the list, and each Operator again when what is shown of it changes.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use plimsoll_api::OPERATOR;
use plimsoll_resolve::CatalogSource;
use plimsoll_simulation::cluster_state::api;

use super::super::unreadable::UnreadableObjects;
use super::super::watch::changes;
use super::{Row, cells, headings, row};
use crate::process::now;
use crate::render::format::Format;
use crate::render::growing_table::GrowingTable;

/// The Operators of a watched list.
pub(super) struct WatchedOperators<'a> {
    /// The label selector; empty for all.
    pub(super) selector: &'a str,
    /// The names; `None` for all.
    pub(super) names: Option<&'a [String]>,
}

/// Prints the rows of a list, and those that change from then on. It does not end by itself.
///
/// # Errors
///
/// When the output cannot be written.
pub(super) async fn watch(
    client: &Client,
    watched: WatchedOperators<'_>,
    rows: Vec<Row>,
    catalogs: &[CatalogSource<'_>],
    format: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let names = rows.iter().map(|it| it.name.clone()).collect();
    let mut list = WatchedList::new(format);
    list.print(rows, now(), out)?;
    let config = watcher::Config::default().labels(watched.selector);
    let mut changes = pin!(changes(api(client, OPERATOR), config, names));
    while let Some(change) = changes.next().await {
        if watched.names.is_some_and(|it| !it.contains(&change.name)) {
            continue;
        }
        let Some(object) = change.object else {
            list.print_deleted(&change.name, now(), out)?;
            continue;
        };
        let read = UnreadableObjects::default().read_operators(vec![object]);
        for (name, operator) in &read {
            list.print(vec![row(name, operator, catalogs)], now(), out)?;
        }
    }
    Ok(())
}

/// What was printed of a list.
struct WatchedList<'f> {
    format: &'f Format,
    table: GrowingTable,
    /// The row of each Operator that was printed last, by name.
    shown: BTreeMap<String, Row>,
}

impl<'f> WatchedList<'f> {
    fn new(format: &'f Format) -> Self {
        Self { format, table: GrowingTable::new(headings(format)), shown: BTreeMap::new() }
    }

    /// Prints the rows that are not the same as before.
    fn print(
        &mut self,
        rows: Vec<Row>,
        now: Timestamp,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let changed = rows.into_iter().filter(|it| self.shown.get(&it.name) != Some(it));
        let changed: Vec<Row> = changed.collect();
        self.write(&changed, now, out)?;
        self.shown.extend(changed.into_iter().map(|it| (it.name.clone(), it)));
        Ok(())
    }

    /// Prints the row of an Operator that was deleted for the last time, as kubectl does.
    fn print_deleted(
        &mut self,
        name: &str,
        now: Timestamp,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        match self.shown.remove(name) {
            Some(row) => self.write(&[row], now, out),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        rows: &[Row],
        now: Timestamp,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        if matches!(self.format, Format::Text | Format::Wide) {
            let cells: Vec<Vec<String>> =
                rows.iter().map(|it| cells(it, self.format, now)).collect();
            return Ok(self.table.print(&cells, out)?);
        }
        for row in rows {
            if *self.format == Format::Yaml {
                writeln!(out, "---")?;
            }
            self.format.write_about(OPERATOR, row, out)?;
        }
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, version: &str) -> Row {
        let (name, version) = (name.to_owned(), version.to_owned());
        Row { name, version, update_known: true, ..Row::default() }
    }

    fn printed(format: &Format) -> String {
        let (mut list, now) = (WatchedList::new(format), Timestamp::UNIX_EPOCH);
        let mut out = Vec::new();
        list.print(vec![of("bar", "1.2.5"), of("foo", "1.2.3")], now, &mut out).unwrap();
        // The watch begins with what was listed.
        list.print(vec![of("bar", "1.2.5")], now, &mut out).unwrap();
        list.print(vec![of("bar", "1.2.5 (@v1.2.5)")], now, &mut out).unwrap();
        list.print_deleted("foo", now, &mut out).unwrap();
        list.print_deleted("foo", now, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_changes_is_printed_again() {
        let expected = "\
NAME   INSTALLED   SATISFIED   VERSION   ORPHANED   UPDATE
bar                            1.2.5     False
foo                            1.2.3     False
bar                            1.2.5 (@v1.2.5)   False
foo                            1.2.3             False
";
        assert_eq!(printed(&Format::Text), expected);
        let names = ["bar", "foo", "bar", "foo"].map(|it| format!("operator.olm.io/{it}\n"));
        assert_eq!(printed(&Format::Name), names.concat());
        assert_eq!(printed(&Format::Json).matches("\"name\": ").count(), 4);
        assert_eq!(printed(&Format::Yaml).matches("---\n").count(), 4);
    }
}
