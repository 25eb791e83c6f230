//! How the cluster stands and where it may go: the answers of `oc adm upgrade` (CV-31.1),
//! in its order.

use std::io::{self, Write};

use plimsoll_api::config::Release;
use plimsoll_api::{Condition, ConditionStatus};
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use serde::Serialize;

use super::condition;
use crate::render::table;
use plimsoll_simulation::cluster_state::ClusterState;

/// How a cluster stands and where it may go.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateOverview {
    /// The version that the cluster is at or on its way to.
    pub version: String,
    /// Whether an update or installation is under way.
    pub in_progress: bool,
    /// The run level that it pauses before, as it is annotated.
    pub pause_before: Option<String>,
    /// The conditions that call for attention, and `Progressing`.
    pub conditions: Vec<Condition>,
    /// The channel; empty for none.
    pub channel: String,
    /// The channels that the release belongs to.
    pub channels: Vec<String>,
    /// What the cluster may go to, newest first.
    pub available_updates: Vec<Release>,
}

impl UpdateOverview {
    /// Gathers it from what the server tells.
    pub fn of(cluster: &ClusterState) -> Self {
        let status = &cluster.status;
        let progressing = condition(status, "Progressing");
        let telling = |condition: &&Condition| {
            let usual = match condition.type_.as_str() {
                "Failing" => ConditionStatus::False,
                "ReleaseAccepted" | "RetrievedUpdates" => ConditionStatus::True,
                "Upgradeable" | "Invalid" | "Progressing" => return true,
                _ => return false,
            };
            condition.status != usual
        };
        Self {
            version: status.desired.version.clone(),
            in_progress: progressing.is_some_and(|it| it.status == ConditionStatus::True),
            pause_before: cluster.annotations.get(PAUSE_BEFORE).cloned(),
            conditions: status.conditions.iter().filter(telling).cloned().collect(),
            channel: cluster.spec.channel.clone(),
            channels: status.desired.channels.clone(),
            available_updates: status.available_updates.clone().unwrap_or_default(),
        }
    }

    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Prints it for people.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.block(out, "Failing")?;
        if let Some(progressing) = self.condition("Progressing") {
            let start = if self.in_progress { "info: An update is in progress. " } else { "" };
            writeln!(out, "{start}{}\n", progressing.message)?;
        }
        if let Some(level) = &self.pause_before {
            writeln!(out, "A pause is requested before run level: {level}\n")?;
        }
        self.block(out, "Upgradeable")?;
        self.block(out, "ReleaseAccepted")?;
        self.block(out, "Invalid")?;
        if !self.channel.is_empty() {
            let others = match self.channels.as_slice() {
                [] => String::new(),
                channels => format!(" (available channels: {})", channels.join(", ")),
            };
            writeln!(out, "Channel: {}{others}\n", self.channel)?;
        }
        self.updates(out)
    }

    fn updates(&self, out: &mut dyn Write) -> io::Result<()> {
        let retrieved = self.condition("RetrievedUpdates");
        if self.available_updates.is_empty() {
            if let Some(Condition { reason, message, .. }) = retrieved {
                writeln!(out, "warning: Cannot display available updates:")?;
                return writeln!(out, "  Reason: {reason}\n  Message: {message}");
            }
            return writeln!(
                out,
                "No updates available. You may still update to a specific release image with \
                 --to-image or wait for new updates to be available."
            );
        }
        if let Some(Condition { reason, message, .. }) = retrieved {
            writeln!(out, "warning: Cannot refresh available updates:")?;
            writeln!(out, "  Reason: {reason}\n  Message: {message}\n")?;
        }
        writeln!(out, "Recommended updates:\n")?;
        let rows: Vec<Vec<String>> = self
            .available_updates
            .iter()
            .map(|release| vec![release.version.clone(), release.image.clone()])
            .collect();
        table::print(out, &["VERSION", "IMAGE"], &rows)
    }

    /// A condition that calls for attention.
    fn block(&self, out: &mut dyn Write, type_: &str) -> io::Result<()> {
        let Some(Condition { status, reason, message, .. }) = self.condition(type_) else {
            return Ok(());
        };
        writeln!(out, "{type_}={}:\n\n  Reason: {reason}", status.as_str())?;
        writeln!(out, "  Message: {}\n", message.replace('\n', "\n  "))
    }
}
