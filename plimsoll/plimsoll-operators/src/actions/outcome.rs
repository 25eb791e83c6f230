//! What the status of an Action says of its plan: a summary, the dependencies that it creates, and what was done
//! if it failed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{
    ActionDependency, ActionSpec, CONSTRAINT_SATISFIED, ChangeOperation, ChangeState,
    FailureDetails, PlannedChange,
};
use plimsoll_api::{ConditionStatus, Reason};
use serde_json::Value;

use super::{TEXT_LENGTH_MAX, cut, enumerated};
use crate::conditions::{ConditionDraft, condition};
use crate::version_text;

/// Returns the number of changes by operation: `2 to create, 1 to delete`. Changes of the release are named.
pub(super) fn summary(plan: &[PlannedChange]) -> String {
    let counted = |operation: ChangeOperation, verb: &str| {
        let count = plan.iter().filter(|it| it.operation == operation).count();
        (count > 0).then(|| format!("{count} to {verb}"))
    };
    let release = plan.iter().filter_map(|it| match it.operation {
        ChangeOperation::UpdateRelease => Some(format!("update to {}", it.version)),
        ChangeOperation::EnableCapability => Some(format!("enable {}", it.capability)),
        ChangeOperation::Create
        | ChangeOperation::Update
        | ChangeOperation::Delete
        | ChangeOperation::Await => None,
    });
    let operators = [
        counted(ChangeOperation::Create, "create"),
        counted(ChangeOperation::Update, "update"),
        counted(ChangeOperation::Delete, "delete"),
    ];
    let awaited = counted(ChangeOperation::Await, "await");
    let parts: Vec<String> =
        operators.into_iter().flatten().chain(release).chain(awaited).collect();
    parts.join(", ")
}

fn is_created_dependency(change: &&PlannedChange) -> bool {
    change.dependency && change.operation == ChangeOperation::Create
}

/// Returns the dependencies that a plan creates.
pub(super) fn dependencies(plan: &[PlannedChange]) -> Vec<ActionDependency> {
    let created = plan.iter().filter(is_created_dependency);
    let dependencies = created.map(|it| ActionDependency {
        package: it.operator.clone(),
        version: it.version.clone(),
        reason: match it.state {
            ChangeState::Completed => Reason::DependencyCreated.to_string(),
            _ => it.reason.clone(),
        },
        message: it.message.clone(),
    });
    dependencies.collect()
}

/// Returns a condition for each dependency that was created. A condition keeps its transition time while its
/// message, which names the dependency, is unchanged.
pub(super) fn satisfied(
    plan: &[PlannedChange],
    before: &[MetaCondition],
    generation: i64,
    now: Timestamp,
) -> Vec<MetaCondition> {
    let is_done = |it: &&PlannedChange| it.state == ChangeState::Completed;
    let created = plan.iter().filter(is_created_dependency).filter(is_done);
    let conditions = created.map(|change| {
        let draft = ConditionDraft {
            type_: CONSTRAINT_SATISFIED,
            status: ConditionStatus::True,
            reason: Reason::DependencyCreated,
            message: installed_text(change),
        };
        let mut same = before.iter().filter(|it| it.type_ == draft.type_);
        let same = same.find(|it| it.message == draft.message);
        condition(draft, same.map_or(&[], std::slice::from_ref), generation, now)
    });
    conditions.collect()
}

fn installed_text(change: &PlannedChange) -> String {
    match change.message.as_str() {
        "" => format!("{}@{} was successfully installed", change.operator, change.version),
        message => message.to_owned(),
    }
}

/// Returns what became of the packages that were asked for, and of all Operators that were deleted; `None` if the plan
/// has no completed change of the package that comes first.
pub(super) fn of_packages(spec: &ActionSpec, plan: &[PlannedChange]) -> Option<String> {
    let is_done =
        |it: &&PlannedChange| it.state == ChangeState::Completed && !it.message.is_empty();
    let is_first = |it: &&PlannedChange| !spec.package.is_empty() && it.operator == spec.package;
    let first = plan.iter().find(is_first).filter(is_done)?;
    let named = further_packages(spec);
    let is_deletion = |it: &PlannedChange| it.operation == ChangeOperation::Delete;
    let is_meant =
        |it: &&PlannedChange| is_deletion(it) || is_first(it) || named.contains(&&*it.operator);
    let meant: Vec<&PlannedChange> = plan.iter().filter(is_done).filter(is_meant).collect();
    if meant.len() < 2 {
        return Some(first.message.clone());
    }
    let texts = meant.iter().map(|it| match is_deletion(it) {
        true => it.operator.clone(),
        false => format!("{}@{}", it.operator, it.version),
    });
    let what = if is_deletion(first) { "deleted" } else { "successfully installed" };
    Some(format!("{} were {what}", enumerated(&texts.collect::<Vec<_>>())))
}

/// Returns the names of the packages that a request names in its parameters.
fn further_packages(spec: &ActionSpec) -> BTreeSet<&str> {
    let lists = ["packages", "ranges"].into_iter();
    let lists = lists.filter_map(|it| spec.parameters.as_ref()?.get(it)?.as_array());
    let texts = lists.flatten().filter_map(Value::as_str);
    texts.map(|it| it.split_once('@').map_or(it, |(name, _)| name)).collect()
}

/// Completes what a status says of a failure with what became of the changes of its plan.
pub(super) fn complete(failure: &mut FailureDetails, plan: &[PlannedChange]) {
    failure.done.clear();
    failure.left.clear();
    failure.unknown.clear();
    for change in plan.iter().filter(|it| it.operation != ChangeOperation::Await) {
        let text = cut(&text(change), TEXT_LENGTH_MAX);
        let is_release = change.operation == ChangeOperation::UpdateRelease;
        match change.state {
            ChangeState::Completed => failure.done.push(text),
            ChangeState::Written => {
                failure.done.push(format!("{text} (requested, not {} yet)", end(change)));
            }
            ChangeState::Planned => failure.left.push(text),
            ChangeState::Failed if change.unwritten => failure.left.push(text),
            // It was written, and the object does not show it any more.
            ChangeState::Failed if change.reason == Reason::OutcomeUnknown.as_str() => {
                failure.unknown.push(text);
            }
            // Such a request is withdrawn.
            ChangeState::Failed if is_release => {
                failure.left.push(format!("{text} (requested, and taken back)"));
            }
            ChangeState::Failed => failure.done.push(format!("{text} (requested, and failed)")),
            ChangeState::Writing => failure.unknown.push(text),
        }
    }
}

/// Returns what a change does.
fn text(change: &PlannedChange) -> String {
    let PlannedChange { operator, version, requested, capability, .. } = change;
    let version = version_text(version);
    match change.operation {
        ChangeOperation::Create => format!("create {operator} {version}").trim_end().to_owned(),
        ChangeOperation::Update if change.version != change.version_before => {
            match version.as_str() {
                "" => format!("request another version of {operator}"),
                version => format!("update {operator} to {version}"),
            }
        }
        ChangeOperation::Update if *requested != change.requested_before => {
            let requested = if requested.is_empty() { "any version" } else { requested };
            format!("request {requested} of {operator}")
        }
        ChangeOperation::Update => format!("change what is requested of {operator}"),
        ChangeOperation::Delete => format!("delete {operator}"),
        ChangeOperation::UpdateRelease => format!("update the release to {}", change.version),
        ChangeOperation::EnableCapability => format!("enable capability {capability}"),
        ChangeOperation::Await => format!("wait for {operator} {version}").trim_end().to_owned(),
    }
}

/// Returns what has not happened yet to a change that was requested.
fn end(change: &PlannedChange) -> &'static str {
    match change.operation {
        ChangeOperation::Delete => "gone",
        ChangeOperation::UpdateRelease => "completed",
        ChangeOperation::EnableCapability => "enabled",
        ChangeOperation::Create | ChangeOperation::Update | ChangeOperation::Await => "installed",
    }
}

#[cfg(test)]
mod tests;
