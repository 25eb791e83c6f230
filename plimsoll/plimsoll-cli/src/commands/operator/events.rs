//! `plimsoll operator events`: the events of Operators.

mod watch;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::ApiKind;
use plimsoll_controller::api_resource;
use serde::Serialize;

use super::selection::{OperatorSelection, labelled};
use super::state::AddOnState;
use crate::exit;
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::table;

/// The kind of Events. Those of cluster-scoped objects are in [`EVENT_NAMESPACE`].
pub(super) const EVENT: ApiKind =
    ApiKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events" };
const EVENT_NAMESPACE: &str = "default";
/// The headings of a table of events.
const HEADINGS: [&str; 5] = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];

/// Arguments of `plimsoll operator events`.
#[derive(Debug, Args)]
pub struct EventsArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    /// Print each event that occurs, until the command is interrupted
    #[arg(long, short)]
    watch: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// An event of an Operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorEvent {
    /// The name of its object.
    #[serde(skip)]
    id: String,
    /// The time at which it last occurred; absent if the event does not say.
    time: Option<Timestamp>,
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    operator: String,
    message: String,
}

/// Runs `plimsoll operator events`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no Operator of a name, or the output cannot be written.
pub(super) async fn run(
    client: &Client,
    arguments: &EventsArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let selection = &arguments.selection;
    let names = match selection.selector() {
        "" => selection.named()?.unwrap_or_default(),
        selector => labelled(client, selector).await?,
    };
    let events = read_events(client, &names).await?;
    if events.is_empty() && !names.is_empty() {
        // The events of a deleted Operator exist for a while. A name that never existed is an
        // error.
        let state = AddOnState::read(client).await?;
        for name in &names {
            state.operator(name)?;
        }
    }
    if arguments.watch {
        watch::watch(client, &names, events, &arguments.output, out).await?;
        return Ok(exit::SUCCESS.into());
    }
    if !arguments.output.write_about(EVENT, &events, out)? {
        match events.is_empty() {
            true => writeln!(out, "No events found")?,
            false => write_events(&events, out)?,
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Returns the events of some Operators, or of all without names; the oldest first.
pub(super) async fn read_events(
    client: &Client,
    names: &[String],
) -> Result<Vec<OperatorEvent>, anyhow::Error> {
    let list = api(client).list(&ListParams::default()).await.context("failed to list events")?;
    let found = list.items.iter().filter_map(|it| operator_event(it, names));
    let mut found: Vec<OperatorEvent> = found.collect();
    found.sort_by_key(|it| it.time);
    Ok(found)
}

/// Returns the events of cluster-scoped objects.
fn api(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), EVENT_NAMESPACE, &api_resource(EVENT))
}

/// Returns an event if it is one of some Operators, or of any without names.
fn operator_event(event: &DynamicObject, names: &[String]) -> Option<OperatorEvent> {
    let regarding = &event.data["regarding"];
    let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
    let operator = regarding["name"].as_str()?.to_owned();
    let is_of_operator = regarding["kind"] == "Operator"
        && regarding["apiVersion"] == "olm.io/v1"
        && (names.is_empty() || names.contains(&operator));
    let time = event.data["series"]["lastObservedTime"].as_str();
    let time = time.or(event.data["eventTime"].as_str()).and_then(|it| it.parse().ok());
    is_of_operator.then(|| OperatorEvent {
        id: event.name_any(),
        time: time.or(event.creation_timestamp().map(|it| it.0)),
        type_: text("type"),
        reason: text("reason"),
        operator,
        message: text("note"),
    })
}

pub(super) fn write_events(events: &[OperatorEvent], out: &mut dyn Write) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = events.iter().map(cells).collect();
    Ok(table::print_whole(out, &HEADINGS, &rows)?)
}

fn cells(event: &OperatorEvent) -> Vec<String> {
    let seen = event.time.map_or_else(|| "<unknown>".to_owned(), |time| age(time, now()));
    let object = format!("operator/{}", event.operator);
    vec![seen, event.type_.clone(), event.reason.clone(), object, event.message.clone()]
}
