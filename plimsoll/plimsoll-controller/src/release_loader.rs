//! Takes releases in: asks the payload store off the loop and carries out what the pure
//! [`Acceptance`] orders.
//!
//! Reading and parsing a payload takes a second or more, so both happen on threads of their own,
//! and are given up when something else is asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::config::Release;
use plimsoll_content::Payload;
use plimsoll_content::payload::{PayloadErrors, ReleaseHeader, SourceFile, TemplateContext, parse};
use plimsoll_plan::update::acceptance::LoadStatus;
use plimsoll_plan::update::acceptance::{Acceptance, Identity, Order, Verification, Wanted};
use plimsoll_plan::update::offers;
use plimsoll_plan::update::preconditions::Facts;
use plimsoll_source::store::{Fetched, Listing, PayloadStore, Signature, StoreError, names};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How often the store is listed: whoever adds a release sees it offered soon after.
const LIST_INTERVAL: Duration = Duration::from_secs(10);
/// How often to look for the release that the cluster is at, while the store lacks it.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A shared payload store.
pub type SharedStore = Arc<dyn PayloadStore>;

/// A release that may take the place of the one that is applied.
pub(crate) struct Accepted {
    pub(crate) payload: Arc<Payload>,
    pub(crate) verified: bool,
    pub(crate) accepted_risks: String,
}

/// What a task brought back.
pub(crate) enum LoadOutcome {
    /// What the store has.
    Listed(Result<Listing, StoreError>),
    /// The files of a release.
    Fetched(u64, Result<Fetched, StoreError>),
    /// A payload.
    Loaded(u64, Result<Arc<Payload>, PayloadErrors>),
    /// It is time to list the store again.
    ListingDue,
}

impl LoadOutcome {
    /// The payload that was loaded.
    pub(crate) fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Loaded(_, Ok(payload)) => Some(payload),
            _ => None,
        }
    }
}

/// Loads requested releases beside the loop.
pub(crate) struct ReleaseLoader {
    store: Option<SharedStore>,
    profile: String,
    acceptance: Acceptance,
    /// The releases of the store, or why it cannot be read.
    heads: Result<Vec<ReleaseHeader>, String>,
    defects: Vec<String>,
    tasks: JoinSet<LoadOutcome>,
    list_at: Instant,
    cancelled: Arc<AtomicBool>,
    /// What was fetched for the attempt under way.
    files: Vec<SourceFile>,
    /// What was loaded for it.
    payload: Option<Arc<Payload>>,
}

impl ReleaseLoader {
    pub(crate) fn new(
        store: Option<SharedStore>,
        profile: &str,
        running: &Release,
        architecture: &str,
        listing: Listing,
    ) -> Self {
        let mut loader = Self {
            store,
            profile: profile.to_owned(),
            acceptance: Acceptance::new(running, architecture),
            heads: Ok(Vec::new()),
            defects: Vec::new(),
            tasks: JoinSet::new(),
            list_at: Instant::now() + LIST_INTERVAL,
            cancelled: Arc::default(),
            files: Vec::new(),
            payload: None,
        };
        loader.listed(Ok(listing));
        loader
    }

    /// What `ReleaseAccepted` tells.
    pub(crate) fn status(&self) -> &LoadStatus {
        self.acceptance.status()
    }

    /// Whether preconditions are what stands in the way of a release.
    pub(crate) fn is_held_up(&self) -> bool {
        self.acceptance.is_held_up()
    }

    /// When to try a rejected release again.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.acceptance.wake_at()
    }

    /// The payload of the release that is judged.
    pub(crate) fn payload(&self) -> Option<&Payload> {
        self.payload.as_deref()
    }

    /// Whether there is a store.
    pub(crate) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// The releases of the store, or why it cannot be read.
    pub(crate) fn heads(&self) -> Result<&[ReleaseHeader], &str> {
        self.heads.as_deref().map_err(String::as_str)
    }

    /// The release of several architectures of a version.
    pub(crate) fn of_architecture(&self, version: &str, architecture: &str) -> Option<Release> {
        let heads = self.heads.as_ref().ok()?;
        let head = heads.iter().find(|head| {
            head.release.version == version && head.release.architecture == architecture
        })?;
        Some(offers::release(head))
    }

    /// Waits for the next thing that a task brings; forever when there is nothing to wait for.
    pub(crate) async fn next(&mut self) -> LoadOutcome {
        let listing = self.store.is_some();
        loop {
            tokio::select! {
                biased;
                Some(result) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    match result {
                        Ok(brought) => return brought,
                        Err(error) => tracing::warn!(%error, "reading a release was interrupted"),
                    }
                }
                () = sleep_until(self.list_at), if listing => {
                    self.list_at = Instant::now() + LIST_INTERVAL;
                    return LoadOutcome::ListingDue;
                }
                else => std::future::pending().await,
            }
        }
    }

    /// Takes note of what a task brought.
    pub(crate) fn handle(
        &mut self,
        brought: LoadOutcome,
        facts: &Facts<'_>,
        now: Timestamp,
    ) -> Option<Accepted> {
        let order = match brought {
            LoadOutcome::ListingDue => {
                if let Some(store) = self.store.clone() {
                    self.spawn_read(move || LoadOutcome::Listed(store.list()));
                }
                return None;
            }
            LoadOutcome::Listed(listing) => {
                self.listed(listing);
                return None;
            }
            LoadOutcome::Fetched(_, Err(StoreError::Cancelled)) => return None,
            LoadOutcome::Fetched(ticket, result) => {
                let result = result.map(|fetched| {
                    self.files = fetched.files;
                    verification(fetched.signature)
                });
                self.acceptance.retrieved(ticket, result.map_err(|error| error.to_string()), now)
            }
            LoadOutcome::Loaded(ticket, result) => {
                let result = result.map(|payload| {
                    let identity = Identity {
                        version: payload.release.version.clone(),
                        architecture: architecture(&payload).to_owned(),
                    };
                    self.payload = Some(payload);
                    identity
                });
                let result = result.map_err(|error| error.to_string());
                self.acceptance.loaded(ticket, result, facts, now)
            }
        };
        self.dispatch(order, now)
    }

    /// A release is asked for, or nothing is.
    pub(crate) fn ask(&mut self, wanted: Option<Wanted>, now: Timestamp) -> Option<Accepted> {
        let order = self.acceptance.ask(wanted);
        self.dispatch(order, now)
    }

    /// Looks once more at a release that was rejected.
    pub(crate) fn reconsider(&mut self, facts: &Facts<'_>, now: Timestamp) -> Option<Accepted> {
        let order = self.acceptance.reconsider(facts);
        if let Some(accepted) = self.dispatch(order, now) {
            return Some(accepted);
        }
        let order = self.acceptance.retry(now);
        self.dispatch(order, now)
    }

    /// A release has taken the place of the one that was applied.
    pub(crate) fn swapped(&mut self, running: &Release, payload: &Payload) {
        self.acceptance.swapped(running, architecture(payload));
        self.forget();
    }

    fn forget(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.cancelled = Arc::default();
        self.files = Vec::new();
        self.payload = None;
    }

    /// Does something off the loop: on a thread of its own if it takes its time.
    fn spawn_read(&mut self, work: impl FnOnce() -> LoadOutcome + Send + 'static) {
        if self.store.as_ref().is_some_and(|store| store.is_at_hand()) {
            self.tasks.spawn(async move { work() });
        } else {
            self.tasks.spawn_blocking(work);
        }
    }

    fn dispatch(&mut self, order: Order, now: Timestamp) -> Option<Accepted> {
        match order {
            Order::Nothing => None,
            Order::Cancel => {
                self.forget();
                None
            }
            Order::Retrieve(ticket, wanted) => {
                self.forget();
                let Some(store) = self.store.clone() else {
                    let known = &self.acceptance.running().version;
                    let failure = format!(
                        "the controller was started with release {known} and knows no other; start \
                         it with --payloads and a store that has the release asked for"
                    );
                    let order = self.acceptance.retrieved(ticket, Err(failure), now);
                    return self.dispatch(order, now);
                };
                let cancelled = Arc::clone(&self.cancelled);
                self.spawn_read(move || {
                    LoadOutcome::Fetched(ticket, store.fetch(&wanted.image, &cancelled))
                });
                None
            }
            Order::Load(ticket) => {
                let files = std::mem::take(&mut self.files);
                let context = TemplateContext {
                    release_image: self.acceptance.status().image.clone(),
                    cluster_profile: self.profile.clone(),
                };
                self.spawn_read(move || {
                    LoadOutcome::Loaded(ticket, parse(&files, &context).map(Arc::new))
                });
                None
            }
            Order::Accept { verified, accepted_risks } => {
                let payload = self.payload.take()?;
                Some(Accepted { payload, verified, accepted_risks })
            }
        }
    }

    fn listed(&mut self, listing: Result<Listing, StoreError>) {
        let Listing { releases, defects } = match listing {
            Ok(listing) => listing,
            Err(error) => {
                tracing::warn!(%error, "the payload store cannot be read; trying again");
                self.heads = Err(error.to_string());
                return;
            }
        };
        for defect in defects.iter().filter(|defect| !self.defects.contains(defect)) {
            tracing::warn!(%defect, "a release of the payload store cannot be read");
        }
        self.defects = defects;
        self.heads = Ok(releases);
    }
}

impl Drop for ReleaseLoader {
    fn drop(&mut self) {
        // A thread cannot be ended; it looks here.
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn verification(signature: Signature) -> Verification {
    match signature {
        Signature::NotSigned => Verification::NotSigned,
        Signature::Verified => Verification::Verified,
        Signature::Failed(why) => Verification::Failed(why),
    }
}

/// The architecture of a payload, as Go names it; one that declares none is for this machine.
pub(crate) fn architecture(payload: &Payload) -> &str {
    match (payload.release.architecture.as_str(), std::env::consts::ARCH) {
        ("", "x86_64") => "amd64",
        ("", "aarch64") => "arm64",
        ("", "powerpc64") => "ppc64le",
        ("", other) | (other, _) => other,
    }
}

/// The payload to begin with: with a store, the release that the cluster is at or on its way to,
/// waiting until the store has it; `given` for a cluster without one. Without a store, `given`.
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
    let mut told = String::new();
    loop {
        match find(store, desired, &given, profile).await {
            Ok(found) => return Ok(found),
            Err(problem) if problem != told => {
                tracing::warn!(
                    version = %desired.version,
                    "waiting for the release that the cluster is at: {problem}"
                );
                told = problem;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(POLL_INTERVAL) => {}
            () = stop.cancelled() => return Err(Error::Stopped),
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
        let payload = parse(&files, &context);
        Ok((Some(payload.map_err(|error| error.to_string())?), listing))
    };
    let (payload, listing) = if at_hand {
        read()?
    } else {
        spawn_blocking(read).await.map_err(|error| error.to_string()).and_then(|result| result)?
    };
    Ok((payload.map_or_else(|| Arc::clone(given), Arc::new), listing))
}
