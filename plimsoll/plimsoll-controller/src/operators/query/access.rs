//! Access to the resolver: who sends a request, and whether it is allowed. Reviews of the API server count for a
//! while.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::{SignedDuration, Timestamp};
use plimsoll_content::hash::sha256;
use tokio::sync::Semaphore;

use super::failure::Failure;
use crate::clock::SharedClock;
use crate::write::chain;

/// How long a review counts: a permission that is withdrawn is used for no longer than this.
const REVIEW_LIFETIME: SignedDuration = SignedDuration::from_secs(30);
/// The number of reviews of a kind that are kept: some kilobytes for more clients than ask within their lifetime.
const REVIEWS_MAX: usize = 1024;
/// The number of reviews that are asked for at the same time; more wait for their turn. Everyone who reaches the
/// port can cause them.
const REVIEWING_MAX: usize = 8;

/// A client, as the API server knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The name of the user.
    pub username: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// The uid of the user; empty if it has none.
    pub uid: String,
    /// What else the API server knows of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Caller {
    /// Returns the user that a request without a token is of, as in an API server.
    fn anonymous() -> Self {
        Self {
            username: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }
}

/// The authority on clients: the API server, but in tests.
pub trait Authority: Send + Sync + 'static {
    /// Returns the user that a token belongs to; `None` if it is not valid.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    fn authenticate(
        &self,
        token: &str,
    ) -> impl Future<Output = Result<Option<Caller>, kube::Error>> + Send;

    /// Returns whether a user may use a verb on the path of a URL.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    fn is_allowed(
        &self,
        caller: &Caller,
        path: &str,
        verb: &str,
    ) -> impl Future<Output = Result<bool, kube::Error>> + Send;
}

/// What decides on access.
pub(super) struct Access<A> {
    authority: A,
    clock: SharedClock,
    reviewing: Semaphore,
    users: Mutex<Reviews<Option<Caller>>>,
    permissions: Mutex<Reviews<bool>>,
}

impl<A: Authority> Access<A> {
    pub(super) fn new(authority: A, clock: SharedClock) -> Self {
        Self {
            authority,
            clock,
            reviewing: Semaphore::new(REVIEWING_MAX),
            users: Mutex::new(Reviews::default()),
            permissions: Mutex::new(Reviews::default()),
        }
    }

    /// Decides on a request.
    ///
    /// # Errors
    ///
    /// When its client is not authenticated or not authorized, or the API server does not say so; and when it asks
    /// as another user, whom it would not be answered as.
    pub(super) async fn admit(
        &self,
        headers: &HeaderMap,
        path: &str,
        verb: &str,
    ) -> Result<(), Failure> {
        if headers.keys().any(|it| it.as_str().starts_with("impersonate-")) {
            return Err(Failure::impersonation());
        }
        let caller = match token(headers) {
            Some(token) => self.user(token).await?.ok_or_else(Failure::unauthorized)?,
            None => Caller::anonymous(),
        };
        if self.is_allowed(&caller, path, verb).await? {
            Ok(())
        } else {
            Err(Failure::forbidden(&caller.username, path, verb))
        }
    }

    async fn user(&self, token: &str) -> Result<Option<Caller>, Failure> {
        // The token itself is not kept.
        let key = sha256([token.as_bytes()]);
        let known = locked(&self.users).find(&key, self.clock.now());
        if let Some(known) = known {
            return Ok(known);
        }
        let _turn = self.reviewing.acquire().await;
        let found = self.authority.authenticate(token).await.map_err(|error| unreviewed(&error))?;
        locked(&self.users).insert(key, found.clone(), self.clock.now());
        Ok(found)
    }

    async fn is_allowed(&self, caller: &Caller, path: &str, verb: &str) -> Result<bool, Failure> {
        let key = sha256([format!("{caller:?}").as_bytes(), path.as_bytes(), verb.as_bytes()]);
        let known = locked(&self.permissions).find(&key, self.clock.now());
        if let Some(known) = known {
            return Ok(known);
        }
        let _turn = self.reviewing.acquire().await;
        let found = self.authority.is_allowed(caller, path, verb).await;
        let found = found.map_err(|error| unreviewed(&error))?;
        locked(&self.permissions).insert(key, found, self.clock.now());
        Ok(found)
    }
}

/// Returns the bearer token of a request; `None` if it has none.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unreviewed(error: &kube::Error) -> Failure {
    tracing::warn!(error = chain(error), "the API server does not review a client");
    Failure::unavailable("the API server does not say who may send this request")
}

/// Reviews as they were answered, by a digest of what was reviewed.
struct Reviews<T> {
    answers: BTreeMap<String, Review<T>>,
}

struct Review<T> {
    answered: Timestamp,
    answer: T,
}

impl<T> Default for Reviews<T> {
    fn default() -> Self {
        Self { answers: BTreeMap::new() }
    }
}

impl<T: Clone> Reviews<T> {
    fn find(&self, key: &str, now: Timestamp) -> Option<T> {
        let review = self.answers.get(key)?;
        review.counts(now).then(|| review.answer.clone())
    }

    fn insert(&mut self, key: String, answer: T, now: Timestamp) {
        if self.answers.len() >= REVIEWS_MAX {
            self.answers.retain(|_, it| it.counts(now));
        }
        if self.answers.len() >= REVIEWS_MAX {
            self.answers.clear();
        }
        self.answers.insert(key, Review { answered: now, answer });
    }
}

impl<T> Review<T> {
    /// Returns whether it still counts. The clock may have been set back.
    fn counts(&self, now: Timestamp) -> bool {
        now.duration_since(self.answered).abs() < REVIEW_LIFETIME
    }
}

/// Locks reviews. A thread that panicked has left them whole.
fn locked<T>(reviews: &Mutex<Reviews<T>>) -> std::sync::MutexGuard<'_, Reviews<T>> {
    reviews.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    //! Reviews that count for a while, and requests that are refused. Time is set.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use http::HeaderValue;

    use super::*;
    use crate::clock::Clock;

    #[derive(Default)]
    struct SetClock(AtomicI64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.load(Ordering::Relaxed)).expect("a time")
        }
    }

    /// Knows tokens of the form `of-NAME`; alice may read.
    #[derive(Default)]
    struct Reviewer {
        asked: Arc<AtomicUsize>,
    }

    impl Authority for Reviewer {
        async fn authenticate(&self, token: &str) -> Result<Option<Caller>, kube::Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let name = token.strip_prefix("of-").map(str::to_owned);
            Ok(name.map(|username| Caller { username, ..Caller::default() }))
        }

        async fn is_allowed(
            &self,
            caller: &Caller,
            path: &str,
            verb: &str,
        ) -> Result<bool, kube::Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(caller.username == "alice" && path.starts_with("/v1/") && verb == "get")
        }
    }

    fn headers(authorization: &str) -> HeaderMap {
        let value = HeaderValue::from_str(authorization).expect("a header");
        let mut headers = HeaderMap::new();
        headers.extend((!authorization.is_empty()).then_some((AUTHORIZATION, value)));
        headers
    }

    #[tokio::test]
    async fn who_may_not_ask_is_refused_as_an_api_server_does() {
        let access = Access::new(Reviewer::default(), Arc::new(SetClock::default()));
        let path = "/v1/packages";
        for (authorization, verb, expected) in [
            ("Bearer of-alice", "get", Ok(())),
            ("bearer  of-alice", "get", Ok(())),
            ("Bearer of-alice", "post", Err(Failure::forbidden("alice", path, "post"))),
            ("Bearer of-bob", "get", Err(Failure::forbidden("bob", path, "get"))),
            ("Bearer forged", "get", Err(Failure::unauthorized())),
            ("Basic of-alice", "get", Err(Failure::forbidden("system:anonymous", path, "get"))),
            ("", "get", Err(Failure::forbidden("system:anonymous", path, "get"))),
        ] {
            let found = access.admit(&headers(authorization), path, verb).await;
            assert_eq!(found, expected, "{authorization} {verb}");
        }
    }

    #[tokio::test]
    async fn who_asks_as_another_user_is_refused() {
        let access = Access::new(Reviewer::default(), Arc::new(SetClock::default()));
        for name in ["Impersonate-User", "impersonate-group", "Impersonate-Extra-scopes"] {
            let mut headers = headers("Bearer of-alice");
            let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.insert(name, HeaderValue::from_static("bob"));
            let found = access.admit(&headers, "/v1/packages", "get").await;
            assert_eq!(found, Err(Failure::impersonation()));
        }
    }

    #[tokio::test]
    async fn a_review_counts_for_a_while() {
        let (clock, asked) = (Arc::new(SetClock::default()), Arc::new(AtomicUsize::new(0)));
        let reviewer = Reviewer { asked: Arc::clone(&asked) };
        let access = Access::new(reviewer, Arc::clone(&clock) as SharedClock);
        let headers = headers("Bearer of-alice");
        for (second, expected) in [(0, 2), (29, 2), (30, 4), (59, 4), (10, 4), (-5, 6)] {
            clock.0.store(second, Ordering::Relaxed);
            access.admit(&headers, "/v1/packages", "get").await.expect("alice may");
            assert_eq!(asked.load(Ordering::Relaxed), expected, "at {second}");
        }
    }

    #[test]
    fn reviews_are_bounded() {
        let mut reviews = Reviews::default();
        for number in 0..3 * REVIEWS_MAX {
            reviews.insert(number.to_string(), true, Timestamp::UNIX_EPOCH);
            assert!(reviews.answers.len() <= REVIEWS_MAX);
        }
        let last = (3 * REVIEWS_MAX - 1).to_string();
        assert_eq!(reviews.find(&last, Timestamp::UNIX_EPOCH), Some(true));
    }
}
