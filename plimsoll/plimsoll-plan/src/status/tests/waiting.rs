//! Waiting: what is said of operators and workloads that are waited for, and how long that is no
//! failure.

use jiff::SignedDuration;
use plimsoll_api::{Effect, Reason};

use super::{Situation, operator, unavailable, updating};
use crate::health::failure::Failure;
use crate::plan::mode::Mode;

fn degraded(name: &str, minutes: i64) -> Failure {
    operator(name, Reason::ClusterOperatorDegraded, Effect::FailAfterInterval, minutes)
}

#[test]
fn waiting_for_operators_is_progress() {
    // CVS-23.
    let mut waiting = Situation::failing(Mode::Updating, vec![updating("b", 1), updating("a", 1)]);
    waiting.check(&[
        "Failing=False",
        "Progressing=True ClusterOperatorsUpdating: Working towards 1.2.3: waiting on a, b",
    ]);
    waiting.done = 5;
    waiting.total = 9;
    waiting.check(&["Progressing=True ClusterOperatorsUpdating: \
                     Working towards 1.2.3: 5 of 9 done (55% complete), waiting on a, b"]);
}

#[test]
fn what_operators_behind_say_of_themselves_is_named() {
    let trouble = "is not available since 1970-01-02T03:41:40Z (Crashing)";
    let down = |name: &str, minutes: i64| Failure {
        trouble: Some(trouble.to_owned()),
        ..updating(name, minutes)
    };
    let check = |failures: Vec<Failure>, expected: &[&str]| {
        Situation::failing(Mode::Updating, failures).check(expected);
    };
    check(
        vec![down("alpha", 5)],
        &[
            "Failing=False",
            "Progressing=True ClusterOperatorUpdating: Working towards 1.2.3: waiting on alpha, \
             which is not available since 1970-01-02T03:41:40Z (Crashing)",
        ],
    );
    check(
        vec![updating("b", 1), down("c", 5), down("a", 5)],
        &[
            "Failing=False",
            "Progressing=True ClusterOperatorsUpdating: Working towards 1.2.3: waiting on a, b, c, \
             of which a is not available since 1970-01-02T03:41:40Z (Crashing) \
             and c is not available since 1970-01-02T03:41:40Z (Crashing)",
        ],
    );
    check(
        vec![down("a", 31)],
        &["Failing=Unknown SlowClusterOperator: \
             waiting on a over 30 minutes which is longer than expected; \
             a is not available since 1970-01-02T03:41:40Z (Crashing)"],
    );
}

#[test]
fn waiting_too_long_is_reported() {
    // CVS-24.
    let check = |failures: Vec<Failure>, expected: &[&str]| {
        Situation::failing(Mode::Updating, failures).check(expected);
    };
    check(
        vec![updating("a", 60), updating("b", 1)],
        &[
            "Failing=Unknown SlowClusterOperator: \
             waiting on a over 30 minutes which is longer than expected",
            "Progressing=True ClusterOperatorsUpdating: Working towards 1.2.3: \
             waiting on a over 30 minutes which is longer than expected",
        ],
    );
    check(vec![updating("machine-config", 60)], &["Failing=False"]);
    check(
        vec![updating("machine-config", 100)],
        &["Failing=Unknown SlowClusterOperator: \
           waiting on machine-config over 90 minutes which is longer than expected"],
    );
    check(
        vec![updating("machine-config", 100), updating("b", 31), updating("a", 31)],
        &["Failing=Unknown SlowClusterOperator: waiting on a, b over 30 minutes and \
           machine-config over 90 minutes which is longer than expected"],
    );
    // A limit of less than a minute is a number of seconds.
    let mut limited = Situation::failing(Mode::Updating, vec![updating("a", 1)]);
    limited.limits.slow_after = SignedDuration::from_secs(30);
    limited.check(&["Failing=Unknown SlowClusterOperator: \
         waiting on a over 30 seconds which is longer than expected"]);
    limited.limits.slow_after = SignedDuration::from_secs(1);
    limited.check(&["Failing=Unknown SlowClusterOperator: \
         waiting on a over 1 second which is longer than expected"]);
    // An unknown start is not long ago.
    let unknown = Failure { since: None, ..updating("a", 0) };
    check(vec![unknown], &["Failing=False"]);
}

#[test]
fn slow_workloads_are_distinguished_from_operators() {
    let deployment = Failure {
        since: updating("a", 31).since,
        ..Failure::of_object(
            "deployment \"ns/x\"",
            Reason::WorkloadProgressing,
            Some(Effect::None),
            "Deployment \"ns/x\" has 0 of 1 replicas available",
        )
    };
    Situation::failing(Mode::Updating, vec![deployment.clone()])
        .check(&["Failing=Unknown SlowWorkload: \
         waiting on deployment \"ns/x\" over 30 minutes which is longer than expected"]);
    Situation::failing(Mode::Updating, vec![deployment, updating("a", 1)])
        .check(&["Progressing=True ClusterOperatorUpdating: Working towards 1.2.3: \
         waiting on deployment \"ns/x\" over 30 minutes which is longer than expected"]);
}

#[test]
fn those_who_only_wait_do_not_count_among_failures() {
    // CVS-25.
    let failures = vec![unavailable("A"), updating("B", 1)];
    Situation::failing(Mode::Updating, failures.clone()).check(&[
        "Failing=True ClusterOperatorNotAvailable: Cluster operator A is not available",
        "Progressing=True ClusterOperatorNotAvailable: \
         Unable to apply 1.2.3: the cluster operator A is not available",
    ]);
    Situation::failing(Mode::Reconciling, failures).check(&[
        "Failing=True MultipleErrors: Multiple errors are preventing progress:\n\
         * Cluster operator A is not available\n\
         * Cluster operator B is updating versions",
        "Progressing=False MultipleErrors: \
         Error while reconciling 1.2.3: the cluster operator A is not available; also B",
    ]);
    // CVS-26.
    let other = operator("A", Reason::UpdatePayloadResourceNotFound, Effect::None, 1);
    Situation::failing(Mode::Updating, vec![other, updating("B", 1)]).check(&[
        "Failing=False",
        "Progressing=True MultipleReasons: Working towards 1.2.3: waiting on A, B",
    ]);
}

#[test]
fn a_degraded_operator_has_time_to_recover() {
    // CVS-27.
    Situation::failing(Mode::Updating, vec![degraded("x", 10)]).check(&[
        "Failing=False",
        "Progressing=True ClusterOperatorDegraded: \
         Working towards 1.2.3: waiting up to 40 minutes on x",
    ]);
    let exceeded = [
        "Failing=True ClusterOperatorDegraded: Cluster operator x is degraded",
        "Progressing=True ClusterOperatorDegraded: Unable to apply 1.2.3: \
         wait has exceeded 40 minutes for these operators: x",
    ];
    Situation::failing(Mode::Updating, vec![degraded("x", 41)]).check(&exceeded);
    let unknown = Failure { since: None, ..degraded("x", 0) };
    Situation::failing(Mode::Updating, vec![unknown]).check(&exceeded);
    Situation::failing(Mode::Updating, vec![degraded("x", 41), degraded("y", 1)]).check(&exceeded);
    Situation::failing(Mode::Updating, vec![degraded("x", 1), updating("y", 1)])
        .check(&["Progressing=True MultipleReasons: \
         Working towards 1.2.3: waiting on y, waiting up to 40 minutes on x"]);
    Situation::failing(Mode::Reconciling, vec![degraded("x", 0)]).check(&[
        "Failing=True ClusterOperatorDegraded: Cluster operator x is degraded",
        "Progressing=False ClusterOperatorDegraded: \
         Error while reconciling 1.2.3: the cluster operator x is degraded",
    ]);
}

#[test]
fn a_degraded_operator_is_reported_when_an_installation_is_through() {
    let report = operator("x", Reason::ClusterOperatorDegraded, Effect::Report, 0);
    let mut situation = Situation::failing(Mode::Initializing, vec![report]);
    situation.done = 9;
    situation.check(&[
        "Failing=False",
        "Progressing=True: Working towards 1.2.3: 9 of 10 done (90% complete)",
    ]);
    situation.done = 10;
    situation.check(&[
        "Failing=True ClusterOperatorDegraded: Cluster operator x is degraded",
        "Progressing=True ClusterOperatorDegraded: \
         Unable to apply 1.2.3: Cluster operator x is degraded",
    ]);
}

#[test]
fn many_objects_are_counted() {
    let waiting = |name: &str| {
        let object = format!("role \"{name}\"");
        Failure::of_object(object, Reason::NamespaceMissing, Some(Effect::None), "")
    };
    let failures = ["p", "q", "r", "s", "t"].map(waiting).to_vec();
    Situation::failing(Mode::Updating, failures)
        .check(&["Progressing=True NamespaceMissing: Working towards 1.2.3: \
         waiting on role \"p\", role \"q\", role \"r\" and 2 more"]);
}
