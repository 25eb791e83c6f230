//! The state of one cluster, and the writes that everything goes through.
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use crate::ids::Ids;
use crate::semantics::registry::{ApiResource, Registry};
use crate::storage::{History, ObjectKey, StorageId, Store, Stored};

pub(crate) mod admission;

use admission::{Admission, NoAdmission};

/// Everything there is.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Objects.
    pub(crate) store: Store,
    /// What is served.
    pub(crate) registry: Registry,
    /// Source of identifiers.
    pub(crate) ids: Ids,
    /// Writes that the controllers have not seen yet.
    pub(crate) notices: VecDeque<Notice>,
    /// The checks that writes pass besides the rules of their kinds.
    pub(crate) admission: Arc<dyn Admission>,
}

/// One write, as the controllers hear of it.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// The resource written to.
    pub(crate) storage: StorageId,
    /// The object.
    pub(crate) key: ObjectKey,
    /// The object before the write.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The object after the write; none if it is gone.
    pub(crate) current: Option<Arc<Stored>>,
}

impl Cluster {
    /// A cluster without objects.
    pub(crate) fn new(seed: u64, history: History) -> Self {
        Self {
            store: Store::at_revision(history, 0),
            registry: Registry::new(),
            ids: Ids::new(seed),
            notices: VecDeque::new(),
            admission: Arc::new(NoAdmission),
        }
    }

    /// Writes an object and lets the controllers know.
    pub(crate) fn put(
        &mut self,
        storage: &StorageId,
        key: &ObjectKey,
        value: Value,
        stamp: u64,
    ) -> Arc<Stored> {
        let previous = self.store.find(storage, key).cloned();
        let current = self.store.put(storage, key, value, stamp);
        self.notices.push_back(Notice {
            storage: storage.clone(),
            key: key.clone(),
            previous,
            current: Some(Arc::clone(&current)),
        });
        current
    }

    /// Removes an object and lets the controllers know.
    pub(crate) fn remove(&mut self, storage: &StorageId, key: &ObjectKey) -> Option<Arc<Stored>> {
        let previous = self.store.find(storage, key).cloned()?;
        let last = self.store.remove(storage, key)?;
        self.notices.push_back(Notice {
            storage: storage.clone(),
            key: key.clone(),
            previous: Some(previous),
            current: None,
        });
        Some(last)
    }

    /// Writes an object back, or removes it if it was only waiting for its finalizers and none is
    /// left.
    pub(crate) fn put_or_finish(
        &mut self,
        resource: &ApiResource,
        key: &ObjectKey,
        (value, stamp): (Value, u64),
    ) -> Arc<Stored> {
        if is_finished(resource, &value)
            && let Some(last) = self.remove(&resource.storage, key)
        {
            // The last write is never stored: watchers see the object as it was before.
            let mut value = value;
            let revision = &value["metadata"]["resourceVersion"];
            let revision = revision.as_str().and_then(|text| text.parse().ok());
            let revision = revision.unwrap_or(last.revision);
            return Arc::new(Stored::new(key.clone(), &mut value, revision, stamp));
        }
        self.put(&resource.storage, key, value, stamp)
    }
}

/// Whether a deleted object waits for nothing any more.
pub(crate) fn is_finished(resource: &ApiResource, value: &Value) -> bool {
    let metadata = &value["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    let is_finalized = !resource.is("", "Namespace") || is_empty(&value["spec"]["finalizers"]);
    metadata.get("deletionTimestamp").is_some()
        && is_empty(&metadata["finalizers"])
        && grace.unwrap_or_default() == 0
        && is_finalized
}
