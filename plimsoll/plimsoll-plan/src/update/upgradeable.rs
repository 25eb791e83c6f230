//! What objects to going to another minor version (CV-18).
//!
//! No condition means no objection; there is never `Upgradeable=True`. One objection is the
//! `Upgradeable` condition itself; several are summed up in it, each with a condition of its own
//! beside it.

use plimsoll_api::{ConditionStatus, ObjectKey, Reason};
use serde_json::Value;

use crate::health::parse;
use crate::update::preconditions::BrokenOperator;

/// A ClusterOperator that objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotUpgradeable {
    /// Its name.
    pub operator: String,
    /// Its reason, of its own choice.
    pub reason: String,
    /// What has to be done first.
    pub message: String,
}

/// An objection as a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeableCondition {
    /// Type of the condition.
    pub type_: &'static str,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Its reason; an operator's own one in some cases.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// Reads what a live ClusterOperator says; only an explicit `Upgradeable=False` is an objection.
pub fn objection_of(cluster_operator: &Value) -> Option<NotUpgradeable> {
    let condition =
        parse::condition(cluster_operator, "Upgradeable").filter(|it| it.status == "False")?;
    Some(NotUpgradeable {
        operator: parse::name(cluster_operator).to_owned(),
        reason: condition.reason.to_owned(),
        message: condition.message.to_owned(),
    })
}

/// The conditions to show: `Upgradeable` first; none if nothing objects. `operators` are all that
/// object in the cluster, whether the release knows them or not; `overrides` are the terms of the
/// overrides in force, none if there are no overrides; `acknowledgement` is what an
/// administrator has to confirm first; `deletions` are the objects that are to go and have not
/// gone; `incompatible` are the installed Operators that do not run on the next minor version.
pub fn conditions(
    overrides: Option<&str>,
    update_in_progress: bool,
    operators: &[NotUpgradeable],
    acknowledgement: Option<&(Reason, String)>,
    deletions: &[ObjectKey],
    incompatible: &[BrokenOperator],
) -> Vec<UpgradeableCondition> {
    let mut objections = Vec::new();
    objections.extend(of_operators(operators));
    if let Some((reason, message)) = acknowledgement {
        objections.push(UpgradeableCondition {
            type_: "UpgradeableAdminAckRequired",
            status: ConditionStatus::False,
            reason: reason.to_string(),
            message: message.clone(),
        });
    }
    if !deletions.is_empty() {
        let mut resources: Vec<String> = deletions
            .iter()
            .map(|key| format!("{} \"{}\"", key.kind.to_lowercase(), key.namespaced_name()))
            .collect();
        resources.sort();
        objections.push(UpgradeableCondition {
            type_: "UpgradeableDeletesInProgress",
            status: ConditionStatus::False,
            reason: Reason::ResourceDeletesInProgress.to_string(),
            message: format!(
                "Cluster minor or major version upgrades are not allowed while resource deletions \
                 are in progress; resources={}",
                resources.join(",")
            ),
        });
    }
    objections.extend(of_incompatible(incompatible));
    if let Some(terms) = overrides {
        objections.push(UpgradeableCondition {
            type_: "UpgradeableClusterVersionOverrides",
            status: ConditionStatus::False,
            reason: Reason::ClusterVersionOverridesSet.to_string(),
            message: format!(
                "Disabling ownership via cluster version overrides prevents updates between minor \
                 or major versions. Please remove overrides before requesting a minor or major \
                 version update.{terms}"
            ),
        });
    }
    if update_in_progress {
        objections.push(UpgradeableCondition {
            type_: "UpgradeableUpgradeInProgress",
            // Reads as "an update is in progress", and has always been shown so.
            status: ConditionStatus::True,
            reason: Reason::UpdateInProgress.to_string(),
            message: "An update is already in progress and the details are in the Progressing \
                      condition."
                .to_owned(),
        });
    }
    summed_up(objections)
}

fn summed_up(mut objections: Vec<UpgradeableCondition>) -> Vec<UpgradeableCondition> {
    let (reason, message) = match objections.as_slice() {
        [] => return Vec::new(),
        [only] => (only.reason.clone(), only.message.clone()),
        several => {
            let reasons: Vec<&str> = several.iter().map(|it| it.reason.as_str()).collect();
            let mut message = format!(
                "Cluster should not be upgraded between minor or major versions for multiple \
                 reasons: {}",
                reasons.join(",")
            );
            for objection in several {
                message.push_str("\n* ");
                message.push_str(&objection.message);
            }
            (Reason::MultipleReasons.to_string(), message)
        }
    };
    if objections.len() == 1 {
        objections.clear();
    }
    let status = ConditionStatus::False;
    objections.insert(0, UpgradeableCondition { type_: "Upgradeable", status, reason, message });
    objections
}

fn of_operators(operators: &[NotUpgradeable]) -> Option<UpgradeableCondition> {
    let mut sorted = operators.to_vec();
    sorted.sort();
    let start = |operator: &str| {
        format!(
            "Cluster operator {operator} should not be upgraded between minor or major versions:"
        )
    };
    let (reason, message) = match sorted.as_slice() {
        [] => return None,
        [only] => (only.reason.clone(), format!("{} {}", start(&only.operator), only.message)),
        several => {
            let mut message = "Multiple cluster operators should not be upgraded between minor or \
                               major versions:"
                .to_owned();
            for NotUpgradeable { operator, reason, message: said } in several {
                message.push_str(&format!("\n* {} {reason}: {said}", start(operator)));
            }
            (Reason::ClusterOperatorsNotUpgradeable.to_string(), message)
        }
    };
    let status = ConditionStatus::False;
    Some(UpgradeableCondition { type_: "UpgradeableClusterOperators", status, reason, message })
}

fn of_incompatible(operators: &[BrokenOperator]) -> Option<UpgradeableCondition> {
    let messages: Vec<&str> = operators.iter().map(|it| it.message.as_str()).collect();
    (!messages.is_empty()).then(|| UpgradeableCondition {
        type_: "UpgradeableIncompatibleOperators",
        status: ConditionStatus::False,
        reason: Reason::IncompatibleOperatorsInstalled.to_string(),
        message: format!(
            "Installed Operators would not run on the next minor version; update or delete them \
             first. {}",
            messages.join("; ")
        ),
    })
}

#[cfg(test)]
mod tests;
