//! Following an Action until it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt as _;
use kube::Client;
use kube::runtime::watcher::watch_object;
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionState, ChangeState, PlannedChange};
use plimsoll_api::{ACTION, ApiKind};
use plimsoll_resolve::printable::{on_lines, on_one_line};
use serde::Deserialize as _;

use super::super::wait::WaitLimits;
use super::actions;
use crate::exit;

/// Prints the progress of an object until it ends, for ever if the timeout is zero.
pub(super) async fn wait(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    timeout: Duration,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut shown = BTreeMap::new();
    let followed = follow(client, kind, namespace, name, &mut shown, out);
    match WaitLimits::new(timeout).during(followed).await {
        Ok(ended) => ended,
        Err(limit) => {
            let state =
                shown.get("").map_or("the controller has not reported on it yet", String::as_str);
            let mut goes_on = format!(
                "It goes on: `kubectl get {} {name} -n {namespace}` shows how far it is",
                kind.plural
            );
            if kind == ACTION {
                let cancel = format!("`operator action cancel {name} -n {namespace}`");
                goes_on.push_str(&format!(", and until it begins {cancel} cancels it"));
            }
            Err(limit.error(&format!("  {} {name}: {state}\n", kind.kind), &goes_on))
        }
    }
}

/// Prints the progress of an object until it ends. `shown` are the texts that were printed last: of the object,
/// under an empty name, and of what it changes.
async fn follow(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    shown: &mut BTreeMap<String, String>,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let api = actions(client, namespace, kind);
    let mut seen = pin!(watch_object(api, name));
    while let Some(object) = seen.next().await {
        // The watch restarts by itself.
        let Ok(object) = object else { continue };
        let Some(object) = object else { bail!("{} `{name}` was deleted", kind.kind) };
        let status = &object.data["status"];
        let succeeded = status["conditions"].as_array().into_iter().flatten();
        let succeeded = succeeded.into_iter().find(|it| it["type"] == ACTION_SUCCEEDED);
        let Some(succeeded) = succeeded else { continue };
        let plan = status["plan"].as_array().into_iter().flatten();
        for change in plan.filter_map(|it| PlannedChange::deserialize(it).ok()) {
            let (subject, line) =
                (change.subject(), format!("{:?} {}", change.state, change.message));
            if change.state != ChangeState::Planned
                && shown.insert(subject.to_owned(), line.clone()).as_ref() != Some(&line)
            {
                writeln!(out, "{subject}: {}", on_one_line(line.trim_end()))?;
            }
        }
        let text = |field: &str| succeeded[field].as_str().unwrap_or_default();
        let state = status["state"].as_str().unwrap_or(text("reason"));
        let line = on_lines(&format!("{state}: {}", text("message")));
        if shown.insert(String::new(), line.clone()).as_ref() != Some(&line) {
            writeln!(out, "{name}: {line}")?;
            if state == ActionState::WaitingForApproval.as_str() {
                writeln!(out, "approve it with `operator action approve {name} -n {namespace}`")?;
            }
        }
        match text("status") {
            "True" => return Ok(exit::SUCCESS.into()),
            "False" => return Ok(exit::FAILURE.into()),
            _ => {}
        }
    }
    bail!("the watch of {} `{name}` ended", kind.kind)
}
