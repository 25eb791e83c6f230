//! Watches.
//!
//! A watch is a cursor into the log of its resource: it sends the new events, and waits until the
//! resource changes, a bookmark is due or its timeout expires. It holds no lock while it waits, and
//! events in the same version and view are encoded once for all watches.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use k8s_schema::{FieldError, FieldErrorKind};
use prometheus::IntCounter;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use crate::http::encode;
use crate::http::table::{self, IncludeObject, TableForm};
use crate::json::to_bytes;
use crate::request::accept::{MetaVersion, View};
use crate::request::parameters::{NOT_OLDER_THAN, OptionsKind, Parameters};
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::shared_cluster::SharedCluster;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::{EventType, HistoryError, LogEvent, Stored};
use crate::verbs::list::{Selection, read_revision};

/// Default timeout of a watch.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(45 * 60);

/// Period of bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// Approximate number of bytes that are sent at once.
const CHUNK_LEN: usize = 64 << 10;

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The form in which a watch shows objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchForm {
    pub(crate) view: View,
    pub(crate) include: IncludeObject,
    /// The time at which tables compute ages.
    pub(crate) now: Timestamp,
}

/// An open watch.
pub(crate) struct Watch {
    resource: Arc<ApiResource>,
    selection: Selection,
    form: WatchForm,
    /// Whether the columns of tables were sent, which only the first table contains.
    columns_sent: bool,
    bookmarks: bool,
    /// The revision up to which everything was sent.
    revision: u64,
    /// The initial objects, until a webhook has converted them.
    unconverted: Option<Vec<Arc<Stored>>>,
    /// The initial objects that are not encoded yet.
    initial: std::vec::IntoIter<Arc<Stored>>,
    /// Whether a bookmark follows the initial objects.
    ends_initial: bool,
    ready: VecDeque<Bytes>,
    changed: Receiver<()>,
    deadline: Instant,
    next_bookmark: Instant,
    ended: bool,
}

impl Watch {
    /// Begins a watch.
    ///
    /// # Errors
    /// When parameters are invalid or exclude each other.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: ListResource
    pub(crate) fn begin(
        cluster: &mut Cluster,
        resource: &Arc<ApiResource>,
        selection: Selection,
        parameters: &Parameters,
        form: WatchForm,
    ) -> Result<Self> {
        check_parameters(parameters)?;
        let requested = read_revision(&parameters.resource_version)?;
        let begin = Instant::now();
        let mut watch = Self {
            changed: cluster.store.subscribe(&resource.storage),
            resource: Arc::clone(resource),
            selection,
            form,
            columns_sent: false,
            bookmarks: parameters.allow_watch_bookmarks,
            revision: requested,
            unconverted: None,
            initial: Vec::new().into_iter(),
            ends_initial: false,
            ready: VecDeque::new(),
            deadline: begin
                + parameters
                    .timeout_seconds
                    .filter(|seconds| *seconds > 0)
                    .map_or(TIMEOUT_DEFAULT, Duration::from_secs),
            next_bookmark: begin + BOOKMARK_PERIOD,
            ended: false,
        };
        let wants_state = match parameters.send_initial_events {
            Some(wanted) => wanted,
            None => requested == 0,
        };
        if wants_state {
            watch.revision = cluster.store.revision();
            let namespace = watch.selection.namespace.clone();
            let objects: Vec<Arc<Stored>> =
                cluster.store.list(&resource.storage, namespace.as_deref()).cloned().collect();
            if resource.is_converted_by_webhook() {
                watch.unconverted = Some(objects);
            } else {
                watch.begin_with(objects);
            }
            watch.ends_initial = parameters.send_initial_events == Some(true) && watch.bookmarks;
        } else if requested == 0 {
            watch.revision = cluster.store.revision();
        }
        Ok(watch)
    }

    /// The stream of the response body.
    pub(crate) fn into_stream(
        self,
        cluster: Arc<SharedCluster>,
        counter: IntCounter,
    ) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold((self, cluster), move |(mut watch, cluster)| {
            let counter = counter.clone();
            async move {
                let chunk = watch.next_chunk(&cluster, &counter).await?;
                Some((chunk, (watch, cluster)))
            }
        })
    }

    /// Sets the initial objects, in the version of the watch, without those that it does not
    /// select.
    ///
    /// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: Watch
    fn begin_with(&mut self, mut objects: Vec<Arc<Stored>>) {
        objects.retain(|stored| self.selection.matches(&self.resource, stored));
        self.initial = objects.into_iter();
    }

    /// Sets the initial objects after a webhook converted them.
    async fn begin_with_converted(&mut self, cluster: &SharedCluster, objects: Vec<Arc<Stored>>) {
        match all_in_version_later(cluster, &self.resource, objects).await {
            Ok(objects) => self.begin_with(objects),
            Err(error) => {
                self.ends_initial = false;
                self.end_with(&error);
            }
        }
    }

    /// Ends the watch with an `ERROR` event.
    fn end_with(&mut self, error: &ApiError) {
        let line = event_line("ERROR", &to_bytes(&error.to_status()));
        self.ready.push_back(line);
        self.ended = true;
    }

    /// The events with their objects in the version of the watch.
    async fn converted(
        &self,
        cluster: &SharedCluster,
        events: Vec<Arc<LogEvent>>,
    ) -> Result<Vec<Arc<LogEvent>>> {
        let objects = events
            .iter()
            .flat_map(|event| [Some(&event.object), event.previous.as_ref()])
            .flatten()
            .cloned()
            .collect();
        let mut shown = all_in_version_later(cluster, &self.resource, objects).await?.into_iter();
        let mut next = |stored: &Arc<Stored>| shown.next().unwrap_or_else(|| Arc::clone(stored));
        Ok(events
            .iter()
            .map(|event| {
                Arc::new(LogEvent {
                    change: event.change,
                    object: next(&event.object),
                    previous: event.previous.as_ref().map(&mut next),
                    line: OnceLock::new(),
                })
            })
            .collect())
    }

    async fn next_chunk(&mut self, cluster: &SharedCluster, counter: &IntCounter) -> Option<Bytes> {
        if let Some(objects) = self.unconverted.take() {
            self.begin_with_converted(cluster, objects).await;
        }
        loop {
            self.encode_initial();
            if !self.ready.is_empty() {
                let (chunk, events) = joined(&mut self.ready);
                counter.inc_by(events);
                return Some(chunk);
            }
            if self.ended {
                return None;
            }
            self.collect(cluster).await;
            if !self.ready.is_empty() || self.ended {
                continue;
            }
            let until =
                if self.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
            tokio::select! {
                // In order, so that what a client sees is repeatable.
                biased;
                changed = self.changed.recv() => if changed == Err(RecvError::Closed) {
                    self.collect(cluster).await;
                    self.ended = true;
                },
                () = tokio::time::sleep_until(until) => self.on_time(),
            }
        }
    }

    /// Encodes a chunk of the initial objects, without the lock.
    fn encode_initial(&mut self) {
        let mut size = self.ready.iter().map(Bytes::len).sum::<usize>();
        while size < CHUNK_LEN
            && let Some(stored) = self.initial.next()
        {
            let line = self.line(EventType::Added, &stored);
            size += line.len();
            self.ready.push_back(line);
        }
        if self.ends_initial && self.initial.len() == 0 {
            self.ends_initial = false;
            let line = self.bookmark(true);
            self.ready.push_back(line);
        }
    }

    /// Handles the time of the next bookmark or of the timeout.
    fn on_time(&mut self) {
        let now = Instant::now();
        self.ended = now >= self.deadline;
        if self.bookmarks {
            self.next_bookmark = now + BOOKMARK_PERIOD;
            if self.revision > 0 {
                let line = self.bookmark(false);
                self.ready.push_back(line);
            }
        }
    }

    /// Reads the new events of the log.
    async fn collect(&mut self, cluster: &SharedCluster) {
        // What the messages so far announce is read now.
        while matches!(self.changed.try_recv(), Ok(()) | Err(TryRecvError::Lagged(_))) {}
        self.form.now = cluster.now();
        let batch = cluster
            .read(|cluster| Ok(cluster.store.events_after(&self.resource.storage, self.revision)));
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.end_with(&error),
        };
        match batch {
            Ok(batch) => {
                let events = if self.resource.is_converted_by_webhook() {
                    self.converted(cluster, batch.events).await
                } else {
                    Ok(batch.events)
                };
                match events {
                    Ok(events) => events.iter().for_each(|event| self.take(event)),
                    Err(error) => self.end_with(&error),
                }
                self.revision = batch.revision;
            }
            Err(HistoryError::Compacted { oldest }) => {
                let error = ApiError::new(
                    StatusReason::Expired,
                    format!("too old resource version: {} ({oldest})", self.revision),
                );
                self.end_with(&error);
            }
            Err(HistoryError::Gone) => self.ended = true,
        }
    }

    /// Encodes an event under the selection: an object that becomes selected is added.
    fn take(&mut self, event: &LogEvent) {
        let is_selected = event.change != EventType::DeleteOutcome
            && self.selection.matches(&self.resource, &event.object);
        let was_selected = event
            .previous
            .as_ref()
            .is_some_and(|previous| self.selection.matches(&self.resource, previous));
        let change = match (was_selected, is_selected) {
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::DeleteOutcome,
            (false, false) => return,
        };
        let line = if change == event.change && self.form.view == View::Full {
            self.shared_line(event)
        } else if change == EventType::DeleteOutcome && event.change == EventType::Modified {
            self.line_of_lost(event)
        } else {
            self.line(change, &event.object)
        };
        self.ready.push_back(line);
    }

    /// The line of an event that all watches of the same version share.
    fn shared_line(&mut self, event: &LogEvent) -> Bytes {
        let version = self.resource.api_version();
        let (made_for, line) = event
            .line
            .get_or_init(|| (version.as_str().into(), self.line(event.change, &event.object)));
        if **made_for == *version { line.clone() } else { self.line(event.change, &event.object) }
    }

    /// The line of an object that is no longer selected: its state before, at the event's revision.
    fn line_of_lost(&mut self, event: &LogEvent) -> Bytes {
        let last =
            event.previous.as_ref().unwrap_or(&event.object).at_revision(event.object.revision);
        self.line(EventType::DeleteOutcome, &Arc::new(last))
    }

    fn line(&mut self, change: EventType, stored: &Arc<Stored>) -> Bytes {
        let mut out = Vec::with_capacity(stored.bytes().len() + 128);
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(change.name().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        if let View::Table(version) = self.form.view {
            let table = self.table(&convert::read(&self.resource, stored), version);
            out.extend_from_slice(&to_bytes(&table));
        } else {
            encode::object(&mut out, &self.resource, stored, self.form.view);
        }
        out.extend_from_slice(b"}\n");
        out.into()
    }

    /// The table of one object, with columns if it is the first.
    fn table(&mut self, object: &serde_json::Value, version: MetaVersion) -> serde_json::Value {
        let form = TableForm { version, include: self.form.include, now: self.form.now };
        let mut table = table::of_object(&self.resource, object, form);
        if std::mem::replace(&mut self.columns_sent, true) {
            table["columnDefinitions"] = serde_json::Value::Null;
        }
        table
    }

    fn bookmark(&mut self, ends_initial_events: bool) -> Bytes {
        let mut metadata = serde_json::json!({"resourceVersion": self.revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = serde_json::json!({INITIAL_EVENTS_END: "true"});
        }
        let (kind, api_version) = match self.form.view {
            View::Full => (self.resource.kind.as_str(), self.resource.api_version()),
            View::Metadata(version) => ("PartialObjectMetadata", version.api_version().to_owned()),
            View::Table(version) => {
                // A row of an object that has nothing but this metadata.
                let table = self.table(&serde_json::json!({"metadata": metadata}), version);
                return event_line("BOOKMARK", &to_bytes(&table));
            }
        };
        let object = serde_json::json!({
            "kind": kind,
            "apiVersion": api_version,
            "metadata": metadata,
        });
        event_line("BOOKMARK", &to_bytes(&object))
    }
}

/// Converts the objects of a watch to the version of `resource` by its webhook.
///
/// # Errors
/// When the webhook fails to convert one.
async fn all_in_version_later(
    cluster: &SharedCluster,
    resource: &ApiResource,
    objects: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>> {
    let mut context = RequestContext::default();
    loop {
        let shown = cluster.read(|cluster| {
            convert::all_in_version(cluster, &mut context, resource, objects.clone())
        });
        if !context.replay.is_pending() {
            return shown;
        }
        cluster.call_webhooks(&mut context.replay).await?;
    }
}

/// Joins ready lines to one chunk of about [`CHUNK_LEN`], since each chunk costs a system call;
/// also returns the number of its events.
fn joined(ready: &mut VecDeque<Bytes>) -> (Bytes, u64) {
    let first = ready.pop_front().unwrap_or_default();
    if ready.is_empty() || first.len() >= CHUNK_LEN {
        return (first, 1);
    }
    let mut out = Vec::from(first);
    let mut events = 1;
    while out.len() < CHUNK_LEN
        && let Some(line) = ready.pop_front()
    {
        out.extend_from_slice(&line);
        events += 1;
    }
    (out.into(), events)
}

fn event_line(event_type: &str, object: &[u8]) -> Bytes {
    let mut out = format!("{{\"type\":\"{event_type}\",\"object\":").into_bytes();
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// Checks that the parameters of a watch do not exclude each other.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go: ValidateListOptions
fn check_parameters(parameters: &Parameters) -> Result<()> {
    const MATCH: &str = "resourceVersionMatch";
    let forbidden = |why: &str| FieldError::new(MATCH, FieldErrorKind::Forbidden, why);
    let how = parameters.resource_version_match.as_str();
    let initial_events = parameters.send_initial_events.is_some();
    let mut problems = Vec::new();
    if initial_events && how != NOT_OLDER_THAN {
        problems.push(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if !how.is_empty() {
        if !initial_events {
            problems.push(forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if how != NOT_OLDER_THAN {
            let supported = r#"supported values: "NotOlderThan""#;
            let problem = FieldError::new(MATCH, FieldErrorKind::NotSupported, supported);
            problems.push(problem.with_value(how.into()));
        }
        if !parameters.continue_token.is_empty() {
            problems.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    let options = OptionsKind("ListOptions");
    if problems.is_empty() { Ok(()) } else { Err(options.invalid_all(&problems)) }
}
