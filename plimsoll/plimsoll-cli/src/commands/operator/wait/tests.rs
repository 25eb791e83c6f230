//! Tests of the wait until Operators are installed, in virtual time.

use futures::stream;
use kube::api::DynamicObject;

use super::*;
use crate::exit::Exit;

/// Returns an Operator as a watch shows it: `NAME VERSION PROGRESSING REASON`, and a message; `-` for no version.
/// A name alone is an Operator that was deleted.
fn change(text: &str) -> ObjectChange {
    let (head, message) = text.split_once(": ").unwrap_or((text, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let [name, version, progressing, reason] = words[..] else {
        return ObjectChange { name: text.to_owned(), object: None };
    };
    let installed = if version == "-" { "False" } else { "True" };
    let condition = |type_: &str, status: &str| {
        json!({ "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let bundle = (version != "-").then(|| json!({ "name": "b", "version": version }));
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "olm.io/v1",
        "kind": "Operator",
        "metadata": { "name": name, "generation": 1 },
        "status": {
            "observedGeneration": 1,
            "bundle": bundle,
            "conditions": [condition("Installed", installed), condition("Progressing", progressing)],
        },
    }))
    .expect("it is an object");
    ObjectChange { name: name.to_owned(), object: Some(object) }
}

/// Waits for bar v1.2.5 and foo v1.2.9. Returns the exit code, the output with the error, and the seconds that it
/// took.
async fn wait_for(reported: &[&str], limits: &mut WaitLimits) -> (Option<Exit>, String, u64) {
    let target = |name: &str, version: Version, is_new: bool| InstallationTarget {
        name: name.to_owned(),
        version,
        is_new,
        returns_from: None,
    };
    let targets =
        [target("bar", Version::new(1, 2, 5), true), target("foo", Version::new(1, 2, 9), false)];
    let changes: Vec<ObjectChange> = reported.iter().map(|it| change(it)).collect();
    let changes = stream::iter(changes).chain(stream::pending());
    let (mut out, began) = (Vec::new(), Instant::now());
    let ended = AwaitedOperators::new(&targets).wait(changes, limits, &mut out).await;
    let mut text = String::from_utf8(out).expect("it is text");
    let exit = match ended {
        Ok(()) => Some(exit::SUCCESS),
        Err(error) => {
            text.push_str(&format!("{error}\n"));
            error.downcast_ref::<Refusal>().map(|it| it.exit)
        }
    };
    (exit, text, began.elapsed().as_secs())
}

fn limits(seconds: u64) -> WaitLimits {
    WaitLimits::with(Duration::from_secs(seconds), std::future::pending())
}

const GOES_ON: &str =
    "The controller goes on: `operator list` shows how far it is, `operator describe NAME` why\n";
const STOPPED: &str = "nothing is in progress, and not everything is installed as planned:\n";
const RESOLVED: &str = "The controller goes on once what it reports is resolved: `operator describe NAME` shows more\n";

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_everything_is_installed() {
    let reported = [
        "foo 1.2.9 False AsExpected: v1.2.9 is installed",
        "qux - False NoMatchingVersion: no version",
        "bar - True RollingOut: Rolling out v1.2.5",
        "bar 1.2.5 False AsExpected: v1.2.5 is installed",
        // What becomes of it afterwards is not waited for.
        "foo",
    ];
    let printed = "bar: Rolling out v1.2.5\nbar v1.2.5 installed\nfoo v1.2.9 installed\n";
    let ended = wait_for(&reported, &mut limits(0)).await;
    assert_eq!(ended, (Some(exit::SUCCESS), printed.to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_nothing_goes_on() {
    let check = async |reported: &[&str], left: &str, seconds: u64| {
        let (exit, text, elapsed) = wait_for(reported, &mut limits(0)).await;
        assert_eq!(exit, Some(exit::UNSATISFIABLE), "{text}");
        assert!(text.ends_with(&format!("{STOPPED}{left}{RESOLVED}")), "{text}");
        assert_eq!(elapsed, seconds, "{text}");
    };
    // The range of foo leads elsewhere.
    let elsewhere = [
        "bar 1.2.5 False AsExpected: v1.2.5 is installed",
        "foo 1.2.10 False AsExpected: v1.2.10 is installed",
    ];
    check(&elsewhere, "  foo v1.2.9: v1.2.10 is installed (AsExpected)\n", 60).await;
    // A requirement is not met, under Enforce.
    let unmet = [
        "bar 1.2.4 False UpgradeBlocked: bar v1.2.5 waits",
        "foo - False ConstraintsUnmet: foo v1.2.9 waits",
    ];
    let left = "  bar v1.2.5: bar v1.2.5 waits (UpgradeBlocked)\n  foo v1.2.9: foo v1.2.9 waits \
                (ConstraintsUnmet)\n";
    check(&unmet, left, 60).await;
    let paused = [
        "foo 1.2.5 False Paused: Paused by spec.paused",
        "bar 1.2.5 False AsExpected: v1.2.5 is installed",
    ];
    check(&paused, "  foo v1.2.9: Paused by spec.paused (Paused)\n", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_what_it_waited_for() {
    let reported = ["bar - True RollingOut: Rolling out v1.2.5: 1 of 3 objects"];
    let left = "  bar v1.2.5: Rolling out v1.2.5: 1 of 3 objects\n  foo v1.2.9: the controller has not \
                reported on it yet\n";
    let (exit, text, elapsed) = wait_for(&reported, &mut limits(600)).await;
    assert!(text.ends_with(&format!("not done within 10m:\n{left}{GOES_ON}")), "{text}");
    assert_eq!((exit, elapsed), (None, 600));
    let mut interrupted = WaitLimits::with(Duration::ZERO, std::future::ready(()));
    let (exit, text, elapsed) = wait_for(&reported, &mut interrupted).await;
    assert!(text.ends_with(&format!("not done yet:\n{left}{GOES_ON}")), "{text}");
    assert_eq!((exit, elapsed), (Some(exit::INTERRUPTED), 0));
    let reported = ["bar - True RollingOut: a", "foo 1.2.3 True RollingOut: b"];
    let (_, text, _) = wait_for(&reported, &mut limits(600)).await;
    let undo = "To undo it: `operator update foo@1.2.3`, then `operator delete bar`\n";
    assert!(text.ends_with(&format!("{GOES_ON}{undo}")), "{text}");
    let (_, text, _) = wait_for(&["bar"], &mut limits(0)).await;
    assert_eq!(text, "Operator `bar` was deleted before it was installed\n");
}
