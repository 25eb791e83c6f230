//! The next step of an Action, and the decision whether and how it is executed.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_api::olm::action::ActionState;
use plimsoll_api::{ApiKind, CLUSTER_VERSION, Reason};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::actions::attributes::{EffectiveAction, NamedClass};
use plimsoll_operators::actions::lifecycle::{ActionDecision, NextStep, PlanDecision, next_step};
use plimsoll_operators::actions::locks::{Footprint, active, created, next_end};
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::release::ObservedRelease;
use plimsoll_operators::actions::report::{ActionObject, Report};
use plimsoll_operators::actions::{ActionFailure, planning};
use plimsoll_operators::deletion_plan::without_release;

use super::ControlLoop;
use super::queue::{WorkItem, id_of};
use crate::actions::access::Access;
use crate::actions::inventory::CatalogInventory;
use crate::actions::parts::is_lasting;
use crate::actions::windows;
use crate::clock::run_beside;
use crate::ownership::objects_of_release;
use crate::resources::Resources;
use crate::workloads::{include_rollouts, workloads};
use crate::write::chain;
use plimsoll_api::NamespacedName;

/// The maximum number of plans that a decision about an Action makes. It plans again if another
/// policy than before grants the plan.
const PLANS_MAX: usize = 4;

impl ControlLoop {
    /// Takes the next step of an Action. None is taken before its plan has been read.
    pub(super) async fn act(&mut self, id: &NamespacedName) {
        if self.is_unread(id) {
            self.load_plan(id).await;
            if self.is_unread(id) {
                return;
            }
        }
        let Some(action) = self.actions.get(id).cloned() else { return };
        let classes = Arc::clone(&self.classes);
        if let Some(report) = self.unserved(&action) {
            self.report(&action, report).await;
            return;
        }
        match next_step(&action, &classes) {
            NextStep::Nothing => {}
            NextStep::Report(report) => {
                self.report(&action, *report).await;
            }
            NextStep::Decide(class) => self.decide(&action, class).await,
            NextStep::Execute(class) => self.execute(action, class).await,
            NextStep::Stop => self.stop(action).await,
            NextStep::Release => self.release(&action).await,
        }
    }

    /// Returns the report of an Action that cannot be read, or whose class cannot be served; `None`
    /// if it can be dealt with, or has begun, or another controller does.
    fn unserved(&self, action: &ActionObject) -> Option<Report> {
        let class = NamedClass::find(&*self.classes, &action.spec.action_class);
        let is_own = class.is_none_or(NamedClass::is_ours);
        let state = action.status.state;
        if !is_own || state.is_final() {
            return None;
        }
        if let Some(error) = self.unreadable.get(&id_of(action)) {
            let message = format!("it cannot be read: {error}");
            let failure = ActionFailure::new(Reason::InvalidAction, message);
            return Some(Report::failed(action.status.clone(), failure));
        }
        if state == ActionState::Running || action.spec.cancelled {
            return None;
        }
        let class = class?;
        let refusal = self.class_states.refusal(&class.name)?;
        let message = format!("ActionClass {} cannot be served: {refusal}", class.name);
        Some(Report::pending(action.status.clone(), Reason::InvalidActionClass, message))
    }

    /// Reports that something is not known yet that a decision needs, unless the status has a
    /// condition.
    async fn report_unknown(&mut self, action: &ActionObject, message: String) {
        if action.status.conditions.is_empty() {
            let (status, reason) = (action.status.clone(), Reason::InventoryUnavailable);
            self.report(action, Report::pending(status, reason, message)).await;
        }
        self.act_again(action);
    }

    /// Evaluates the policies for an Action, and plans it.
    async fn decide(&mut self, action: &ActionObject, class: &NamedClass) {
        let Access { by_hand, policies, labels } =
            match Access::ask(&self.client, &self.writer, action).await {
                Ok(access) => access,
                Err(error) => {
                    let error = chain(&error);
                    tracing::debug!(error, "cannot ask what a requester may do");
                    let message = format!("what its requester may do is not known: {error}");
                    return self.report_unknown(action, message).await;
                }
            };
        let windows = match windows::read(&self.client, action, &policies).await {
            Ok(windows) => windows,
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(error, "cannot read the maintenance windows");
                let message = format!("the MaintenanceWindows are not known: {error}");
                return self.report_unknown(action, message).await;
            }
        };
        let (policies, windows) = (policies.as_slice(), &windows);
        let active = active(action, self.actions.values());
        let created = &created(&action.namespace, &self.operators, self.actions.values());
        let (labels, now) = (&labels, self.clock.now());
        let decision = ActionDecision {
            action,
            class,
            policies,
            windows,
            active,
            created,
            labels,
            by_hand,
            now,
        };
        let mut attributes = match decision.admit() {
            Ok(attributes) => attributes,
            Err(report) => {
                self.report(action, *report).await;
                return;
            }
        };
        let looks_for_permissions = decision.looks_for_permissions();
        for _ in 0..PLANS_MAX {
            let Some(inventory) = self.inventory.ask().await else {
                let message = "the catalogs and Operators of the cluster are being read";
                return self.report_unknown(action, message.to_owned()).await;
            };
            // Observations that are older than the inventory may still be queued.
            self.drain();
            let plan = self.plan(action, &attributes, inventory, looks_for_permissions).await;
            let plan = match plan {
                Ok(plan) => plan,
                Err(error) => {
                    tracing::debug!(error, "cannot plan an Action; trying again");
                    let message = format!("it cannot be planned yet: {error}");
                    return self.report_unknown(action, message).await;
                }
            };
            let result = match &plan {
                Ok(plan) => plan.result.clone(),
                Err(failure) => failure.answer().to_owned(),
            };
            let others = |plan: &ActionPlan| {
                let footprint = Footprint::of(&plan.changes);
                self.locks().waits_for(action, &footprint)
            };
            match decision.decide(&attributes, plan, others) {
                PlanDecision::Report(report) => {
                    self.wake_in_time(action, &report);
                    return self.answer(action, *report, &result).await;
                }
                PlanDecision::PlanAgain(again) => attributes = *again,
            }
        }
        let failure = ActionFailure::new(
            Reason::PolicyDenied,
            "each of several ActionPolicies allows only what another one asks for: give the \
             attributes that they default",
        );
        self.report(action, Report::failed(decision.unplanned(), failure)).await;
    }

    /// Makes an Action due that waits for another one when it may not wait any longer, whatever
    /// becomes of the other one.
    fn wake_in_time(&mut self, action: &ActionObject, report: &Report) {
        if report.reason != Reason::WaitingForAction {
            return;
        }
        let end = next_end(self.actions.values(), &self.classes, self.clock.now());
        if let Some(at) = end {
            self.queue.add_at(WorkItem::of(action), at);
        }
    }

    /// Reports a decision about a plan, and logs the result of a query, of which the status may
    /// have only a part.
    async fn answer(&mut self, action: &ActionObject, mut report: Report, result: &str) {
        let digest = report.status.result_digest.clone();
        if !digest.is_empty() {
            match self.parts.keep_result(action, result).await {
                Ok(parts) => report.status.parts = parts,
                Err(error) if is_lasting(&error) => {
                    report.status.parts = None;
                    report.message = format!(
                        "{}; it is incomplete, since its ActionParts cannot be created: {}",
                        report.message,
                        chain(&error)
                    );
                }
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot create ActionParts");
                    return self.act_again(action);
                }
            }
        }
        let begun = (report.state == ActionState::Running)
            .then_some((action.uid.clone(), report.status.attempts));
        if self.report(action, report).await {
            self.executed.extend(begun);
        }
        if !digest.is_empty() && self.ended.has(&id_of(action), &action.uid) {
            let ActionObject { namespace, name, .. } = action;
            tracing::info!(namespace, name, digest, result, "an Action is answered");
        }
    }

    /// Plans an Action with its effective attributes, with the permissions that its bundles bring if those are looked for.
    /// Of the workloads that would go, it names those in the namespace of the Action, whose users may read its status.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn plan(
        &self,
        action: &ActionObject,
        attributes: &EffectiveAction,
        mut content: CatalogInventory,
        looks_for_permissions: bool,
    ) -> Result<Result<ActionPlan, ActionFailure>, String> {
        content.inventory.observed.clone_from(&self.operators);
        let mut counted = BTreeMap::new();
        let deleted = planning::deleted(attributes, &content.inventory);
        if !deleted.is_empty() {
            let of_release = objects_of_release(&self.client).await;
            content.inventory.of_release = of_release.map_err(|error| chain(&error))?;
        }
        for name in deleted {
            let Some(operator) = content.inventory.observed.get_mut(&name) else { continue };
            let (uid, status) = (&operator.uid, &mut operator.status);
            let included = include_rollouts(&self.client, &name, uid, status).await;
            included.map_err(|error| chain(&error))?;
            let status = without_release(&operator.status, &content.inventory.of_release);
            let found = workloads(&self.client, &status, Some(&action.namespace)).await;
            counted.insert(name, found.map_err(|error| chain(&error))?);
        }
        let attributes = attributes.clone();
        let release = match planning::is_of_release(&attributes.class) {
            true => self.release_to_plan().await?,
            false => None,
        };
        let planned = run_beside(&*self.clock, move || {
            content.inventory.offered = content.package_names();
            let parts = content.parts(planning::packages(&attributes, &content.inventory));
            let (inventory, release) = (&content.inventory, release.as_ref());
            let planned = planning::plan(&attributes, inventory, release, &counted, &parts, &Cel);
            let planned = planned.map(|mut plan| {
                for change in plan.changes.iter_mut().filter(|it| !it.bundle.is_empty()) {
                    change.image = content.image(change).unwrap_or_default();
                }
                plan
            });
            (planned, content)
        });
        let (planned, content) = planned.await.map_err(|error| error.to_string())?;
        match planned {
            Ok(plan) if looks_for_permissions => {
                self.with_permissions(plan, &content).await.map(Ok)
            }
            planned => Ok(planned),
        }
    }

    /// Returns what the ClusterVersion requests and reports; `None` if there is none, or the cluster
    /// does not serve its kind.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn release_to_plan(&self) -> Result<Option<ObservedRelease>, String> {
        let error = match self.changes.read_release().await {
            Ok(release) => return Ok(release),
            Err(error) => error,
        };
        if matches!(&error, kube::Error::Api(status) if status.code == 404) {
            let ApiKind { group, version, .. } = CLUSTER_VERSION;
            let served = Resources::discover_version(&self.client, group, version).await;
            if served.is_ok_and(|it| !it.serves(CLUSTER_VERSION)) {
                return Ok(None);
            }
        }
        Err(chain(&error))
    }
}
