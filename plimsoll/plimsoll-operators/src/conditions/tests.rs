//! Conditions of an Operator in various situations.

use plimsoll_api::MESSAGE_LENGTH_MAX;
use plimsoll_resolve::Bundle;
use plimsoll_resolve::requirement::CheckedRequirement;
use semver::Version;

use super::*;
use crate::{CandidateRequirements, OperatorBlock, SelectedBundle};

fn reference(version: &str) -> BundleReference {
    BundleReference {
        name: format!("foo.v{version}"),
        version: version.to_owned(),
        ..BundleReference::default()
    }
}

fn at(version: &str) -> InstalledOperator {
    InstalledOperator {
        reference: reference(version),
        bundle: Bundle::new(format!("foo.v{version}"), Version::parse(version).unwrap()),
        revision: 1,
        upgrade_block: None,
    }
}

fn decided(action: OperatorAction) -> OperatorDecision {
    OperatorDecision {
        action,
        held_back: None,
        requirements: Vec::new(),
        incompatibility: None,
        deprecation: None,
        dependants: Vec::new(),
        is_orphaned: false,
        judged: CandidateRequirements::default(),
        installed: None,
        ahead: None,
        awaited: Vec::new(),
    }
}

fn unmet() -> Vec<CheckedRequirement> {
    vec![CheckedRequirement {
        text: "bar >=1.2.3".to_owned(),
        provider: None,
        package: Some("bar".to_owned()),
        version: None,
        missing: "bar is not installed".to_owned(),
    }]
}

fn chosen(version: &str) -> SelectedBundle {
    SelectedBundle {
        reference: reference(version),
        provides: std::collections::BTreeSet::new(),
        accepted_risks: Vec::new(),
    }
}

/// Returns the conditions in a situation, a line each.
fn shown(
    installed: Option<&InstalledOperator>,
    decision: &OperatorDecision,
    bundle: &BundleContent,
    rollout: &Rollout,
    unavailable: &[String],
) -> String {
    let observation = OperatorObservation {
        name: "foo",
        generation: 2,
        installed,
        decision,
        bundle,
        rollout,
        unavailable,
    };
    let line = |it: MetaCondition| {
        format!("{}={} {}: {}", it.type_, it.status.as_str(), it.reason, it.message)
    };
    let conditions = conditions(&observation, &[], Timestamp::UNIX_EPOCH);
    conditions.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(shown: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(shown, expected.join("\n").trim());
}

fn valid(version: &str) -> BundleContent {
    BundleContent::Valid { bundle: format!("foo.v{version}") }
}

#[test]
fn installed_and_unsatisfied_are_two_facts() {
    let decision = OperatorDecision { requirements: unmet(), ..decided(OperatorAction::Keep) };
    check(
        &shown(Some(&at("1.2.3")), &decision, &valid("1.2.3"), &Rollout::Idle, &[]),
        "ConstraintsSatisfied=False UnmetDependency: foo depends on bar >=1.2.3 but bar is not installed
         HasValidBundle=True UnpackSuccessful: bundle foo.v1.2.3 successfully unpacked
         Installed=True InstallationSucceeded: Instantiated bundle foo.v1.2.3 successfully
         Progressing=False AsExpected: v1.2.3 is installed
         Available=True AsExpected: All workloads are available
         Degraded=False AsExpected: Nothing is degraded
         Upgradeable=True AsExpected: Nothing holds up an update",
    );
}

#[test]
fn a_rollout_progresses_and_degrades_nothing() {
    let rollout = Rollout::UnderWay {
        bundle: reference("1.2.9"),
        done: 3,
        total: 12,
        waits_for: "deployment \"foo/foo\"".to_owned(),
    };
    let decision = decided(OperatorAction::Upgrade(chosen("1.2.9")));
    let unavailable = ["deployment \"foo/foo\" has 0 of 1 replicas".to_owned()];
    check(
        &shown(Some(&at("1.2.3")), &decision, &valid("1.2.9"), &rollout, &unavailable),
        "ConstraintsSatisfied=True AsExpected: everything that it requires is there
         HasValidBundle=True UnpackSuccessful: bundle foo.v1.2.9 successfully unpacked
         Installed=True InstallationSucceeded: Instantiated bundle foo.v1.2.3 successfully
         Progressing=True RollingOut: Rolling out v1.2.9: 3 of 12 objects, waiting on deployment \"foo/foo\"
         Available=False WorkloadNotAvailable: Deployment \"foo/foo\" has 0 of 1 replicas
         Degraded=False AsExpected: Nothing is degraded
         Upgradeable=True AsExpected: Nothing holds up an update",
    );
    let failed = Rollout::Failed {
        bundle: reference("1.2.9"),
        message: "phase Workloads took longer than 10m".to_owned(),
    };
    let text = shown(Some(&at("1.2.3")), &decision, &valid("1.2.9"), &failed, &[]);
    assert!(
        text.contains("Degraded=True InstallationFailed: Rollout of v1.2.9 failed: phase"),
        "{text}"
    );
    assert!(text.contains("Progressing=False InstallationFailed: Rollout of v1.2.9"), "{text}");
    assert!(text.contains("Installed=True"), "{text}");
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_progresses() {
    let block = OperatorBlock::new(Reason::UpgradeBlocked, "foo v2.0.1 waits: foo depends on baz");
    let decision = decided(OperatorAction::Blocked(block));
    check(
        &shown(Some(&at("1.2.3")), &decision, &valid("1.2.3"), &Rollout::Idle, &[]),
        "ConstraintsSatisfied=True AsExpected: everything that it requires is there
         HasValidBundle=True UnpackSuccessful: bundle foo.v1.2.3 successfully unpacked
         Installed=True InstallationSucceeded: Instantiated bundle foo.v1.2.3 successfully
         Progressing=False UpgradeBlocked: foo v2.0.1 waits: foo depends on baz
         Available=True AsExpected: All workloads are available
         Degraded=False AsExpected: Nothing is degraded
         Upgradeable=False UpgradeBlocked: foo v2.0.1 waits: foo depends on baz",
    );
    let block = OperatorBlock::new(Reason::PackageNotFound, "no catalog has a package foo");
    let decision = decided(OperatorAction::Blocked(block));
    check(
        &shown(None, &decision, &BundleContent::Unread, &Rollout::Idle, &[]),
        "ConstraintsSatisfied=Unknown PackageNotFound: no bundle is chosen
         HasValidBundle=Unknown PackageNotFound: no bundle is chosen
         Installed=False PackageNotFound: no catalog has a package foo
         Progressing=False PackageNotFound: No catalog has a package foo
         Available=False NotInstalled: No bundle is installed
         Degraded=False AsExpected: Nothing is degraded
         Upgradeable=True AsExpected: Nothing holds up an update",
    );
    let block =
        OperatorBlock::new(Reason::ConstraintsUnmet, "foo v1.2.3 waits: foo depends on bar");
    let decision = decided(OperatorAction::Blocked(block));
    check(
        &shown(None, &decision, &BundleContent::Unread, &Rollout::Idle, &[]),
        "ConstraintsSatisfied=False UnmetDependency: foo v1.2.3 waits: foo depends on bar
         HasValidBundle=Unknown ConstraintsUnmet: no bundle is read before its requirements are satisfied
         Installed=False ConstraintsUnmet: foo v1.2.3 waits: foo depends on bar
         Progressing=False ConstraintsUnmet: foo v1.2.3 waits: foo depends on bar
         Available=False NotInstalled: No bundle is installed
         Degraded=False AsExpected: Nothing is degraded
         Upgradeable=True AsExpected: Nothing holds up an update",
    );
}

#[test]
fn other_situations_have_their_reasons() {
    let progressing = |action: OperatorAction| {
        let installed = at("1.2.3");
        let text = shown(Some(&installed), &decided(action), &valid("1.2.3"), &Rollout::Idle, &[]);
        text.lines().nth(3).unwrap().to_owned()
    };
    let cases = [
        (OperatorAction::Paused, "Progressing=False Paused: Paused by spec.paused"),
        (OperatorAction::Delete, "Progressing=True Deleting: Its objects are being deleted"),
        (
            OperatorAction::RollBack { revision: 2, accepted_risks: Vec::new() },
            "Progressing=True RollingOut: Returning to revision 2",
        ),
        (OperatorAction::Upgrade(chosen("1.2.9")), "Progressing=True RollingOut: Preparing v1.2.9"),
    ];
    for (action, expected) in cases {
        assert_eq!(progressing(action), expected);
    }
    let decision = OperatorDecision {
        incompatibility: Some(
            "foo 1.2.3 requires Kubernetes 1.31 or later; the cluster runs 1.30.0".to_owned(),
        ),
        deprecation: Some("package foo is deprecated: use bar".to_owned()),
        ..decided(OperatorAction::Keep)
    };
    let invalid =
        BundleContent::Invalid { bundle: "foo.v1.2.3".to_owned(), message: "no CSV".to_owned() };
    let unavailable = ["deployment \"foo/foo\" has no replicas".to_owned()];
    let text = shown(Some(&at("1.2.3")), &decision, &invalid, &Rollout::Idle, &unavailable);
    for expected in [
        "ConstraintsSatisfied=False ClusterIncompatible: foo 1.2.3 requires Kubernetes 1.31",
        "HasValidBundle=False UnpackFailed: bundle foo.v1.2.3: no CSV",
        "Degraded=True WorkloadNotAvailable: Deployment \"foo/foo\" has no replicas",
        "Deprecated=True Deprecated: package foo is deprecated: use bar",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let deleting = decided(OperatorAction::Delete);
    let text = shown(Some(&at("1.2.3")), &deleting, &valid("1.2.3"), &Rollout::Idle, &unavailable);
    for expected in ["Available=False WorkloadNotAvailable", "Degraded=False AsExpected"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn messages_are_as_long_as_api_servers_accept() {
    let requirements: Vec<CheckedRequirement> =
        std::iter::repeat_with(unmet).take(1_200).flatten().collect();
    let fields: Vec<String> =
        (0..699).map(|it| format!("foos.example.com: v1: ^.spec.field{it} is removed")).collect();
    let block = OperatorBlock::new(Reason::UpgradeBlocked, fields.join("; "));
    let decision =
        OperatorDecision { requirements, ..decided(OperatorAction::Blocked(block.clone())) };
    let invalid =
        BundleContent::Invalid { bundle: "foo.v1.2.3".to_owned(), message: block.message };
    let failed = Rollout::Failed { bundle: reference("1.2.3"), message: fields.join("; ") };
    let (installed, bundles) = (at("1.2.3"), [valid("1.2.3"), invalid]);
    for installed in [None, Some(&installed)] {
        for (bundle, rollout) in bundles.iter().zip([&Rollout::Idle, &failed]) {
            let observation = OperatorObservation {
                name: "foo",
                generation: 2,
                installed,
                decision: &decision,
                bundle,
                rollout,
                unavailable: &fields,
            };
            let conditions = conditions(&observation, &[], Timestamp::UNIX_EPOCH);
            let lengths = conditions.iter().map(|it| it.message.chars().count());
            assert!(lengths.max().is_some_and(|it| it <= MESSAGE_LENGTH_MAX));
            let cut = conditions.iter().filter(|it| it.message.ends_with(" more characters"));
            assert!(cut.count() >= 2);
        }
    }
}

#[test]
fn a_condition_that_stays_keeps_its_time() {
    let (decision, installed) = (decided(OperatorAction::Keep), at("1.2.3"));
    let observe = |unavailable: &[String], before: &[MetaCondition], second: i64| {
        let observation = OperatorObservation {
            name: "foo",
            generation: 2,
            installed: Some(&installed),
            decision: &decision,
            bundle: &valid("1.2.3"),
            rollout: &Rollout::Idle,
            unavailable,
        };
        conditions(&observation, before, Timestamp::from_second(second).unwrap())
    };
    let first = observe(&[], &[], 1);
    let second = observe(&["it is down".to_owned()], &first, 2);
    let times: Vec<(&str, i64)> = second
        .iter()
        .map(|it| (it.type_.as_str(), it.last_transition_time.as_second()))
        .filter(|(_, time)| *time == 2)
        .collect();
    assert_eq!(times, [("Available", 2), ("Degraded", 2)]);
}

#[test]
fn versions_are_shown_as_requested_and_installed() {
    let installed = reference("1.2.5");
    for (requested, bundle, expected) in [
        ("^1.2.x", Some(&installed), "^1.2.x (@v1.2.5)"),
        ("1.2.5", Some(&installed), "1.2.5 (@v1.2.5)"),
        ("", Some(&installed), "* (@v1.2.5)"),
        ("~1.2", None, "~1.2"),
    ] {
        assert_eq!(resolved_version(requested, bundle), expected);
    }
}
