//! What happened to the objects of one resource, for watches.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::watch;

use super::{Lost, Stored};

/// How far back watches and lists of the past can look.
///
/// Both bounds hold for each resource by itself. What falls out of them is answered with
/// `410 Expired`, as after a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Events kept for one resource. A watch that falls further behind has to list again.
    pub events_max: usize,
    /// Bytes of objects kept for one resource; large objects shorten its history.
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
    history: History,
    events: VecDeque<Arc<Event>>,
    weight: usize,
    /// The log is complete after this revision.
    compacted: u64,
    changed: watch::Sender<u64>,
}

impl Log {
    /// An empty log, complete after the revision `compacted`.
    pub(super) fn new(history: History, compacted: u64) -> Self {
        Self {
            history,
            events: VecDeque::new(),
            weight: 0,
            compacted,
            changed: watch::Sender::new(0),
        }
    }

    pub(super) fn push(&mut self, event: Event) {
        let revision = event.object.revision;
        self.weight += event.weight();
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.history.events_max
            || (self.weight > self.history.bytes_max && self.events.len() > 1)
        {
            self.drop_first();
        }
        self.changed.send_replace(revision);
    }

    /// Forgets what happened up to a revision.
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

    /// All events that are known.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter()
    }

    /// The events after a revision.
    pub(super) fn after(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Arc<Event>>, Lost> {
        if revision < self.compacted {
            return Err(Lost::Compacted { oldest: self.compacted });
        }
        let start = self.events.partition_point(|event| event.object.revision <= revision);
        Ok(self.events.range(start..))
    }

    /// Tells all subscribers that nothing more comes.
    pub(super) fn close(&mut self) {
        self.changed = watch::Sender::new(0);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
