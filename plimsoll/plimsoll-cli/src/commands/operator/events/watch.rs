//! `plimsoll operator events --watch`: the events, and each one again when it recurs.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;

use futures::StreamExt as _;
use kube::Client;
use kube::runtime::watcher;

use super::super::watch::changes;
use super::{EVENT, HEADINGS, OperatorEvent, api, cells, operator_event};
use crate::render::format::Format;
use crate::render::growing_table::GrowingTable;

/// Prints events of some Operators, or of all without names, and those that occur from then on. It does not end by
/// itself.
///
/// # Errors
///
/// When the output cannot be written.
pub(super) async fn watch(
    client: &Client,
    names: &[String],
    events: Vec<OperatorEvent>,
    format: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let known = events.iter().map(|it| it.id.clone()).collect();
    let mut printed = WatchedEvents::new(format);
    printed.print(events, out)?;
    let mut changes = pin!(changes(api(client), watcher::Config::default(), known));
    while let Some(change) = changes.next().await {
        match &change.object {
            Some(object) => printed.print(operator_event(object, names), out)?,
            None => drop(printed.shown.remove(&change.name)),
        }
    }
    Ok(())
}

/// What was printed of events.
struct WatchedEvents<'f> {
    format: &'f Format,
    table: GrowingTable,
    /// The events that were printed last, by the names of their objects.
    shown: BTreeMap<String, OperatorEvent>,
}

impl<'f> WatchedEvents<'f> {
    fn new(format: &'f Format) -> Self {
        let table = GrowingTable::whole(HEADINGS.to_vec());
        Self { format, table, shown: BTreeMap::new() }
    }

    /// Prints the events that are not the same as before.
    fn print(
        &mut self,
        events: impl IntoIterator<Item = OperatorEvent>,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let changed = events.into_iter().filter(|it| self.shown.get(&it.id) != Some(it));
        let changed: Vec<OperatorEvent> = changed.collect();
        if self.format.is_for_people() {
            let rows: Vec<Vec<String>> = changed.iter().map(cells).collect();
            self.table.print(&rows, out)?;
        } else {
            for event in &changed {
                if *self.format == Format::Yaml {
                    writeln!(out, "---")?;
                }
                self.format.write_about(EVENT, event, out)?;
            }
        }
        self.shown.extend(changed.into_iter().map(|it| (it.id.clone(), it)));
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_recurs_is_printed_again() {
        let of = |id: &str, reason: &str, message: &str| OperatorEvent {
            id: id.to_owned(),
            time: None,
            type_: "Normal".to_owned(),
            reason: reason.to_owned(),
            operator: "foo".to_owned(),
            message: message.to_owned(),
        };
        let event = |id: &str, message: &str| of(id, "Reason", message);
        let (format, mut out) = (Format::Text, Vec::new());
        let mut printed = WatchedEvents::new(&format);
        printed.print([event("a", "once"), event("b", "once")], &mut out).unwrap();
        printed.print([event("a", "once")], &mut out).unwrap();
        printed.print(Some(event("b", "twice")), &mut out).unwrap();
        let expected = "\
LAST SEEN   TYPE     REASON   OBJECT         MESSAGE
<unknown>   Normal   Reason   operator/foo   once
<unknown>   Normal   Reason   operator/foo   once
<unknown>   Normal   Reason   operator/foo   twice
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        let (mut printed, mut out) = (WatchedEvents::new(&format), Vec::new());
        printed.print([of("a", "Short", "once"), of("b", "MuchLonger", "once")], &mut out).unwrap();
        let expected = "\
LAST SEEN   TYPE     REASON       OBJECT         MESSAGE
<unknown>   Normal   Short        operator/foo   once
<unknown>   Normal   MuchLonger   operator/foo   once
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
