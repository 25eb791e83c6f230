//! Forecasts: what a plan would change, computed before anything happens.
//!
//! A forecast is about the very [`Plan`] that the controller executes, and says for each of its
//! steps what becomes of the object: from files alone, by comparison with the plan of the release
//! that is left ([`between`]), or from a cluster, by what its API server answered to a dry run
//! ([`of_cluster`]). It also names what is left behind, and what stands in the way.

mod cluster;
mod files;
mod provided;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::config::{OperandVersion, Release};
use plimsoll_api::{ObjectKey, Reason, Verdict};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::ExclusionReason;
use serde::Serialize;
use serde_json::Value;

pub use cluster::{DryRunOutcome, ObservedObject, of_cluster};
pub use files::between;
pub(crate) use files::orphans;

use crate::apply::diff::{self, FieldChange};
use crate::capabilities::EnabledCapability;
use crate::health::parse;
use crate::plan::{Action, Plan, Readiness, Step};
use crate::update::preconditions::{FailedPrecondition, GIANT_HOP};

/// What would happen if a plan were carried out now.
#[derive(Debug, Clone)]
pub struct Forecast {
    /// The release that is left; `None` where there is none, or none is known.
    pub from: Option<Release>,
    /// The plan: the value that the controller executes.
    pub plan: Arc<Plan>,
    /// What becomes of the object of each step, in the order of the plan's steps.
    pub changes: Vec<StepChange>,
    /// The steps whose turn comes before what they need is there, each with the step that brings
    /// it: they are deferred until then and hold nothing up.
    pub deferred: BTreeMap<usize, usize>,
    /// The managers whose fields are taken over with the object of a step, as far as the cluster shows it.
    pub taken_over: BTreeMap<usize, BTreeSet<String>>,
    /// The gates of the plan, in its order.
    pub gates: Vec<Gate>,
    /// Objects that are ours and that the plan leaves behind.
    pub orphans: Vec<Orphan>,
    /// Capabilities that become enabled.
    pub capabilities: Vec<EnabledCapability>,
    /// The preconditions of the update that do not hold. Those that block stand in the way; the
    /// others are risks that are accepted by asking for it.
    pub preconditions: Vec<FailedPrecondition>,
}

/// What becomes of the object of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepChange {
    /// It is created.
    Created,
    /// Some of its fields change.
    Changed(Vec<FieldChange>),
    /// It is deleted and, once it is gone, created again.
    Replaced {
        /// The fields that make it necessary, since no update changes them.
        because: Vec<String>,
        /// The fields that change.
        fields: Vec<FieldChange>,
    },
    /// It is deleted.
    Deleted,
    /// It is to be deleted, and is not there.
    Absent,
    /// It is there, and is only ever created.
    Kept,
    /// It is as it is to be.
    Unchanged,
    /// It cannot be tried now, and nothing in the plan changes that.
    Waiting {
        /// The reason.
        reason: Reason,
        /// What it waits for.
        message: String,
    },
    /// It is refused.
    Refused {
        /// The reason.
        reason: Reason,
        /// By whom, in whose words.
        message: String,
    },
}

/// A sort of change, to count and to group by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepChangeKind {
    /// [`StepChange::Created`].
    Created,
    /// [`StepChange::Changed`].
    Changed,
    /// [`StepChange::Replaced`].
    Replaced,
    /// [`StepChange::Deleted`].
    Deleted,
    /// [`StepChange::Refused`].
    Refused,
    /// [`StepChange::Waiting`].
    Waiting,
    /// [`StepChange::Kept`], [`StepChange::Absent`] and [`StepChange::Unchanged`].
    Unchanged,
}

impl StepChangeKind {
    /// All of them, the ones that matter most first.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Waiting,
        Self::Replaced,
        Self::Created,
        Self::Changed,
        Self::Deleted,
        Self::Unchanged,
    ];

    /// As people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
            Self::Refused => "refused",
            Self::Waiting => "waiting",
            Self::Unchanged => "unchanged",
        }
    }
}

impl StepChange {
    /// What becomes of an object that is there before and after.
    pub fn between(manifest: &Manifest, before: &Value, after: &Value) -> Self {
        let fields = diff::objects(manifest, before, after);
        if fields.is_empty() { Self::Unchanged } else { Self::Changed(fields) }
    }

    /// What becomes of an object that is there before, and anew after.
    pub fn replaced(
        manifest: &Manifest,
        before: &Value,
        after: &Value,
        because: Vec<String>,
    ) -> Self {
        Self::Replaced { because, fields: diff::objects(manifest, before, after) }
    }

    /// Its sort.
    pub fn kind(&self) -> StepChangeKind {
        match self {
            Self::Created => StepChangeKind::Created,
            Self::Changed(_) => StepChangeKind::Changed,
            Self::Replaced { .. } => StepChangeKind::Replaced,
            Self::Deleted => StepChangeKind::Deleted,
            Self::Refused { .. } => StepChangeKind::Refused,
            Self::Waiting { .. } => StepChangeKind::Waiting,
            Self::Absent | Self::Kept | Self::Unchanged => StepChangeKind::Unchanged,
        }
    }
}

/// What the plan waits for at a ClusterOperator.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The step.
    pub step: usize,
    /// The versions that the operator must report, beside being available and not degraded.
    pub expects: Vec<OperandVersion>,
    /// How the operator stands to the gate now; `None` where no cluster was asked.
    pub now: Option<Verdict>,
}

/// An object that is ours and that the plan leaves behind: it is not managed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The object.
    pub key: ObjectKey,
    /// Why the plan does not name it.
    pub cause: OrphanCause,
}

/// Why a plan does not name an object that the one before did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrphanCause {
    /// The new payload has no manifest of it.
    Vanished,
    /// The new payload has one, and it is left out.
    Excluded(ExclusionReason),
}

/// Something that stands in the way of the whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForecastBlocker {
    /// Why; an operator's own word in some cases.
    pub reason: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// Whether an update that is forced begins all the same.
    pub forcible: bool,
}

/// A run level of a forecast: its components run in parallel, and the next level waits for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastLevel {
    /// Its number; `None` for files that name none.
    pub level: Option<u32>,
    /// Its components, in the order of the plan.
    pub components: Vec<ForecastComponent>,
}

/// A component within a run level: its steps run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastComponent {
    /// Its name; `None` for files that name none.
    pub name: Option<String>,
    /// Its steps.
    pub steps: Vec<usize>,
}

impl Forecast {
    /// The run levels, in the order in which they are done, whatever the mode of the plan: what
    /// belongs together is shown together.
    pub fn levels(&self) -> Vec<ForecastLevel> {
        let mut levels: Vec<ForecastLevel> = Vec::new();
        for node in &self.plan.graph.nodes {
            let component =
                ForecastComponent { name: node.component.clone(), steps: node.tasks.clone() };
            match levels.last_mut() {
                Some(last) if last.level == node.level => last.components.push(component),
                _ => levels.push(ForecastLevel { level: node.level, components: vec![component] }),
            }
        }
        levels
    }

    /// How many steps there are of each sort of change.
    pub fn counts(&self) -> BTreeMap<StepChangeKind, usize> {
        count(self.changes.iter())
    }

    /// The objects that become other than they are, in the order of the plan's steps.
    pub fn effects(&self) -> impl Iterator<Item = (&Step, &StepChange)> {
        self.plan.steps.iter().zip(&self.changes).filter(|(_, change)| {
            matches!(
                change.kind(),
                StepChangeKind::Created
                    | StepChangeKind::Changed
                    | StepChangeKind::Replaced
                    | StepChangeKind::Deleted
            )
        })
    }

    /// The preconditions that do not hold and do not hold the update up.
    pub fn accepted_risks(&self) -> Vec<ForecastBlocker> {
        self.findings(false)
    }

    /// The same update when it is forced: no precondition holds it up.
    #[must_use]
    pub fn forced(mut self) -> Self {
        self.preconditions.iter_mut().for_each(|finding| finding.blocking = false);
        self
    }

    /// The same update when one of the releases names the other: its version is not too far.
    #[must_use]
    pub fn declared(mut self) -> Self {
        self.preconditions.retain(|finding| finding.precondition != GIANT_HOP);
        self
    }

    fn findings(&self, blocking: bool) -> Vec<ForecastBlocker> {
        let findings = self.preconditions.iter().filter(|finding| finding.blocking == blocking);
        let blockers = findings.map(|FailedPrecondition { reason, message, .. }| ForecastBlocker {
            reason: reason.clone(),
            message: message.clone(),
            forcible: blocking,
        });
        blockers.collect()
    }

    /// Whether an object is refused.
    pub fn is_refused(&self) -> bool {
        self.changes.iter().any(|it| it.kind() == StepChangeKind::Refused)
    }

    /// What would keep the plan from completing, as far as is known before; empty when nothing would.
    pub fn stops(&self) -> Vec<ForecastBlocker> {
        let mut stops = self.findings(true);
        for (step, change) in self.plan.steps.iter().zip(&self.changes) {
            if let StepChange::Refused { reason, message }
            | StepChange::Waiting { reason, message } = change
            {
                let message = format!("{}: {message}", step.describe());
                stops.push(ForecastBlocker {
                    reason: reason.to_string(),
                    message,
                    forcible: false,
                });
            }
        }
        for gate in self.gates.iter().filter(|gate| gate.expects.is_empty()) {
            let name = &self.plan.steps[gate.step].manifest.key.name;
            stops.push(ForecastBlocker {
                reason: Reason::ClusterOperatorNoVersions.to_string(),
                message: format!("Cluster operator {name} does not declare expected versions"),
                forcible: false,
            });
        }
        stops
    }
}

/// How many changes there are of each sort.
pub fn count<'a>(changes: impl Iterator<Item = &'a StepChange>) -> BTreeMap<StepChangeKind, usize> {
    let mut counts = BTreeMap::new();
    for change in changes {
        *counts.entry(change.kind()).or_default() += 1;
    }
    counts
}

/// What a step waits for once its object is applied; `None` when applied is enough.
pub fn awaited(step: &Step) -> Option<&'static str> {
    match step.readiness {
        Readiness::Applied => None,
        Readiness::Served => Some("its kinds are served"),
        Readiness::RolledOut if step.ready_when().is_some() => Some("its condition holds"),
        Readiness::RolledOut => Some("it has rolled out"),
        Readiness::Gate => Some("the operator reports this release, available and not degraded"),
    }
}

/// The gates of a plan, as its manifests tell them.
fn gates(plan: &Plan) -> Vec<Gate> {
    let steps = plan.steps.iter().enumerate();
    let gates = steps.filter(|(_, step)| step.action == Action::Gate);
    gates
        .map(|(index, step)| {
            let versions = step.manifest.object();
            let expects = parse::versions(&versions).map(|version| OperandVersion {
                name: version.name.to_owned(),
                version: version.version.to_owned(),
            });
            Gate { step: index, expects: expects.collect(), now: None }
        })
        .collect()
}

/// What the manifest alone decides about a step, whatever there is.
fn decided(step: &Step) -> Option<StepChange> {
    match &step.action {
        Action::Refuse(message) => Some(StepChange::Refused {
            reason: Reason::UpdatePayloadFailed,
            message: message.clone(),
        }),
        Action::Apply | Action::CreateOnly | Action::Gate | Action::Delete | Action::Migrate => {
            None
        }
    }
}

#[cfg(test)]
mod tests;
