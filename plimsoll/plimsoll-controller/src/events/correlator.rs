//! Correlates occurrences: each becomes an Event of its own, a count in one, or nothing.
//!
//! As client-go does: what is the same within [`SERIES_ENDS_AFTER`] is a series in one Event, of
//! which the second occurrence is written at once and later ones every [`SERIES_REFRESH`] and when
//! the series ends; and an object with many events has [`BURST`] Events at once and then
//! one each [`REFILL`]. Unlike there, another note is another occurrence: the note is where ours
//! say what happened.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Occurrence, Severity, name};

/// How long nothing must happen for a series to have ended.
pub(super) const SERIES_ENDS_AFTER: SignedDuration = SignedDuration::from_mins(6);
/// How often the count of an ongoing series is written.
pub(super) const SERIES_REFRESH: SignedDuration = SignedDuration::from_mins(30);
/// Events of one object at once.
pub(super) const BURST: u32 = 25;
/// How long until an object that used up its Events may have one more.
pub(super) const REFILL: SignedDuration = SignedDuration::from_mins(5);

/// An Event as it is known here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) occurrence: Occurrence,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) count: i32,
    /// When the count was last written.
    written: Timestamp,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// A new Event.
    Create(Entry),
    /// The count of one that is there.
    Count(Entry),
}

/// The series that have not ended, and how many Events each object may still have.
#[derive(Debug, Default)]
pub(super) struct EventCorrelator {
    entries: BTreeMap<Key, Entry>,
    buckets: BTreeMap<(Regarding, Option<Regarding>), Bucket>,
}

/// What makes two occurrences the same.
type Key = (Severity, &'static str, &'static str, String, Regarding, Option<Regarding>);
/// An object: kind, namespace, name, uid.
type Regarding = [Option<String>; 4];

/// How many Events an object may still have.
#[derive(Debug)]
struct Bucket {
    left: u32,
    /// When the last one came back.
    since: Timestamp,
}

impl EventCorrelator {
    /// Takes note of an occurrence.
    pub(super) fn note(&mut self, occurrence: Occurrence, now: Timestamp) -> Option<Write> {
        let key = key(&occurrence);
        if let Some(entry) = self.entries.get_mut(&key)
            && now.duration_since(entry.last) < SERIES_ENDS_AFTER
        {
            entry.count = entry.count.saturating_add(1);
            entry.last = now;
            if entry.count > 2 {
                return None;
            }
            entry.written = now;
            return Some(Write::Count(entry.clone()));
        }
        if !self.takes((key.4.clone(), key.5.clone()), now) {
            tracing::debug!(note = %occurrence.note, "too many events of one object; left out");
            return None;
        }
        let name = name(&occurrence.regarding, now);
        let entry = Entry { name, occurrence, first: now, last: now, count: 1, written: now };
        self.entries.insert(key, entry.clone());
        Some(Write::Create(entry))
    }

    /// Ends series and refreshes those that go on; forgets what is over.
    pub(super) fn tidy(&mut self, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        self.entries.retain(|_, entry| {
            let ended = now.duration_since(entry.last) >= SERIES_ENDS_AFTER;
            let due = ended || now.duration_since(entry.written) >= SERIES_REFRESH;
            if due && entry.count > 2 && entry.written < entry.last {
                entry.written = now;
                writes.push(Write::Count(entry.clone()));
            }
            !ended
        });
        self.buckets.retain(|_, bucket| {
            bucket.refill(now);
            bucket.left < BURST
        });
        writes
    }

    /// Returns whether an object, or two together, may have one more Event.
    fn takes(&mut self, about: (Regarding, Option<Regarding>), now: Timestamp) -> bool {
        let bucket = self.buckets.entry(about).or_insert(Bucket { left: BURST, since: now });
        bucket.refill(now);
        bucket.left.checked_sub(1).map(|left| bucket.left = left).is_some()
    }
}

impl Bucket {
    fn refill(&mut self, now: Timestamp) {
        while self.left < BURST && now.duration_since(self.since) >= REFILL {
            self.left += 1;
            self.since += REFILL;
        }
        if self.left == BURST {
            self.since = now;
        }
    }
}

fn key(occurrence: &Occurrence) -> Key {
    let Occurrence { severity, reason, action, note, regarding, related } = occurrence;
    let of = |it: &k8s_openapi::api::core::v1::ObjectReference| {
        [it.kind.clone(), it.namespace.clone(), it.name.clone(), it.uid.clone()]
    };
    (*severity, reason.as_str(), *action, note.clone(), of(regarding), related.as_ref().map(of))
}
