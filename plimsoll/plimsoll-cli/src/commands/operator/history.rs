//! `plimsoll operator history`: the installations of an Operator.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use plimsoll_api::config::UpdateState;
use plimsoll_api::olm::{OperatorHistory, OperatorRevisionSpec};
use plimsoll_api::{Operator, OperatorRevision};
use serde::Serialize;

use super::preview::recorded;
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

/// A past installation, or the current one.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Installation {
    pub(super) revision: u32,
    pub(super) version: String,
    pub(super) bundle: String,
    pub(super) state: UpdateState,
    /// Whether its objects are kept, so that a rollback to it is possible.
    pub(super) kept: bool,
    /// Whether it is the current one.
    pub(super) current: bool,
    pub(super) started: Timestamp,
    pub(super) completed: Option<Timestamp>,
    /// The checks that failed and were overridden; empty if there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) accepted_risks: String,
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
pub(super) fn installations(
    operator: &Operator,
    revisions: &[OperatorRevision],
) -> Vec<Installation> {
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

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use plimsoll_api::olm::RevisionPart;

    use super::*;

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
}
