//! The requests of a seed.

use serde_json::{Value, json};

/// A request at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    /// Requests an Action: of a class, about a package; by a user who needs policies, or not.
    Action { class: &'static str, package: &'static str, by_policy: bool },
    /// Takes the policy back that allows tide, or gives it again.
    Allow(bool),
    /// Decides on the plans that wait for that, in the name of a user.
    Decide { by: &'static str, is_approval: bool, of: DecidedPlan },
    /// Gives up the Action of this number.
    Cancel(usize),
    /// Gives up the Actions that are executed, or deletes them.
    Stop { is_deletion: bool },
    /// Deletes the Operator of a package.
    DeleteOperator(&'static str),
    /// Gives up the RetryAction.
    CancelRetry,
    /// Changes the object that an EventAction follows.
    Touch,
}

/// The plan that a user decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecidedPlan {
    /// The one that is shown.
    Shown,
    /// One of another Action that waits, or none that there is.
    Other,
}

/// The user who needs no policy, and the one who does.
pub(super) const ADMINISTRATOR: &str = "system:admin";
pub(super) const TENANT: &str = "alice";
/// Those who may approve, two of whom have to.
pub(super) const APPROVERS: [&str; 3] = ["bob", "carol", "dora"];
/// Their group.
pub(super) const APPROVER_GROUP: &str = "sre";

pub(super) fn requester(user: &str) -> Value {
    let groups: &[&str] = if user == ADMINISTRATOR { &["system:masters"] } else { &[] };
    json!({ "username": user, "groups": groups })
}

/// The requests of a seed, with the seconds.
pub(super) fn requests(seed: u64) -> Vec<(u64, Request)> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xac71_0115);
    let mut requests = Vec::new();
    for _ in 0..random.u8(3..8) {
        let by_policy = random.u8(..5) < 2;
        let class = match random.u8(..6) {
            0 => "operator-delete",
            1 => "operator-update",
            2 => "autoremove",
            _ => "operator-install",
        };
        let package = match class {
            "autoremove" => "",
            _ => ["lantern", "ledger", "tide"][random.usize(..3)],
        };
        requests.push((random.u64(0..80), Request::Action { class, package, by_policy }));
    }
    for _ in 0..random.u8(..3) {
        requests.push((random.u64(0..90), Request::Allow(random.bool())));
    }
    for _ in 0..random.u8(2..8) {
        let by = match random.usize(..8) {
            0 => TENANT,
            1 => "mallory",
            number => APPROVERS[number % APPROVERS.len()],
        };
        let of = if random.u8(..5) == 0 { DecidedPlan::Other } else { DecidedPlan::Shown };
        let is_approval = random.u8(..8) > 0;
        requests.push((random.u64(10..110), Request::Decide { by, is_approval, of }));
    }
    if random.bool() {
        requests.push((random.u64(0..90), Request::Cancel(random.usize(..3))));
    }
    for _ in 0..random.u8(..5) {
        requests.push((random.u64(0..100), Request::Touch));
    }
    for _ in 0..random.u8(..4) {
        let request = match random.u8(..6) {
            0 => Request::CancelRetry,
            1 | 2 => Request::DeleteOperator(["lantern", "ledger", "tide"][random.usize(..3)]),
            number => Request::Stop { is_deletion: number == 3 },
        };
        requests.push((random.u64(0..90), request));
    }
    // More changes than the limit of an EventAction allows.
    if random.bool() {
        let (begin, interval) = (random.u64(0..60), random.u64(3..15));
        for number in 0..random.u64(3..7) {
            requests.push((begin + number * interval, Request::Touch));
        }
    }
    requests.sort_by_key(|(at, _)| *at);
    requests
}
