//! The objects, their one revision counter, and the log that watches read.
//!
//! Objects rest as encoded JSON without `apiVersion` and `kind`: an answer is then a prefix and a
//! copy, whatever version was asked for, and a hundred thousand objects fit in memory. What lists,
//! watches and the garbage collector ask of every object lies beside the bytes in [`Stored`].
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

pub(crate) mod log;
pub(crate) mod stored;

pub(crate) use log::{Change, Event};
pub(crate) use stored::{ObjectKey, StorageId, Stored};

use log::Log;

/// Where an object is: its storage and its key in it.
pub(crate) type Place = (StorageId, ObjectKey);

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Store {
    revision: u64,
    storages: BTreeMap<StorageId, Storage>,
    by_uid: BTreeMap<Box<str>, Place>,
    dependents: BTreeMap<Box<str>, BTreeSet<Place>>,
}

/// The objects of one resource.
#[derive(Debug, Default)]
struct Storage {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    log: Log,
}

/// What a watch continues with.
pub(crate) struct News {
    /// Events after the revision asked for.
    pub(crate) events: Vec<Arc<Event>>,
    /// The revision up to which they are complete.
    pub(crate) revision: u64,
}

/// Why a watch or a list of the past cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The log begins only after this revision.
    Compacted { oldest: u64 },
    /// The resource is no longer served.
    Gone,
}

impl Store {
    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// One object.
    pub(crate) fn find(&self, storage: &StorageId, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.storages.get(storage)?.objects.get(key)
    }

    /// Where the object with a uid is.
    pub(crate) fn find_uid(&self, uid: &str) -> Option<&Place> {
        self.by_uid.get(uid)
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
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

    /// The same, beginning after a key.
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

    /// The state of one resource as it was at `revision`.
    ///
    /// # Errors
    /// When the log no longer reaches back that far.
    pub(crate) fn list_at(
        &self,
        storage: &StorageId,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<Stored>>, Lost> {
        let Some(found) = self.storages.get(storage) else {
            return Ok(Vec::new());
        };
        let mut state: BTreeMap<&ObjectKey, &Arc<Stored>> = found.objects.iter().collect();
        let events = found.log.after(revision)?;
        for event in events.iter().rev() {
            match &event.previous {
                Some(previous) => state.insert(&event.object.key, previous),
                None => state.remove(&event.object.key),
            };
        }
        Ok(state
            .into_iter()
            .filter(|(key, _)| namespace.is_none_or(|namespace| key.is_in(namespace)))
            .map(|(_, stored)| Arc::clone(stored))
            .collect())
    }

    /// Writes an object under the next revision; `value` comes with its metadata complete but for
    /// the revision. `stamp` names the schema it was checked against.
    pub(crate) fn put(
        &mut self,
        storage: &StorageId,
        key: &ObjectKey,
        mut value: Value,
        stamp: u64,
    ) -> Arc<Stored> {
        self.revision += 1;
        value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let stored = Arc::new(Stored::new(key.clone(), &mut value, self.revision, stamp));
        let place = (storage.clone(), key.clone());
        let found = self.storages.entry(storage.clone()).or_default();
        let previous = found.objects.insert(key.clone(), Arc::clone(&stored));
        found.log.push(Event::put(Arc::clone(&stored), previous.clone()));
        if let Some(previous) = &previous {
            unlink(&mut self.dependents, previous, &place);
        }
        for owner in &stored.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
        self.by_uid.insert(stored.uid.clone(), place);
        stored
    }

    /// Removes an object; its last state is logged under the next revision.
    pub(crate) fn remove(&mut self, storage: &StorageId, key: &ObjectKey) -> Option<Arc<Stored>> {
        let found = self.storages.get_mut(storage)?;
        let previous = found.objects.remove(key)?;
        self.revision += 1;
        let last = Arc::new(previous.at_revision(self.revision));
        found.log.push(Event::removed(Arc::clone(&last), Arc::clone(&previous)));
        unlink(&mut self.dependents, &previous, &(storage.clone(), key.clone()));
        self.by_uid.remove(&previous.uid);
        Some(last)
    }

    /// Ends the watches of a resource that is no longer served, once they have seen its end.
    pub(crate) fn end_watches(&mut self, storage: &StorageId) {
        if let Some(found) = self.storages.get_mut(storage) {
            found.log.close();
        }
    }

    /// The events of one resource after `revision`.
    ///
    /// # Errors
    /// When the log no longer reaches back that far.
    pub(crate) fn news(&self, storage: &StorageId, revision: u64) -> Result<News, Lost> {
        let found = self.storages.get(storage).ok_or(Lost::Gone)?;
        Ok(News { events: found.log.after(revision)?, revision: self.revision.max(revision) })
    }

    /// Wakes up whenever the resource changes, and fails once it is no longer served.
    pub(crate) fn subscribe(&mut self, storage: &StorageId) -> tokio::sync::watch::Receiver<u64> {
        self.storages.entry(storage.clone()).or_default().log.subscribe()
    }
}

fn unlink(dependents: &mut BTreeMap<Box<str>, BTreeSet<Place>>, object: &Stored, place: &Place) {
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
