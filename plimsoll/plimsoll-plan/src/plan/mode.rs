//! Which rules a cluster is brought to a release by (CV-9).

use std::fmt;

use plimsoll_api::config::{UpdateHistory, UpdateState};

/// The rules in force while a release is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The cluster has never completed a release: everything at once.
    Initializing,
    /// The cluster goes from one release to another: run level by run level.
    Updating,
    /// The cluster has the release: it is kept that way.
    Reconciling,
}

impl Mode {
    /// The mode by its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "Initializing",
            Self::Updating => "Updating",
            Self::Reconciling => "Reconciling",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Chooses the mode in which the release `image` is begun, from the cluster's history, newest
/// entry first.
pub fn choose(history: &[UpdateHistory], image: &str) -> Mode {
    if !history.iter().any(|entry| entry.state == UpdateState::Completed) {
        return Mode::Initializing;
    }
    match history.first() {
        Some(newest) if newest.state == UpdateState::Completed && newest.image == image => {
            Mode::Reconciling
        }
        _ => Mode::Updating,
    }
}

#[cfg(test)]
mod tests;
