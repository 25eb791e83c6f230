//! The event log of one resource, which watches read.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::broadcast;

use super::{HistoryError, Stored};

/// How many past events are kept for watches and for lists at earlier revisions.
///
/// Both limits apply to each resource separately. Requests for dropped events are answered with
/// `410 Expired`, as after a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Number of events kept for one resource. A watch that falls further behind has to list again.
    pub events_max: usize,
    /// Encoded size of the objects in these events, in bytes.
    pub bytes_max: usize,
}

impl Default for History {
    /// 4,096 events and 16 MiB.
    fn default() -> Self {
        Self { events_max: 4_096, bytes_max: 16 << 20 }
    }
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    DeleteOutcome,
}

impl EventType {
    /// The type of a watch event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::DeleteOutcome => "DELETED",
        }
    }
}

/// One write to an object.
#[derive(Debug)]
pub(crate) struct LogEvent {
    /// Whether the object was added, modified or deleted.
    pub(crate) change: EventType,
    /// The object after the write; for a deletion, its last state under the deletion's revision.
    pub(crate) object: Arc<Stored>,
    /// The object before the write; none if it was added.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The encoded watch event in the version that was requested first, shared by all watches.
    pub(crate) line: OnceLock<(Arc<str>, Bytes)>,
}

impl LogEvent {
    /// The event of an object that was added or modified.
    pub(crate) fn put(object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Self {
        Self {
            change: if previous.is_some() { EventType::Modified } else { EventType::Added },
            object,
            previous,
            line: OnceLock::new(),
        }
    }

    /// The event of an object that was deleted.
    pub(crate) fn removed(object: Arc<Stored>, previous: Arc<Stored>) -> Self {
        Self {
            change: EventType::DeleteOutcome,
            object,
            previous: Some(previous),
            line: OnceLock::new(),
        }
    }

    fn weight(&self) -> usize {
        self.object.bytes().len()
    }
}

/// The event log of one resource, limited by [`History`].
#[derive(Debug)]
pub(super) struct Log {
    history: History,
    events: VecDeque<Arc<LogEvent>>,
    weight: usize,
    /// The log is complete after this revision.
    compacted: u64,
    /// Tells those who wait that there is an event, in the order in which they began to wait: a watch
    /// channel would in a random one.
    changed: broadcast::Sender<()>,
}

impl Log {
    /// An empty log, complete after the revision `compacted`.
    pub(super) fn new(history: History, compacted: u64) -> Self {
        Self {
            history,
            events: VecDeque::new(),
            weight: 0,
            compacted,
            changed: broadcast::Sender::new(1),
        }
    }

    pub(super) fn push(&mut self, event: LogEvent) {
        self.weight += event.weight();
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.history.events_max
            || (self.weight > self.history.bytes_max && self.events.len() > 1)
        {
            self.drop_first();
        }
        // It fails without receivers.
        let _ = self.changed.send(());
    }

    /// Drops the events up to and including a revision.
    ///
    /// Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go: Compact
    pub(super) fn compact(&mut self, revision: u64) {
        while self.events.front().is_some_and(|event| event.object.revision <= revision) {
            self.drop_first();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn drop_first(&mut self) {
        if let Some(dropped) = self.events.pop_front() {
            self.weight -= dropped.weight();
            self.compacted = dropped.object.revision;
        }
    }

    /// The revision after which the log is complete.
    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// All events of the log.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<LogEvent>> {
        self.events.iter()
    }

    /// The events after a revision.
    ///
    /// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: getAllEventsSinceLocked
    pub(super) fn after(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Arc<LogEvent>>, HistoryError> {
        if revision < self.compacted {
            return Err(HistoryError::Compacted { oldest: self.compacted });
        }
        let start = self.events.partition_point(|event| event.object.revision <= revision);
        Ok(self.events.range(start..))
    }

    /// Closes the channels of all subscribers.
    pub(super) fn close(&mut self) {
        self.changed = broadcast::Sender::new(1);
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<()> {
        self.changed.subscribe()
    }
}
