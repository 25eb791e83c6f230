//! The promises about Operators, which hold in every scenario. They are checked on the recorded
//! writes and on the final state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_resolve::range::blang::Range;
use plimsoll_resolve::version::parse_tolerant;
use serde_json::Value;

use super::{AddOnsResult, PACKAGES, Request, RequestedSpec};
use crate::record::{ADD_ONS, REVISIONS, Write};
use crate::runner::ScenarioResult;

/// The time after which a request has been observed: until then, requests have timed out and
/// watches have restarted.
const OBSERVED_WITHIN: Duration = Duration::from_secs(90);

/// Returns the promises that do not hold, as sentences.
pub(crate) fn violations(result: &ScenarioResult) -> Vec<String> {
    let Some(add_ons) = &result.add_ons else { return Vec::new() };
    let mut found = Vec::new();
    // The writes before and after a restore of the server are independent of each other, but for the
    // revisions that are in the backup.
    let mut revisions = Revisions::new();
    for writes in result.writes.chunk_by(|one, two| one.rollbacks == two.rollbacks) {
        found.extend(fights(writes, add_ons));
        found.extend(deletions(writes, add_ons, &mut revisions));
        found.extend(upgrades(writes, add_ons));
    }
    found.extend(rest(&result.writes, add_ons));
    found.extend(operators(add_ons));
    found.extend(leftovers(&result.writes, add_ons));
    found
}

/// Returns whether a write is of an object of an Operator.
pub(crate) fn is_of_operator(write: &Write) -> bool {
    !operator_of(&write.sent).is_empty() && !write.path.starts_with(ADD_ONS)
}

fn operator_of(object: &Value) -> &str {
    object["metadata"]["labels"][OPERATOR_LABEL].as_str().unwrap_or_default()
}

/// The group, kind, namespace and name of an object.
type Key = (String, String, String, String);

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let metadata = &object["metadata"];
    (group, text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn inventory_key(entry: &Value) -> Key {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    (text("group"), text("kind"), text("namespace"), text("name"))
}

/// Returns the writes that succeeded, without those of processes that had already ended.
fn done(writes: &[Write]) -> impl Iterator<Item = &Write> {
    writes.iter().filter(|write| write.status < 300 && !write.is_late)
}

impl AddOnsResult {
    /// Returns the requests about an Operator up to a time, in order.
    fn until(&self, package: &str, at: Duration) -> impl DoubleEndedIterator<Item = &Request> {
        let of = move |request: &Request| match request {
            Request::Apply(index, _) | Request::Delete(index) => PACKAGES[*index].0 == package,
            _ => false,
        };
        let requested = self.requested.iter().take_while(move |(time, _)| *time <= at);
        let requested: Vec<&Request> = requested.map(|(_, it)| it).filter(|it| of(it)).collect();
        requested.into_iter()
    }

    /// Returns the spec that was last requested up to a time.
    fn spec(&self, package: &str, at: Duration) -> Option<RequestedSpec> {
        self.until(package, at).rev().find_map(|request| match request {
            Request::Apply(_, spec) => Some(*spec),
            _ => None,
        })
    }

    /// Returns whether the last request up to a time was a deletion.
    fn is_deleted(&self, package: &str, at: Duration) -> bool {
        matches!(self.until(package, at).next_back(), Some(Request::Delete(_)))
    }

    /// Returns whether a request between two times may change a package.
    fn is_changed(&self, package: &str, from: Duration, to: Duration) -> bool {
        let about = |request: &Request| match request {
            Request::Catalog(_) => true,
            Request::Apply(index, _)
            | Request::Delete(index)
            | Request::Drift { package: index, .. } => PACKAGES[*index].0 == package,
            Request::Operand(_) => false,
        };
        self.requested.iter().any(|(at, it)| *at >= from && *at <= to && about(it))
    }
}

/// Checks that no object changes back to an earlier content, except after a request or a rollback.
fn fights(writes: &[Write], add_ons: &AddOnsResult) -> Vec<String> {
    let mut found = Vec::new();
    let mut written: BTreeMap<&str, Vec<&Write>> = BTreeMap::new();
    for write in done(writes).filter(|it| is_of_operator(it) && it.method != "DELETE") {
        let before = written.entry(&write.path).or_default();
        if before.last().is_some_and(|last| last.sent == write.sent) {
            continue;
        }
        let package = operator_of(&write.sent);
        let same = before.iter().rev().find(|it| it.sent == write.sent);
        if let Some(same) = same
            && !add_ons.is_changed(package, same.at.saturating_sub(OBSERVED_WITHIN), write.at)
            && !add_ons.spec(package, write.at).is_some_and(|it| it.is_rolled_back)
        {
            let (then, now) = (same.at, write.at);
            found.push(format!("{} at {now:?} is again as it was at {then:?}", write.path));
        }
        before.push(write);
    }
    found
}

/// The revisions that were written, by Operator, number of restores before, and number.
type Revisions = BTreeMap<(String, usize, u64), WrittenRevision>;

/// A revision that was written.
#[derive(Default)]
struct WrittenRevision {
    /// The uid of its Operator.
    uid: String,
    objects: BTreeSet<Key>,
}

/// Checks that operands and their definitions are deleted only together with their Operator and
/// only if its policy says so, and other objects only with their Operator or when a revision lacks
/// them.
fn deletions(writes: &[Write], add_ons: &AddOnsResult, revisions: &mut Revisions) -> Vec<String> {
    let mut found = Vec::new();
    let mut owned: BTreeMap<&str, (String, Key)> = BTreeMap::new();
    // The times at which operands were deleted, by package.
    let mut emptied: BTreeMap<&str, Duration> = BTreeMap::new();
    // A revision that arrived late is there, and the next process goes on with it.
    let is_counted = |it: &&Write| it.status < 300 && (!it.is_late || it.path == REVISIONS);
    for write in writes.iter().filter(is_counted) {
        if write.path == REVISIONS && write.method == "POST" {
            let spec = &write.sent["spec"];
            let operator = spec["operator"].as_str().unwrap_or_default().to_owned();
            let objects = spec["objects"].as_array().into_iter().flatten();
            let revision = spec["revision"].as_u64().unwrap_or_default();
            let uid = write.sent["metadata"]["ownerReferences"][0]["uid"].as_str();
            let known = revisions.entry((operator, write.rollbacks, revision)).or_default();
            // An Operator that was created again begins anew with the numbers.
            if known.uid != uid.unwrap_or_default() {
                *known = WrittenRevision {
                    uid: uid.unwrap_or_default().to_owned(),
                    ..Default::default()
                };
            }
            known.objects.extend(objects.map(|it| key(&it["object"])));
        } else if is_of_operator(write) {
            let package = operator_of(&write.sent).to_owned();
            owned.insert(&write.path, (package, key(&write.sent)));
        }
        if write.method != "DELETE" {
            continue;
        }
        let path = &write.path;
        let operand = PACKAGES.iter().find(|(_, group, resource)| {
            path.starts_with(&format!("/apis/{group}/")) && path.contains(resource)
        });
        if let Some((package, ..)) = operand {
            emptied.insert(package, write.at);
            let spec = add_ons.spec(package, write.at);
            let may_go = add_ons.is_deleted(package, write.at)
                && spec.is_some_and(RequestedSpec::deletes_operands);
            if !may_go {
                found.push(format!("{path} is deleted, which no policy asks for"));
            }
            continue;
        }
        let Some((package, key)) = owned.get(&**path) else { continue };
        if add_ons.is_deleted(package, write.at) {
            let spec = add_ons.spec(package, write.at);
            let since = emptied.get(&**package).copied().unwrap_or_default();
            let has_operand = add_ons
                .created
                .iter()
                .any(|(at, it)| PACKAGES[*it].0 == package && *at >= since && *at <= write.at);
            let keeps = spec.is_some_and(|it| {
                it.keeps_definitions || (it.workloads == "Orphan" && has_operand)
            });
            if key.1 == "CustomResourceDefinition" && keeps {
                found.push(format!("{path} is deleted although its policy keeps it"));
            }
            continue;
        }
        let of = revisions.iter().filter(|((operator, ..), _)| operator == package);
        if of.clone().all(|(_, it)| it.objects.contains(key)) && of.count() > 0 {
            found.push(format!("{path} is deleted although every revision of {package} has it"));
        }
    }
    found
}

/// Checks that no update begins before the requirements of the new version are met.
fn upgrades(writes: &[Write], add_ons: &AddOnsResult) -> Vec<String> {
    let mut found = Vec::new();
    for write in done(writes).filter(|it| it.path == REVISIONS && it.method == "POST") {
        let spec = &write.sent["spec"];
        let operator = spec["operator"].as_str().unwrap_or_default();
        let version = spec["bundle"]["version"].as_str().unwrap_or_default();
        let is_upgrade = write.installed.get(operator).is_some_and(|it| it != version);
        let goes_back = add_ons.spec(operator, write.at).is_some_and(|it| it.revision.is_some());
        if !is_upgrade || goes_back {
            continue;
        }
        for property in spec["properties"].as_array().into_iter().flatten() {
            if property["type"] != "olm.package.required" {
                continue;
            }
            let required = property["value"]["packageName"].as_str().unwrap_or_default();
            let range = property["value"]["versionRange"].as_str().unwrap_or_default();
            let installed = write.installed.get(required).map(String::as_str).unwrap_or_default();
            let is_met = Range::parse(range).is_ok_and(|range| {
                parse_tolerant(installed).is_ok_and(|version| range.matches(&version))
            });
            if !is_met
                && !add_ons.is_changed(required, write.at.saturating_sub(OBSERVED_WITHIN), write.at)
            {
                found.push(format!(
                    "{operator} begins with {version}, which requires {required} {range}; there is \
                     {installed:?}"
                ));
            }
        }
    }
    found
}

/// Checks that the cluster becomes quiet, and that nothing is written afterwards.
fn rest(writes: &[Write], add_ons: &AddOnsResult) -> Vec<String> {
    let Some(converged_at) = add_ons.converged_at else {
        let states = add_ons.operators.iter().map(|(name, it)| format!("{name}: {}", it["status"]));
        let states: Vec<String> = states.collect();
        let last: Vec<String> = writes
            .iter()
            .rev()
            .filter(|it| it.changes_content())
            .take(9)
            .map(|it| format!("{:?} {} {} {}", it.at, it.method, it.path, it.status))
            .collect();
        return vec![format!(
            "it does not converge: {}\n  {}",
            states.join("\n  "),
            last.join("\n  ")
        )];
    };
    let is_late = |write: &&Write| write.at > converged_at && write.changes_content();
    let late = writes.iter().filter(is_late);
    late.map(|write| format!("{} {} at {:?}, at rest", write.method, write.path, write.at))
        .collect()
}

/// Checks that each requested Operator exists, and that the objects exist that it reports as
/// installed.
fn operators(add_ons: &AddOnsResult) -> Vec<String> {
    let mut found = Vec::new();
    let there: BTreeSet<Key> = add_ons.found.values().map(key).collect();
    for (package, ..) in PACKAGES {
        let is_deleted = add_ons.is_deleted(package, Duration::MAX);
        let spec = add_ons.spec(package, Duration::MAX);
        let operator = add_ons.operators.get(package);
        match (operator, spec) {
            (None, Some(_)) if !is_deleted => found.push(format!("Operator {package} is missing")),
            (Some(_), Some(_)) if is_deleted => {
                found.push(format!(
                    "Operator {package} does not go: {}",
                    operator.unwrap_or(&Value::Null)["status"]
                ));
            }
            _ => {}
        }
        let Some(operator) = operator.filter(|_| !is_deleted) else { continue };
        let status = &operator["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        for condition in conditions.clone() {
            if condition["reason"].as_str().is_none_or(str::is_empty) {
                found.push(format!("{package}: {condition} has no reason"));
            }
        }
        let is_true =
            |name: &str| conditions.clone().any(|it| it["type"] == name && it["status"] == "True");
        if !is_true("Installed") || is_true("Progressing") {
            continue;
        }
        for entry in status["inventory"].as_array().into_iter().flatten() {
            if !there.contains(&inventory_key(entry)) {
                found.push(format!("{package} says that {entry} is installed; it is not there"));
            }
        }
    }
    found
}

/// Checks that a deleted Operator leaves only what its policy keeps, and that no operand was
/// deleted otherwise. An object that a process created after its end is left.
fn leftovers(writes: &[Write], add_ons: &AddOnsResult) -> Vec<String> {
    let mut found = Vec::new();
    let is_late = |path: &str| {
        let last = writes.iter().rfind(|it| it.path == path && it.status < 300);
        last.is_some_and(|it| it.is_late && it.status == 201)
    };
    for (path, object) in &add_ons.found {
        let package = operator_of(object);
        if package.is_empty() || add_ons.operators.contains_key(package) {
            continue;
        }
        let spec = add_ons.spec(package, Duration::MAX);
        let keeps = spec.is_some_and(|it| it.keeps_definitions || it.workloads == "Orphan");
        let is_kept = keeps && object["kind"] == "CustomResourceDefinition";
        if !is_kept && !is_late(path) {
            found.push(format!("{path} is left of {package}"));
        }
    }
    for (index, (package, group, resource)) in PACKAGES.iter().enumerate() {
        let was_created = add_ons.created.iter().any(|(_, it)| *it == index);
        let may_be_gone = add_ons.requested.iter().any(|(at, it)| {
            *it == Request::Delete(index)
                && add_ons.spec(package, *at).is_some_and(RequestedSpec::deletes_operands)
        });
        let path = format!("/apis/{group}/v1/namespaces/default/{resource}/one");
        let is_defined = add_ons
            .found
            .values()
            .any(|it| it["kind"] == "CustomResourceDefinition" && it["spec"]["group"] == *group);
        if was_created && !may_be_gone && is_defined && !add_ons.found.contains_key(&path) {
            found.push(format!("{path} is lost"));
        }
    }
    found
}
