//! CVS-16 to CVS-21, and where CO-2 overrules upstream.

use plimsoll_api::{Effect, Reason, Verdict};
use serde_json::{Value, json};

use super::{cluster_operator, missing_versions};
use crate::plan::mode::Mode::{self, Initializing, Reconciling, Updating};

const MODES: [Mode; 3] = [Initializing, Updating, Reconciling];

/// A ClusterOperator from `Available=True operator=v2 …`; versions are in lower case. A condition
/// may be `TYPE=STATUS/SINCE/REASON`.
fn operator(text: &str) -> Value {
    let mut conditions = Vec::new();
    let mut versions = Vec::new();
    for (name, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
        if name.starts_with(|first: char| first.is_uppercase()) {
            let mut parts = value.split('/');
            let [status, since, reason] = [(); 3].map(|()| parts.next().unwrap_or_default());
            conditions.push(json!({
                "type": name, "status": status, "lastTransitionTime": since, "reason": reason,
            }));
        } else {
            versions.push(json!({"name": name, "version": value}));
        }
    }
    json!({
        "metadata": {"name": "x"},
        "status": {"conditions": conditions, "versions": versions},
    })
}

/// Judges a live operator (`None` for one that is missing) against `operator=v2 operand=v2`.
fn check(live: Option<&str>, modes: &[Mode], expected: &Verdict) {
    let manifest = operator("operator=v2 operand=v2");
    let object = live.map(operator);
    for mode in modes {
        let verdict = cluster_operator(&manifest, object.as_ref(), *mode);
        assert_eq!(verdict, *expected, "{live:?} while {mode}");
    }
}

fn waiting(effect: Effect, reason: Reason, message: &str) -> Verdict {
    Verdict::Waiting { effect, reason, message: format!("Cluster operator x {message}") }
}

fn unavailable() -> Verdict {
    waiting(Effect::Fail, Reason::ClusterOperatorNotAvailable, "is not available")
}

fn degraded() -> Verdict {
    waiting(Effect::FailAfterInterval, Reason::ClusterOperatorDegraded, "is degraded")
}

fn degraded_reported() -> Verdict {
    Verdict::ReadyWith {
        reason: Reason::ClusterOperatorDegraded,
        message: "Cluster operator x is degraded".to_owned(),
    }
}

fn updating(aside: &str) -> Verdict {
    let message = format!("is updating versions{aside}");
    waiting(Effect::None, Reason::ClusterOperatorUpdating, &message)
}

#[test]
fn a_missing_operator_is_waited_for() {
    let missing = waiting(Effect::None, Reason::UpdatePayloadResourceNotFound, "does not exist");
    check(None, &MODES, &missing);
}

#[test]
fn an_operator_at_the_version_is_judged_by_its_conditions() {
    let check = |conditions: &str, modes: &[Mode], expected: &Verdict| {
        check(Some(&format!("{conditions} operator=v2 operand=v2")), modes, expected);
    };
    check("", &MODES, &unavailable());
    check("Available=False Degraded=True", &MODES, &unavailable());
    check("Available=Unknown Degraded=False", &MODES, &unavailable());
    check("Degraded=False", &MODES, &unavailable());
    check("Available=True", &[Updating, Reconciling], &degraded());
    check("Available=True", &[Initializing], &degraded_reported());
    check("Available=True Degraded=Unknown", &[Updating, Reconciling], &degraded());
    check("Available=True Degraded=True", &[Updating, Reconciling], &degraded());
    check("Available=True Degraded=True", &[Initializing], &degraded_reported());
    check("Available=True Degraded=False", &MODES, &Verdict::Ready);
    check("Available=True Degraded=False Progressing=True", &MODES, &Verdict::Ready);
    check("Available=True Degraded=False Upgradeable=False", &MODES, &Verdict::Ready);
    check("Available=True Degraded=False another=v1", &MODES, &Verdict::Ready);
}

#[test]
fn an_operator_behind_is_waited_for_whatever_it_says_of_itself() {
    let behind = "operator=v2 operand=v1";
    let check = |conditions: &str, modes: &[Mode], expected: &Verdict| {
        check(Some(&format!("{conditions} {behind}")), modes, expected);
    };
    let moving = [Updating, Reconciling];
    check("Available=True Degraded=False", &moving, &updating(""));
    check("Available=True Degraded=False", &[Initializing], &Verdict::Ready);
    // Upstream fails these three at once or after a while.
    check("Available=False Degraded=False", &moving, &updating(" and is not available"));
    check("Available=True Degraded=True", &moving, &updating(" and is degraded"));
    check(
        "Available=False/1970-01-01T01:00:00.5Z/Crashing Degraded=False",
        &moving,
        &updating(" and is not available since 1970-01-01T01:00:00Z (Crashing)"),
    );
    check("Degraded=True//Slow", &moving, &updating(" and is degraded (Slow)"));
    check("Degraded=True/yesterday/\u{1b}[31m", &moving, &updating(" and is degraded"));
    check("", &moving, &updating(""));
    check("", &[Initializing], &unavailable());
}

#[test]
fn a_manifest_without_versions_never_passes() {
    let live = operator("Available=True Degraded=False operator=v2");
    for mode in MODES {
        assert_eq!(
            cluster_operator(&operator(""), Some(&live), mode),
            waiting(
                Effect::Fail,
                Reason::ClusterOperatorNoVersions,
                "does not declare expected versions"
            ),
            "{mode}"
        );
    }
}

#[test]
fn missing_versions_are_those_not_reported_to_the_letter() {
    let (manifest, live) =
        (operator("operator=v2 operand=v2"), operator("operator=v2 operand=v20 extra=v2"));
    let missing: Vec<&str> = missing_versions(&manifest, &live).map(|it| it.name).collect();
    assert_eq!(missing, ["operand"]);
}
