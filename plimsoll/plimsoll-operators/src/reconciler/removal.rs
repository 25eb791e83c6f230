//! State of a deletion of objects of an Operator.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::DeletionProgress;
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::reconciler::Uptime;

use super::events::ContainedObject;
use crate::deletion::LiveObject;

/// The delay before a refused deletion is requested again, and remaining objects are read again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How long what was read of the release counts: it may go to another one meanwhile.
const RELEASE_FRESH: Duration = Duration::from_secs(1);

/// The content of a namespace, as far as it was read. It counts as occupied once an object was found
/// twice: the first time, it may have been about to be deleted. Objects that are being deleted are waited
/// for.
#[derive(Debug, Clone, Default)]
pub(super) struct NamespaceContent {
    /// The objects that were found last, without those that are being deleted.
    found: BTreeSet<ObjectKey>,
    /// The objects that were being deleted last.
    terminating: BTreeSet<ObjectKey>,
    /// The reason that the last attempt failed, and what resolves it; `None` if it did not.
    failure: Option<String>,
    state: ContentState,
}

/// The state of the content of a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ContentState {
    /// It is being read.
    #[default]
    Reading,
    /// It is read again at a time.
    Again(Uptime),
    /// It has no objects; that is known until a time.
    Empty(Uptime),
    /// It has objects of other owners.
    Occupied,
}

impl NamespaceContent {
    /// Handles the objects that were read, or the reason that they could not be.
    pub(super) fn read(&mut self, objects: Result<Vec<ContainedObject>, String>, now: Uptime) {
        let again = ContentState::Again(now + RETRY_INTERVAL);
        match objects {
            Ok(objects) => {
                let (terminating, lasting): (Vec<_>, Vec<_>) =
                    objects.into_iter().partition(|it| it.is_terminating);
                let keys = |objects: Vec<ContainedObject>| -> BTreeSet<ObjectKey> {
                    objects.into_iter().map(|it| it.key).collect()
                };
                let (terminating, found) = (keys(terminating), keys(lasting));
                self.state = match found.is_disjoint(&self.found) {
                    false => ContentState::Occupied,
                    true if found.is_empty() && terminating.is_empty() => {
                        ContentState::Empty(now + RETRY_INTERVAL)
                    }
                    true => again,
                };
                (self.found, self.terminating, self.failure) = (found, terminating, None);
            }
            Err(message) => (self.failure, self.state) = (Some(message), again),
        }
    }
}

/// A search of the cluster that a deletion waits for.
#[derive(Debug, Clone, Default)]
pub(super) enum Search<T> {
    /// It is due.
    #[default]
    Due,
    /// The cluster is being searched.
    Running,
    /// It failed.
    Failed {
        /// The reason.
        message: String,
        /// The time of the next attempt.
        retry_at: Uptime,
    },
    /// It ended with a result.
    Found(T),
}

/// The search for the kinds of the objects of an Operator some of whose revisions are gone.
pub(super) type KindSearch = Search<BTreeSet<GroupVersionKind>>;

impl<T> Search<T> {
    /// Returns whether to begin it now. It counts as running then.
    pub(super) fn begins(&mut self, now: Uptime) -> bool {
        match self {
            Self::Running | Self::Found(_) => return false,
            Self::Failed { retry_at, .. } if *retry_at > now => return false,
            Self::Failed { .. } | Self::Due => {}
        }
        *self = Self::Running;
        true
    }

    /// Returns the state of a search that ended.
    pub(super) fn ended(result: Result<T, String>, now: Uptime) -> Self {
        match result {
            Ok(found) => Self::Found(found),
            Err(message) => Self::Failed { message, retry_at: now + RETRY_INTERVAL },
        }
    }
}

/// The objects that the release contains which the cluster is at or goes to.
#[derive(Debug, Clone, Default)]
pub(super) enum ReleaseObjects {
    /// They are to be read.
    #[default]
    Due,
    /// They are being read.
    Reading,
    /// They could not be read.
    Failed {
        /// The reason.
        message: String,
        /// The time of the next attempt.
        retry_at: Uptime,
    },
    /// They are known.
    Read {
        /// The objects, as ReleaseProgress names them.
        objects: BTreeSet<String>,
        /// The time at which they were read.
        at: Uptime,
    },
}

impl ReleaseObjects {
    /// Returns whether they were read too long ago to delete anything: a release may have been accepted
    /// since.
    pub(super) fn is_outdated(&self, now: Uptime) -> bool {
        matches!(self, Self::Read { at, .. } if *at + RELEASE_FRESH <= now)
    }
}

/// The verification that all objects of an Operator are deleted: the watches may lag behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Verification {
    /// It is due.
    #[default]
    Due,
    /// The objects are being inspected.
    Inspecting {
        /// The ticket of the request.
        ticket: u64,
    },
    /// No object exists.
    Passed,
}

/// The removal of the conversion webhook of a definition that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversionRemoval {
    /// It is requested.
    Requested,
    /// It failed.
    Failed {
        /// The reason.
        message: String,
        /// The time of the next attempt.
        retry_at: Uptime,
    },
    /// The definition has no such webhook any more.
    Done,
}

/// The reason that the deletion of an Operator is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeletionRefusal {
    pub(super) reason: Reason,
    /// What is in the way, and what to do, as a sentence.
    pub(super) message: String,
}

/// A deletion of objects in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Removal {
    /// The objects whose deletion was requested, by uid, each with the time to request it again.
    pub(super) asked: BTreeMap<String, Uptime>,
    /// The reasons that the last requests were refused, by uid.
    pub(super) refused: BTreeMap<String, String>,
    /// The content of namespaces, by name.
    pub(super) namespaces: BTreeMap<String, NamespaceContent>,
    /// The removals of conversion webhooks, by the uid of their definition.
    pub(super) conversions: BTreeMap<String, ConversionRemoval>,
    /// The definitions whose operands are watched.
    pub(super) watched: BTreeSet<String>,
    /// The time at which the deletion of the Operator was requested; `None` if only objects of earlier
    /// revisions are deleted.
    pub(super) started: Option<Timestamp>,
    pub(super) progress: Option<DeletionProgress>,
    /// The reason that the deletion is refused; `None` if it is not.
    pub(super) refusal: Option<DeletionRefusal>,
    /// The search for whether the Operator goes because its definition was deleted.
    pub(super) loses_definition: Search<bool>,
    pub(super) kinds: KindSearch,
    pub(super) release: ReleaseObjects,
    pub(super) verification: Verification,
    /// Whether everything is deleted that is to be, or nothing is to be deleted: only finalizers are left.
    pub(super) is_ending: bool,
    /// Whether the finalizer is being removed.
    pub(super) is_finished: bool,
    pub(super) next: Option<Uptime>,
}

impl Removal {
    pub(super) fn wake_at(&self) -> Option<Uptime> {
        self.next
    }

    /// Waits, and forgets what was found meanwhile: it may be different when the deletion goes on.
    pub(super) fn hold(&mut self) {
        self.next = None;
        self.namespaces.clear();
        self.conversions.clear();
        self.verification = Verification::Due;
    }

    /// Clears the time of the next step if it has come.
    pub(super) fn clear_due_time(&mut self, now: Uptime) {
        self.next = self.next.filter(|at| *at > now);
    }

    /// Returns the progress of the deletion of the Operator; `None` if only objects of earlier revisions are
    /// deleted.
    pub(super) fn progress(&self) -> Option<&DeletionProgress> {
        self.progress.as_ref().filter(|_| self.is_of_operator())
    }

    /// Returns whether the Operator itself is being deleted.
    pub(super) fn is_of_operator(&self) -> bool {
        self.started.is_some()
    }

    /// Returns the reason that a conversion webhook cannot be removed; `None` if there is none.
    pub(super) fn conversion_failure(&self) -> Option<&str> {
        self.conversions.values().find_map(|it| match it {
            ConversionRemoval::Failed { message, .. } => Some(message.as_str()),
            ConversionRemoval::Requested | ConversionRemoval::Done => None,
        })
    }

    /// Returns the reasons that objects cannot be deleted, as the API server reports them.
    pub(super) fn refusals(&self) -> impl Iterator<Item = &String> {
        self.refused.values()
    }

    /// Returns whether the operands of a definition are watched for it.
    pub(super) fn watches(&self, definition: &str) -> bool {
        self.watched.contains(definition)
    }

    /// Returns those of the objects whose deletion is due to be requested: of each at most once per
    /// [`RETRY_INTERVAL`].
    pub(super) fn due(&mut self, objects: Vec<LiveObject>, now: Uptime) -> Vec<LiveObject> {
        let is_due = |it: &LiveObject| self.asked.get(&it.uid).is_none_or(|again| *again <= now);
        let due: Vec<LiveObject> = objects.into_iter().filter(is_due).collect();
        self.asked.extend(due.iter().map(|it| (it.uid.clone(), now + RETRY_INTERVAL)));
        due
    }

    /// Returns a sentence about objects of earlier revisions that cannot be deleted; `None` if there are
    /// none.
    pub(super) fn leftovers(&self) -> Option<String> {
        if self.is_of_operator() {
            return None;
        }
        let stuck = self.progress.iter().flat_map(|it| &it.stuck);
        let stuck: Vec<&str> = stuck.chain(self.refusals()).map(String::as_str).collect();
        match stuck.as_slice() {
            [] => None,
            stuck => {
                Some(format!("objects of earlier revisions are not deleted: {}", stuck.join("; ")))
            }
        }
    }

    /// Returns a namespace whose content cannot be read, with the reason; `None` if there is none.
    pub(super) fn unreadable(&self) -> Option<(&str, &str)> {
        let mut contents = self.namespaces.iter();
        contents.find_map(|(name, content)| Some((name.as_str(), content.failure.as_deref()?)))
    }

    /// Returns a namespace that waits for objects which are being deleted, with the first of them and their
    /// number; `None` if there is none.
    pub(super) fn emptying(&self) -> Option<(&str, &ObjectKey, usize)> {
        let waits = |it: &NamespaceContent| {
            matches!(it.state, ContentState::Reading | ContentState::Again(_))
                && it.found.is_empty()
        };
        let mut contents = self.namespaces.iter().filter(|(_, content)| waits(content));
        contents.find_map(|(name, content)| {
            Some((name.as_str(), content.terminating.first()?, content.terminating.len()))
        })
    }

    /// Returns whether a namespace has objects of other owners; `None` while it is not known. If the
    /// namespace is to be read for that, `read` is called.
    pub(super) fn is_occupied(
        &mut self,
        namespace: &str,
        now: Uptime,
        read: impl FnOnce(),
    ) -> Option<bool> {
        let known = self.namespaces.get_mut(namespace);
        match known.as_ref().map(|it| it.state) {
            Some(ContentState::Empty(until)) if until > now => return Some(false),
            Some(ContentState::Occupied) => return Some(true),
            Some(ContentState::Reading) => return None,
            Some(ContentState::Again(at)) if at > now => return None,
            Some(ContentState::Empty(_) | ContentState::Again(_)) | None => {}
        }
        match known {
            Some(content) => content.state = ContentState::Reading,
            None => {
                self.namespaces.insert(namespace.to_owned(), NamespaceContent::default());
            }
        }
        read();
        None
    }
}

#[cfg(test)]
mod tests {
    //! Tests of what is known of namespaces.

    use super::*;

    #[test]
    fn a_namespace_that_cannot_be_read_is_named_and_read_again() {
        let mut removal = Removal::default();
        let at = |seconds| Uptime::from_start(Duration::from_secs(seconds));
        let ask = |removal: &mut Removal, seconds| {
            let mut is_read = false;
            let found = removal.is_occupied("foo", at(seconds), || is_read = true);
            (found, is_read)
        };
        assert_eq!(ask(&mut removal, 0), (None, true));
        assert_eq!(ask(&mut removal, 1), (None, false));
        assert_eq!(removal.unreadable(), None);
        let read = |removal: &mut Removal, seconds, objects| {
            removal.namespaces.entry("foo".into()).or_default().read(objects, at(seconds));
        };
        read(&mut removal, 2, Err("denied".into()));
        assert_eq!(ask(&mut removal, 11), (None, false));
        assert_eq!(removal.unreadable(), Some(("foo", "denied")));
        assert_eq!(ask(&mut removal, 12), (None, true));
        assert_eq!(removal.unreadable(), Some(("foo", "denied")), "until the next response");
        read(&mut removal, 12, Ok(Vec::new()));
        assert_eq!(ask(&mut removal, 13), (Some(false), false));
        assert_eq!(removal.unreadable(), None);
        // Objects may have been created since.
        assert_eq!(ask(&mut removal, 22), (None, true));
    }

    #[test]
    fn a_namespace_is_occupied_once_an_object_was_found_twice() {
        let at = |seconds| Uptime::from_start(Duration::from_secs(seconds));
        // Those that end with an exclamation mark are being deleted.
        let object = |text: &str| ContainedObject {
            key: ObjectKey {
                group: String::new(),
                kind: "Pod".to_owned(),
                namespace: "foo".to_owned(),
                name: text.trim_end_matches('!').to_owned(),
            },
            is_terminating: text.ends_with('!'),
        };
        let cases: [(&[&[&str]], Option<bool>); 8] = [
            (&[&[]], Some(false)),
            (&[&["one"]], None),
            (&[&["one"], &[]], Some(false)),
            (&[&["one"], &["two"]], None),
            (&[&["one"], &["one", "two"]], Some(true)),
            (&[&["one!"], &["one!"], &["one!"]], None),
            (&[&["one"], &["one!"], &[]], Some(false)),
            (&[&["one!", "two"], &["one!", "two"]], Some(true)),
        ];
        for (reads, expected) in cases {
            let mut removal = Removal::default();
            let mut now = 0;
            for read in reads {
                let mut is_read = false;
                removal.is_occupied("foo", at(now), || is_read = true);
                assert!(is_read, "{reads:?}");
                let content = removal.namespaces.get_mut("foo").expect("it is being read");
                content.read(Ok(read.iter().map(|it| object(it)).collect()), at(now));
                now += 10;
            }
            let found = removal.is_occupied("foo", at(now - 1), || panic!("it is read too early"));
            assert_eq!(found, expected, "{reads:?}");
        }
    }

    #[test]
    fn what_a_namespace_waits_for_is_named() {
        let key = |name: &str| ObjectKey {
            group: String::new(),
            kind: "Pod".to_owned(),
            namespace: "foo".to_owned(),
            name: name.to_owned(),
        };
        let objects =
            ["one", "two"].map(|it| ContainedObject { key: key(it), is_terminating: true });
        let mut removal = Removal::default();
        let now = Uptime::from_start(Duration::ZERO);
        let content = removal.namespaces.entry("foo".to_owned()).or_default();
        content.read(Ok(objects.to_vec()), now);
        assert_eq!(removal.emptying(), Some(("foo", &key("one"), 2)));
        let content = removal.namespaces.entry("foo".to_owned()).or_default();
        content.read(Ok(Vec::new()), now);
        assert_eq!(removal.emptying(), None);
    }
}
