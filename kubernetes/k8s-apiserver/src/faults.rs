//! Fault injection: a layer that makes requests fail.
//!
//! [`Faults`] is a script of which requests fail, how ([`Fault`]) and when. It is a
//! [`tower::Layer`], so the same script can wrap the embedded server in process, the service behind
//! a listener, and the client of any other server:
//!
//! ```no_run
//! # fn example() {
//! use std::time::Duration;
//! use k8s_apiserver::faults::{Fault, Faults, Requests};
//! use k8s_apiserver::{ApiServer, Options};
//! use tower::Layer as _;
//!
//! let faults = Faults::none();
//! faults.add(Requests::any().verb("patch").resource("configmaps").skip(2), Fault::refused(409));
//! faults.add("GET /api/v1/nodes", Fault::Delayed(Duration::from_secs(30)));
//! let server = faults.layer(ApiServer::new(Options::default()));
//! # drop(server);
//! # }
//! ```
//!
//! The faults of a request depend only on the script, its seeds and the order of the requests. Time
//! is tokio's: a paused runtime pauses delays too.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;

mod chance;
mod fault;
mod layer;
mod requests;
mod stream;

pub use crate::storage::AsOf;
pub use fault::{Fault, Refusal};
pub use layer::Faulty;
pub use requests::Requests;
pub use stream::FaultyBody;

use requests::SeenRequest;

/// Which requests fail, how and when; clones share the same script.
#[derive(Clone, Debug)]
pub struct Faults {
    script: Arc<Mutex<FaultScript>>,
}

#[derive(Debug)]
struct FaultScript {
    rules: Vec<FaultRule>,
    chance: Option<Chance>,
    /// Number of requests so far.
    seen: u64,
    fired: Vec<(String, Fault)>,
}

#[derive(Debug)]
struct FaultRule {
    requests: Requests,
    fault: Fault,
    /// Number of requests that matched so far.
    matched: u64,
    /// Number of them that got the fault.
    fired: u64,
}

/// A share of the requests, drawn from a seed.
#[derive(Clone, Copy, Debug)]
struct Chance {
    seed: u64,
    share: f64,
}

impl Faults {
    /// A script without faults.
    pub fn none() -> Self {
        Self::new(None)
    }

    /// A script in which a share of the requests (0.1 is one in ten) gets random faults, of those
    /// that any server can have. Which requests and which faults depends only on the seed and on
    /// the position of the request.
    pub fn seeded(seed: u64, share: f64) -> Self {
        Self::new(Some(Chance { seed, share }))
    }

    fn new(chance: Option<Chance>) -> Self {
        let script = FaultScript { rules: Vec::new(), chance, seen: 0, fired: Vec::new() };
        Self { script: Arc::new(Mutex::new(script)) }
    }

    /// Adds a rule: the requests that match `requests` get `fault`; by default only the next one.
    ///
    /// A request gets at most one fault, that of the first rule that matches in the order of
    /// addition; rules take precedence over [`Faults::seeded`]. A string matches the next request
    /// whose request line (`PATCH /api/v1/namespaces/a?fieldManager=b`) contains it.
    pub fn add(&self, requests: impl Into<Requests>, fault: Fault) {
        let rule = FaultRule { requests: requests.into(), fault, matched: 0, fired: 0 };
        self.lock().rules.push(rule);
    }

    /// Removes all rules and random faults.
    pub fn stop(&self) {
        let mut script = self.lock();
        script.rules.clear();
        script.chance = None;
    }

    /// The faults so far, each with the line of its request.
    pub fn fired(&self) -> Vec<(String, Fault)> {
        self.lock().fired.clone()
    }

    /// Decides which fault a request gets.
    fn draw<B>(&self, request: &Request<B>) -> Option<Fault> {
        let seen = SeenRequest::of(request);
        let mut script = self.lock();
        let position = script.seen;
        script.seen += 1;
        let fault = script.due(&seen).or_else(|| {
            let chance = script.chance?;
            chance::choose(chance.seed, position, chance.share, seen.is_write, seen.is_watch)
        })?;
        script.fired.push((seen.line, fault.clone()));
        Some(fault)
    }

    /// Locks the script, also if another test panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, FaultScript> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultScript {
    /// The fault of the first rule that applies. All rules count the requests that they match.
    fn due(&mut self, seen: &SeenRequest<'_>) -> Option<Fault> {
        let mut found = None;
        for rule in &mut self.rules {
            if rule.requests.matches(seen) {
                let position = rule.matched;
                rule.matched += 1;
                if found.is_none() && rule.requests.is_due(position) {
                    rule.fired += 1;
                    found = Some(rule.fault.clone());
                }
            }
        }
        self.rules.retain(|rule| !rule.requests.is_over(rule.fired));
        found
    }
}

#[cfg(test)]
mod tests;
