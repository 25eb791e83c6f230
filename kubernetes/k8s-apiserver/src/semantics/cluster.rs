//! The state of one cluster, and the writes to its objects.
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use crate::ids::Ids;
use crate::semantics::registry::{ApiResource, Registry};
use crate::semantics::settings::ClusterSettings;
use crate::storage::{History, ObjectKey, StorageId, Store, Stored};

pub(crate) mod admission;

use admission::{Admission, NoAdmission};

/// The state of one cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The objects.
    pub(crate) store: Store,
    /// The resources that are served.
    pub(crate) registry: Registry,
    /// The source of uids and generated names.
    pub(crate) ids: Ids,
    /// The writes that the controllers have not handled yet, oldest first.
    pub(crate) unsettled: VecDeque<ObjectChange>,
    /// Webhooks, policies and the other checks that take part in writes.
    pub(crate) admission: Arc<dyn Admission>,
    /// What differs from other clusters.
    pub(crate) settings: ClusterSettings,
}

/// One write to an object, as the controllers handle it.
#[derive(Clone, Debug)]
pub(crate) struct ObjectChange {
    /// The resource that was written to.
    pub(crate) storage: StorageId,
    /// The key of the object.
    pub(crate) key: ObjectKey,
    /// The object before the write; none if it is new.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The object after the write; none if it was removed.
    pub(crate) current: Option<Arc<Stored>>,
}

impl Cluster {
    /// A cluster without objects.
    pub(crate) fn new(seed: u64, history: History) -> Self {
        Self {
            store: Store::at_revision(history, 0),
            registry: Registry::new(),
            ids: Ids::new(seed),
            unsettled: VecDeque::new(),
            admission: Arc::new(NoAdmission),
            settings: ClusterSettings::default(),
        }
    }

    /// Writes an object and queues the change for the controllers.
    pub(crate) fn put(
        &mut self,
        storage: &StorageId,
        key: &ObjectKey,
        value: Value,
        schema_id: u64,
    ) -> Arc<Stored> {
        let previous = self.store.find(storage, key).cloned();
        let current = self.store.put(storage, key, value, schema_id);
        self.unsettled.push_back(ObjectChange {
            storage: storage.clone(),
            key: key.clone(),
            previous,
            current: Some(Arc::clone(&current)),
        });
        current
    }

    /// Removes an object and queues the change for the controllers.
    ///
    /// `None` if there is no such object.
    pub(crate) fn remove(&mut self, storage: &StorageId, key: &ObjectKey) -> Option<Arc<Stored>> {
        let previous = self.store.find(storage, key).cloned()?;
        let last = self.store.remove(storage, key)?;
        self.unsettled.push_back(ObjectChange {
            storage: storage.clone(),
            key: key.clone(),
            previous: Some(previous),
            current: None,
        });
        Some(last)
    }

    /// Writes an object, or removes it if nothing blocks its deletion any more.
    pub(crate) fn put_or_finish(
        &mut self,
        resource: &ApiResource,
        key: &ObjectKey,
        value: Value,
        schema_id: u64,
    ) -> Arc<Stored> {
        if is_finished(resource, &value)
            && let Some(last) = self.remove(&resource.storage, key)
        {
            // The last write is never stored: watchers see the object as it was before.
            let mut value = value;
            let revision = &value["metadata"]["resourceVersion"];
            let revision = revision.as_str().and_then(|text| text.parse().ok());
            let revision = revision.unwrap_or(last.revision);
            return Arc::new(Stored::new(key.clone(), &mut value, revision, schema_id));
        }
        self.put(&resource.storage, key, value, schema_id)
    }
}

/// Whether an object is marked for deletion, and no finalizer or grace period blocks it.
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
