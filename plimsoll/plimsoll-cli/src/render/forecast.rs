//! Forecasts as people and programs read them: text, Markdown, JSON, and the run levels as a
//! picture.

mod diff;
pub(super) mod markdown;
mod notable;
mod revision;
pub(super) mod text;
mod value;

use std::collections::BTreeMap;
use std::io::{self, Write};

use plimsoll_api::{CLUSTER_OPERATOR, ObjectKey, Verdict};
use plimsoll_plan::apply::diff::FieldChange;
use plimsoll_plan::forecast::{
    Forecast, ForecastBlocker, ForecastComponent, Gate, OrphanCause, StepChange, StepChangeKind,
    awaited, count,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::format::Format;
use super::graph::{Graph, Node, Picture, Rank, Tone};

pub(super) use markdown::escaped;
pub(crate) use revision::write_revision;

/// A forecast in words.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastReport {
    /// Version of the release that is left.
    pub from: Option<String>,
    /// Version of the release that is gone to.
    pub to: String,
    /// Hash of the plan; the ReleaseProgress object shows the same while it is carried out.
    pub plan_hash: String,
    /// The rules of the plan.
    pub mode: &'static str,
    /// Steps of each sort.
    pub counts: BTreeMap<&'static str, usize>,
    /// What stands in the way; empty when nothing does.
    pub blockers: Vec<ForecastBlocker>,
    /// Preconditions that do not hold and do not hold the update up.
    pub accepted_risks: Vec<ForecastBlocker>,
    /// Capabilities enabled by the update, and why.
    pub capabilities: Vec<EnabledCapability>,
    /// The run levels in their order.
    pub levels: Vec<LevelReport>,
    /// What is waited for at ClusterOperators.
    pub gates: Vec<GateReport>,
    /// Objects that are left behind.
    pub orphans: Vec<OrphanReport>,
    /// Documents of the payload that are left out, and why.
    pub excluded: Vec<ExcludedManifest>,
}

/// Something that stands in the way of an object or at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// From the list of reasons.
    pub reason: &'static str,
    /// The same as a sentence.
    pub message: String,
}

/// A capability that becomes enabled.
#[derive(Debug, Serialize)]
pub struct EnabledCapability {
    /// Its name.
    pub name: String,
    /// What makes it so.
    pub because: String,
}

/// A run level. Times are of a rehearsal, in whole seconds since the update began.
#[derive(Debug, Serialize)]
pub struct LevelReport {
    /// Its number; none for files that name none.
    pub level: Option<u32>,
    /// When its first object was written; none in a plan, or if it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// When all of it was done; none in a plan, or if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Its components, which run in parallel.
    pub components: Vec<ComponentReport>,
}

/// Steps that are done one after the other.
#[derive(Debug, Serialize)]
pub struct ComponentReport {
    /// The component.
    pub name: Option<String>,
    /// Steps of each sort.
    pub counts: BTreeMap<&'static str, usize>,
    /// Its steps.
    pub steps: Vec<StepReport>,
    /// What it waited for in a rehearsal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitReport>,
}

/// A step.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// Manifest file.
    pub file: String,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// The object, as `kind.group/name -n namespace`.
    #[serde(serialize_with = "reference")]
    pub object: ObjectKey,
    /// What becomes of it.
    pub change: &'static str,
    /// When it was first written in a rehearsal; none in a plan, or if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The fields that no update changes, for which it is deleted and created again.
    #[serde(rename = "replacedFor", skip_serializing_if = "Vec::is_empty")]
    pub replaced_for: Vec<String>,
    /// Which fields change, and how.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldReport>,
    /// Why it is not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Blocker>,
    /// The object that has to be there first, where its turn comes only later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The managers whose fields are taken over: those that the manifest lacks go.
    #[serde(rename = "takesOver", skip_serializing_if = "Vec::is_empty")]
    pub takes_over: Vec<String>,
    /// The condition on which it is ready, as its manifest names it; none without one.
    #[serde(rename = "readyWhen", skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<String>,
    /// What is waited for before the component goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<&'static str>,
}

/// Something that a component of a rehearsal waited for, or that failed.
#[derive(Debug, Serialize)]
pub struct WaitReport {
    /// The object, as `kind.group/name -n namespace`.
    #[serde(serialize_with = "reference")]
    pub object: ObjectKey,
    /// Why, from the list of reasons.
    pub reason: &'static str,
    /// The same as a sentence.
    pub message: String,
    /// Since when, in seconds since the update began.
    pub from: u64,
    /// Until when; none for what lasts.
    pub until: Option<u64>,
    /// Whether it counts as a failure.
    pub failed: bool,
}

impl WaitReport {
    /// For how many seconds; none for what lasts.
    fn lasted(&self) -> Option<u64> {
        self.until.map(|until| until.saturating_sub(self.from))
    }
}

/// A field that changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldReport {
    /// Where it is.
    pub path: String,
    /// What it was; left out where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it becomes; left out where it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl From<&FieldChange> for FieldReport {
    fn from(change: &FieldChange) -> Self {
        let FieldChange { path, before, after } = change.clone();
        Self { path, before, after }
    }
}

/// A gate.
#[derive(Debug, Serialize)]
pub struct GateReport {
    /// Name of the ClusterOperator.
    pub operator: String,
    /// Run level.
    pub level: Option<u32>,
    /// The versions that it must report, by name.
    pub expects: BTreeMap<String, String>,
    /// What keeps it from passing now; none where nothing does or it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Blocker>,
}

/// An object that is left behind.
#[derive(Debug, Serialize)]
pub struct OrphanReport {
    /// The object.
    pub object: String,
    /// What enables it.
    pub because: String,
}

/// A document that is left out.
#[derive(Debug, Serialize)]
pub struct ExcludedManifest {
    /// Manifest file.
    pub file: String,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// The object.
    pub object: String,
    /// The reason why it is not included.
    pub reason: String,
}

impl ForecastReport {
    /// Puts a forecast into words.
    pub fn of(forecast: &Forecast) -> Self {
        let plan = &forecast.plan;
        let levels = forecast.levels().into_iter().map(|level| LevelReport {
            level: level.level,
            began: None,
            completed: None,
            components: level
                .components
                .into_iter()
                .map(|component| self::component(forecast, component))
                .collect(),
        });
        let capabilities = forecast.capabilities.iter().cloned();
        Self {
            from: forecast.from.as_ref().map(|release| release.version.clone()),
            to: plan.release.version.clone(),
            plan_hash: plan.hash.clone(),
            mode: plan.mode.as_str(),
            counts: named(&forecast.counts()),
            blockers: forecast.stops(),
            accepted_risks: forecast.accepted_risks(),
            capabilities: capabilities
                .map(|it| EnabledCapability { name: it.name, because: it.because })
                .collect(),
            levels: levels.collect(),
            gates: forecast.gates.iter().map(|gate| self::gate(forecast, gate)).collect(),
            orphans: forecast
                .orphans
                .iter()
                .map(|orphan| OrphanReport {
                    object: orphan.key.reference(),
                    because: match &orphan.cause {
                        OrphanCause::Vanished => "the release has no manifest of it".to_owned(),
                        OrphanCause::Excluded(reason) => {
                            format!("its manifest is left out: {reason}")
                        }
                    },
                })
                .collect(),
            excluded: plan
                .excluded
                .iter()
                .map(|excluded| ExcludedManifest {
                    file: excluded.file.to_string(),
                    document: excluded.document,
                    object: excluded.key.reference(),
                    reason: excluded.reason.to_string(),
                })
                .collect(),
        }
    }

    /// Writes the report; `details` shows every object and field in a text.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn write(
        &self,
        format: &Format,
        details: bool,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        match format {
            Format::Text | Format::Wide => text::write(self, out, details || format.is_wide())?,
            Format::Markdown => markdown::write(self, out)?,
            Format::Diff => diff::write(self, out)?,
            Format::Picture(picture) => self.draw(*picture, out)?,
            Format::Name => self.names(out)?,
            Format::Json
            | Format::PlanJson
            | Format::Yaml
            | Format::JsonPath(_)
            | Format::Sarif
            | Format::Junit => {
                format.write(self, out)?;
            }
        }
        Ok(())
    }

    /// Names the objects that do not stay as they are, one a line.
    pub(super) fn names(&self, out: &mut dyn Write) -> io::Result<()> {
        let components = self.levels.iter().flat_map(|level| &level.components);
        let mut steps = components.flat_map(|component| &component.steps);
        steps.try_for_each(|step| match step.change == StepChangeKind::Unchanged.as_str() {
            true => Ok(()),
            false => writeln!(out, "{}", step.object.reference()),
        })
    }

    /// Draws the run levels and what happens in them.
    pub(super) fn draw(&self, picture: Picture, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.graph().draw(picture).as_bytes())
    }

    /// The run levels and what happens in them.
    fn graph(&self) -> Graph {
        let mut graph = Graph { title: self.title(), ..Graph::default() };
        for level in &self.levels {
            let first = graph.nodes.len();
            graph.nodes.extend(level.components.iter().map(node));
            let nodes = (first..graph.nodes.len()).collect();
            graph.ranks.push(Rank { label: level_name(level.level), nodes });
        }
        graph
    }

    /// What it is about.
    pub(super) fn title(&self) -> String {
        match &self.from {
            Some(from) => format!("Update from {from} to {}", self.to),
            None => format!("Installation of {}", self.to),
        }
    }
}

fn component(forecast: &Forecast, component: ForecastComponent) -> ComponentReport {
    let steps = component.steps.iter().map(|&index| {
        let (step, change) = (&forecast.plan.steps[index], &forecast.changes[index]);
        StepReport {
            file: step.manifest.file.to_string(),
            document: step.manifest.document,
            object: step.manifest.key.clone(),
            change: change.kind().as_str(),
            at: None,
            replaced_for: match change {
                StepChange::Replaced { because, .. } => because.clone(),
                _ => Vec::new(),
            },
            fields: match change {
                StepChange::Changed(fields) | StepChange::Replaced { fields, .. } => {
                    fields.iter().map(FieldReport::from).collect()
                }
                _ => Vec::new(),
            },
            problem: match change {
                StepChange::Refused { reason, message }
                | StepChange::Waiting { reason, message } => {
                    Some(Blocker { reason: reason.as_str(), message: message.clone() })
                }
                _ => None,
            },
            after: forecast
                .deferred
                .get(&index)
                .map(|&other| forecast.plan.steps[other].manifest.key.reference()),
            takes_over: forecast.taken_over.get(&index).into_iter().flatten().cloned().collect(),
            ready_when: step.ready_when().map(str::to_owned),
            awaits: awaited(step),
        }
    });
    ComponentReport {
        name: component.name,
        counts: named(&count(component.steps.iter().map(|&index| &forecast.changes[index]))),
        steps: steps.collect(),
        waits: Vec::new(),
    }
}

fn gate(forecast: &Forecast, gate: &Gate) -> GateReport {
    let manifest = &forecast.plan.steps[gate.step].manifest;
    let position = plimsoll_plan::plan::graph::position(&manifest.file);
    let expects = gate.expects.iter().cloned();
    GateReport {
        operator: manifest.key.name.clone(),
        level: position.map(|position| position.level),
        expects: expects.map(|version| (version.name, version.version)).collect(),
        now: match &gate.now {
            Some(Verdict::Waiting { reason, message, .. })
            | Some(Verdict::ReadyWith { reason, message }) => {
                Some(Blocker { reason: reason.as_str(), message: message.clone() })
            }
            Some(Verdict::Ready) | None => None,
        },
    }
}

fn named(counts: &BTreeMap<StepChangeKind, usize>) -> BTreeMap<&'static str, usize> {
    counts.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

/// `3 created, 1 changed, 12 unchanged`, the sorts that matter most first.
pub(super) fn in_words(counts: &BTreeMap<&'static str, usize>) -> String {
    let counts = StepChangeKind::ALL.iter().filter_map(|kind| {
        let count = counts.get(kind.as_str()).filter(|count| **count > 0)?;
        Some(format!("{count} {}", kind.as_str()))
    });
    let words: Vec<String> = counts.collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn node(component: &ComponentReport) -> Node {
    let mut lines = vec![component.name.clone().unwrap_or_else(|| "(no component)".to_owned())];
    lines.push(in_words(&component.counts));
    let gates = component.steps.iter().filter(|step| step.awaits.is_some()).count();
    if gates > 0 {
        lines.push(format!("waits {gates} {}", if gates == 1 { "time" } else { "times" }));
    }
    lines.extend(component.steps.iter().filter_map(notable::replacement));
    let quiet =
        component.steps.iter().all(|step| step.change == StepChangeKind::Unchanged.as_str());
    let tone = match (component.steps.iter().any(|step| step.problem.is_some()), quiet) {
        (true, _) => Tone::Bad,
        (false, true) => Tone::Faint,
        (false, false) => Tone::Active,
    };
    Node { lines, tone }
}

fn reference<S: Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&key.reference())
}

/// The ClusterOperator that an object is.
fn operator(key: &ObjectKey) -> Option<&str> {
    let kind = (key.group.as_str(), key.kind.as_str());
    (kind == (CLUSTER_OPERATOR.group, CLUSTER_OPERATOR.kind)).then_some(key.name.as_str())
}

/// An object in the fewest words: gates are known by their operator.
fn short(key: &ObjectKey) -> String {
    operator(key).map_or_else(|| key.reference(), |name| format!("operator {name}"))
}

/// The sign of what becomes of an object; none where nothing does.
fn sign(step: &StepReport) -> Option<&'static str> {
    let signs = [
        (StepChangeKind::Created, "+"),
        (StepChangeKind::Changed, "~"),
        (StepChangeKind::Replaced, "±"),
        (StepChangeKind::Deleted, "-"),
        (StepChangeKind::Refused, "✗"),
        (StepChangeKind::Waiting, "…"),
    ];
    signs.iter().find(|(kind, _)| kind.as_str() == step.change).map(|(_, sign)| *sign)
}

/// The gates of a component, in its order.
fn gates<'a>(
    report: &'a ForecastReport,
    component: &'a ComponentReport,
) -> impl Iterator<Item = &'a GateReport> {
    let names = component.steps.iter().filter_map(|step| operator(&step.object));
    names.filter_map(|name| report.gates.iter().find(|gate| gate.operator == name))
}

/// A moment as people read it: `+2:05`.
pub(super) fn moment(seconds: u64) -> String {
    format!("+{}:{:02}", seconds / 60, seconds % 60)
}

/// A span as people read it: `2m05s`.
pub(super) fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// How a run level is called.
pub(super) fn level_name(level: Option<u32>) -> String {
    level.map_or_else(|| "no level".to_owned(), |level| format!("level {level:02}"))
}

#[cfg(test)]
mod tests;
