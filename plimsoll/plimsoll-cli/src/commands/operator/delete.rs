//! `plimsoll operator delete` and `autoremove`: deleting Operators.

mod consent;
mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use diffy::{Hunk, Line};
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::{Api, Client, Error};
use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::{Operator, duration};
use plimsoll_controller::{include_rollouts, objects_of_release, removed_conversions, workloads};
use plimsoll_operators::change_plan::{ChangePlan, PlannedOperation};
use plimsoll_operators::deletion_plan::{
    DeletionPlan, DeletionRequest, Orphans, RemovedConversion, depend, orphans, recreated,
    without_release,
};
use plimsoll_operators::observed::ObservedOperator;
use serde_json::{Value, json};

use self::consent::{CONTINUE, Consent, ask_for_dependants, ask_safely};
use self::follow::{follow, unfinished};
use super::apply::end_change_set;
use super::dry_run::DryRun;
use super::output::Output;
use super::rehearse::RehearsedPlan;
use super::selection::OperatorSelection;
use super::state::{AddOnState, observed};
use super::wait::{TIMEOUT, WaitLimits};
use super::{finalizers, patch_parameters};
use crate::exit::{self, Refusal};
use crate::prompt::{DefaultAnswer, Prompter};
use crate::render::changes;
use crate::render::format::{Format, FormatParser};

/// The value of `spec.deletion.crds` that keeps definitions.
const ORPHAN: &str = "Orphan";
/// The text of a plan that deletes nothing.
const NO_ORPHANS: &str = "No orphans: nothing to delete\n";

/// What to do if a plan that was agreed to is out of date.
const AGAIN: &str = "run the command again to see the present plan";

/// The options for a deletion.
#[derive(Debug, Clone, Default, Args)]
pub struct DeletionOptions {
    /// Neither show the plan nor ask, whatever depends on it and whatever runs
    #[arg(long)]
    force: bool,
    /// Agree to every question
    #[arg(long, short)]
    yes: bool,
    /// Keep definitions, and with them their objects
    #[arg(long)]
    keep_crds: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// Carry the plan out on a copy of the cluster, in simulated time, and change nothing: show what would be
    /// unsatisfied, stuck or invalid
    #[arg(long)]
    rehearse: bool,
    /// Do not wait until the deletion ends
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until the deletion ends; 0s for ever
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = TIMEOUT,
        conflicts_with = "no_wait"
    )]
    timeout: Duration,
    /// Output format of the plan; if it is not for people, everything else goes to standard error
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::CHANGES, default_value_t)]
    output: Format,
}

impl DeletionOptions {
    /// Returns whether nothing is changed.
    fn is_tried(&self) -> bool {
        self.rehearse || self.dry_run.is_set()
    }
}

/// Arguments of `plimsoll operator delete`.
#[derive(Debug, Args)]
#[command(mut_group("OperatorSelection", |it| it.required(true)))]
pub struct DeleteArguments {
    #[command(flatten)]
    selection: OperatorSelection,
    /// Refuse if others depend on it; also ask if objects of its kinds exist, and for each orphan
    #[arg(long, conflicts_with = "force")]
    safe: bool,
    /// Delete the dependencies that nothing depends on any more, too
    #[arg(long)]
    cascade: bool,
    /// Remove the finalizers of the objects that are stuck, as the status of Operators that are being
    /// deleted names them: what they are for is not cleaned up
    #[arg(
        long,
        conflicts_with_all =
            ["safe", "cascade", "force", "keep_crds", "rehearse", "no_wait", "timeout", "output"]
    )]
    force_finalizers: bool,
    #[command(flatten)]
    options: DeletionOptions,
}

/// Arguments of `plimsoll operator autoremove`.
#[derive(Debug, Args)]
pub struct AutoremoveArguments {
    #[command(flatten)]
    options: DeletionOptions,
}

impl DeleteArguments {
    pub(super) fn is_agreed(&self) -> bool {
        self.options.yes
    }
}

impl AutoremoveArguments {
    pub(super) fn is_agreed(&self) -> bool {
        self.options.yes
    }
}

/// The Operators of a cluster, and the options for planning a deletion.
struct Deletion<'a> {
    client: &'a Client,
    state: AddOnState,
    /// The same Operators, in the form that plans are made from.
    operators: BTreeMap<String, ObservedOperator>,
    /// The operands of the Operators that were inspected so far, by name of the Operator.
    workloads: BTreeMap<String, Vec<RemainingObjects>>,
    /// The conversion webhooks that their definitions lose if these are kept, by name of the Operator; of
    /// those that keep them.
    conversions: BTreeMap<String, Vec<RemovedConversion>>,
    /// The objects that the release contains, as texts; empty if the user may not read them. The
    /// controller reads them, too.
    of_release: BTreeSet<String>,
    keep_crds: bool,
}

impl<'a> Deletion<'a> {
    async fn read(client: &'a Client, keep_crds: bool) -> Result<Self, anyhow::Error> {
        let state = AddOnState::read(client).await?;
        let operators = observed(&state.operators);
        let (workloads, conversions) = (BTreeMap::new(), BTreeMap::new());
        let of_release = match objects_of_release(client).await {
            Err(Error::Api(status)) if status.code == 403 => BTreeSet::new(),
            objects => objects.context("failed to read the objects of the release")?,
        };
        Ok(Self { client, state, operators, workloads, conversions, of_release, keep_crds })
    }

    /// Plans the deletion of some Operators.
    async fn plan(
        &mut self,
        names: &BTreeSet<String>,
        cascade: bool,
    ) -> Result<DeletionPlan, anyhow::Error> {
        let unknown = self.plan_so_far(names, cascade);
        let needed = unknown.needed.iter().map(|it| &it.name);
        let deleted = unknown.delete.iter().map(|it| &it.name);
        let concerned = deleted.chain(&unknown.orphans).chain(needed);
        let concerned: BTreeSet<String> = concerned.cloned().collect();
        self.state.unreadable.require_no_part(&concerned)?;
        let planned = unknown.delete.iter().map(|it| &it.name).chain(&unknown.orphans);
        for name in planned {
            if let Some(operator) = self.operators.get_mut(name)
                && !self.workloads.contains_key(name)
            {
                read_rollouts(self.client, name, operator).await?;
                let deleted = without_release(&operator.status, &self.of_release);
                self.workloads.insert(name.clone(), workloads(self.client, &deleted, None).await?);
            }
        }
        let plan = self.plan_so_far(names, cascade);
        for it in plan.delete.iter().filter(|it| it.keeps_definitions) {
            if let Some(operator) = self.operators.get(&it.name)
                && !self.conversions.contains_key(&it.name)
            {
                let removed = removed_conversions(self.client, &operator.status).await?;
                self.conversions.insert(it.name.clone(), removed);
            }
        }
        Ok(self.plan_so_far(names, cascade))
    }

    fn plan_so_far(&self, names: &BTreeSet<String>, cascade: bool) -> DeletionPlan {
        DeletionPlan::new(&DeletionRequest {
            operators: &self.operators,
            workloads: &self.workloads,
            conversions: &self.conversions,
            of_release: &self.of_release,
            names,
            cascade,
            keep_crds: self.keep_crds,
        })
    }

    fn has_workloads(&self, name: &str) -> bool {
        !self.keep_crds && self.workloads.get(name).is_some_and(|it| !it.is_empty())
    }
}

/// Adds the objects of its rollouts that are not complete to the inventory of an Operator; none if the user may not
/// read them.
async fn read_rollouts(
    client: &Client,
    name: &str,
    operator: &mut ObservedOperator,
) -> Result<(), anyhow::Error> {
    match include_rollouts(client, name, &operator.uid, &mut operator.status).await {
        Err(Error::Api(status)) if status.code == 403 => Ok(()),
        included => {
            included.with_context(|| format!("failed to read the OperatorRevisions of `{name}`"))
        }
    }
}

/// Runs `plimsoll operator delete`.
///
/// # Errors
///
/// When the cluster cannot be reached or has no Operator of a name or label, or the API server refuses a
/// deletion.
pub(super) async fn delete(
    client: &Client,
    arguments: &DeleteArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let DeleteArguments { selection, safe, cascade, force_finalizers, options } = arguments;
    let mut deletion = Deletion::read(client, options.keep_crds).await?;
    // All names are checked before anything changes.
    let names = selection.names(client, &deletion.state).await?;
    let names: BTreeSet<String> = names.into_iter().collect();
    if *force_finalizers {
        let (state, is_dry_run) = (&deletion.state, options.dry_run.is_set());
        return finalizers::remove(client, state, &names, is_dry_run, prompter, out).await;
    }
    if options.is_tried() {
        let plan = deletion.plan(&names, *cascade).await?;
        return try_deletion(&deletion, &plan, options, out).await;
    }
    let mut output = Output::new(&options.output, out);
    let said = output.people();
    let consent = match (options.force, *safe) {
        (true, _) => Consent::Delete(names),
        (false, true) => ask_safely(&mut deletion, names, *cascade, prompter, said).await?,
        (false, false) => {
            ask_for_dependants(&mut deletion, names, *cascade, prompter, said).await?
        }
    };
    carry_out(deletion, consent, *cascade, options, &mut output).await
}

/// Runs `plimsoll operator autoremove`.
///
/// # Errors
///
/// When the cluster cannot be reached, or the API server refuses a deletion.
pub(super) async fn autoremove(
    client: &Client,
    arguments: &AutoremoveArguments,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let AutoremoveArguments { options } = arguments;
    let mut deletion = Deletion::read(client, options.keep_crds).await?;
    let Orphans { names, possible } = orphans(&deletion.operators);
    let mut output = Output::new(&options.output, out);
    if names.is_empty() && !options.rehearse {
        output.people().write_all(NO_ORPHANS.as_bytes())?;
        for it in &possible {
            writeln!(output.people(), "{}", it.text())?;
        }
        output.write_plan(|| ChangePlan::nothing(PlannedOperation::Delete))?;
        return Ok(exit::SUCCESS.into());
    }
    let plan = deletion.plan(&names, false).await?;
    if options.is_tried() {
        return try_deletion(&deletion, &plan, options, output.out()).await;
    }
    let said = output.people();
    let consent = if options.force {
        Consent::Delete(names)
    } else {
        said.write_all(plan.text().as_bytes())?;
        let runs = names.iter().any(|name| deletion.has_workloads(name));
        let warning = if runs { "WARNING: there are running workloads. " } else { "" };
        let question = format!("{warning}{CONTINUE}");
        match prompter.confirm(&question, DefaultAnswer::No, said)? {
            true => Consent::Delete(names),
            false => Consent::Declined,
        }
    };
    carry_out(deletion, consent, false, options, &mut output).await
}

/// Prints a plan, after a dry run of the deletions on the API server if that is requested, or rehearses it.
async fn try_deletion(
    deletion: &Deletion<'_>,
    plan: &DeletionPlan,
    options: &DeletionOptions,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if options.rehearse {
        let text = if plan.delete.is_empty() { NO_ORPHANS.to_owned() } else { plan.text() };
        let plan = RehearsedPlan::of_deletion(text, plan, options.keep_crds);
        return Ok(plan.rehearse(Some(deletion.client), &options.output, out).await?.into());
    }
    if options.dry_run.is_on_server() {
        let operators: Api<Operator> = Api::all(deletion.client.clone());
        for it in &plan.delete {
            let operator = deletion.state.operator(&it.name)?;
            request_deletion(&operators, &it.name, operator, options).await?;
        }
    }
    let changes = ChangePlan::of_deletion(plan, &deletion.operators);
    if !changes::write(&changes, &options.output, out)? {
        write!(out, "{}", plan.text())?;
    }
    Ok(exit::SUCCESS.into())
}

/// Deletes the Operators that the user has agreed to, unless the plan has changed since it was
/// shown.
async fn carry_out(
    mut shown: Deletion<'_>,
    consent: Consent,
    cascade: bool,
    options: &DeletionOptions,
    output: &mut Output<'_>,
) -> Result<ExitCode, anyhow::Error> {
    let out = output.people();
    let names = match consent {
        Consent::Delete(names) => names,
        Consent::Declined => {
            writeln!(out, "Nothing was changed")?;
            return Ok(exit::DECLINED.into());
        }
        Consent::Refused(why) => {
            return Err(Refusal { message: why, exit: exit::FAILURE }.into());
        }
    };
    let plan = shown.plan(&names, cascade).await?;
    let mut now = Deletion::read(shown.client, shown.keep_crds).await?;
    let current = now.plan(&names, cascade).await?;
    if current != plan && !options.force {
        writeln!(out, "The cluster has changed since this was planned:")?;
        for replaced in current.replaced_since(&plan) {
            writeln!(out, "  {replaced}")?;
        }
        write_difference(&plan.text(), &current.text(), out)?;
        bail!("nothing was deleted: {AGAIN}");
    }
    for kept in &current.needed {
        writeln!(out, "{} is kept: {} on it", kept.name, depend(&kept.needed_by))?;
    }
    for it in &current.possible_orphans {
        writeln!(out, "{}", it.text())?;
    }
    delete_each(&now, &current, options, output).await
}

/// Deletes Operators one after another, each once the one before it is gone. The plan is written once the first
/// deletion is requested.
async fn delete_each(
    deletion: &Deletion<'_>,
    plan: &DeletionPlan,
    options: &DeletionOptions,
    output: &mut Output<'_>,
) -> Result<ExitCode, anyhow::Error> {
    let operators: Api<Operator> = Api::all(deletion.client.clone());
    let mut changes = Some(ChangePlan::of_deletion(plan, &deletion.operators));
    let mut limits = WaitLimits::new(options.timeout);
    let mut left = plan.delete.iter().map(|it| it.name.as_str());
    while let Some(name) = left.next() {
        let operator = deletion.state.operator(name)?;
        request_deletion(&operators, name, operator, options).await?;
        end_change_set(deletion.client, &deletion.state.operators, name).await;
        if let Some(changes) = changes.take() {
            output.write_plan(|| changes)?;
        }
        let out = &mut output.of_changes();
        if options.no_wait {
            writeln!(out, "{name} is being deleted")?;
            continue;
        }
        let uid = operator.metadata.uid.as_deref().unwrap_or_default();
        let mut shown = String::new();
        let followed = follow(&operators, name, uid, &mut shown, out);
        let ended = match limits.during(followed).await {
            Ok(ended) => ended?,
            Err(limit) => return Err(unfinished(limit, name, &shown, left)),
        };
        if let Some(why) = ended {
            let message = format!("could not delete {name}: {why}");
            return Err(Refusal { message, exit: exit::DECLINED }.into());
        }
        writeln!(out, "{name} deleted")?;
    }
    Ok(exit::SUCCESS.into())
}

/// Writes the lines that differ between two plans.
pub(super) fn write_difference(before: &str, after: &str, out: &mut dyn Write) -> io::Result<()> {
    let patch = diffy::create_patch(before, after);
    for line in patch.hunks().iter().flat_map(Hunk::lines) {
        match line {
            Line::Context(_) => {}
            Line::Delete(text) => writeln!(out, "- {}", text.trim_end_matches('\n'))?,
            Line::Insert(text) => writeln!(out, "+ {}", text.trim_end_matches('\n'))?,
        }
    }
    Ok(())
}

/// Requests the deletion of an Operator.
///
/// # Errors
///
/// When another one has its name by now, or the API server refuses it.
async fn request_deletion(
    operators: &Api<Operator>,
    name: &str,
    operator: &Operator,
    options: &DeletionOptions,
) -> Result<(), anyhow::Error> {
    let dry_run = options.dry_run.is_set();
    if !options.keep_crds {
        return send_deletion(operators, name, operator, dry_run).await;
    }
    // A deletion that is refused must not change what a later one does to definitions.
    send_deletion(operators, name, operator, true).await?;
    let patch = Patch::Merge(json!({
        "metadata": { "uid": operator.metadata.uid },
        "spec": { "deletion": { "crds": ORPHAN } },
    }));
    let patched = operators.patch(name, &patch_parameters(dry_run), &patch).await;
    patched.with_context(|| format!("failed to update Operator `{name}`"))?;
    let sent = send_deletion(operators, name, operator, dry_run).await;
    if sent.is_err() && !dry_run {
        restore_crds(operators, name, operator).await;
    }
    sent
}

/// Sets `spec.deletion.crds` back, unless another client has changed it since.
async fn restore_crds(operators: &Api<Operator>, name: &str, operator: &Operator) {
    let spec = json!(operator.spec);
    let before = spec["deletion"]["crds"].clone();
    if before == ORPHAN {
        return;
    }
    let path = PointerBuf::from_tokens(["spec", "deletion", "crds"]);
    let is_ours = TestOperation { path: path.clone(), value: ORPHAN.into() };
    let back = match before {
        Value::Null => PatchOperation::Remove(RemoveOperation { path }),
        value => PatchOperation::Replace(ReplaceOperation { path, value }),
    };
    let patch = json_patch::Patch(vec![PatchOperation::Test(is_ours), back]);
    let patch = Patch::<()>::Json(patch);
    match operators.patch(name, &patch_parameters(false), &patch).await {
        // Set back, or the Operator is gone or was changed since.
        Ok(_) => {}
        Err(Error::Api(status)) if matches!(status.code, 404 | 422) => {}
        Err(error) => {
            anstream::eprintln!("failed to set spec.deletion.crds of `{name}` back: {error}");
        }
    }
}

/// Sends the deletion of an Operator.
async fn send_deletion(
    operators: &Api<Operator>,
    name: &str,
    operator: &Operator,
    dry_run: bool,
) -> Result<(), anyhow::Error> {
    let context = || format!("failed to delete Operator `{name}`");
    let preconditions =
        Preconditions { uid: operator.metadata.uid.clone(), resource_version: None };
    let preconditions = Some(preconditions);
    let parameters = DeleteParams { dry_run, preconditions, ..DeleteParams::default() };
    let error = match operators.delete(name, &parameters).await {
        Ok(_) => return Ok(()),
        // Another client has deleted it already.
        Err(Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => error,
    };
    let is_conflict = matches!(&error, Error::Api(status) if status.code == 409);
    if is_conflict && is_replaced(operators, name, operator).await {
        let replaced = recreated(name);
        bail!("the cluster has changed since this was planned: {replaced}; {AGAIN}");
    }
    Err(error).with_context(context)
}

/// Returns whether another Operator has the name of one.
async fn is_replaced(operators: &Api<Operator>, name: &str, operator: &Operator) -> bool {
    let there = operators.get_metadata(name).await;
    there.is_ok_and(|it| it.metadata.uid != operator.metadata.uid)
}
