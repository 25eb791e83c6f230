//! Following an Action until it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use plimsoll_api::ApiKind;
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionState, ChangeState, PlannedChange};
use plimsoll_resolve::printable::on_one_line;
use serde::Deserialize as _;

use super::actions;
use crate::exit;

/// Prints the progress of an object until it ends.
pub(super) async fn wait(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    timeout: Option<Duration>,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let api = actions(client, namespace, kind);
    let followed = follow(api, kind, namespace, name, out);
    let Some(most) = timeout else { return followed.await };
    match tokio::time::timeout(most, followed).await {
        Ok(ended) => ended,
        Err(_) => bail!(
            "{} `{name}` has not ended within {} s: it continues, `kubectl get {} {name} -n {namespace}` \
             shows it",
            kind.kind,
            most.as_secs(),
            kind.plural
        ),
    }
}

async fn follow(
    api: Api<DynamicObject>,
    kind: ApiKind,
    namespace: &str,
    name: &str,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut seen = pin!(watch_object(api, name));
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
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
        let line = format!("{state}: {}", text("message"));
        if shown.insert(String::new(), line.clone()).as_ref() != Some(&line) {
            writeln!(out, "{name}: {line}")?;
            if state == ActionState::Approval.as_str() {
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
