//! Invariants of every course of events, by what was written and what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_plan::progress::parse_ranges;
use plimsoll_plan::removal::PRUNE;
use serde_json::Value;

use crate::record::Write;
use crate::release::{IMPLIED, Item, LEVELS, OPTIONAL, Release, VERSIONS, image};
use crate::runner::ScenarioResult;
use crate::scenario::InvalidRequest;

/// Everything that does not hold, in sentences.
pub(crate) fn violations(result: &ScenarioResult, releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    // What was written before the server went back to an earlier state says nothing of what comes
    // after it; and what an update has to keep to then depends on what was lost.
    let mut histories = result.writes.chunk_by(|one, two| one.rollbacks == two.rollbacks);
    let first = histories.next().unwrap_or_default();
    found.extend(order(first, releases));
    found.extend(pauses(first, releases));
    found.extend(gates(first, releases));
    found.extend(requests(&result.writes));
    found.extend(removals(&result.writes, releases));
    for writes in result.writes.chunk_by(|one, two| one.rollbacks == two.rollbacks) {
        found.extend(capabilities(writes, releases));
        found.extend(history(writes));
    }
    found.extend(convergence(result, releases));
    found
}

/// Returns what does not hold with a few seeds, in sentences: where what ReleaseProgress counts as done
/// falls.
pub(crate) fn counted(result: &ScenarioResult) -> Vec<String> {
    let histories = result.writes.chunk_by(|one, two| one.rollbacks == two.rollbacks);
    let mut processes = 0;
    let mut found = Vec::new();
    for writes in histories {
        found.extend(progress(writes, processes));
        processes = writes.iter().map(|write| write.process).chain([processes]).max().unwrap_or(0);
    }
    found
}

/// Writes of manifests that the server took, with the number of their release and what they wrote.
/// Those of a process that was dead by then are left out: nothing holds back what was sent, and
/// whoever leads then has to put it right.
fn applied<'a>(
    writes: &'a [Write],
    releases: &'a [Release],
) -> impl Iterator<Item = (usize, &'a Write, usize, &'a Item)> {
    let taken = |write: &Write| write.status < 300 && !write.is_late;
    writes.iter().enumerate().filter(move |(_, write)| taken(write)).filter_map(|(at, write)| {
        let release = VERSIONS.iter().position(|version| *version == write.release)?;
        let item = releases[release].items.iter().find(|item| item.path == write.path)?;
        Some((at, write, release, item))
    })
}

/// Returns whether each release was an update: begun when another had been completed. All else is an
/// installation, for which there is no order (CV-6.4), and which deletes nothing.
fn updates(writes: &[Write], releases: &[Release]) -> Vec<bool> {
    let is_completed = |write: &Write| {
        let entries = write.reported["history"].as_array();
        entries.is_some_and(|entries| entries.iter().any(|entry| entry["state"] == "Completed"))
    };
    let completed = writes.iter().position(is_completed).unwrap_or(writes.len());
    let is_update = |release: usize| {
        let first = applied(writes, releases).find(|it| it.2 == release);
        first.is_some_and(|(at, ..)| at > completed)
    };
    (0..releases.len()).map(is_update).collect()
}

/// While updating, nothing of a run level is written before everything of those before it is, and
/// nothing goes back to an earlier release.
fn order(writes: &[Write], releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    let updates = updates(writes, releases);
    let mut written: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, write, release, item) in applied(writes, releases) {
        if let Some(before) = written.get(&*item.path).filter(|before| **before > release) {
            let (now, before) = (VERSIONS[release], VERSIONS[*before]);
            found.push(format!("write {at} takes {} back from {before} to {now}", item.path));
        }
        let earlier = releases[release].items.iter().filter(|other| {
            other.level < item.level
                && !other.is_deletion
                && match other.capability {
                    None => true,
                    // An object that was never there implies nothing.
                    Some(name) => name == IMPLIED && written.contains_key(&*other.path),
                }
        });
        for other in earlier.filter(|_| updates[release]) {
            if written.get(&*other.path).is_none_or(|by| *by < release) {
                let (path, before) = (&write.path, &other.path);
                found.push(format!("write {at} of {path} comes before {before} is written"));
            }
        }
        written.insert(&item.path, release);
    }
    found
}

/// Nothing of a release is written that was not requested, or that cannot be loaded.
fn requests(writes: &[Write]) -> Vec<String> {
    let unasked =
        |write: &&Write| !write.release.is_empty() && !write.requested.contains(&write.release);
    let found = writes.iter().filter(unasked);
    found.map(|write| format!("{} is of {}, not asked for", write.path, write.release)).collect()
}

/// Once an update is reported to be held, nothing is begun from that run level on until it is resumed.
/// What was sent before arrives at the same moment.
fn pauses(writes: &[Write], releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    let updates = updates(writes, releases);
    let mut written: BTreeSet<(usize, &str)> = BTreeSet::new();
    let mut applied = applied(writes, releases).peekable();
    let mut held: Option<(u32, Duration)> = None;
    for (at, write) in writes.iter().enumerate() {
        if write.held.is_none() {
            held = None;
        } else if let Some(conditions) = write.reported["conditions"].as_array() {
            let is_shown = conditions.iter().any(|it| it["reason"] == "UpdatePaused");
            let level = write.held.filter(|_| is_shown);
            held = level.map(|level| (level, held.map_or(write.at, |(_, since)| since)));
        }
        let Some((_, _, release, item)) = applied.next_if(|it| it.0 == at) else { continue };
        let is_new = written.insert((release, &item.path));
        let is_held =
            held.is_some_and(|(level, since)| level > 0 && item.level >= level && write.at > since);
        if is_new && is_held && updates[release] {
            found.push(format!("write {at} of {} although the update is held", write.path));
        }
    }
    found
}

/// While updating, nothing of a run level is written before the operators of those before it
/// report the release.
fn gates(writes: &[Write], releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    let updates = updates(writes, releases);
    for (at, write, release, item) in applied(writes, releases).filter(|it| updates[it.2]) {
        for (_, name) in LEVELS.iter().filter(|(level, _)| *level < item.level) {
            let reported = write.operators.get(*name).map(String::as_str).unwrap_or_default();
            if reported < VERSIONS[release] {
                let path = &write.path;
                found.push(format!("write {at} of {path} passes operator {name} at {reported:?}"));
            }
        }
    }
    found
}

/// Nothing is deleted that no release says is to be, but for what is not needed any more and whose
/// deletion is requested.
fn removals(writes: &[Write], releases: &[Release]) -> Vec<String> {
    let to_delete: BTreeSet<&str> = releases
        .iter()
        .flat_map(|release| &release.items)
        .filter(|item| item.is_deletion)
        .map(|item| item.path.as_str())
        .collect();
    let ours: BTreeSet<&str> =
        releases.iter().flat_map(|release| &release.items).map(|item| &*item.path).collect();
    let deletions = writes.iter().filter(|write| write.method == "DELETE");
    deletions
        .filter(|write| ours.contains(&*write.path) && !to_delete.contains(&*write.path))
        .filter(|write| !(write.requested.contains(PRUNE) && is_left(&write.path, releases)))
        .map(|write| format!("{} is deleted although no release says so", write.path))
        .collect()
}

/// Returns whether the first release alone has an object.
fn is_left(path: &str, releases: &[Release]) -> bool {
    let has = |release: &Release| release.items.iter().any(|item| item.path == path);
    !releases[1..].iter().any(has)
}

/// Nothing of a capability is written that was not requested, and what is enabled stays so.
fn capabilities(writes: &[Write], releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, write, _, item) in applied(writes, releases) {
        if let Some(name) = item.capability.filter(|name| *name != IMPLIED)
            && !write.requested.contains(name)
        {
            found.push(format!("write {at} of {} belongs to {name}, not enabled", item.path));
        }
    }
    let mut before: BTreeSet<String> = BTreeSet::new();
    for (at, write) in writes.iter().enumerate() {
        let names = write.reported["capabilities"]["enabledCapabilities"].as_array();
        if write.reported["history"].is_null() {
            continue;
        }
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        for lost in before.difference(&names) {
            found.push(format!("write {at} disables capability {lost}"));
        }
        before = names;
    }
    found
}

/// A release that was completed stays so; entries keep their order, and only the newest changes.
fn history(writes: &[Write]) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Vec<(String, String, String)> = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        let Some(entries) = write.reported["history"].as_array() else { continue };
        let text =
            |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let entries = entries.iter().rev().map(|entry| {
            (text(entry, "version"), text(entry, "startedTime"), text(entry, "state"))
        });
        let entries: Vec<_> = entries.collect();
        if !entries.is_sorted_by_key(|entry| &entry.1) {
            found.push(format!("write {at}: the history is not in order: {entries:?}"));
        }
        for entry in write.reported["history"].as_array().into_iter().flatten() {
            if entry["completionTime"].is_string()
                && text(entry, "completionTime") < text(entry, "startedTime")
            {
                found.push(format!(
                    "write {at}: the history has an end before its beginning: {entry}"
                ));
            }
        }
        for (index, old) in before.iter().enumerate() {
            let new = entries.get(index);
            let same = new.is_some_and(|new| new.0 == old.0 && new.1 == old.1);
            let kept = new.is_some_and(|new| old.2 != "Completed" || new.2 == "Completed");
            if !same || !kept {
                found.push(format!("write {at}: history entry {old:?} became {new:?}"));
            }
        }
        before = entries;
    }
    found
}

/// Checks that what ReleaseProgress counts as done of a plan never falls while that plan is executed,
/// whichever process reports it; and the numbers of its steps mean the same in every report.
///
/// It ends with the completion of the plan, which the next process checks from nothing, and with
/// another plan for the same release: overrides, capabilities or features have changed. A
/// process that took work up counts less once a ClusterOperator contradicts what was recorded: an
/// installation does not wait for versions, and they may not have been reported yet. What a process
/// reports that does not lead any more is undone by the one that does; and of the processes up to a
/// number, the server went back to an earlier state while they ran, which they do not notice at once.
fn progress(writes: &[Write], before_rollback: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut begun: Option<BegunPlan<'_>> = None;
    let mut first = None;
    for (at, write) in writes.iter().enumerate().filter(|(_, write)| write.status < 300) {
        let text = |field: &str| write.reported[field].as_str().unwrap_or_default();
        let Some(total) = write.reported["total"].as_u64() else { continue };
        if is_between_others(writes, at) {
            continue;
        }
        let is_successor = write.process > *first.get_or_insert(write.process);
        let now = BegunPlan {
            process: write.process,
            image: text("image"),
            hash: text("planHash"),
            total,
            done: parse_ranges(text("doneSteps"), usize::MAX).into_iter().collect(),
        };
        if text("mode") == "Reconciling" {
            // Before an update that was accepted is taken up again, the release before it is.
            begun = begun.filter(|it| it.image != now.image);
            continue;
        }
        let before = begun.filter(|it| (it.image, it.hash) == (now.image, now.hash));
        let process = before.as_ref().map_or(write.process, |it| it.process);
        if let Some(before) = before {
            let (old, new) = (before.done.len(), now.done.len());
            let reports = |version: &String| image(version) == now.image;
            let is_contradicted = is_successor && !write.operators.values().all(reports);
            let is_restored = process <= before_rollback;
            if !before.done.is_subset(&now.done) && !is_contradicted && !is_restored {
                found
                    .push(format!("write {at}: the number of steps done fell from {old} to {new}"));
            }
            if before.total != total {
                let total = before.total;
                found.push(format!("write {at}: {total} steps of a plan became {}", now.total));
            }
        }
        begun = Some(BegunPlan { process, ..now });
    }
    found
}

/// Returns whether the last write before one and the next one after it that are not of its process are
/// of one and the same: that one leads, and the write comes late.
fn is_between_others(writes: &[Write], at: usize) -> bool {
    let is_of_another = |write: &&Write| write.process != writes[at].process;
    let before = writes[..at].iter().rfind(is_of_another).map(|write| write.process);
    let after = writes[at..].iter().find(is_of_another).map(|write| write.process);
    before.is_some() && before == after
}

/// A plan that ReleaseProgress reports as being carried out.
struct BegunPlan<'a> {
    /// The process that began it.
    process: usize,
    image: &'a str,
    hash: &'a str,
    total: u64,
    /// The numbers of its steps that are done.
    done: BTreeSet<usize>,
}

/// Checks that the release that is wanted is completed once nothing goes wrong any more, and that
/// everything is as it says.
fn convergence(result: &ScenarioResult, releases: &[Release]) -> Vec<String> {
    let mut found = Vec::new();
    let newest = &result.status["history"][0];
    let version = VERSIONS[result.wanted];
    if newest["version"] != version || newest["state"] != "Completed" {
        let conditions = &result.status["conditions"];
        found.push(format!("{version} is not completed: {newest}, {conditions}"));
    }
    let accepted = result.status["conditions"].as_array().and_then(|conditions| {
        conditions.iter().find(|condition| condition["type"] == "ReleaseAccepted")
    });
    let is_rejected = accepted.is_some_and(|condition| condition["status"] == "False");
    let is_vain = match result.invalid {
        Some(InvalidRequest::Broken | InvalidRequest::Missing) => true,
        Some(InvalidRequest::Backwards) => result.wanted > 0,
        Some(InvalidRequest::Nothing) | None => false,
    };
    if is_rejected != is_vain {
        found
            .push(format!("{:?} is asked for and ReleaseAccepted is {accepted:?}", result.invalid));
    }
    let named = result.status["capabilities"]["enabledCapabilities"].as_array();
    let enabled = named.is_some_and(|names| names.iter().any(|name| name == OPTIONAL));
    if result.is_asked_for && !enabled {
        found.push(format!("{OPTIONAL} is asked for and not enabled"));
    }
    let is_update = updates(&result.writes, releases)[result.wanted];
    let entries = result.status["history"].as_array();
    let installed = entries.is_some_and(|entries| {
        entries.iter().any(|it| it["version"] == VERSIONS[0] && it["state"] == "Completed")
    });
    let is_rolled_back = result.writes.last().is_some_and(|write| write.rollbacks > 0);
    let is_pruned = result.writes.last().is_some_and(|it| it.requested.contains(PRUNE));
    for (path, by) in &result.found {
        let wanted = releases[result.wanted].items.iter().find(|item| item.path == *path);
        let fits = match wanted {
            // Whether it was an update or an installation depends on what was lost.
            Some(item)
                if is_rolled_back && (item.is_deletion || item.capability == Some(IMPLIED)) =>
            {
                true
            }
            None if is_rolled_back => true,
            Some(item) if item.is_deletion => by.is_none() || !is_update,
            // What was enabled and is lost may be put back by a process that has not noticed yet.
            Some(item) if item.capability == Some(OPTIONAL) && !enabled => {
                by.is_none() || is_rolled_back
            }
            Some(item) if item.capability == Some(IMPLIED) && !installed => true,
            Some(_) => by.as_deref() == Some(version),
            None => by.is_some() || !installed || is_pruned,
        };
        if !fits {
            found.push(format!("in the end {path} is as {by:?} has it"));
        }
    }
    found
}
