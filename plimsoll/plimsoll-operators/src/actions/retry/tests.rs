//! The attempts of a RetryAction.

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionState, RetryActionSpec};

use super::{Attempt, RetryDecision, decide};
use crate::actions::tests::at;

#[test]
fn attempts_follow_each_other_with_growing_delays() {
    let spec = RetryActionSpec { backoff_limit: Some(3), ..RetryActionSpec::default() };
    let start = at("2026-01-01T00:00:00Z");
    let decided = |spec: &RetryActionSpec, recorded: u32, attempts: &[Attempt], now: Timestamp| {
        decide("install", "9e5b9d2c", spec, recorded, attempts, now)
    };
    let mut attempts = Vec::new();
    let mut names = Vec::new();
    let mut delays = Vec::new();
    let mut now = start;
    loop {
        match decided(&spec, 0, &attempts, now) {
            RetryDecision::Attempt(name) => {
                assert_eq!(name.len(), "install-".len() + 5);
                names.push(name);
                let running = Attempt { state: ActionState::Running, ended: None };
                attempts.push(running);
                assert_eq!(decided(&spec, 0, &attempts, now), RetryDecision::Running);
                attempts.pop();
                attempts.push(Attempt { state: ActionState::Failed, ended: Some(now) });
            }
            RetryDecision::Wait(until) => {
                delays.push(until.duration_since(now).as_secs());
                now = until;
            }
            end => {
                assert_eq!(end, RetryDecision::Failed);
                break;
            }
        }
    }
    assert_eq!(attempts.len(), 4, "one more than may fail");
    names.dedup();
    assert_eq!(names.len(), 4);
    assert!(delays.windows(2).all(|it| it[1] >= 2 * it[0]), "{delays:?}");
    assert!((10..12).contains(&delays[0]), "{delays:?}");
    // Deleted attempts count.
    assert_eq!(decided(&spec, 4, &[], now), RetryDecision::Failed);
    let succeeded = [Attempt { state: ActionState::Succeeded, ended: Some(now) }];
    assert_eq!(decided(&spec, 3, &succeeded, now), RetryDecision::Succeeded);
    // Without retries there is one attempt.
    let once = RetryActionSpec { backoff_limit: Some(0), ..RetryActionSpec::default() };
    assert!(matches!(decided(&once, 0, &[], now), RetryDecision::Attempt(_)));
    let failed = [Attempt { state: ActionState::Failed, ended: Some(now) }];
    assert_eq!(decided(&once, 0, &failed, now), RetryDecision::Failed);
}
