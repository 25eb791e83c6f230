//! What is wrong with Operators after a rehearsal.

mod subject;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ConditionStatus;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::OperatorStatus;
use plimsoll_controller::operators::INVALIDATED;
use serde::Serialize;
use serde_json::Value;

use self::subject::subjects;
use super::cluster::ClusterContent;

/// How an Operator is in trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TroubleKind {
    /// A requirement of it is not satisfied.
    Unsatisfied,
    /// It does not come to its end: a rollout or a deletion waits forever, failed, or does not begin.
    Stuck,
    /// Objects would be invalid by the definitions of its next version.
    Invalidated,
}

/// What is wrong with an Operator after a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorTrouble {
    /// Name of the Operator.
    pub operator: String,
    /// How it is in trouble.
    pub kind: TroubleKind,
    /// From the list of reasons; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What is wrong, as a sentence.
    pub message: String,
    /// Whether all that it is about was so before, and the Operator was not changed: the same requirements are not
    /// satisfied, and it waits for the same objects.
    pub is_earlier: bool,
    /// Whether the spec of the Operator accepts it.
    pub is_accepted: bool,
}

/// Returns what is wrong with an Operator in the end.
pub(super) fn troubles(
    name: &str,
    before: &ClusterContent,
    after: &ClusterContent,
) -> Vec<OperatorTrouble> {
    let Some(object) = after.operators.get(name) else { return Vec::new() };
    let status = after.status(name);
    let mut found = of_operator(name, object, &status);
    let earlier = before.operators.get(name);
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    if let Some(earlier) = earlier.filter(|it| generation(it) == generation(object)) {
        let earlier_status = before.status(name);
        let mut known: BTreeMap<TroubleKind, BTreeSet<String>> = BTreeMap::new();
        for it in of_operator(name, earlier, &earlier_status) {
            known.entry(it.kind).or_default().extend(subjects(&it, &earlier_status));
        }
        for it in &mut found {
            // What is in the same trouble besides is new.
            let known = known.get(&it.kind);
            it.is_earlier = known.is_some_and(|known| subjects(it, &status).is_subset(known));
        }
    }
    found.extend(accepted(name, &before.status(name), &status));
    found
}

fn of_operator(name: &str, object: &Value, status: &OperatorStatus) -> Vec<OperatorTrouble> {
    let trouble = |kind: TroubleKind, reason: &str, message: String| OperatorTrouble {
        operator: name.to_owned(),
        kind,
        reason: reason.to_owned(),
        message,
        is_earlier: false,
        is_accepted: false,
    };
    let has = |type_: &str, status_: ConditionStatus| {
        status.conditions.iter().find(|it| it.type_ == type_ && it.status == status_)
    };
    if let Some(deletion) = &status.deletion {
        let message = match deletion.stuck.as_slice() {
            [] => format!("the deletion waits in phase {}", deletion.phase),
            stuck => format!("the deletion waits for {}", stuck.join(", ")),
        };
        return vec![trouble(TroubleKind::Stuck, "Deleting", message)];
    }
    if let Some(it) = has("Invalid", ConditionStatus::True) {
        return vec![trouble(TroubleKind::Stuck, &it.reason, it.message.clone())];
    }
    if object["metadata"]["generation"].as_i64() != Some(status.observed_generation) {
        let message = "the controller does not report on its present spec".to_owned();
        return vec![trouble(TroubleKind::Stuck, "", message)];
    }
    let unmet = has("ConstraintsSatisfied", ConditionStatus::False);
    let mut found: Vec<OperatorTrouble> = unmet
        .map(|it| trouble(TroubleKind::Unsatisfied, &it.reason, it.message.clone()))
        .into_iter()
        .collect();
    let is_deleting = object["metadata"]["deletionTimestamp"].is_string();
    let stuck = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Progressing" && (is_deleting || !has_ended(it)))
        .or_else(|| has("Installed", ConditionStatus::False))
        .or_else(|| has("Degraded", ConditionStatus::True));
    // What waits for a requirement is in trouble once.
    let is_said = |it: &&MetaCondition| unmet.is_some() && it.reason == "ConstraintsUnmet";
    if let Some(it) = stuck.filter(|it| !is_said(it)) {
        let kind = match it.message.contains(INVALIDATED) {
            true => TroubleKind::Invalidated,
            false => TroubleKind::Stuck,
        };
        found.push(trouble(kind, &it.reason, it.message.clone()));
    }
    found
}

/// Returns whether Progressing says that there is nothing left to do.
fn has_ended(progressing: &MetaCondition) -> bool {
    progressing.status == ConditionStatus::False
        && matches!(progressing.reason.as_str(), "AsExpected" | "Paused")
}

/// Returns the objects that became invalid although that was known, of the newest rollout.
fn accepted(
    name: &str,
    before: &OperatorStatus,
    after: &OperatorStatus,
) -> Option<OperatorTrouble> {
    let newest = after.history.first()?;
    let is_new = before.history.iter().all(|it| it.revision != newest.revision);
    (is_new && newest.accepted_risks.contains(INVALIDATED)).then(|| OperatorTrouble {
        operator: name.to_owned(),
        kind: TroubleKind::Invalidated,
        reason: String::new(),
        message: newest.accepted_risks.clone(),
        is_earlier: false,
        is_accepted: true,
    })
}

#[cfg(test)]
mod tests;
