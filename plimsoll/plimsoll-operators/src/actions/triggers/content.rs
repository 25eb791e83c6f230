//! The contents of objects: what tells one change of an object from another, for each event.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::ConditionStatus;
use plimsoll_api::config::{ClusterVersionStatus, UpdateState};
use plimsoll_api::olm::action::{EventType, TRIGGERED_BY_ANNOTATION};
use semver::Version;
use serde::Deserialize as _;
use serde_json::Value;

use super::chain::{chain, listed};
use crate::conditions::CONSTRAINTS_SATISFIED;
use crate::observed::ObservedOperator;

/// The type of the condition of a ClusterVersion that fails.
const FAILING: &str = "Failing";
/// The maximum number of available updates that are observed. Graphs have fewer.
const UPDATES_MAX: usize = 100;

/// What tells the changes of an object from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectContent {
    /// The content by event: empty if the object has nothing of the kind, such as an installed version; absent if it
    /// is not known, so that it counts as unchanged.
    pub events: BTreeMap<EventType, String>,
    /// The EventActions whose Actions led to the object as it is, in order; none if it was written by others.
    pub chain: Vec<String>,
}

/// A change of an object.
#[derive(Debug, Clone)]
pub(super) struct Change<'a> {
    pub(super) name: &'a str,
    pub(super) event: EventType,
    /// The content before; empty if there was none.
    pub(super) old: &'a str,
    pub(super) new: Cow<'a, str>,
    /// The EventActions that led to it.
    pub(super) chain: &'a [String],
}

impl ObjectContent {
    /// Returns the content of a Catalog: its digest.
    pub fn of_catalog(digest: &str) -> Self {
        Self::of(BTreeMap::from([(EventType::ContentChanged, digest.to_owned())]))
    }

    /// Returns the content of an Operator: the installed version, and since when it is unsatisfied.
    pub fn of_operator(operator: &ObservedOperator) -> Self {
        let mut events = BTreeMap::from([(EventType::Installed, operator.version().to_owned())]);
        let condition =
            operator.status.conditions.iter().find(|it| it.type_ == CONSTRAINTS_SATISFIED);
        let since = condition
            .and_then(|it| since(it.status, ConditionStatus::False, it.last_transition_time));
        if let Some(since) = since {
            let content =
                if since.is_empty() { since } else { format!("{} {since}", operator.uid) };
            events.insert(EventType::Unsatisfied, content);
        }
        let annotation = |name: &str| match name {
            TRIGGERED_BY_ANNOTATION => operator.triggered_by.as_deref(),
            _ => operator.triggered_generation.as_deref(),
        };
        Self::of(events).after(annotation, Some(operator.generation))
    }

    /// Returns it with the installed version and the versions of the available updates, in ascending order: the last ones
    /// of many. `installed` is empty if none is.
    pub fn with_updates(mut self, installed: &str, versions: &BTreeSet<Version>) -> Self {
        let last = versions.iter().skip(versions.len().saturating_sub(UPDATES_MAX));
        let versions: Vec<String> = last.map(Version::to_string).collect();
        let versions = versions.iter().map(String::as_str).collect();
        self.events.insert(EventType::UpdateAvailable, Updates { installed, versions }.content());
        self
    }

    /// Returns the content of a ClusterVersion: the release that was completed, since when it fails, and the versions
    /// of the available updates.
    pub fn of_cluster_version(object: &Value) -> Self {
        let status = ClusterVersionStatus::deserialize(&object["status"]).unwrap_or_default();
        let mut completed = status.history.iter().filter(|it| it.state == UpdateState::Completed);
        let release = completed.next().map(|it| it.version.clone()).unwrap_or_default();
        let mut events = BTreeMap::from([(EventType::Updated, release)]);
        let condition = status.conditions.iter().find(|it| it.type_ == FAILING);
        let since = condition
            .and_then(|it| since(it.status, ConditionStatus::True, it.last_transition_time));
        events.extend(since.map(|it| (EventType::Failing, it)));
        // None are known while they cannot be retrieved either.
        let updates = status.available_updates.filter(|it| !it.is_empty());
        if let Some(updates) = updates {
            let versions = updates.iter().map(|it| it.version.as_str());
            let versions = versions.take(UPDATES_MAX).collect();
            let updates = Updates { installed: "", versions };
            events.insert(EventType::UpdateAvailable, updates.content());
        }
        let metadata = &object["metadata"];
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        Self::of(events).after(annotation, metadata["generation"].as_i64())
    }

    /// Returns the content of another object: its generation, which a change of the status does not affect, or its
    /// resourceVersion if its kind has no generation. It includes the uid, since another object may have the same name
    /// later.
    pub fn of_object(uid: &str, generation: Option<i64>, revision: &str) -> Self {
        let content = match generation {
            Some(generation) => format!("{uid} generation {generation}"),
            None => format!("{uid} revision {revision}"),
        };
        Self::of(BTreeMap::from([(EventType::Changed, content)]))
    }

    /// Returns it with the chain that led to an Action, from its annotation.
    pub fn after_chain(self, triggered_by: &str) -> Self {
        Self { chain: listed(triggered_by), ..self }
    }

    /// Returns it with the chain that led to the object, from its annotations and its generation.
    pub fn after<'a>(
        self,
        annotation: impl Fn(&str) -> Option<&'a str>,
        generation: Option<i64>,
    ) -> Self {
        Self { chain: chain(annotation, generation), ..self }
    }

    fn of(events: BTreeMap<EventType, String>) -> Self {
        Self { events, chain: Vec::new() }
    }
}

impl Change<'_> {
    /// Returns a text about it with what prevents its Action.
    pub(super) fn note(&self, why: &str) -> String {
        format!("{} of {}: {why}", self.event.as_str(), self.name)
    }
}

/// Returns whether a content is that of a change after another one.
pub(super) fn is_change(event: EventType, old: &str, new: &str) -> bool {
    match event {
        EventType::UpdateAvailable => {
            let known = Updates::read(old);
            Updates::read(new).versions.into_iter().any(|it| known.lacks(it))
        }
        _ => !new.is_empty() && new != old,
    }
}

/// Returns the content to remember: the updates that were available before are known if they become available again,
/// as after a time in which a catalog cannot be read. Those that are available are always among them.
pub(super) fn remembered<'a>(event: EventType, old: &'a str, new: &'a str) -> Cow<'a, str> {
    if event != EventType::UpdateAvailable || old.is_empty() {
        return Cow::Borrowed(new);
    }
    let (known, mut updates) = (Updates::read(old), Updates::read(new));
    let is_past = |it: &&str| updates.lacks(it);
    let mut past: Vec<&str> = known.versions.into_iter().filter(is_past).collect();
    let room = UPDATES_MAX.saturating_sub(updates.versions.len());
    past.drain(..past.len().saturating_sub(room));
    updates.versions.extend(past);
    Cow::Owned(updates.content())
}

/// Available updates as a content: `INSTALLED: VERSIONS`, or the versions alone.
#[derive(Debug)]
struct Updates<'a> {
    /// The installed version; empty if none is, or it is not looked at.
    installed: &'a str,
    versions: Vec<&'a str>,
}

impl<'a> Updates<'a> {
    fn read(content: &'a str) -> Self {
        let (installed, versions) = content.split_once(':').unwrap_or(("", content));
        Self { installed, versions: versions.split_whitespace().collect() }
    }

    fn content(mut self) -> String {
        self.versions.sort_by_cached_key(|it| (Version::parse(it).ok(), *it));
        self.versions.dedup();
        let versions = self.versions.join(" ");
        match (self.installed, versions.as_str()) {
            ("", _) => versions,
            (installed, "") => format!("{installed}:"),
            (installed, versions) => format!("{installed}: {versions}"),
        }
    }

    /// Returns whether a version is later than the installed one, as far as both are known.
    fn is_later(&self, version: &str) -> bool {
        let installed = Version::parse(self.installed).ok().zip(Version::parse(version).ok());
        installed.is_none_or(|(installed, version)| version.cmp_precedence(&installed).is_gt())
    }

    /// Returns whether a version was not available, nor installed or older.
    fn lacks(&self, version: &str) -> bool {
        !self.versions.contains(&version) && self.is_later(version)
    }
}

/// Returns since when a condition has a status; empty if it has another one, `None` if that is not known.
fn since(status: ConditionStatus, expected: ConditionStatus, time: Timestamp) -> Option<String> {
    match status {
        ConditionStatus::Unknown => None,
        status if status == expected => Some(format!("since {time}")),
        _ => Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    //! Objects, and which of their states are changes.

    use std::ops::Range;

    use serde_json::json;

    use super::*;

    /// Checks what a change from one status to another is: the event, or none.
    #[track_caller]
    fn check(
        read: fn(&Value) -> ObjectContent,
        before: Value,
        after: Value,
        expected: &[EventType],
    ) {
        let read = |status: Value| read(&json!({ "metadata": { "uid": "u" }, "status": status }));
        let (before, after) = (read(before).events, read(after).events);
        let old = |event: &EventType| before.get(event).map_or("", String::as_str);
        let changed = after.iter().filter(|(event, new)| is_change(**event, old(event), new));
        let changed: Vec<EventType> = changed.map(|(event, _)| *event).collect();
        assert_eq!(changed, expected, "{before:?} {after:?}");
    }

    #[test]
    fn an_update_of_an_operator_becomes_available_once() {
        let of = |installed: &str, versions: &[&str]| {
            let versions = versions.iter().map(|it| Version::parse(it).unwrap()).collect();
            let content = ObjectContent::default().with_updates(installed, &versions);
            content.events[&EventType::UpdateAvailable].clone()
        };
        assert_eq!(of("1.0.0", &["1.10.0", "1.9.0"]), "1.0.0: 1.9.0 1.10.0");
        // Each is a time with the installed version, the available updates, and whether one has become available.
        let check = |course: &[(&str, &[&str], bool)]| {
            let event = EventType::UpdateAvailable;
            let mut known = String::new();
            for (installed, versions, expected) in course {
                let new = of(installed, versions);
                assert_eq!(is_change(event, &known, &new), *expected, "{known} -> {new}");
                known = remembered(event, &known, &new).into_owned();
                let later = remembered(event, &known, &new);
                assert_eq!(known, later, "what is remembered does not change by itself");
            }
        };
        check(&[
            ("1.0.0", &[], false),
            ("1.0.0", &["1.9.0"], true),
            ("1.0.0", &["1.9.0", "1.10.0"], true),
            ("1.0.0", &["1.10.0"], false),
            // The catalog cannot be read for a while.
            ("1.0.0", &[], false),
            ("1.0.0", &["1.9.0", "1.10.0"], false),
            ("1.9.0", &["1.10.0"], false),
            ("1.10.0", &[], false),
            // It is downgraded to a version that it had.
            ("1.0.0", &["1.9.0", "1.10.0"], false),
            ("1.0.0", &["1.9.0", "1.10.0", "1.11.0"], true),
        ]);
        check(&[("", &[], false), ("1.0.0", &["1.1.0"], true), ("1.0.0", &["1.1.0"], false)]);
        // More than are remembered: what is available is remembered first.
        let versions = |of: Range<u64>| of.map(|it| Version::new(2, it, 0)).collect();
        let many = ObjectContent::default().with_updates("1.0.0", &versions(0..UPDATES_MAX as u64));
        let (many, few) =
            (&many.events[&EventType::UpdateAvailable], of("1.0.0", &["1.1.0", "1.2.0"]));
        let known = remembered(EventType::UpdateAvailable, many, &few);
        assert!(is_change(EventType::UpdateAvailable, many, &few));
        assert!(!is_change(EventType::UpdateAvailable, &known, &few), "{known}");
        assert_eq!(remembered(EventType::UpdateAvailable, &known, &few), known);
        assert_eq!(known.split(' ').count(), UPDATES_MAX + 1);
        let many: Vec<String> = (0..200).map(|it| format!("1.{it}.0")).collect();
        let listed = of("1.0.0", &many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(listed.split(' ').count(), UPDATES_MAX + 1);
        assert!(listed.ends_with(" 1.199.0"), "the newest are the ones that are new");
    }

    #[test]
    fn an_operator_is_installed_or_becomes_unsatisfied() {
        let of = |object: &Value| ObjectContent::of_operator(&ObservedOperator::read(object));
        let version = |version: &str| json!({ "bundle": { "name": "b", "version": version } });
        check(of, json!({}), version("1.0.0"), &[EventType::Installed]);
        check(of, version("1.0.0"), version("1.0.0"), &[]);
        check(of, version("1.0.0"), version("1.1.0"), &[EventType::Installed]);
        check(of, version("1.0.0"), json!({}), &[]);
        let satisfied = |status: &str, second: u32| {
            json!({ "conditions": [{
                "type": "ConstraintsSatisfied", "status": status, "reason": "R", "message": "m",
                "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
            }] })
        };
        check(of, json!({}), satisfied("False", 1), &[EventType::Unsatisfied]);
        check(of, satisfied("True", 1), satisfied("False", 2), &[EventType::Unsatisfied]);
        check(of, satisfied("False", 2), satisfied("False", 2), &[]);
        check(of, satisfied("False", 2), satisfied("True", 3), &[]);
        check(of, satisfied("False", 2), satisfied("False", 4), &[EventType::Unsatisfied]);
        check(of, satisfied("False", 2), satisfied("Unknown", 3), &[]);
    }

    #[test]
    fn a_cluster_version_is_updated_fails_or_has_another_update() {
        let of = ObjectContent::of_cluster_version;
        let history = |states: &[(&str, &str)]| {
            let entry = |(state, version): &(&str, &str)| {
                json!({
                    "state": state, "version": version, "image": "i", "verified": false,
                    "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
                })
            };
            let history: Vec<Value> = states.iter().map(entry).collect();
            json!({ "history": history })
        };
        let (old, new) = (("Completed", "1.0.0"), ("Completed", "1.1.0"));
        check(of, history(&[old]), history(&[("Partial", "1.1.0"), old]), &[]);
        check(of, history(&[old]), history(&[new, old]), &[EventType::Updated]);
        let failing = |status: &str, second: u32| {
            json!({ "conditions": [{
                "type": "Failing", "status": status,
                "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
            }] })
        };
        check(of, failing("False", 1), failing("True", 2), &[EventType::Failing]);
        check(of, failing("True", 2), failing("True", 2), &[]);
        check(of, failing("True", 2), failing("True", 4), &[EventType::Failing]);
        check(of, failing("True", 2), failing("False", 3), &[]);
        let updates = |versions: &[&str]| {
            let update = |it: &&str| json!({ "version": it, "image": "i" });
            let updates: Vec<Value> = versions.iter().map(update).collect();
            json!({ "availableUpdates": updates })
        };
        check(of, json!({}), updates(&["1.1.0"]), &[EventType::UpdateAvailable]);
        check(of, updates(&["1.1.0"]), updates(&["1.2.0", "1.1.0"]), &[EventType::UpdateAvailable]);
        check(of, updates(&["1.1.0", "1.2.0"]), updates(&["1.2.0"]), &[]);
        check(of, updates(&["1.1.0", "1.2.0"]), updates(&["1.2.0", "1.1.0"]), &[]);
    }

    #[test]
    fn operators_and_the_cluster_version_have_the_chain_of_the_action_that_wrote_them_last() {
        let of_operator =
            |object: &Value| ObjectContent::of_operator(&ObservedOperator::read(object));
        for (generation, expected) in [("2", &["a/x", "b/y"][..]), ("1", &[])] {
            let annotations = json!({
                "olm.io/triggered-by": "a/x,b/y", "olm.io/triggered-generation": generation,
            });
            let object = json!({ "metadata": { "generation": 2, "annotations": annotations } });
            assert_eq!(of_operator(&object).chain, expected);
            assert_eq!(ObjectContent::of_cluster_version(&object).chain, expected);
        }
    }

    #[test]
    fn another_object_is_changed_with_its_generation_or_revision() {
        let of = |uid: &str, generation: Option<i64>, revision: &str| {
            ObjectContent::of_object(uid, generation, revision).events[&EventType::Changed].clone()
        };
        assert_eq!(of("u", Some(3), "7"), "u generation 3");
        assert_eq!(of("u", None, "7"), "u revision 7");
    }
}
