//! The health of the objects that a plan waits for, and what their failures are called.

pub mod failure;
pub mod gate;
pub mod parse;
pub mod readiness;
mod ready_when;

use plimsoll_api::Verdict;
use serde_json::Value;

/// Judges an object of a plan: by its kind, and by the condition that its manifest names. `None` for
/// objects of which applied is enough.
pub fn judge(group: &str, kind: &str, live: &Value) -> Option<Verdict> {
    match readiness::workload(group, kind, live) {
        None => ready_when::judge(kind, live),
        Some(Verdict::Ready) => ready_when::judge(kind, live).or(Some(Verdict::Ready)),
        verdict => verdict,
    }
}
