//! The attempts of a RetryAction.

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionRequester, RetryActionSpec, RetryActionStatus};
use serde_json::{Value, json};

use super::{Attempt, RetryDecision, RetryObject};
use crate::actions::derived_name;

const NAME: &str = "install";
const UID: &str = "9e5b9d2c";

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// Returns the name of the attempt after a number of failures.
fn name(failed: u32) -> String {
    derived_name(NAME, &[UID, &failed.to_string()])
}

/// Replaces names of attempts such as `#1`, or the other way round.
fn named(text: &str, is_written: bool) -> String {
    (0..9).fold(text.to_owned(), |text, number| {
        let (short, long) = (format!("#{number}"), name(number));
        if is_written { text.replace(&long, &short) } else { text.replace(&short, &long) }
    })
}

/// Reads an attempt such as `#0 Failed 30: no network`, with `!` if its cancellation is requested, `?` if its plan
/// was rejected.
fn attempt(text: &str) -> Attempt {
    let (head, message) = text.split_once(": ").unwrap_or((text, ""));
    let mut words = head.split(' ');
    let name = named(words.next().unwrap(), false);
    let state = words.next().unwrap();
    let ended = words.next().map(|it| after(it.parse().unwrap()));
    Attempt {
        name,
        state: serde_json::from_value(json!(state.trim_end_matches(['!', '?']))).unwrap(),
        created: after(0),
        ended,
        is_cancelled: state.ends_with('!'),
        is_rejected: state.ends_with('?'),
        message: message.to_owned(),
    }
}

/// A case: spec, status, attempts, and the time in seconds after the creation. The spec has a
/// requester unless that is `null`.
struct Case<'a> {
    spec: Value,
    status: Value,
    attempts: &'a [&'a str],
    is_gone: bool,
    now: i64,
}

impl Case<'_> {
    fn decide(&self) -> (RetryActionStatus, RetryDecision) {
        let attempts: Vec<Attempt> = self.attempts.iter().map(|it| attempt(it)).collect();
        self.with_object(|it| it.decide(&attempts, self.is_gone, after(self.now)))
    }

    /// Returns the status before a decision, and the decision.
    fn with_object(
        &self,
        decide: impl Fn(&RetryObject<'_>) -> RetryDecision,
    ) -> (RetryActionStatus, RetryDecision) {
        let mut spec: RetryActionSpec = serde_json::from_value(self.spec.clone()).unwrap();
        if self.spec.get("requester").is_none() {
            spec.requester = Some(ActionRequester::default());
        }
        let status = named(&self.status.to_string(), false);
        let status: RetryActionStatus = serde_json::from_str(&status).unwrap();
        let (spec, created, generation) = (&spec, after(0), 1);
        let retry =
            RetryObject { name: NAME, uid: UID, created, generation, spec, status: &status };
        let decision = decide(&retry);
        (status, decision)
    }

    /// Checks what is decided, as a text.
    fn check(&self, expected: &str) {
        let (before, decision) = self.decide();
        self.check_decision(&before, decision, expected);
    }

    /// Checks what is decided if the API server refuses the attempt to make.
    fn check_refused(&self, message: &str, expected: &str) {
        let (_, decision) = self.decide();
        assert!(decision.make.is_some(), "it is about to be made");
        let (before, decision) = self.with_object(|it| it.refused(message, after(self.now)));
        self.check_decision(&before, decision, expected);
    }

    fn check_decision(&self, before: &RetryActionStatus, decision: RetryDecision, expected: &str) {
        let RetryDecision { make, cancel, delete, look_for, is_outlived, status, wake_at } =
            decision;
        let mut found = Vec::new();
        found.extend(make.map(|it| format!("make {it}")));
        found.extend(cancel.map(|it| format!("cancel {it}")));
        found.extend(delete.iter().map(|it| format!("delete {it}")));
        found.extend(look_for.map(|it| format!("look for {it}")));
        found.extend(is_outlived.then(|| "delete the RetryAction".to_owned()));
        if status != *before {
            let condition = status.conditions.first().expect("it is reported");
            let message = &condition.message;
            let (holds, reason) = (format!("{:?}", condition.status), &condition.reason);
            let (succeeded, failed) = (status.succeeded, status.failed);
            found.push(format!("{succeeded}/{failed} {holds} {reason}: {message}"));
        }
        let seconds = |it: Timestamp| it.duration_since(after(0)).as_secs();
        found.extend(wake_at.map(|it| format!("until {}", seconds(it))));
        let found = named(&found.join(", "), true);
        let Self { spec, status, attempts, now, .. } = self;
        assert_eq!(found, expected, "{spec} {status} {attempts:?} {now}");
    }
}

/// Checks what is decided 60 seconds after the creation.
fn check(spec: Value, status: Value, attempts: &[&str], expected: &str) {
    Case { spec, status, attempts, is_gone: false, now: 60 }.check(expected);
}

#[test]
fn an_attempt_is_made_after_another_one() {
    let spec = || json!({ "backoffLimit": 2 });
    check(spec(), json!({}), &[], "make #0, 0/0 Unknown ActionRunning: attempt 1 begins");
    let made = json!({ "latestAttempt": "#0" });
    let under_way = "0/0 Unknown ActionRunning: attempt 1 is under way";
    check(spec(), made.clone(), &["#0 Pending"], under_way);
    // The status may not be written after the attempt was made.
    check(spec(), json!({}), &["#0 Running"], under_way);
    let failed = "0/1 Unknown ActionRunning: the last attempt failed: no network, until 60";
    check(spec(), made.clone(), &["#0 Failed 30: no network"], failed);
    check(spec(), json!({}), &["#0 Failed 30: no network"], failed);
    let counted = json!({ "failed": 1, "latestAttempt": "#0" });
    check(
        spec(),
        counted.clone(),
        &["#0 Failed 55: no network"],
        "make #1, 0/1 Unknown ActionRunning: attempt 2 begins; the last one failed: no network",
    );
    check(
        spec(),
        counted,
        &["#0 Failed 30: no network", "#1 Succeeded 58: foo@1.2.5 was successfully installed"],
        "1/1 True ActionSucceeded: an attempt succeeded: foo@1.2.5 was successfully installed",
    );
    let twice = json!({ "failed": 2, "latestAttempt": "#2" });
    let exceeded = "0/3 False BackoffLimitExceeded: 3 attempts failed; the last attempt: no space";
    check(spec(), twice, &["#2 Failed 58: no space"], exceeded);
    // Without retries there is one attempt.
    let once = "0/1 False BackoffLimitExceeded: 1 attempt failed; the last attempt: no space";
    check(json!({ "backoffLimit": 0 }), made, &["#0 Failed 58: no space"], once);
}

#[test]
fn a_delay_is_waited_for() {
    let waiting = |next: i64| json!({ "failed": 1, "latestAttempt": "#0", "nextAttemptTime": after(next).to_string() });
    let again = "make #1, 0/1 Unknown ActionRunning: attempt 2 begins";
    let failed = "0/1 Unknown ActionRunning: the last attempt failed: no network, until 65";
    check(json!({}), json!({}), &["#0 Failed 55: no network"], failed);
    check(json!({}), waiting(62), &[], "until 62");
    check(json!({}), waiting(60), &[], again);
    check(json!({}), waiting(12), &[], again);
    // The clock was set back, or was wrong when the attempt ended.
    let (_, decision) =
        Case { spec: json!({}), status: waiting(86_400), attempts: &[], is_gone: false, now: 60 }
            .decide();
    assert_eq!(decision.wake_at.map(|it| it.duration_since(after(60)).as_secs()), Some(10));
    assert_eq!(decision.status.next_attempt_time, decision.wake_at);
    let failed = "0/1 Unknown ActionRunning: the last attempt failed: no network, until 70";
    check(json!({}), json!({}), &["#0 Failed 86400: no network"], failed);
}

#[test]
fn failures_are_counted_once_whatever_becomes_of_their_actions() {
    let made = || json!({ "failed": 1, "latestAttempt": "#1" });
    // It may have been deleted, or its watch may be late.
    check(json!({}), made(), &[], "look for #1");
    check(json!({}), made(), &["#0 Failed 30"], "look for #1");
    let gone = |spec: Value| Case { spec, status: made(), attempts: &[], is_gone: true, now: 60 };
    gone(json!({})).check(
        "0/2 Unknown ActionRunning: the last attempt failed: Action #1 was deleted, until 80",
    );
    gone(json!({ "backoffLimit": 1 })).check(
        "0/2 False BackoffLimitExceeded: 2 attempts failed; the last attempt: Action #1 was deleted",
    );
    // What is deleted while it runs ends as cancelled, although no user requested that.
    let stopped = "0/2 Unknown ActionRunning: the last attempt failed: it was deleted, until 78";
    check(json!({}), made(), &["#1 Cancelled 58: it was deleted"], stopped);
    // Only attempts of its own count.
    check(json!({}), made(), &["other Succeeded 58", "#5 Failed 30"], "look for #1");
    let counted = json!({ "failed": 1, "latestAttempt": "#0" });
    let again = "make #1, 0/1 Unknown ActionRunning: attempt 2 begins";
    check(json!({}), counted, &["other Succeeded 58"], again);
}

#[test]
fn an_attempt_that_is_refused_has_failed() {
    let due =
        |spec: Value, status: Value| Case { spec, status, attempts: &[], is_gone: false, now: 60 };
    let failed = "the last attempt failed: its Action is refused: no quota";
    let unknown = format!("0/1 Unknown ActionRunning: {failed}, until 70");
    due(json!({}), json!({})).check_refused("no quota", &unknown);
    // It counts for both limits, and what was made before stays the latest attempt.
    let last = "the last attempt: its Action is refused: no quota";
    let exceeded = format!("0/1 False BackoffLimitExceeded: 1 attempt failed; {last}");
    due(json!({ "backoffLimit": 0 }), json!({})).check_refused("no quota", &exceeded);
    let counted = || json!({ "failed": 1, "latestAttempt": "#0" });
    let soon = format!("0/2 Unknown ActionRunning: {failed}, until 75");
    due(json!({ "activeDeadlineSeconds": 75 }), counted()).check_refused("no quota", &soon);
    let (_, decision) = due(json!({}), counted()).with_object(|it| it.refused("no", after(60)));
    assert_eq!(decision.status.latest_attempt, name(0));
    // The next attempt follows after the delay, and says why.
    let condition = json!({
        "type": "ActionSucceeded", "status": "Unknown", "reason": "ActionRunning",
        "message": failed, "lastTransitionTime": after(0).to_string(),
    });
    let refused = |next: i64| {
        let next = after(next).to_string();
        json!({ "failed": 1, "nextAttemptTime": next, "conditions": [condition] })
    };
    due(json!({}), refused(61)).check("until 61");
    let begins = "attempt 2 begins; the last one failed: its Action is refused: no quota";
    let again = format!("make #1, 0/1 Unknown ActionRunning: {begins}");
    due(json!({}), refused(60)).check(&again);
    let late = "it was not done within 45 s of its creation";
    let ended = format!("0/1 False DeadlineExceeded: {late}; {last}");
    due(json!({ "activeDeadlineSeconds": 45 }), refused(61)).check(&ended);
}

#[test]
fn nothing_is_requested_without_a_requester() {
    let missing = "spec.requester is missing, so nothing is requested: create it again";
    let expected = format!("0/0 False InvalidAction: {missing}");
    check(json!({ "requester": null }), json!({}), &[], &expected);
    check(json!({ "requester": null, "cancelled": true }), json!({}), &[], &expected);
}

#[test]
fn it_ends_when_the_plan_of_an_attempt_is_rejected() {
    let made = json!({ "latestAttempt": "#1", "failed": 1 });
    let expected = "0/2 False PlanRejected: attempt #1 was rejected: by bob: too early";
    check(
        json!({}),
        made,
        &["#0 Failed 30: no network", "#1 Failed? 58: by bob: too early"],
        expected,
    );
}

#[test]
fn it_ends_when_it_is_cancelled() {
    let spec = || json!({ "cancelled": true });
    check(spec(), json!({}), &[], "0/0 False ActionCancelled: it was cancelled");
    let made = || json!({ "latestAttempt": "#0" });
    let stops =
        "0/0 Unknown ActionRunning: it was cancelled: attempt 1 stops before its next change";
    check(spec(), made(), &["#0 Running"], &format!("cancel #0, {stops}"));
    check(spec(), made(), &["#0 Running!"], stops);
    check(
        spec(),
        made(),
        &["#0 Cancelled! 58: 1 of 2 changes was made"],
        "0/0 False ActionCancelled: it was cancelled; the last attempt: 1 of 2 changes was made",
    );
    let failed = "0/1 False ActionCancelled: it was cancelled; the last attempt: no network";
    check(spec(), made(), &["#0 Failed 58: no network"], failed);
    let done = "1/0 True ActionSucceeded: an attempt succeeded: installed";
    check(spec(), made(), &["#0 Succeeded 58: installed"], done);
    let waiting = json!({
        "failed": 1, "latestAttempt": "#0", "nextAttemptTime": after(65).to_string(),
    });
    let failed = "0/1 False ActionCancelled: it was cancelled; the last attempt: no network";
    check(spec(), waiting, &["#0 Failed 55: no network"], failed);
    // A user cancels the attempt itself.
    let stops =
        "0/0 Unknown ActionRunning: attempt 1 was cancelled and stops before its next change";
    check(json!({}), made(), &["#0 Running!"], stops);
    let cancelled =
        "0/0 False ActionCancelled: attempt #0 was cancelled; the last attempt: stopped";
    check(json!({}), made(), &["#0 Cancelled! 58: stopped"], cancelled);
}

#[test]
fn it_ends_at_its_deadline() {
    let late = "it was not done within 45 s of its creation";
    let spec = || json!({ "activeDeadlineSeconds": 45 });
    let made = || json!({ "latestAttempt": "#0" });
    check(spec(), json!({}), &[], &format!("0/0 False DeadlineExceeded: {late}"));
    let stops = format!(
        "cancel #0, 0/0 Unknown ActionRunning: {late}: attempt 1 stops before its next change"
    );
    check(spec(), made(), &["#0 Pending"], &stops);
    let ended = format!("0/0 False DeadlineExceeded: {late}; the last attempt: stopped");
    check(spec(), made(), &["#0 Cancelled! 58: stopped"], &ended);
    // It was cancelled before the deadline, which passed while no controller ran.
    let cancelled =
        "0/0 False ActionCancelled: attempt #0 was cancelled; the last attempt: stopped";
    check(spec(), made(), &["#0 Cancelled! 30: stopped"], cancelled);
    let failed = format!("0/1 False DeadlineExceeded: {late}; the last attempt: no network");
    check(spec(), made(), &["#0 Failed 30: no network"], &failed);
    check(spec(), made(), &["#0 Succeeded 58"], "1/0 True ActionSucceeded: an attempt succeeded");
    let waiting = json!({
        "failed": 1, "latestAttempt": "#0", "nextAttemptTime": after(65).to_string(),
    });
    check(spec(), waiting.clone(), &["#0 Failed 55: no network"], &failed);
    // Before it, it is waited for.
    let spec = |seconds: i64| json!({ "activeDeadlineSeconds": seconds });
    check(spec(61), waiting.clone(), &[], "until 61");
    check(spec(90), waiting, &[], "until 65");
    let runs = "0/0 Unknown ActionRunning: attempt 1 is under way, until 90";
    check(spec(90), made(), &["#0 Running"], runs);
    check(spec(90), json!({ "failed": 1, "latestAttempt": "#1" }), &[], "look for #1, until 90");
    check(spec(i64::MAX), json!({}), &[], "make #0, 0/0 Unknown ActionRunning: attempt 1 begins");
}

#[test]
fn the_latest_ended_attempts_are_kept() {
    let spec = |limit: u32| json!({ "historyLimit": limit });
    let failed = ["#2 Failed 50", "#0 Failed 30", "#1 Failed 40"];
    let running = json!({
        "failed": 3, "latestAttempt": "#3", "startTime": after(0).to_string(),
        "conditions": [{
            "type": "ActionSucceeded", "status": "Unknown", "reason": "ActionRunning",
            "message": "attempt 4 is under way", "observedGeneration": 1,
            "lastTransitionTime": after(0).to_string(),
        }],
    });
    for (limit, last, expected) in [
        (1, "#3 Running", "delete #0, delete #1"),
        (2, "#3 Running", "delete #0"),
        (3, "#3 Running", ""),
    ] {
        check(spec(limit), running.clone(), &[&failed[..], &[last]].concat(), expected);
    }
    // The one that succeeded is kept, and one that has not been counted.
    check(
        spec(1),
        running.clone(),
        &[&failed[..], &["#3 Succeeded 58"]].concat(),
        "delete #0, delete #1, delete #2, 1/3 True ActionSucceeded: an attempt succeeded",
    );
    check(
        spec(2),
        running,
        &[&failed[..], &["#3 Failed 20: no network"]].concat(),
        "delete #0, delete #1, 0/4 Unknown ActionRunning: the last attempt failed: no network, until 100",
    );
}

#[test]
fn nothing_follows_the_end() {
    let ended = |status: &str| {
        json!({
            "failed": 1, "latestAttempt": "#1", "completionTime": after(50).to_string(),
            "conditions": [{
                "type": "ActionSucceeded", "status": status, "reason": "AsReported",
                "message": "it has ended", "lastTransitionTime": after(50).to_string(),
            }],
        })
    };
    for status in ["True", "False"] {
        for attempts in [&[][..], &["#1 Running"], &["#0 Failed 30", "#1 Failed 40"]] {
            check(json!({ "backoffLimit": 6 }), ended(status), attempts, "");
            check(json!({ "cancelled": true }), ended(status), attempts, "");
            check(json!({ "activeDeadlineSeconds": 1 }), ended(status), attempts, "");
        }
    }
    let kept = |ttl: &str| json!({ "ttlAfterFinished": ttl, "historyLimit": 1 });
    check(kept("10s"), ended("True"), &[], "delete the RetryAction");
    check(kept("0s"), ended("False"), &[], "delete the RetryAction");
    check(kept("1m"), ended("True"), &[], "until 110");
    check(kept(""), ended("False"), &["#0 Failed 30", "#1 Cancelled! 40"], "delete #0");
    check(kept(""), ended("True"), &["#0 Failed 30", "#1 Succeeded 40"], "delete #0");
    check(kept("0s"), json!({ "latestAttempt": "#0" }), &[], "look for #0");
}

#[test]
fn attempts_follow_each_other_with_growing_delays() {
    let requester = Some(ActionRequester::default());
    let spec = RetryActionSpec { backoff_limit: Some(8), requester, ..RetryActionSpec::default() };
    let mut status = RetryActionStatus::default();
    let mut now = after(0);
    let (mut names, mut delays) = (Vec::new(), Vec::new());
    let mut attempts: Vec<Attempt> = Vec::new();
    while status.completion_time.is_none() {
        let (created, generation) = (after(0), 1);
        let status_before = status.clone();
        let retry = RetryObject {
            name: NAME,
            uid: UID,
            created,
            generation,
            spec: &spec,
            status: &status_before,
        };
        let decision = retry.decide(&attempts, false, now);
        // What is decided after a crash, before the status was written, is the same.
        assert_eq!(retry.decide(&attempts, false, now), decision);
        assert!(decision.status.failed >= status.failed, "counts never go back");
        status = decision.status;
        attempts.clear();
        if let Some(name) = decision.make {
            let failed = Attempt { ended: Some(now), ..attempt("#0 Failed 0: no network") };
            attempts.push(Attempt { name: name.clone(), ..failed });
            names.push(name);
        } else if let Some(next) = status.next_attempt_time.filter(|it| *it > now) {
            delays.push(next.duration_since(now).as_secs());
            now = next;
        }
    }
    assert_eq!(status.failed, 9, "one more than may fail, although all of them were deleted");
    assert_eq!(names.len(), 9);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 9);
    assert!(names.iter().all(|it| it.len() == "install-".len() + 5), "{names:?}");
    let expected = [10, 20, 40, 80, 160, 321, 361, 361];
    assert_eq!(delays, expected);
    let message = &status.conditions[0].message;
    assert_eq!(message, "9 attempts failed; the last attempt: no network");
}
