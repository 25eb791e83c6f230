//! Overrides with a reason and an end: objects that an administrator took out of management
//! (`spec.overrides`, CV-7), and on which terms.
//!
//! A payload may bring its own definition of ClusterVersion, which would drop fields of ours: so
//! the terms are in an annotation, a JSON list with an entry for each override that has any:
//!
//! ```json
//! [{"kind": "Deployment", "group": "apps", "namespace": "harbour", "name": "crane",
//!   "reason": "waits for a new gearbox", "expires": "2027-01-31T00:00:00Z"}]
//! ```
//!
//! An override that has expired takes nothing out of management any more, whether it is still in
//! the spec or not. Terms that cannot be read leave their override in force: the object was to be
//! left alone, and the end of that is not known.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::ComponentOverride;
use plimsoll_api::progress::{OverrideProgress, OverrideState};
use plimsoll_content::inclusion::UnmanagedObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The annotation of the ClusterVersion.
pub const OVERRIDE_TERMS: &str = "plimsoll.io/override-terms";

/// What to do about an annotation that cannot be read: no command changes it, so that no content
/// is lost.
pub const CORRECTION: &str = "correct it with `kubectl edit clusterversion version`, or remove it \
    with `kubectl annotate clusterversion version plimsoll.io/override-terms-`";

/// An entry of the annotation: an override, why it is there, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Kind of the object.
    pub kind: String,
    /// API group of the object; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Namespace as the override has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Why the object is unmanaged, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// From when on the override has no effect; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl Terms {
    /// The object that they are about.
    pub fn object(&self) -> ObjectKey {
        ObjectKey {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// The reason and the expiry, for people; empty if there is neither.
    fn reported(&self) -> String {
        let until = self.expires.map(|at| format!("until {at}"));
        let parts = [Some(self.reason.clone()).filter(|it| !it.is_empty()), until];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The overrides of a ClusterVersion with their terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    entries: Vec<Terms>,
    /// What is wrong with the annotation, each with where and what to do.
    pub problems: Vec<String>,
}

impl Overrides {
    /// Reads the overrides of a spec that leave something unmanaged, and the annotation.
    pub fn parse(spec: &[ComponentOverride], annotation: Option<&str>) -> Self {
        let (terms, mut problems) = read(annotation);
        let mut by_object: BTreeMap<ObjectKey, Terms> = BTreeMap::new();
        for (index, terms) in terms {
            let object = terms.object();
            if !spec.iter().any(|entry| key(entry) == object) {
                problems.push(format!(
                    "{}: spec.overrides has no override of {object}: add one that is the same in \
                     kind, group, namespace and name, or remove these terms",
                    at(index)
                ));
            } else if by_object.insert(object.clone(), terms).is_some() {
                problems.push(format!(
                    "{}: there are terms for {object} already: leave one of them",
                    at(index)
                ));
            }
        }
        let unmanaged = spec.iter().filter(|entry| entry.unmanaged);
        let entries = unmanaged.map(|entry| {
            by_object.remove(&key(entry)).unwrap_or_else(|| Terms {
                kind: entry.kind.clone(),
                group: entry.group.clone(),
                namespace: entry.namespace.clone(),
                name: entry.name.clone(),
                reason: String::new(),
                expires: None,
            })
        });
        Self { entries: entries.collect(), problems }
    }

    /// All of them, in the order of the spec.
    pub fn entries(&self) -> &[Terms] {
        &self.entries
    }

    /// Those that take objects out of management at a time.
    pub fn in_force(&self, now: Timestamp) -> impl Iterator<Item = &Terms> {
        self.entries.iter().filter(move |terms| is_in_force(terms, now))
    }

    /// The same, as they decide about inclusion.
    pub fn for_inclusion(&self, now: Timestamp) -> Vec<UnmanagedObject> {
        let overrides = self.in_force(now).map(|terms| UnmanagedObject {
            group: terms.group.clone(),
            kind: terms.kind.clone(),
            namespace: terms.namespace.clone(),
            name: terms.name.clone(),
        });
        overrides.collect()
    }

    /// When the next one expires.
    pub fn next_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        self.entries.iter().filter_map(|terms| terms.expires).filter(|at| *at > now).min()
    }

    /// The terms of those in force, as a sentence after another one; `None` if none is in force.
    pub fn reported(&self, now: Timestamp) -> Option<String> {
        let mut in_force = self.in_force(now).peekable();
        in_force.peek()?;
        let reported = in_force.map(|terms| (terms.object(), terms.reported()));
        let reported = reported.filter(|(_, text)| !text.is_empty());
        let reported: Vec<String> =
            reported.map(|(object, text)| format!("{object}: {text}")).collect();
        Some(if reported.is_empty() { String::new() } else { format!(" {}.", reported.join("; ")) })
    }

    /// How they stand, as ReleaseProgress tells it.
    pub fn progress(&self, now: Timestamp) -> Vec<OverrideProgress> {
        let progress = self.entries.iter().map(|terms| OverrideProgress {
            object: terms.object(),
            state: if is_in_force(terms, now) {
                OverrideState::InForce
            } else {
                OverrideState::Expired
            },
            reason: terms.reason.clone(),
            expires: terms.expires,
        });
        progress.collect()
    }
}

/// What became of an override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideChange {
    /// The object.
    pub object: ObjectKey,
    /// Its override now; `None` if it was removed.
    pub state: Option<OverrideState>,
    /// The same as a sentence.
    pub message: String,
}

/// What became of overrides since they were as recorded.
pub fn changes(before: &[OverrideProgress], after: &[OverrideProgress]) -> Vec<OverrideChange> {
    let mut changes = Vec::new();
    let state_in = |list: &[OverrideProgress], object: &ObjectKey| {
        list.iter().find(|it| it.object == *object).map(|it| it.state)
    };
    for entry in after {
        let OverrideProgress { object, state, reason, expires } = entry;
        if state_in(before, object) == Some(*state) {
            continue;
        }
        let when = |word| expires.map(|at| format!(" {word} {at}")).unwrap_or_default();
        let why = |link| if reason.is_empty() { String::new() } else { format!("{link}{reason}") };
        let message = match state {
            OverrideState::InForce => {
                format!("{object} is unmanaged{}{}", when("until"), why(": "))
            }
            OverrideState::Expired => {
                let (at, why) = (when("at"), why(", which was: "));
                format!("{object} is managed again: its override expired{at}{why}")
            }
        };
        changes.push(OverrideChange { object: object.clone(), state: Some(*state), message });
    }
    for entry in before.iter().filter(|it| it.state == OverrideState::InForce) {
        if state_in(after, &entry.object).is_none() {
            let message = format!("{} is managed again: its override was removed", entry.object);
            changes.push(OverrideChange { object: entry.object.clone(), state: None, message });
        }
    }
    changes
}

fn is_in_force(terms: &Terms, now: Timestamp) -> bool {
    terms.expires.is_none_or(|at| now < at)
}

fn key(entry: &ComponentOverride) -> ObjectKey {
    ObjectKey {
        group: entry.group.clone(),
        kind: entry.kind.clone(),
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
    }
}

fn at(index: usize) -> String {
    format!("metadata.annotations[{OVERRIDE_TERMS}][{index}]")
}

/// The entries of the annotation that can be read, with their numbers, and what is wrong with the
/// others.
fn read(annotation: Option<&str>) -> (Vec<(usize, Terms)>, Vec<String>) {
    let Some(text) = annotation.filter(|text| !text.trim().is_empty()) else {
        return (Vec::new(), Vec::new());
    };
    let list: Vec<Value> = match serde_json::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            let problem = format!(
                "metadata.annotations[{OVERRIDE_TERMS}]: not a JSON list: {error}: {CORRECTION}; \
                 until then overrides do not expire"
            );
            return (Vec::new(), vec![problem]);
        }
    };
    let mut problems = Vec::new();
    let mut read = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        match Deserialize::deserialize(&value) {
            Ok(terms) => read.push((index, terms)),
            Err(error) => problems.push(format!(
                "{}: {error}: correct it; until then this override does not expire",
                at(index)
            )),
        }
    }
    (read, problems)
}

#[cfg(test)]
mod tests;
