//! The timeline of a rehearsal of Operators: their steps, and when nothing moves any more.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use plimsoll_api::ConditionStatus;
use plimsoll_api::config::MetaCondition;
use plimsoll_controller::{OperatorView, OperatorsView};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::cluster::ClusterContent;

/// The time without a change after which nothing moves any more, if no Operator is progressing: longer than
/// the pauses before something is tried again.
const QUIET: Duration = Duration::from_secs(5 * 60);
/// The time after which a rehearsal ends although Operators still change.
const END: Duration = Duration::from_secs(24 * 60 * 60);

/// A step of an Operator: another version is installed, or it progresses for another reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorTransition {
    /// When, in seconds since the changes were requested.
    pub at: u64,
    /// Name of the Operator.
    pub operator: String,
    /// The installed version from then on; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The status of Progressing.
    pub status: &'static str,
    /// The reason of Progressing.
    pub reason: String,
    /// The message of Progressing at that moment.
    pub message: String,
}

/// The steps of all Operators.
#[derive(Debug)]
pub(super) struct OperatorsTimeline {
    /// When the first change was requested.
    began: Instant,
    /// When anything moved last, in seconds.
    pub(super) seconds: u64,
    pub(super) transitions: Vec<OperatorTransition>,
    /// The version of each Operator, and status and reason of its Progressing.
    known: BTreeMap<String, (String, &'static str, String)>,
}

/// Returns whether an Operator progresses, or has not been reported yet.
fn is_moving(operators: &BTreeMap<String, OperatorView>) -> bool {
    operators.values().any(|it| {
        let progressing = progressing(&it.conditions);
        progressing.is_none_or(|it| it.status == ConditionStatus::True)
    })
}

fn progressing(conditions: &[MetaCondition]) -> Option<&MetaCondition> {
    conditions.iter().find(|it| it.type_ == "Progressing")
}

impl OperatorsTimeline {
    /// Returns a timeline that begins now, with what the copy began with.
    pub(super) fn of(before: &ClusterContent) -> Self {
        let mut timeline = Self {
            began: Instant::now(),
            seconds: 0,
            transitions: Vec::new(),
            known: BTreeMap::new(),
        };
        for name in before.operators.keys() {
            let status = before.status(name);
            let version = status.bundle.map(|it| it.version).unwrap_or_default();
            if let Some(it) = progressing(&status.conditions) {
                let known = (version, it.status.as_str(), it.reason.clone());
                timeline.known.insert(name.clone(), known);
            }
        }
        timeline
    }

    /// Follows a controller until an Operator is gone that is being deleted, if one is named, or else until nothing
    /// moves any more. While an Operator progresses, it may report nothing new for as long as `limit`. Returns
    /// whether there is no Operator of that name in the end.
    pub(super) async fn follow(
        &mut self,
        views: &mut watch::Receiver<OperatorsView>,
        limit: Duration,
        deleted: Option<&str>,
    ) -> bool {
        let mut operators: BTreeMap<String, OperatorView> = BTreeMap::new();
        let (mut moved, mut was_there) = (self.began.elapsed(), false);
        loop {
            let view = views.borrow_and_update().clone();
            if view.operators != operators {
                operators = view.operators;
                moved = self.began.elapsed();
                self.record(&operators, moved.as_secs());
            }
            let is_there = deleted.is_some_and(|it| operators.contains_key(it));
            was_there |= is_there;
            let patience = if is_moving(&operators) { limit } else { QUIET };
            let end = self.began + (moved + patience).min(END);
            // What was not reported yet is not gone.
            if (was_there && !is_there) || Instant::now() >= end {
                return !is_there;
            }
            tokio::select! {
                biased;
                changed = views.changed() => if changed.is_err() {
                    // The controller has ended, and says why.
                    pending().await
                },
                () = sleep_until(end) => {}
            }
        }
    }

    fn record(&mut self, operators: &BTreeMap<String, OperatorView>, at: u64) {
        for (name, operator) in operators {
            let Some(it) = progressing(&operator.conditions) else { continue };
            let now = (operator.version.clone(), it.status.as_str(), it.reason.clone());
            if self.known.get(name) == Some(&now) {
                continue;
            }
            self.seconds = at;
            self.known.insert(name.clone(), now);
            self.transitions.push(OperatorTransition {
                at,
                operator: name.clone(),
                version: operator.version.clone(),
                status: it.status.as_str(),
                reason: it.reason.clone(),
                message: it.message.clone(),
            });
        }
        let gone: Vec<String> =
            self.known.keys().filter(|it| !operators.contains_key(*it)).cloned().collect();
        for name in gone {
            self.known.remove(&name);
            self.seconds = at;
        }
    }
}
