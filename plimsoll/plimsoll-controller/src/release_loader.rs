//! Reads releases from the payload store, off the loop.
//!
//! Which release is read is decided by
//! [`UpdateRequests`](plimsoll_plan::reconciler::updates::UpdateRequests). Reading and parsing a
//! payload takes a second or more, so both happen on threads of their own, and are cancelled when
//! another release is requested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_api::config::Release;
use plimsoll_content::Payload;
use plimsoll_content::payload::{PayloadErrors, SourceFile, TemplateContext, parse};
use plimsoll_plan::reconciler::updates::LoadEvent;
use plimsoll_plan::update::acceptance::Verification;
use plimsoll_source::store::{Fetched, Listing, PayloadStore, Signature, StoreError, names};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How often the store is listed: a release that is added is available soon after.
const LIST_INTERVAL: Duration = Duration::from_secs(10);
/// How often to look for the release that the cluster is at while the store lacks it.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A shared payload store.
pub type SharedStore = Arc<dyn PayloadStore>;

/// What a task read from the store.
enum LoadOutcome {
    Listed(Result<Listing, StoreError>),
    Fetched(u64, Result<Fetched, StoreError>),
    Loaded(u64, Result<Arc<Payload>, PayloadErrors>),
}

/// Reads releases from the payload store, off the loop.
pub(crate) struct ReleaseLoader {
    /// `None` if no release can be requested.
    store: Option<SharedStore>,
    profile: String,
    /// What could not be read when the store was listed last.
    problems: Vec<String>,
    tasks: JoinSet<LoadOutcome>,
    list_at: Instant,
    /// Set when what is under way is cancelled; threads check it.
    is_cancelled: Arc<AtomicBool>,
    /// The files of the release that was retrieved last, until it is loaded.
    files: Vec<SourceFile>,
}

impl ReleaseLoader {
    /// Starts with what the store has.
    pub(crate) fn new(store: Option<SharedStore>, profile: &str, listing: &Listing) -> Self {
        let mut loader = Self {
            store,
            profile: profile.to_owned(),
            problems: Vec::new(),
            tasks: JoinSet::new(),
            list_at: Instant::now() + LIST_INTERVAL,
            is_cancelled: Arc::default(),
            files: Vec::new(),
        };
        loader.log_problems(&listing.defects);
        loader
    }

    /// Waits for the next thing that is read; forever when there is nothing to wait for.
    pub(crate) async fn next(&mut self) -> LoadEvent {
        let has_store = self.store.is_some();
        loop {
            tokio::select! {
                biased;
                Some(result) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    match result.map(|outcome| self.event(outcome)) {
                        Ok(Some(event)) => return event,
                        Ok(None) => {}
                        Err(error) => tracing::warn!(%error, "reading a release was interrupted"),
                    }
                }
                () = sleep_until(self.list_at), if has_store => {
                    self.list_at = Instant::now() + LIST_INTERVAL;
                    if let Some(store) = self.store.clone() {
                        self.spawn_read(move || LoadOutcome::Listed(store.list()));
                    }
                }
                else => std::future::pending().await,
            }
        }
    }

    /// Cancels what is under way and retrieves a release.
    pub(crate) fn retrieve(&mut self, ticket: u64, image: String) {
        self.cancel();
        let Some(store) = self.store.clone() else { return };
        let is_cancelled = Arc::clone(&self.is_cancelled);
        self.spawn_read(move || LoadOutcome::Fetched(ticket, store.fetch(&image, &is_cancelled)));
    }

    /// Loads the release that was retrieved.
    pub(crate) fn load(&mut self, ticket: u64, image: String) {
        let files = std::mem::take(&mut self.files);
        let context =
            TemplateContext { release_image: image, cluster_profile: self.profile.clone() };
        self.spawn_read(move || LoadOutcome::Loaded(ticket, parse(files, &context).map(Arc::new)));
    }

    /// Cancels what is under way.
    pub(crate) fn cancel(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.is_cancelled = Arc::default();
        self.files = Vec::new();
    }

    /// Reads off the loop: on a thread of its own if it takes time.
    fn spawn_read(&mut self, read: impl FnOnce() -> LoadOutcome + Send + 'static) {
        if self.store.as_ref().is_some_and(|store| store.is_at_hand()) {
            self.tasks.spawn(async move { read() });
        } else {
            self.tasks.spawn_blocking(read);
        }
    }

    /// Returns what a task read, for those who decide; `None` for what was cancelled.
    fn event(&mut self, outcome: LoadOutcome) -> Option<LoadEvent> {
        Some(match outcome {
            LoadOutcome::Listed(Ok(Listing { releases, defects })) => {
                self.log_problems(&defects);
                LoadEvent::Listed(Ok(releases))
            }
            LoadOutcome::Listed(Err(error)) => {
                tracing::warn!(%error, "the payload store cannot be read; trying again");
                LoadEvent::Listed(Err(error.to_string()))
            }
            LoadOutcome::Fetched(_, Err(StoreError::Cancelled)) => return None,
            LoadOutcome::Fetched(ticket, Ok(fetched)) => {
                self.files = fetched.files;
                LoadEvent::Retrieved(ticket, Ok(verification(fetched.signature)))
            }
            LoadOutcome::Fetched(ticket, Err(error)) => {
                LoadEvent::Retrieved(ticket, Err(error.to_string()))
            }
            LoadOutcome::Loaded(ticket, result) => {
                LoadEvent::Loaded(ticket, result.map_err(|error| error.to_string()))
            }
        })
    }

    /// Logs what cannot be read of the store, once.
    fn log_problems(&mut self, problems: &[String]) {
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            tracing::warn!(%problem, "a release of the payload store cannot be read");
        }
        self.problems = problems.to_vec();
    }
}

impl Drop for ReleaseLoader {
    fn drop(&mut self) {
        // A thread cannot be aborted; it checks this.
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

fn verification(signature: Signature) -> Verification {
    match signature {
        Signature::NotSigned => Verification::NotSigned,
        Signature::Verified => Verification::Verified,
        Signature::Failed(why) => Verification::Failed(why),
    }
}

/// The payload to start with: with a store, the release that the cluster is at or on its way to,
/// waiting until the store has it; `given` for a cluster without one. Without a store, `given`.
///
/// # Errors
///
/// When the controller is stopped.
pub(crate) async fn first_payload(
    store: Option<&SharedStore>,
    desired: &Release,
    given: Arc<Payload>,
    profile: &str,
    stop: &CancellationToken,
) -> Result<(Arc<Payload>, Listing), Error> {
    let Some(store) = store else {
        return Ok((given, Listing::default()));
    };
    let mut logged = String::new();
    loop {
        match find(store, desired, &given, profile).await {
            Ok(found) => return Ok(found),
            Err(problem) if problem != logged => {
                tracing::warn!(
                    version = %desired.version,
                    "waiting for the release that the cluster is at: {problem}"
                );
                logged = problem;
            }
            Err(_) => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Error::Stopped),
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

async fn find(
    store: &SharedStore,
    desired: &Release,
    given: &Arc<Payload>,
    profile: &str,
) -> Result<(Arc<Payload>, Listing), String> {
    let (store, image) = (Arc::clone(store), desired.image.clone());
    let is_given = image.is_empty() || image == given.image;
    let context =
        TemplateContext { release_image: image.clone(), cluster_profile: profile.to_owned() };
    let at_hand = store.is_at_hand();
    let read = move || -> Result<(Option<Payload>, Listing), String> {
        let listing = store.list().map_err(|error| error.to_string())?;
        if is_given {
            return Ok((None, listing));
        }
        if !listing.releases.iter().any(|head| names(&image, head)) {
            return Err(format!("the payload store has no release {image:?}"));
        }
        let fetched = store.fetch(&image, &AtomicBool::new(false));
        let files = fetched.map_err(|error| error.to_string())?.files;
        let payload = parse(files, &context);
        Ok((Some(payload.map_err(|error| error.to_string())?), listing))
    };
    let (payload, listing) = if at_hand {
        read()?
    } else {
        spawn_blocking(read).await.map_err(|error| error.to_string()).and_then(|result| result)?
    };
    Ok((payload.map_or_else(|| Arc::clone(given), Arc::new), listing))
}
