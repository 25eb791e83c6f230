//! The objects of a cluster, their revision counter, and the log that watches read.
//!
//! Objects are stored as encoded JSON without `apiVersion` and `kind`. A response in any version is
//! then a prefix and a copy of the bytes, and a hundred thousand objects fit in memory. The fields
//! that lists, watches and garbage collection need of every object are decoded in [`Stored`].
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

mod as_of;
pub(crate) mod log;
mod page;
pub(crate) mod stored;

pub use as_of::AsOf;
pub use log::History;
pub(crate) use log::{EventType, LogEvent};
pub(crate) use page::ListPage;
pub(crate) use stored::{ObjectKey, StorageId, Stored};

use log::Log;

/// The storage that an object is in, and its key there.
pub(crate) type ObjectLocation = (StorageId, ObjectKey);

/// All objects of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Store {
    revision: u64,
    history: History,
    /// The revision of the last compaction: logs that begin later are complete after it.
    compacted: u64,
    storages: BTreeMap<StorageId, Storage>,
    by_uid: BTreeMap<Box<str>, ObjectLocation>,
    dependents: BTreeMap<Box<str>, BTreeSet<ObjectLocation>>,
}

/// The objects of one resource.
#[derive(Debug)]
struct Storage {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    /// How many objects there are in each namespace.
    counts: BTreeMap<Box<str>, usize>,
    log: Log,
}

impl Storage {
    fn insert(&mut self, stored: &Arc<Stored>) -> Option<Arc<Stored>> {
        let previous = self.objects.insert(stored.key.clone(), Arc::clone(stored));
        if previous.is_none() {
            match self.counts.get_mut(&stored.key.namespace) {
                Some(count) => *count += 1,
                None => {
                    self.counts.insert(stored.key.namespace.clone(), 1);
                }
            }
        }
        previous
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Stored>> {
        let removed = self.objects.remove(key)?;
        if let Some(count) = self.counts.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key.namespace);
            }
        }
        Some(removed)
    }
}

/// The next events of a watch.
pub(crate) struct EventBatch {
    /// The events after the requested revision, oldest first.
    pub(crate) events: Vec<Arc<LogEvent>>,
    /// The revision up to which `events` is complete.
    pub(crate) revision: u64,
}

/// Why a watch or a list at an earlier revision cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryError {
    /// The requested revision was compacted; the log is complete after `oldest`.
    Compacted { oldest: u64 },
    /// The resource has no storage: it is not or no longer served.
    Gone,
}

impl Store {
    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Finds an object by its key.
    pub(crate) fn find(&self, storage: &StorageId, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.storages.get(storage)?.objects.get(key)
    }

    /// Finds the location of the object with a uid.
    pub(crate) fn find_uid(&self, uid: &str) -> Option<&ObjectLocation> {
        self.by_uid.get(uid)
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<ObjectLocation> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    /// Whether any object names `uid` as an owner.
    pub(crate) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    /// The objects of one resource in the order of their keys, of one namespace if it is given.
    pub(crate) fn list<'a>(
        &'a self,
        storage: &StorageId,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> {
        self.list_after(storage, namespace, None)
    }

    /// As [`Self::list`], beginning after a key.
    pub(crate) fn list_after<'a>(
        &'a self,
        storage: &StorageId,
        namespace: Option<&'a str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> {
        let first = ObjectKey::new(namespace.unwrap_or_default(), "");
        let start = match after {
            Some(key) if *key >= first => Bound::Excluded(key.clone()),
            Some(_) | None => Bound::Included(first),
        };
        self.storages
            .get(storage)
            .into_iter()
            .flat_map(move |found| found.objects.range((start.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.is_in(namespace)))
            .map(|(_, stored)| stored)
    }

    /// The number of objects of one resource.
    pub(crate) fn count(&self, storage: &StorageId) -> usize {
        self.storages.get(storage).map_or(0, |found| found.objects.len())
    }

    /// The number of objects of one resource, of one namespace if it is given.
    pub(crate) fn count_in(&self, storage: &StorageId, namespace: Option<&str>) -> usize {
        self.storages.get(storage).map_or(0, |found| match namespace {
            None => found.objects.len(),
            Some(namespace) => found.counts.get(namespace).copied().unwrap_or_default(),
        })
    }

    /// The objects of one resource as they were at `revision`, in the order of their keys,
    /// beginning after a key.
    ///
    /// It takes time in proportion to the objects that are read and the events since `revision`.
    ///
    /// # Errors
    /// When the log no longer reaches back that far.
    pub(crate) fn list_at<'a>(
        &'a self,
        storage: &StorageId,
        namespace: Option<&'a str>,
        revision: u64,
        after: Option<&ObjectKey>,
    ) -> Result<impl Iterator<Item = &'a Arc<Stored>>, HistoryError> {
        let changed: BTreeMap<&ObjectKey, Option<&Arc<Stored>>> = match self.storages.get(storage) {
            Some(found) => found
                .log
                .after(revision)?
                .rev()
                .map(|event| (&event.object.key, event.previous.as_ref()))
                .collect(),
            None => BTreeMap::new(),
        };
        let past: Vec<&'a Arc<Stored>> = changed
            .values()
            .flatten()
            .copied()
            .filter(|stored| namespace.is_none_or(|namespace| stored.key.is_in(namespace)))
            .filter(|stored| after.is_none_or(|after| stored.key > *after))
            .collect();
        let unchanged = self
            .list_after(storage, namespace, after)
            .filter(move |stored| !changed.contains_key(&stored.key));
        Ok(Merged { left: unchanged.peekable(), right: past.into_iter().peekable() })
    }

    /// One object as it was at `revision`.
    ///
    /// # Errors
    /// When the log no longer reaches back that far.
    pub(crate) fn find_at(
        &self,
        storage: &StorageId,
        key: &ObjectKey,
        revision: u64,
    ) -> Result<Option<&Arc<Stored>>, HistoryError> {
        let Some(found) = self.storages.get(storage) else {
            return Ok(None);
        };
        let mut later = found.log.after(revision)?;
        Ok(match later.find(|event| event.object.key == *key) {
            Some(event) => event.previous.as_ref(),
            None => found.objects.get(key),
        })
    }

    /// Finds an object in the state that a stale read asks for, as far as the log reaches back.
    pub(crate) fn find_as_of(
        &self,
        storage: &StorageId,
        key: &ObjectKey,
        as_of: Option<AsOf>,
    ) -> Option<&Arc<Stored>> {
        let Some(as_of) = as_of else {
            return self.find(storage, key);
        };
        let revision = as_of.revision(self.revision).max(self.oldest(storage));
        self.find_at(storage, key, revision).unwrap_or_default()
    }

    /// The revision after which the log of one resource is complete.
    pub(crate) fn oldest(&self, storage: &StorageId) -> u64 {
        self.storages.get(storage).map_or(self.compacted, |found| found.log.compacted())
    }

    /// Compacts the logs of all resources up to and including `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        self.compacted = self.compacted.max(revision);
        for storage in self.storages.values_mut() {
            storage.log.compact(revision);
        }
    }

    /// All objects, in the order of their resources and keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&StorageId, &Arc<Stored>)> {
        self.storages.iter().flat_map(|(storage, found)| {
            found.objects.values().map(move |stored| (storage, stored))
        })
    }

    /// An empty store that continues after `revision`, with everything up to it compacted.
    pub(crate) fn at_revision(history: History, revision: u64) -> Self {
        Self { revision, history, compacted: revision, ..Self::default() }
    }

    /// Inserts an object of a snapshot under its own revision, without an event.
    ///
    /// Returns `false` if there was an object with its key or its uid.
    pub(crate) fn restore_object(&mut self, storage: &StorageId, stored: &Arc<Stored>) -> bool {
        let place = (storage.clone(), stored.key.clone());
        self.link(stored, &place);
        let is_new_uid = self.by_uid.insert(stored.uid.clone(), place).is_none();
        self.storage(storage).insert(stored).is_none() && is_new_uid
    }

    fn storage(&mut self, storage: &StorageId) -> &mut Storage {
        let (history, compacted) = (self.history, self.compacted);
        self.storages.entry(storage.clone()).or_insert_with(|| Storage {
            objects: BTreeMap::new(),
            counts: BTreeMap::new(),
            log: Log::new(history, compacted),
        })
    }

    fn link(&mut self, stored: &Stored, place: &ObjectLocation) {
        for owner in &stored.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
    }

    /// Writes an object under the next revision, which is set in its metadata.
    ///
    /// `schema_id` is the id of the schema that `value` was validated against.
    pub(crate) fn put(
        &mut self,
        storage: &StorageId,
        key: &ObjectKey,
        mut value: Value,
        schema_id: u64,
    ) -> Arc<Stored> {
        self.revision += 1;
        value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let stored = Stored::new(key.clone(), &mut value, self.revision, schema_id);
        self.commit(storage, Arc::new(stored))
    }

    /// Writes an object under its own revision, which has to be later than all others.
    pub(crate) fn append(&mut self, storage: &StorageId, stored: Stored) {
        self.revision = stored.revision;
        self.commit(storage, Arc::new(stored));
    }

    fn commit(&mut self, storage: &StorageId, stored: Arc<Stored>) -> Arc<Stored> {
        let place = (storage.clone(), stored.key.clone());
        let found = self.storage(storage);
        let previous = found.insert(&stored);
        found.log.push(LogEvent::put(Arc::clone(&stored), previous.clone()));
        if let Some(previous) = &previous {
            unlink(&mut self.dependents, previous, &place);
        }
        self.link(&stored, &place);
        if previous.is_none_or(|previous| previous.uid != stored.uid) {
            self.by_uid.insert(stored.uid.clone(), place);
        }
        stored
    }

    /// Removes an object and logs its last state under the next revision.
    ///
    /// `None` if there is no such object.
    pub(crate) fn remove(&mut self, storage: &StorageId, key: &ObjectKey) -> Option<Arc<Stored>> {
        let found = self.storages.get_mut(storage)?;
        let previous = found.remove(key)?;
        self.revision += 1;
        let last = Arc::new(previous.at_revision(self.revision));
        found.log.push(LogEvent::removed(Arc::clone(&last), Arc::clone(&previous)));
        unlink(&mut self.dependents, &previous, &(storage.clone(), key.clone()));
        self.by_uid.remove(&previous.uid);
        Some(last)
    }

    /// Ends the watches of a resource that is no longer served, after they received all its events.
    pub(crate) fn end_watches(&mut self, storage: &StorageId) {
        if let Some(found) = self.storages.get_mut(storage) {
            found.log.close();
        }
    }

    /// All events that the logs still hold, by resource.
    pub(crate) fn history(&self) -> impl Iterator<Item = (&StorageId, &Arc<LogEvent>)> {
        self.storages
            .iter()
            .flat_map(|(storage, found)| found.log.all().map(move |event| (storage, event)))
    }

    /// The events of one resource after `revision`.
    ///
    /// # Errors
    /// When the log no longer reaches back that far.
    pub(crate) fn events_after(
        &self,
        storage: &StorageId,
        revision: u64,
    ) -> Result<EventBatch, HistoryError> {
        let found = self.storages.get(storage).ok_or(HistoryError::Gone)?;
        Ok(EventBatch {
            events: found.log.after(revision)?.cloned().collect(),
            revision: self.revision.max(revision),
        })
    }

    /// A channel with a message after events of the resource, which closes once it is not served.
    pub(crate) fn subscribe(&mut self, storage: &StorageId) -> broadcast::Receiver<()> {
        self.storage(storage).log.subscribe()
    }
}

/// Two lists of objects that are ordered by key, merged.
struct Merged<Left: Iterator, Right: Iterator> {
    left: Peekable<Left>,
    right: Peekable<Right>,
}

impl<'a, Left, Right> Iterator for Merged<Left, Right>
where
    Left: Iterator<Item = &'a Arc<Stored>>,
    Right: Iterator<Item = &'a Arc<Stored>>,
{
    type Item = &'a Arc<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) if left.key < right.key => self.left.next(),
            (Some(_), None) => self.left.next(),
            _ => self.right.next(),
        }
    }
}

fn unlink(
    dependents: &mut BTreeMap<Box<str>, BTreeSet<ObjectLocation>>,
    object: &Stored,
    place: &ObjectLocation,
) {
    for owner in &object.owners {
        if let Some(places) = dependents.get_mut(&owner.uid) {
            places.remove(place);
            if places.is_empty() {
                dependents.remove(&owner.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
