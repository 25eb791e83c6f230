//! What happened to the objects of one resource, for watches.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::watch;

use super::{Lost, Stored};

/// Events kept for one resource. A watch that falls further behind has to list again.
const LOG_LEN_MAX: usize = 4_096;

/// Bytes of objects kept in the log of one resource; large objects shorten the log.
const LOG_BYTES_MAX: usize = 16 << 20;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    /// The type of a watch event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One write.
#[derive(Debug)]
pub(crate) struct Event {
    /// What it did.
    pub(crate) change: Change,
    /// The object after it; for a removal its last state under the removal's revision.
    pub(crate) object: Arc<Stored>,
    /// The object before it.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The encoded line of the version that was asked for first: all watchers share it.
    pub(crate) line: OnceLock<(Arc<str>, Bytes)>,
}

impl Event {
    /// An object was written.
    pub(crate) fn put(object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Self {
        Self {
            change: if previous.is_some() { Change::Modified } else { Change::Added },
            object,
            previous,
            line: OnceLock::new(),
        }
    }

    /// An object was removed.
    pub(crate) fn removed(object: Arc<Stored>, previous: Arc<Stored>) -> Self {
        Self { change: Change::Deleted, object, previous: Some(previous), line: OnceLock::new() }
    }

    fn weight(&self) -> usize {
        self.object.bytes().len()
    }
}

/// The bounded log of one resource.
#[derive(Debug)]
pub(super) struct Log {
    events: VecDeque<Arc<Event>>,
    weight: usize,
    /// Revision of the last event that was dropped.
    compacted: u64,
    changed: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { events: VecDeque::new(), weight: 0, compacted: 0, changed: watch::Sender::new(0) }
    }
}

impl Log {
    pub(super) fn push(&mut self, event: Event) {
        let revision = event.object.revision;
        self.weight += event.weight();
        self.events.push_back(Arc::new(event));
        while self.events.len() > LOG_LEN_MAX
            || (self.weight > LOG_BYTES_MAX && self.events.len() > 1)
        {
            if let Some(dropped) = self.events.pop_front() {
                self.weight -= dropped.weight();
                self.compacted = dropped.object.revision;
            }
        }
        self.changed.send_replace(revision);
    }

    /// The events after a revision.
    pub(super) fn after(&self, revision: u64) -> Result<Vec<Arc<Event>>, Lost> {
        if revision < self.compacted {
            return Err(Lost::Compacted { oldest: self.compacted });
        }
        let start = self.events.partition_point(|event| event.object.revision <= revision);
        Ok(self.events.range(start..).cloned().collect())
    }

    /// Tells all subscribers that nothing more comes.
    pub(super) fn close(&mut self) {
        self.changed = watch::Sender::new(0);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
