//! `plimsoll operator rollback`: returning an Operator to a kept revision.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::api::Patch;
use kube::{Api, Client};
use plimsoll_api::config::UpdateState;
use plimsoll_api::{Operator, duration};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::loadout::Loadout;
use plimsoll_operators::rollback::RollbackPlan;
use plimsoll_operators::{OperatorInputs, installed_bundle};
use plimsoll_resolve::version::parse_tolerant;
use serde_json::json;

use super::agreement::{Planned, agreed, uids};
use super::dry_run::DryRun;
use super::history::{Installation, installations};
use super::loadout::LoadoutState;
use super::preview::{preview_kept, recorded};
use super::state::status;
use super::wait::{InstallationTarget, TIMEOUT, wait};
use super::{dry_run_suffix, patch_parameters};
use crate::arguments::name;
use crate::exit::{self, Exit, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};

/// Arguments of `plimsoll operator rollback`.
#[derive(Debug, Args)]
pub struct RollbackArguments {
    /// Operator
    #[arg(value_parser = name::operator())]
    name: String,
    /// Number of the revision; the last complete one before the current one without it
    #[arg(long, value_name = "NUMBER", value_parser = revision_number)]
    to_revision: Option<u32>,
    /// Request it although something is in its way: the controller carries it out once that is gone
    #[arg(long)]
    force: bool,
    /// Agree to the plan
    #[arg(long, short)]
    pub(super) yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// Do not wait until the revision is installed
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until the revision is installed; 0s for ever
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = TIMEOUT,
        conflicts_with = "no_wait"
    )]
    timeout: Duration,
}

fn revision_number(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "use a number that `operator history` lists".to_owned())
}

/// A plan of a return, with the state that it was made from.
struct PlannedRollback {
    state: LoadoutState,
    plan: RollbackPlan,
    /// The revision that is written; `None` to remove that which is there.
    requested: Option<u32>,
    /// The installed revision that is left; `None` if none is known, or if it stays.
    left: Option<u32>,
    /// The revision that the Operator does not return to any more; `None` if it returns to one.
    taken_back: Option<u32>,
}

impl Planned for PlannedRollback {
    fn text(&self) -> String {
        let taken_back =
            self.taken_back.map(|it| format!("The return to revision {it} is taken back\n"));
        self.plan.text() + &taken_back.unwrap_or_default()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.plan == other.plan && self.taken_back == other.taken_back
    }

    fn uids(&self) -> BTreeMap<&str, &str> {
        uids(&self.state, std::iter::once(self.plan.name.as_str()))
    }
}

impl PlannedRollback {
    /// Returns the Operator of the cluster.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn operator(&self) -> Result<&Operator, anyhow::Error> {
        let name = &self.plan.name;
        self.state.in_cluster(name).with_context(|| format!("there is no Operator `{name}`"))
    }

    /// Requests the revision, or takes the request for another one back, or has the API server check that.
    ///
    /// # Errors
    ///
    /// When the API server refuses it.
    async fn request(
        &self,
        client: &Client,
        is_dry_run: bool,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let RollbackPlan { name, .. } = &self.plan;
        let patch = Patch::Merge(json!({
            "metadata": { "uid": self.operator()?.metadata.uid },
            "spec": { "revision": self.requested },
        }));
        let operators: Api<Operator> = Api::all(client.clone());
        operators
            .patch(name, &patch_parameters(is_dry_run), &patch)
            .await
            .with_context(|| format!("failed to change Operator `{name}`"))?;
        writeln!(out, "operator.olm.io/{name} configured{}", dry_run_suffix(is_dry_run))?;
        Ok(())
    }

    /// Waits until the revision is installed.
    ///
    /// # Errors
    ///
    /// As [`wait`], or when another revision of the same version stays installed.
    async fn follow(
        &self,
        client: &Client,
        timeout: Duration,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let RollbackPlan { name, revision, after, .. } = &self.plan;
        let target = InstallationTarget {
            name: name.clone(),
            version: after.clone(),
            is_new: false,
            returns_from: self.left,
        };
        wait(client, &[target], timeout, out).await?;
        let operators: Api<Operator> = Api::all(client.clone());
        let there = operators.get(name).await;
        let there = there.with_context(|| format!("failed to read Operator `{name}`"))?;
        if status(&there).revision != Some(*revision) {
            let message = format!(
                "{name} is not at revision {revision}: `operator describe {name}` shows why"
            );
            return Err(Refusal { message, exit: exit::UNSATISFIABLE }.into());
        }
        let done = if self.taken_back.is_some() { "stays at" } else { "rolled back to" };
        writeln!(out, "operator.olm.io/{name} {done} revision {revision} (v{after})")?;
        Ok(())
    }
}

/// Runs `plimsoll operator rollback`.
///
/// # Errors
///
/// When the cluster cannot be reached, has no such Operator or revision, something blocks the return to it, or the
/// API server refuses the change.
pub(super) async fn run(
    client: &Client,
    arguments: &RollbackArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let planned = plan(client, arguments).await?;
    planned.state.announce(false);
    out.write_all(planned.text().as_bytes())?;
    if let Some(block) = &planned.plan.block {
        let message = &block.message;
        if !arguments.force {
            let message = format!("{} is not rolled back: {message}", planned.plan.name);
            return Err(Refusal { message, exit: exit::UNSATISFIABLE }.into());
        }
        writeln!(out, "WARNING: {message}")?;
    }
    if arguments.dry_run.is_set() {
        return Ok(attempt(client, arguments, &planned, out).await?.into());
    }
    let again = async |_: &mut dyn Write| plan(client, arguments).await;
    let (question, default) = ("Would you like to continue?", DefaultAnswer::No);
    let Some(current) = agreed(&planned, question, default, prompter, out, again).await? else {
        writeln!(out, "Nothing was changed")?;
        return Ok(exit::DECLINED.into());
    };
    current.request(client, false, out).await?;
    if !arguments.no_wait {
        current.follow(client, arguments.timeout, out).await?;
    }
    Ok(exit::SUCCESS.into())
}

/// Has the API server check what would be requested, and shows what would become of the objects, if that is wanted.
async fn attempt(
    client: &Client,
    arguments: &RollbackArguments,
    planned: &PlannedRollback,
    out: &mut dyn Write,
) -> Result<Exit, anyhow::Error> {
    if !arguments.dry_run.is_on_server() {
        return Ok(exit::SUCCESS);
    }
    planned.request(client, true, out).await?;
    let RollbackPlan { name, revision, .. } = &planned.plan;
    let revisions = planned.state.revisions();
    preview_kept(client, name, planned.operator()?, revisions, *revision, out).await
}

/// Plans the return.
async fn plan(
    client: &Client,
    arguments: &RollbackArguments,
) -> Result<PlannedRollback, anyhow::Error> {
    let name = &arguments.name;
    let state = LoadoutState::read_installed(client, name).await?;
    let there = state.in_cluster(name);
    let there = there.with_context(|| format!("there is no Operator `{name}`"))?;
    let installations = installations(there, state.revisions());
    let installed = status(there).revision;
    let pending = there.spec.revision.filter(|it| installed.is_some_and(|there| there != *it));
    let Installation { revision, version, bundle, current, .. } =
        target(name, &installations, arguments.to_revision, pending)?;
    let taken_back = pending.filter(|_| *current);
    // What no newer installation follows was not kept at a revision before.
    let is_newest = installations.iter().all(|it| it.revision <= *revision);
    let requested = Some(*revision).filter(|_| taken_back.is_none() || !is_newest);
    let parts = recorded(there, state.revisions());
    let part = parts.iter().find(|it| it.revision == *revision);
    let part = part.with_context(|| format!("revision {revision} of {name} is missing"))?;
    let mut bundle = installed_bundle(bundle, name, &part.properties);
    if let Ok(version) = parse_tolerant(version) {
        bundle.version = version;
    }
    let operators = state.current(&Loadout::default(), &[]);
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &BTreeMap::new(),
        facts: &state.facts,
        expressions: &Cel,
    };
    let plan = RollbackPlan::new(inputs, name, *revision, &bundle);
    let plan = plan.with_context(|| format!("there is no Operator `{name}`"))?;
    let left = installed.filter(|it| it != revision);
    Ok(PlannedRollback { state, plan, requested, left, taken_back })
}

/// Returns the installation to return to; the current one only if a return to another revision is `pending`, which is
/// taken back so.
///
/// # Errors
///
/// When its objects are not kept, or there is no such installation.
fn target<'i>(
    name: &str,
    installations: &'i [Installation],
    revision: Option<u32>,
    pending: Option<u32>,
) -> Result<&'i Installation, anyhow::Error> {
    let can = |it: &&Installation| it.kept && !it.current;
    let found = match revision {
        Some(revision) => installations.iter().find(|it| it.revision == revision && it.kept),
        None => installations.iter().filter(can).find(|it| it.state == UpdateState::Completed),
    };
    if let Some(found) = found {
        if found.current && pending.is_none() {
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
    use jiff::Timestamp;

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
    fn a_rollback_returns_to_what_was_complete_and_is_kept() {
        let history = [
            installation(4, UpdateState::Partial, true, true),
            installation(3, UpdateState::Partial, true, false),
            installation(2, UpdateState::Completed, true, false),
            installation(1, UpdateState::Completed, false, false),
        ];
        let check = |revision: Option<u32>, expected: &str| {
            let found = target("lantern", &history, revision, None);
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
        let taken_back = target("lantern", &history, Some(4), Some(2)).map(|it| it.revision);
        assert_eq!(taken_back.expect("it is installed"), 4);
        let found = target("lantern", &history[..1], None, None).map(|it| it.revision);
        assert_eq!(
            found.unwrap_err().to_string(),
            "Operator `lantern` has no complete revision to return to; no other one is kept"
        );
    }
}
