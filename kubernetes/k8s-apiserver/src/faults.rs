//! Faults on demand: a layer that gives the clients of a server a bad day.
//!
//! [`Faults`] is a script: which requests meet which [`Fault`], and when. It is a
//! [`tower::Layer`], so that one and the same script goes around the embedded server in process,
//! around the same server behind a socket, and around a client of any other server:
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
//! What a request meets depends on the script, its seeds and the order of the requests, and on
//! nothing else. Time is tokio's: a paused runtime pauses delays too.
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
    /// Requests seen so far.
    seen: u64,
    fired: Vec<(String, Fault)>,
}

#[derive(Debug)]
struct FaultRule {
    requests: Requests,
    fault: Fault,
    /// Requests that matched so far.
    matched: u64,
    /// How many of them met the fault.
    fired: u64,
}

/// A share of something, drawn from a seed.
#[derive(Clone, Copy, Debug)]
struct Chance {
    seed: u64,
    share: f64,
}

impl Faults {
    /// Nothing goes wrong, until [`Faults::add`].
    pub fn none() -> Self {
        Self::new(None)
    }

    /// A share of the requests (0.1 is one in ten) fails, in all the ways in which any server
    /// fails. Which and how depends on the seed and on the position of the request, on nothing
    /// else.
    pub fn seeded(seed: u64, share: f64) -> Self {
        Self::new(Some(Chance { seed, share }))
    }

    fn new(chance: Option<Chance>) -> Self {
        let script = FaultScript { rules: Vec::new(), chance, seen: 0, fired: Vec::new() };
        Self { script: Arc::new(Mutex::new(script)) }
    }

    /// Those of `requests` meet `fault`: the next one, unless they say otherwise.
    ///
    /// A request meets one fault, that of the first rule in the order of addition that is due;
    /// rules go before what is drawn by [`Faults::seeded`]. A text stands for the next request
    /// whose line (`PATCH /api/v1/namespaces/a?fieldManager=b`) contains it.
    pub fn add(&self, requests: impl Into<Requests>, fault: Fault) {
        let rule = FaultRule { requests: requests.into(), fault, matched: 0, fired: 0 };
        self.lock().rules.push(rule);
    }

    /// Nothing goes wrong any more: the script is dropped, and so is chance.
    pub fn stop(&self) {
        let mut script = self.lock();
        script.rules.clear();
        script.chance = None;
    }

    /// What went wrong so far: the lines of the requests and what they met.
    pub fn fired(&self) -> Vec<(String, Fault)> {
        self.lock().fired.clone()
    }

    /// Decides what a request meets.
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

    /// A test that panicked meanwhile is no reason to fail another.
    fn lock(&self) -> MutexGuard<'_, FaultScript> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultScript {
    /// The fault of the first rule that is due. All rules count the request that they match.
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
