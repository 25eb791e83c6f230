//! Writes Events of `events.k8s.io/v1` about the ClusterVersion.
//!
//! [`Recorder::emit`] never waits and never fails: an event that cannot be written is dropped with a
//! line in the log, since the status reports the same and stays. Repetitions become one Event with
//! a count, and too many events about one object are left out: see [`correlator`].

mod correlator;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use plimsoll_api::{ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME, ObjectKey, Reason};
use plimsoll_plan::reconciler::events::{EventDraft, Severity};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::write::Writer;
use correlator::{Entry, EventCorrelator, Write};

/// The reporting controller: a qualified name, as Kubernetes requires.
const REPORTING_CONTROLLER: &str = "plimsoll.io/controller";
/// The namespace of Events about cluster-scoped objects, as Kubernetes requires.
const CLUSTER_NAMESPACE: &str = "default";
/// Longest note that Kubernetes accepts, in bytes.
const NOTE_LENGTH_MAX: usize = 1024;
/// Longest reporting instance that Kubernetes accepts, in bytes.
const INSTANCE_LENGTH_MAX: usize = 128;
/// Occurrences that wait to be written; more than a whole update emits.
const OCCURRENCES_QUEUED: usize = 256;
/// How often ended series are removed.
const TIDY_INTERVAL: Duration = Duration::from_secs(60);
/// How often the write of one Event is tried; the status reports the same, so a lost one is no harm.
const TRIES_MAX: usize = 3;
/// How long to wait between two tries.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// An event that occurred once.
#[derive(Debug, Clone, PartialEq)]
struct Occurrence {
    /// Whether it calls for attention.
    severity: Severity,
    /// Its reason.
    reason: Reason,
    /// What was done or tried, in CamelCase: `Update`, `EnableCapability`.
    action: &'static str,
    /// What happened, to what, why.
    note: String,
    /// The object that it is about.
    regarding: ObjectReference,
    /// Another object that is concerned; `None` if there is none.
    related: Option<ObjectReference>,
}

/// The type of an event, as Kubernetes names it.
fn type_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

/// A cluster-scoped object of ours as the object of an occurrence.
fn cluster_scoped(kind: ApiKind, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(kind.api_version()),
        kind: Some(kind.kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// An object of a payload as the object of an occurrence.
fn object(key: &ObjectKey) -> ObjectReference {
    ObjectReference {
        // Without a version: an object is the same in all of them.
        api_version: Some(key.group.clone()).filter(|group| !group.is_empty()),
        kind: Some(key.kind.clone()),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(key.name.clone()),
        ..ObjectReference::default()
    }
}

/// Takes occurrences; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<Occurrence>,
}

impl Recorder {
    /// Starts the task that writes, until all recorders are dropped or it is stopped; it ends
    /// once what was recorded until then is written.
    pub(crate) fn start(
        client: Client,
        clock: SharedClock,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let (sender, occurrences) = mpsc::channel(OCCURRENCES_QUEUED);
        let event_writer = EventWriter {
            writer: Writer::new(client),
            clock,
            instance: truncated(instance, INSTANCE_LENGTH_MAX).to_owned(),
            correlator: EventCorrelator::default(),
        };
        let event_writer = tokio::spawn(event_writer.run(occurrences, stop));
        (Self { sender }, event_writer)
    }

    /// Emits an event about the ClusterVersion, whose uid is `owner`; never waits.
    pub(crate) fn emit(&self, owner: &str, draft: EventDraft) {
        self.emit_about(CLUSTER_VERSION, CLUSTER_VERSION_NAME, owner, draft);
    }

    /// Emits an event about a cluster-scoped object; never waits.
    pub(crate) fn emit_about(&self, kind: ApiKind, name: &str, uid: &str, draft: EventDraft) {
        self.emit_about_in("", kind, name, uid, draft);
    }

    /// The same about an object of a namespace.
    pub(crate) fn emit_about_in(
        &self,
        namespace: &str,
        kind: ApiKind,
        name: &str,
        uid: &str,
        draft: EventDraft,
    ) {
        let EventDraft { severity, reason, action, note, related } = draft;
        let occurrence = Occurrence {
            severity,
            reason,
            action,
            note,
            regarding: ObjectReference {
                namespace: Some(namespace.to_owned()).filter(|it| !it.is_empty()),
                ..cluster_scoped(kind, name, uid)
            },
            related: related.as_ref().map(object),
        };
        tracing::info!(
            reason = %occurrence.reason,
            action = occurrence.action,
            "{}",
            occurrence.note
        );
        if self.sender.try_send(occurrence).is_err() {
            tracing::debug!("too many events wait to be written; one is dropped");
        }
    }
}

/// Writes what is recorded.
struct EventWriter {
    writer: Writer,
    clock: SharedClock,
    instance: String,
    correlator: EventCorrelator,
}

impl EventWriter {
    async fn run(mut self, mut occurrences: mpsc::Receiver<Occurrence>, stop: CancellationToken) {
        let mut tidy_at = Instant::now() + TIDY_INTERVAL;
        loop {
            tokio::select! {
                // Branches are polled in order, so that simulations are repeatable.
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(tidy_at) => {
                    tidy_at = Instant::now() + TIDY_INTERVAL;
                    let writes = self.correlator.tidy(self.clock.now());
                    self.write(writes, &stop).await;
                }
                occurrence = occurrences.recv() => {
                    let Some(occurrence) = occurrence else { break };
                    let write = self.correlator.note(entry(occurrence), self.clock.now());
                    self.write(write.into_iter().collect(), &stop).await;
                }
            }
        }
        // What was recorded last may be why the process stops.
        while let Ok(occurrence) = occurrences.try_recv() {
            let write = self.correlator.note(entry(occurrence), self.clock.now());
            self.write(write.into_iter().collect(), &stop).await;
        }
    }

    async fn write(&self, writes: Vec<Write>, stop: &CancellationToken) {
        for write in writes {
            if let Err(error) = self.try_writing(&write, stop).await {
                tracing::debug!(%error, "could not write an event; it is dropped");
            }
        }
    }

    async fn try_writing(
        &self,
        write: &Write,
        stop: &CancellationToken,
    ) -> Result<(), kube::Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = match write {
                Write::Create(entry) => self.writer.create_event(&self.event(entry)).await,
                Write::Count(entry) => self.writer.count_event(&self.event(entry)).await,
            };
            match result {
                Err(kube::Error::Api(status)) if !matches!(status.code, 429 | 500..) => {
                    return Err(kube::Error::Api(status));
                }
                Err(_) if tries < TRIES_MAX && !stop.is_cancelled() => {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(RETRY_DELAY) => {}
                    }
                }
                result => return result,
            }
        }
    }

    fn event(&self, entry: &Entry) -> Event {
        let Occurrence { severity, reason, action, note, regarding, related } = &entry.occurrence;
        let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER_NAMESPACE.to_owned());
        Event {
            metadata: ObjectMeta {
                name: Some(entry.name.clone()),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(entry.first)),
            type_: Some(type_of(*severity).to_owned()),
            reason: Some(reason.as_str().to_owned()),
            action: Some((*action).to_owned()),
            note: Some(truncated(note, NOTE_LENGTH_MAX).to_owned()),
            regarding: Some(regarding.clone()),
            related: related.clone(),
            reporting_controller: Some(REPORTING_CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            series: (entry.count > 1).then_some(EventSeries {
                count: entry.count,
                last_observed_time: MicroTime(entry.last),
            }),
            ..Event::default()
        }
    }
}

/// An occurrence with the texts that will be written: those decide what is a repetition.
fn entry(mut occurrence: Occurrence) -> Occurrence {
    occurrence.note.truncate(truncated(&occurrence.note, NOTE_LENGTH_MAX).len());
    occurrence
}

/// The longest beginning of a text that has at most so many bytes.
fn truncated(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The name of an Event, as client-go makes it: of the object and the moment.
fn name(regarding: &ObjectReference, time: Timestamp) -> String {
    let object = regarding.name.as_deref().unwrap_or("cluster");
    format!("{object}.{:x}", time.as_nanosecond())
}

#[cfg(test)]
mod tests;
