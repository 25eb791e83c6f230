//! The releases that a cluster has had (CV-15).

use jiff::Timestamp;
use plimsoll_api::config::{Release, UpdateHistory, UpdateState};
use semver::Version;

/// Entries kept. Decades of monthly updates; the status of a ClusterVersion stays small.
pub const MAX_HISTORY: usize = 100;
/// The newest entries are never dropped: they tell what is going on.
const NEWEST_KEPT: usize = 5;

/// What is known of the release being applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current<'a> {
    /// The release.
    pub release: &'a Release,
    /// Whether it has been fully applied at least once.
    pub completed: bool,
    /// Whether its payload was verified.
    pub verified: bool,
    /// Risks that were accepted for it; empty keeps what is recorded.
    pub accepted_risks: &'a str,
}

/// The history, newest entry first, after the release of `current` has been seen being applied at
/// `now`. A release without an image leaves no trace.
pub fn record(
    history: &[UpdateHistory],
    current: Current<'_>,
    now: Timestamp,
) -> Vec<UpdateHistory> {
    let mut history = history.to_vec();
    let release = current.release;
    if release.image.is_empty() {
        return history;
    }
    // A clock that was set back must not put an end before its beginning, nor a release before the
    // one that it follows.
    let now = history.first().map_or(now, |newest| {
        now.max(newest.started_time).max(newest.completion_time.unwrap_or(newest.started_time))
    });
    match history.first_mut().filter(|newest| is_same(newest, release)) {
        Some(newest) => {
            fill(&mut newest.version, &release.version);
            fill(&mut newest.image, &release.image);
        }
        None => {
            if let Some(left) = history.first_mut() {
                // Left behind, whether it was completed or not: a partial one stays partial.
                left.completion_time.get_or_insert(now);
            }
            history.insert(0, begun(release, now));
        }
    }
    let newest = history.first_mut().expect("just recorded");
    if current.completed {
        newest.state = UpdateState::Completed;
        newest.completion_time.get_or_insert(now);
    }
    newest.verified |= current.verified;
    if !current.accepted_risks.is_empty() {
        newest.accepted_risks = current.accepted_risks.to_owned();
    }
    prune(&mut history, MAX_HISTORY);
    history
}

fn begun(release: &Release, now: Timestamp) -> UpdateHistory {
    UpdateHistory {
        state: UpdateState::Partial,
        started_time: now,
        completion_time: None,
        version: release.version.clone(),
        image: release.image.clone(),
        verified: false,
        accepted_risks: String::new(),
    }
}

fn fill(field: &mut String, value: &str) {
    if field.is_empty() {
        value.clone_into(field);
    }
}

/// Whether an entry is of a release, as far as each of them is named.
pub(crate) fn is_same(entry: &UpdateHistory, release: &Release) -> bool {
    if entry.image == release.image {
        return entry.version.is_empty()
            || release.version.is_empty()
            || entry.version == release.version;
    }
    entry.image.is_empty() && entry.version == release.version
}

/// Drops entries until at most `max` are left: each time the one that tells least of the way that
/// the cluster has come.
pub fn prune(history: &mut Vec<UpdateHistory>, max: usize) {
    while history.len() > max {
        let least = (0..history.len())
            .map(|index| (rank(history, index), index))
            .min_by(|(left, _), (right, _)| left.total_cmp(right));
        let Some((_, index)) = least else { return };
        history.remove(index);
    }
}

/// What an entry is worth. Worth most are the newest, the first of all, and the newest completed
/// one; then the ends of each minor version; then failed steps between minor versions. Failed
/// steps within a minor version tell least. Of equals, the older one goes.
fn rank(history: &[UpdateHistory], index: usize) -> f64 {
    /// More than any other rank.
    const ALWAYS_KEPT: f64 = 1000.0;
    const ENDS_OF_MINOR: f64 = 30.0;
    const PARTIAL_BETWEEN_MINORS: f64 = 20.0;
    const PARTIAL_WITHIN_MINOR: f64 = -20.0;
    /// Just over one, so that an entry ranks below all newer ones of its sort.
    const PER_INDEX: f64 = -1.01;

    let is_completed = |entry: &&UpdateHistory| entry.state == UpdateState::Completed;
    let newest_completed = history.iter().position(|entry| is_completed(&entry));
    if index < NEWEST_KEPT || index + 1 == history.len() || Some(index) == newest_completed {
        return ALWAYS_KEPT;
    }
    let newer = history[..index].iter().rev().find(is_completed).map(minor);
    let older = history[index + 1..].iter().find(is_completed).map(minor);
    let this = minor(&history[index]);
    let sort = match (history[index].state, newer, older) {
        (UpdateState::Completed, newer, older) => {
            let at_end = newer.as_ref() != Some(&this) || older.as_ref() != Some(&this);
            if at_end { ENDS_OF_MINOR } else { 0.0 }
        }
        (UpdateState::Partial, Some(newer), Some(older)) => {
            if newer == older {
                PARTIAL_WITHIN_MINOR
            } else {
                PARTIAL_BETWEEN_MINORS
            }
        }
        (UpdateState::Partial, _, _) => 0.0,
    };
    sort + PER_INDEX * f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Major and minor version; what is no semantic version is a minor version of its own.
fn minor(entry: &UpdateHistory) -> String {
    match Version::parse(&entry.version) {
        Ok(version) => format!("{}.{}", version.major, version.minor),
        Err(_) => entry.version.clone(),
    }
}

#[cfg(test)]
mod tests;
