//! What becomes of the changes that EventActions follow: an Action, or a word about it in the status. One of them has a
//! rate limit. Two follow the Actions of each other, which goes round once.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::olm::action::{OWNER_LABEL, TRIGGERED_BY_ANNOTATION};
use serde_json::{Value, json};

use super::ACTIONS;
use super::history::made as change_made;
use crate::record::Write;

/// The path of the EventActions.
pub(super) const EVENT_ACTIONS: &str = "/apis/olm.io/v1/namespaces/default/eventactions";
/// The EventAction that follows an object, with a limit.
pub(super) const FOLLOW: &str = "follow";
/// The EventActions of the circle, each with the one whose Actions it follows.
pub(super) const CIRCLE: [(&str, &str); 2] = [("forth", "back"), ("back", "forth")];

/// How many Actions the limit allows.
const LIMIT: usize = 2;
/// The period of the limit, in seconds.
const PERIOD: i64 = 60;
/// The least time between two changes that an EventAction acts on, in seconds.
const INTERVAL: i64 = 5;
/// The path of the annotation of a chain, in a patch.
const TRIGGERED_BY: &str = "/metadata/annotations/olm.io~1triggered-by";

/// Returns the EventActions: each with its name, what its spec has besides the template, and the template.
pub(super) fn event_actions() -> Vec<(&'static str, Value, Value)> {
    let of_objects = |object: Value| json!({ "trigger": { "kind": "Object", "object": object } });
    let config_map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "selector": { "follow": "me" } });
    let answer = || json!({ "actionClass": "resolution", "package": "ledger" });
    let mut follow = of_objects(config_map);
    follow["rateLimit"] = json!({ "count": LIMIT, "period": format!("{PERIOD}s") });
    let mut all = vec![(FOLLOW, follow, answer())];
    for (name, followed) in CIRCLE {
        let template = match name {
            "back" => json!({
                "actionClass": "operator-install", "package": "lantern", "installDependencies": true,
            }),
            _ => answer(),
        };
        all.push((
            name,
            of_objects(json!({
                "apiVersion": "olm.io/v1", "kind": "Action", "selector": { OWNER_LABEL: followed },
            })),
            template,
        ));
    }
    all
}

/// Returns whether an EventAction of the circle has seen the Actions of the other one.
pub(super) fn are_seen(actions: &BTreeMap<String, Value>, name: &str, status: &Value) -> bool {
    let followed = CIRCLE.iter().find(|(it, _)| *it == name).map(|(_, followed)| *followed);
    let seen: BTreeSet<&str> = observed(status).into_iter().map(|(name, _)| name).collect();
    let mut to_see =
        actions.iter().filter(|(_, it)| it["metadata"]["labels"][OWNER_LABEL].as_str() == followed);
    to_see.all(|(action, _)| seen.contains(action.as_str()))
}

/// Returns the changes for which an EventAction made no Action without a word, or one although it must not.
pub(super) fn unexplained(done: &[&Write], is_clock_set: bool) -> Vec<String> {
    let is_made = |it: &&&Write| it.path == ACTIONS && it.method == "POST";
    let made: Vec<&Write> = done.iter().filter(is_made).copied().collect();
    let mut found: Vec<String> = made.iter().filter_map(|it| ill_chained(it)).collect();
    found.extend(twice(&made));
    for name in [FOLLOW].into_iter().chain(CIRCLE.map(|(name, _)| name)) {
        let path = format!("{EVENT_ACTIONS}/{name}/status");
        let statuses = done.iter().filter(|it| it.path == path).copied();
        found.extend(of_statuses(name, statuses, &made, is_clock_set));
    }
    found
}

/// Returns what the statuses of an EventAction, in order, do not say of changes, and the Actions beyond its limit.
fn of_statuses<'a>(
    name: &str,
    statuses: impl Iterator<Item = &'a Write>,
    made: &[&Write],
    is_clock_set: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<&Write> = None;
    // When it made Actions, as its clock has it.
    let mut times = Vec::new();
    for write in statuses {
        let is = &write.reported["status"];
        // A status that could not be read has no uid.
        let is_read = |it: &&Write| it.reported["metadata"]["uid"].is_string();
        let earlier = before.filter(|it| it.rollbacks == write.rollbacks && is_read(it));
        before = Some(write);
        let Some(earlier) = earlier.filter(|_| is_read(&write)) else {
            times = recent_times(is);
            continue;
        };
        let step = Step { name, was: &earlier.reported["status"], is };
        found.extend(step.unexplained(made));
        found.extend(step.unmade(made, write.rollbacks));
        if name == FOLLOW {
            // What a clock that was set has made counts as far as the status says so.
            times = if is_clock_set { recent_times(step.was) } else { times };
            found.extend(step.beyond_limit(&mut times));
        }
    }
    found
}

/// Returns the Actions of EventActions that are made twice. A server that goes back forgets what was made.
fn twice(made: &[&Write]) -> Vec<String> {
    if made.last().is_some_and(|it| it.rollbacks > 0) {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let is_event =
        |it: &&&Write| it.sent["metadata"]["ownerReferences"][0]["kind"] == "EventAction";
    let made = made.iter().filter(is_event).filter(|it| !it.is_late);
    let again = made.filter(|it| !names.insert(it.sent["metadata"]["name"].as_str()));
    again.map(|it| format!("{} is made twice for a change", it.sent["metadata"]["name"])).collect()
}

/// Returns an Action whose chain has an EventAction twice or ends in another one than its own; `None` if it has not.
fn ill_chained(made: &Write) -> Option<String> {
    let metadata = &made.sent["metadata"];
    let chain = chain(made);
    let own = format!("default/{}", metadata["labels"][OWNER_LABEL].as_str()?);
    let is_once = chain.iter().collect::<BTreeSet<_>>().len() == chain.len();
    let is_well = is_once && chain.last().is_none_or(|it| *it == own);
    (!is_well).then(|| format!("{} closes a circle: {chain:?}", metadata["name"]))
}

/// Returns the EventActions that led to an Action that is made.
fn chain(made: &Write) -> Vec<&str> {
    let text = made.sent["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION].as_str();
    text.into_iter().flat_map(|it| it.split(',')).collect()
}

/// Returns a write of an Operator that does not bear the chain of its Action; `None` if it does.
pub(super) fn unmarked(write: &Write, known: &[&Value]) -> Option<String> {
    let (uid, change) = change_made(write)?;
    let action = known.iter().find(|it| it["metadata"]["uid"] == uid)?;
    let expected = &action["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION];
    let mut operations = write.sent.as_array().into_iter().flatten();
    let found = match operations.find(|it| it["path"] == TRIGGERED_BY && it["op"] == "add") {
        Some(operation) => &operation["value"],
        None => &write.sent["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION],
    };
    (found != expected).then(|| format!("{change:?} bears the chain {found}, not {expected}"))
}

/// A status of an EventAction, and the one before.
struct Step<'a> {
    name: &'a str,
    was: &'a Value,
    is: &'a Value,
}

impl Step<'_> {
    /// Returns the names of the objects that are observed as they were not before; none at the first look.
    fn changed(&self) -> Vec<&str> {
        let is_first = self.was["trigger"] != self.is["trigger"];
        let before = observed(if is_first { self.is } else { self.was });
        observed(self.is).difference(&before).map(|(name, _)| *name).collect()
    }

    /// Returns whether there is an Action to make that there was not before.
    fn makes(&self) -> bool {
        self.is["pending"].is_string() && self.is["pending"] != self.was["pending"]
    }

    /// Returns how many changes were counted as skipped for a reason since.
    fn skipped(&self, reason: &str) -> i64 {
        count(self.is, reason) - count(self.was, reason)
    }

    /// Returns what the status does not say of changes.
    fn unexplained(&self, made: &[&Write]) -> Vec<String> {
        let Self { name, was, is } = self;
        let (changed, mut found) = (self.changed(), Vec::new());
        let changes = i64::try_from(changed.len()).unwrap_or_default();
        let reasons = ["FilterFailed", "RateLimited", "EventActionCircle"];
        let skipped: i64 = reasons.iter().map(|it| self.skipped(it)).sum();
        if !(if self.makes() { (0..changes).contains(&skipped) } else { skipped == changes }) {
            found.push(format!("{name}: {skipped} of {changes} changes are skipped: {was} {is}"));
        }
        let own = format!("default/{name}");
        let is_own = |object: &&&str| {
            let is_made = |it: &&&Write| it.sent["metadata"]["name"] == ***object;
            made.iter().find(is_made).is_some_and(|it| chain(it).contains(&own.as_str()))
        };
        let circles = self.skipped("EventActionCircle");
        let own = i64::try_from(changed.iter().filter(is_own).count()).unwrap_or_default();
        if circles != own {
            found.push(format!("{name}: {own} changes close a circle, not {circles}: {is}"));
        }
        let passed = || seconds(time(&was["lastChangeTime"])?, time(&is["lastChangeTime"])?);
        if changes > 0 && passed().is_some_and(|it| (0..INTERVAL).contains(&it)) {
            found.push(format!("{name} acts twice within {INTERVAL} seconds: {was} {is}"));
        }
        found
    }

    /// Returns an Action that is not pending any more although it was not made; `None` if there is none.
    fn unmade(&self, made: &[&Write], rollbacks: usize) -> Option<String> {
        let pending = self.was["pending"].as_str().filter(|_| self.is["pending"].is_null())?;
        let is_it =
            |it: &Write| it.sent["metadata"]["name"] == pending && it.rollbacks <= rollbacks;
        let is_made = made.iter().copied().any(is_it);
        (!is_made).then(|| format!("{pending} was pending, and is not made: {}", self.is))
    }

    /// Returns the Action that is one too many after those of some times, or the change that is left out although
    /// none is, and adds the time of the Action; `None` if the limit is kept.
    fn beyond_limit(&self, times: &mut Vec<Timestamp>) -> Option<String> {
        let (is, is_limited) = (self.is, self.skipped("RateLimited") > 0);
        let now = match self.makes() {
            true => time(&is["lastEventTime"])?,
            false => time(&is["lastChangeTime"])?,
        };
        let counts = |it: &Timestamp| seconds(*it, now).is_some_and(|it| (0..PERIOD).contains(&it));
        let made = times.iter().filter(|it| counts(it)).count();
        if self.makes() {
            times.push(now);
        }
        match (self.makes(), is_limited) {
            (true, _) if made >= LIMIT => Some(format!("one too many at {now} after {made}: {is}")),
            (_, true) if made < LIMIT => {
                Some(format!("{made} are no reason to leave it out: {is}"))
            }
            _ => None,
        }
    }
}

/// Returns the objects that a status has as observed, with their contents.
fn observed(status: &Value) -> BTreeSet<(&str, &str)> {
    let all = status["observed"].as_array().into_iter().flatten();
    all.filter_map(|it| Some((it["name"].as_str()?, it["content"].as_str()?))).collect()
}

/// Returns how many changes a status counts as skipped for a reason.
fn count(status: &Value, reason: &str) -> i64 {
    let mut skipped = status["skipped"].as_array().into_iter().flatten();
    let found = skipped.find(|it| it["reason"] == reason);
    found.and_then(|it| it["count"].as_i64()).unwrap_or_default()
}

/// Returns the times of the Actions that count for the limit according to a status.
fn recent_times(status: &Value) -> Vec<Timestamp> {
    status["recentTimes"].as_array().into_iter().flatten().filter_map(time).collect()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Returns the seconds from a time to another one; `None` if that is earlier.
fn seconds(from: Timestamp, to: Timestamp) -> Option<i64> {
    (from <= to).then(|| to.duration_since(from).as_secs())
}
