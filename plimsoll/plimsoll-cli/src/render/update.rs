//! How a cluster stands and how its update gets on, for people and for programs.

mod overview;
mod report;

pub use overview::UpdateOverview;
pub use report::{Assessment, UpdateStatus};

use plimsoll_api::Condition;
use plimsoll_api::config::ClusterVersionStatus;

fn condition<'a>(status: &'a ClusterVersionStatus, type_: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

/// `2h5m`, `59m`, `45s`.
fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, _) => format!("{minutes}m"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests;
