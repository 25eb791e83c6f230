//! `plimsoll operator history` and `rollback`: the installations of an Operator, and returning to
//! one of them.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use kube::api::Patch;
use kube::{Api, Client};
use plimsoll_api::config::UpdateState;
use plimsoll_api::olm::{OperatorHistory, OperatorRevisionSpec};
use plimsoll_api::{Operator, OperatorRevision};
use serde::Serialize;
use serde_json::json;

use super::dry_run::DryRun;
use super::patch_parameters;
use super::preview::{preview_kept, recorded};
use super::state::{AddOnState, revisions, status};
use crate::arguments::name;
use crate::exit;
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::table;

/// Arguments of `plimsoll operator history`.
#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// Operator
    #[arg(value_parser = name::operator())]
    name: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll operator rollback`.
#[derive(Debug, Args)]
pub struct RollbackArguments {
    /// Operator
    #[arg(value_parser = name::operator())]
    name: String,
    /// Number of the revision; the last complete one before the current one without it
    #[arg(long, value_name = "NUMBER", value_parser = revision_number)]
    to_revision: Option<u32>,
    #[command(flatten)]
    dry_run: DryRun,
}

fn revision_number(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "use a number that `operator history` lists".to_owned())
}

/// A past installation, or the current one.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Installation {
    revision: u32,
    version: String,
    bundle: String,
    state: UpdateState,
    /// Whether its objects are kept, so that a rollback to it is possible.
    kept: bool,
    /// Whether it is the current one.
    current: bool,
    started: Timestamp,
    completed: Option<Timestamp>,
    /// The checks that failed and were overridden; empty if there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    accepted_risks: String,
}

/// Runs `plimsoll operator history`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no such Operator, or the output cannot be written.
pub(super) async fn run(
    client: &Client,
    arguments: &HistoryArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    let operator = state.operator(&arguments.name)?;
    let installations = installations(operator, &revisions(client).await?);
    if arguments.output.write(&installations, out)? {
        return Ok(exit::SUCCESS.into());
    }
    if installations.is_empty() {
        writeln!(out, "Nothing of {} was installed yet", arguments.name)?;
        return Ok(exit::SUCCESS.into());
    }
    let now = now();
    let is_wide = arguments.output.is_wide();
    let row = |it: &Installation| {
        let state = match it.state {
            UpdateState::Completed => "Completed",
            UpdateState::Partial => "Partial",
        };
        let kept = match (it.current, it.kept) {
            (true, _) => "current",
            (false, true) => "kept",
            (false, false) => "gone",
        };
        let texts = [state.to_owned(), age(it.started, now), kept.to_owned()];
        let mut row = vec![it.revision.to_string(), format!("v{}", it.version)];
        row.extend(texts);
        row.extend(
            is_wide.then(|| [it.bundle.clone(), it.accepted_risks.clone()]).into_iter().flatten(),
        );
        row
    };
    let rows: Vec<Vec<String>> = installations.iter().map(row).collect();
    let mut headings = vec!["REVISION", "VERSION", "STATE", "AGE", "OBJECTS"];
    headings.extend(is_wide.then_some(["BUNDLE", "ACCEPTED RISKS"]).into_iter().flatten());
    table::print(out, &headings, &rows)?;
    Ok(exit::SUCCESS.into())
}

/// Returns the installations of an Operator, the newest first.
fn installations(operator: &Operator, revisions: &[OperatorRevision]) -> Vec<Installation> {
    let status = status(operator);
    let kept: BTreeSet<u32> = kept(operator, revisions);
    let installation = |it: &OperatorHistory| Installation {
        revision: it.revision,
        version: it.version.clone(),
        bundle: it.bundle.clone(),
        state: it.state,
        kept: kept.contains(&it.revision),
        current: status.revision == Some(it.revision),
        started: it.started_time,
        completed: it.completion_time,
        accepted_risks: it.accepted_risks.clone(),
    };
    let mut seen = BTreeSet::new();
    // After a rollback, a revision occurs twice: only the newest occurrence is current.
    let mut found: Vec<Installation> = status.history.iter().map(installation).collect();
    for it in &mut found {
        it.current &= seen.insert(it.revision);
    }
    found
}

/// Returns the revisions of an Operator whose objects are all kept. The revisions of a deleted Operator
/// of the same name are ignored, since they are deleted soon.
fn kept(operator: &Operator, revisions: &[OperatorRevision]) -> BTreeSet<u32> {
    let recorded = recorded(operator, revisions);
    let has = |number: u32, part: u32| {
        recorded.iter().any(|it| it.revision == number && it.part.number == part)
    };
    let is_complete =
        |it: &&&OperatorRevisionSpec| (1..=it.part.of).all(|part| has(it.revision, part));
    recorded.iter().filter(is_complete).map(|it| it.revision).collect()
}

/// Runs `plimsoll operator rollback`.
///
/// # Errors
///
/// When the cluster cannot be reached, has no such Operator or revision, or refuses the change.
pub(super) async fn rollback(
    client: &Client,
    arguments: &RollbackArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = AddOnState::read(client).await?;
    let name = &arguments.name;
    let operator = state.operator(name)?;
    let revisions = revisions(client).await?;
    let installations = installations(operator, &revisions);
    let target = target(name, &installations, arguments.to_revision)?;
    let dry_run = arguments.dry_run;
    let patch = Patch::Merge(json!({ "spec": { "revision": target.revision } }));
    let operators: Api<Operator> = Api::all(client.clone());
    if dry_run.is_sent() {
        operators
            .patch(name, &patch_parameters(dry_run.is_set()), &patch)
            .await
            .with_context(|| format!("failed to change Operator `{name}`"))?;
    }
    let Installation { revision, version, .. } = target;
    writeln!(
        out,
        "operator.olm.io/{name} rolled back to revision {revision} (v{version}){}",
        dry_run.suffix()
    )?;
    if dry_run.is_on_server() {
        let exit = preview_kept(client, name, operator, &revisions, *revision, out).await?;
        return Ok(exit.into());
    }
    Ok(exit::SUCCESS.into())
}

/// Returns the installation to return to.
///
/// # Errors
///
/// When its objects are not kept, or there is no such installation.
fn target<'i>(
    name: &str,
    installations: &'i [Installation],
    revision: Option<u32>,
) -> Result<&'i Installation, anyhow::Error> {
    let can = |it: &&Installation| it.kept && !it.current;
    let found = match revision {
        Some(revision) => installations.iter().find(|it| it.revision == revision && it.kept),
        None => installations.iter().filter(can).find(|it| it.state == UpdateState::Completed),
    };
    if let Some(found) = found {
        if found.current {
            bail!("revision {} of Operator `{name}` is the current one", found.revision);
        }
        return Ok(found);
    }
    let there: BTreeSet<u32> = installations.iter().filter(can).map(|it| it.revision).collect();
    let there: Vec<String> = there.iter().map(u32::to_string).collect();
    let there = match there.as_slice() {
        [] => "no other one is kept".to_owned(),
        there => format!("there are {}", there.join(", ")),
    };
    let gone = revision.and_then(|it| installations.iter().find(|known| known.revision == it));
    if let Some(Installation { revision, version, .. }) = gone {
        bail!(
            "the objects of revision {revision} (v{version}) of Operator `{name}` are not kept any more; {there}"
        );
    }
    match revision {
        Some(revision) => bail!("Operator `{name}` has no kept revision {revision}; {there}"),
        None => bail!("Operator `{name}` has no complete revision to return to; {there}"),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use plimsoll_api::olm::RevisionPart;

    use super::*;

    fn installation(revision: u32, state: UpdateState, kept: bool, current: bool) -> Installation {
        Installation {
            revision,
            version: format!("1.{revision}.0"),
            bundle: String::new(),
            state,
            kept,
            current,
            started: Timestamp::UNIX_EPOCH,
            completed: None,
            accepted_risks: String::new(),
        }
    }

    #[test]
    fn revisions_of_a_deleted_operator_are_not_kept_ones_of_its_successor() {
        let revision = |number: u32, uid: &str| {
            let mut revision = OperatorRevision::default();
            revision.spec.operator = "lantern".to_owned();
            revision.spec.revision = number;
            let uid = uid.to_owned();
            revision.metadata.owner_references =
                Some(vec![OwnerReference { uid, ..OwnerReference::default() }]);
            revision
        };
        let mut operator = Operator::default();
        operator.metadata.uid = Some("second".to_owned());
        let mut in_parts = revision(4, "second");
        in_parts.spec.part = RevisionPart { number: 1, of: 2 };
        let others = [revision(1, "first"), revision(2, "first"), revision(3, "second")];
        let mut revisions = Vec::from(others);
        revisions.push(in_parts.clone());
        assert_eq!(kept(&operator, &revisions), BTreeSet::from([3]), "a part is missing");
        in_parts.spec.part.number = 2;
        revisions.push(in_parts);
        assert_eq!(kept(&operator, &revisions), BTreeSet::from([3, 4]));
    }

    #[test]
    fn a_rollback_returns_to_what_was_complete_and_is_kept() {
        let history = [
            installation(4, UpdateState::Partial, true, true),
            installation(3, UpdateState::Partial, true, false),
            installation(2, UpdateState::Completed, true, false),
            installation(1, UpdateState::Completed, false, false),
        ];
        let check = |revision: Option<u32>, expected: &str| {
            let found = target("lantern", &history, revision);
            let found = found.map(|it| it.revision.to_string());
            assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected);
        };
        check(None, "2");
        check(Some(3), "3");
        check(Some(4), "revision 4 of Operator `lantern` is the current one");
        let gone = "the objects of revision 1 (v1.1.0) of Operator `lantern` are not kept any more; there are \
                    2, 3";
        check(Some(1), gone);
        check(Some(9), "Operator `lantern` has no kept revision 9; there are 2, 3");
        let found = target("lantern", &history[..1], None).map(|it| it.revision);
        assert_eq!(
            found.unwrap_err().to_string(),
            "Operator `lantern` has no complete revision to return to; no other one is kept"
        );
    }
}
