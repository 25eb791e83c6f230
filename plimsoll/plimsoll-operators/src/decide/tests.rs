//! Decisions as tables: the catalogs, the Operators, and the decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_api::Reason;

use super::decide;
use crate::tests::{FIXTURE, catalogs, inputs, operators, part};
use crate::{
    OperatorAction, OperatorBlock, OperatorDecision, OperatorInputs, SelectedBundle, installed,
};

/// Renders each decision as a line, followed by lines for what is reported.
fn rendered(decisions: &BTreeMap<String, OperatorDecision>) -> String {
    let mut text = String::new();
    for (name, decision) in decisions {
        let chosen = |selected: &SelectedBundle| {
            let reference = &selected.reference;
            format!("{}/{} {}", reference.catalog, reference.channel, reference.version)
        };
        let block = |block: &OperatorBlock| format!("{}: {}", block.reason, block.message);
        let action = match &decision.action {
            OperatorAction::Keep => "keep".to_owned(),
            OperatorAction::Paused => "paused".to_owned(),
            OperatorAction::Delete => "delete".to_owned(),
            OperatorAction::RollBack { revision, .. } => {
                format!("roll back to revision {revision}")
            }
            OperatorAction::Install(selected) => format!("install {}", chosen(selected)),
            OperatorAction::Upgrade(selected) => format!("upgrade {}", chosen(selected)),
            OperatorAction::Blocked(blocked) => format!("blocked {}", block(blocked)),
        };
        writeln!(text, "{name}: {action}").unwrap();
        let accepted_risks = match &decision.action {
            OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) => {
                selected.accepted_risks.as_slice()
            }
            OperatorAction::RollBack { accepted_risks, .. } => accepted_risks.as_slice(),
            _ => &[],
        };
        for risk in accepted_risks {
            writeln!(text, "  accepted: {risk}").unwrap();
        }
        if let Some(held_back) = &decision.held_back {
            writeln!(text, "  held back {}", block(held_back)).unwrap();
        }
        let requirements = decision.requirements.iter();
        for requirement in requirements.filter(|it| it.provider.is_none()) {
            writeln!(text, "  {}", installed::unmet(name, requirement)).unwrap();
        }
        for warning in decision.incompatibility.iter().chain(&decision.deprecation) {
            writeln!(text, "  warning: {warning}").unwrap();
        }
        for dependant in &decision.dependants {
            writeln!(text, "  {} needs {}", dependant.operator, dependant.requirement).unwrap();
        }
        if decision.is_orphaned {
            writeln!(text, "  orphaned").unwrap();
        }
    }
    text
}

/// Decides on all Operators on a cluster with Kubernetes 1.30, and compares the decisions.
#[track_caller]
pub(super) fn check(catalog: &str, requested: &str, expected: &str) {
    let of = catalogs(catalog);
    let operators = operators(&of, requested);
    let inputs = inputs(&operators);
    let decisions = decide(inputs, &operators.keys().cloned().collect(), &|names| part(&of, names));
    let expected: Vec<&str> =
        expected.lines().map(|line| line.trim_start_matches("         ").trim_end()).collect();
    let expected = expected.join("\n").trim_start_matches('\n').trim_end().to_owned();
    assert_eq!(rendered(&decisions).trim_end(), expected, "of {requested}");
}

#[test]
fn the_requirements_of_the_installed_bundle_are_reported_if_it_stays_after_all() {
    fn required(decision: &OperatorDecision) -> Vec<String> {
        decision.requirements.iter().map(|it| it.text.clone()).collect()
    }
    let of = catalogs(FIXTURE);
    let operators = operators(
        &of,
        "foo: version 2.0.1; at 1.2.9; upgrade Warn
         bar: at 1.2.7",
    );
    let inputs = inputs(&operators);
    let names = BTreeSet::from(["foo".to_owned()]);
    let mut decisions = decide(inputs, &names, &|names| part(&of, names));
    let decision = decisions.get_mut("foo").unwrap();
    assert_eq!(required(decision), ["baz >=1.5.0"]);
    decision.block(OperatorBlock::new(Reason::UpgradeBlocked, "its definition is unsafe"));
    assert_eq!(required(decision), ["bar >=1.2.7"]);
}

#[test]
fn an_unmet_dependency_is_reported_and_holds_up_what_its_policy_says() {
    // OPR-8, OPR-9: installing warns by default.
    check(
        FIXTURE,
        "foo: version 1.2.3",
        "foo: install main/stable 1.2.3
           accepted: foo depends on bar >=1.2.3 but bar is not installed
           foo depends on bar >=1.2.3 but bar is not installed",
    );
    check(
        FIXTURE,
        "foo: version 1.2.3; at 1.2.3
         bar: version 1.2.1; at 1.2.1",
        "bar: keep
         foo: keep
           foo depends on bar >=1.2.3 but bar v1.2.1 is installed",
    );
    check(
        FIXTURE,
        "foo: version 1.2.3; at 1.2.3
         bar: version 1.2.5; at 1.2.5; dependency",
        "bar: keep
           foo needs bar >=1.2.3
         foo: keep",
    );
    check(
        FIXTURE,
        "foo: version 1.2.3; install Enforce",
        "foo: blocked ConstraintsUnmet: foo v1.2.3 waits: foo depends on bar >=1.2.3 but bar is not \
         installed",
    );
    check(
        FIXTURE,
        "foo: version 1.2.3; install Enforce
         bar: version 1.2.5; at 1.2.5",
        "bar: keep
         foo: install main/stable 1.2.3",
    );
}

#[test]
fn an_upgrade_waits_for_what_it_requires() {
    let before = "bar: version 1.2.5; at 1.2.5
         baz: version 1.2.4; at 1.2.4";
    check(
        FIXTURE,
        &format!("{before}\nfoo: version 2.0.1; at 1.2.3"),
        "bar: keep
           foo needs bar >=1.2.3
         baz: keep
         foo: blocked UpgradeBlocked: foo v2.0.1 waits: foo depends on baz >=1.5.0 but baz v1.2.4 is \
         installed",
    );
    check(
        FIXTURE,
        &format!("{before}\nfoo: version 2.0.1; at 1.2.3; upgrade Warn"),
        "bar: keep
           foo needs bar >=1.2.3
         baz: keep
         foo: upgrade main/stable 2.0.1
           accepted: foo depends on baz >=1.5.0 but baz v1.2.4 is installed
           foo depends on baz >=1.5.0 but baz v1.2.4 is installed",
    );
}

#[test]
fn a_range_follows_the_catalog_within_itself() {
    check(
        FIXTURE,
        "foo: version >=1.2.0, <2; at 1.2.5
         bar: version ^1; at 1.2.7",
        "bar: keep
           foo needs bar >=1.2.3
         foo: upgrade main/stable 1.2.9",
    );
    // With the old bar it is not updated, and the blocker is reported.
    check(
        FIXTURE,
        "foo: version >=1.2.0, <2; at 1.2.5
         bar: version 1.2.5; at 1.2.5",
        "bar: keep
           foo needs bar >=1.2.3
         foo: blocked UpgradeBlocked: foo v1.2.9 waits: foo depends on bar >=1.2.7 but bar v1.2.5 is \
         installed",
    );
    // A blocked preferred version does not block one that is allowed.
    check(
        FIXTURE,
        "foo: at 1.2.5; version >=1.2
         bar: version 1.2.7; at 1.2.7",
        "bar: keep
           foo needs bar >=1.2.3
         foo: upgrade main/stable 1.2.9
           held back UpgradeBlocked: foo v2.0.1 waits: foo depends on baz >=1.5.0 but baz is not \
         installed",
    );
    check(FIXTURE, "bar: version 1.2.5; at 1.2.5", "bar: keep");
}

#[test]
fn a_dependency_without_dependants_is_an_orphan() {
    check(
        FIXTURE,
        "foo: version 2.0.1; at 2.0.1
         bar: version 1.2.5; at 1.2.5; dependency
         baz: version 1.5.6; at 1.5.6; dependency",
        "bar: keep
           orphaned
         baz: keep
           foo needs baz >=1.5.0
         foo: keep",
    );
}

#[test]
fn an_upgrade_does_not_break_those_who_depend_on_it() {
    let catalog = "
        main 0 app/stable
          1.0.0 requires db <2.0.0
        main 0 db/stable
          1.0.0
          2.0.0 <1.0.0";
    check(
        catalog,
        "app: at 1.0.0
         db: at 1.0.0",
        "app: keep
         db: blocked UpgradeBlocked: db v2.0.0 waits: app depends on db <2.0.0 but db v2.0.0 \
         would be installed
           app needs db <2.0.0",
    );
    check(
        catalog,
        "app: at 1.0.0
         db: at 1.0.0; upgrade Warn",
        "app: keep
         db: upgrade main/stable 2.0.0
           accepted: app depends on db <2.0.0 but db v2.0.0 would be installed
           app needs db <2.0.0",
    );
}

#[test]
fn a_way_back_is_judged_as_an_update_is() {
    let catalog = "
        main 0 app/stable
          2.0.0 requires db >=2.0.0
        main 0 db/stable
          1.0.0 requires disk >=1.0.0
          2.0.0 <1.0.0
        main 0 disk/stable
          1.0.0";
    check(
        catalog,
        "app: at 2.0.0
         db: at 2.0.0; revision 1; back 1.0.0
         disk: at 1.0.0",
        "app: keep
         db: blocked UpgradeBlocked: db v1.0.0 waits: app depends on db >=2.0.0 but db v1.0.0 \
         would be installed
           app needs db >=2.0.0
         disk: keep",
    );
    check(
        catalog,
        "db: at 2.0.0; revision 1; back 1.0.0",
        "db: blocked UpgradeBlocked: db v1.0.0 waits: db depends on disk >=1.0.0 but disk is not \
         installed",
    );
    check(
        catalog,
        "db: at 2.0.0; revision 1; back 1.0.0; upgrade Warn",
        "db: roll back to revision 1
           accepted: db depends on disk >=1.0.0 but disk is not installed",
    );
    check(
        catalog,
        "db: at 2.0.0; revision 1; back 1.0.0
         disk: at 1.0.0",
        "db: roll back to revision 1
         disk: keep",
    );
}

#[test]
fn an_api_has_one_owner() {
    let catalog = "
        main 0 new/stable
          1.0.0 provides Kettle
        main 0 old/stable
          1.0.0 provides Kettle";
    check(
        catalog,
        "new: created 1
         old: at 1.0.0; created 9",
        "new: blocked Conflict: new v1.0.0 provides Kettle.example.com, which belongs to Operator \
         old: delete one of the two
         old: keep",
    );
    // A revision that is being rolled out owns what it defines.
    check(
        catalog,
        "new:
         old: owns Kettle; paused",
        "new: blocked Conflict: new v1.0.0 provides Kettle.example.com, which belongs to Operator \
         old: delete one of the two
         old: paused",
    );
    check(
        catalog,
        "new: created 2
         old: created 1",
        "new: blocked Conflict: Operator old, which was created before, is about to install \
         Kettle.example.com: delete one of the two
         old: install main/stable 1.0.0",
    );
}

#[test]
fn what_cannot_be_chosen_says_why() {
    let catalog = "
        main 0 foo/stable
          1.0.0
          1.1.0 <1.0.0
          1.2.0 <1.1.0
          2.0.0 <1.2.0, kubernetes 1.31.0
        main 0 foo/fast
          3.0.0
        side 0 both/stable
          1.0.0
        tied 0 both/stable
          1.0.0";
    let block = |requested: &str, expected: &str| {
        check(catalog, &format!("foo: {requested}"), &format!("foo: blocked {expected}"));
    };
    block(
        "version one",
        "InvalidVersionRange: spec.version: `one` is not a range: expected a version with or without \
         a comparison at `one`; write a version such as 1.2.3, or a range such as ~1.2 or >=1.2.5, <1.3",
    );
    block(
        "version ^4",
        "NoMatchingVersion: no version of foo matches ^4; there is v2.0.0, v1.2.0, v1.1.0, v1.0.0",
    );
    block(
        "channel slow",
        "ChannelNotFound: foo has no channel slow; its channels are fast, stable",
    );
    block(
        "repository nosuch",
        "CatalogNotFound: there is no catalog nosuch; catalogs: main, side, tied",
    );
    block("repository side", "PackageNotFound: catalog side has no package foo");
    block(
        "version 2.0.0",
        "ClusterIncompatible: foo 2.0.0 requires Kubernetes 1.31.0 or later; the cluster runs 1.30.0",
    );
    block(
        "version 1.0.0; at 1.2.0",
        "NoUpgradePath: no update leads from v1.2.0 to 1.0.0; the channel has v2.0.0, v1.2.0, v1.1.0, \
         v1.0.0. Set spec.upgradePolicy to Semver or Any to update without the channel's graph",
    );
    check(
        catalog,
        "both:",
        "both: blocked AmbiguousCatalog: catalogs side, tied of the same weight have both: name one in \
         spec.repository, or give one a lower spec.weight",
    );
    check(catalog, "nosuch:", "nosuch: blocked PackageNotFound: no catalog has a package nosuch");
}

#[test]
fn a_package_without_a_default_channel_says_so() {
    let blocked = |default: Option<&str>| {
        let mut of = catalogs("main 0 foo/stable\n1.0.0\nmain 0 foo/fast\n2.0.0");
        of[0].packages[0].default_channel = default.map(str::to_owned);
        let operators = operators(&of, "foo:");
        let inputs = inputs(&operators);
        rendered(&decide(inputs, &BTreeSet::from(["foo".to_owned()]), &|names| part(&of, names)))
    };
    let named = "name one of its channels in spec.channel: fast, stable\n";
    assert_eq!(
        blocked(None),
        format!("foo: blocked ChannelNotFound: package foo has no default channel; {named}")
    );
    assert_eq!(
        blocked(Some("slow")),
        format!(
            "foo: blocked ChannelNotFound: package foo has no channel slow, which is its default one; \
             {named}"
        )
    );
    assert_eq!(blocked(Some("fast")), "foo: install main/fast 2.0.0\n");
}

#[test]
fn a_version_that_is_skipped_is_said_to_be() {
    // The second one is in the catalog, and the third one is not.
    let catalog = "
        main 0 foo/stable
          1.0.0
          1.1.0 <1.0.0
          1.2.0 <1.0.0, !1.1.0, !1.1.1";
    for version in ["1.1.0", "1.1.1"] {
        for installed in ["", "; at 1.0.0"] {
            check(
                catalog,
                &format!("foo: version {version}{installed}"),
                &format!(
                    "foo: blocked VersionSkipped: foo v{version} is skipped by foo.v1.2.0 in channel \
                     stable: it is not offered any more; there is v1.2.0, v1.0.0"
                ),
            );
        }
    }
}

#[test]
fn what_is_installed_stays_when_its_catalog_does_not() {
    check("", "foo: version ^1; at 1.0.0", "foo: keep");
    check(
        "main 0 foo/stable\n1.0.0",
        "foo: version 1.0.0; at 1.0.0; from gone/stable",
        "foo: keep",
    );
    let of = catalogs("");
    let operators = operators(&of, "foo:");
    let unavailable = BTreeMap::from([("main".to_owned(), "it cannot be read".to_owned())]);
    let inputs = OperatorInputs { unavailable: &unavailable, ..inputs(&operators) };
    let decisions = decide(inputs, &operators.keys().cloned().collect(), &|names| part(&of, names));
    assert_eq!(
        rendered(&decisions),
        "foo: blocked CatalogUnavailable: no catalog that is served has foo; not served: main (it \
         cannot be read)\n"
    );
}

#[test]
fn policies_people_and_other_versions() {
    let catalog = "
        main 0 foo/stable
          1.0.0
          1.1.0 <1.0.0
          1.2.0 <1.1.0, deprecated use 1.1
          2.0.0 <1.2.0, kubernetes 1.31.0";
    let cases = [
        ("paused; at 1.0.0", "paused"),
        ("deleting; paused; at 1.0.0", "delete"),
        ("revision 2; at 1.0.0", "roll back to revision 2"),
        ("revision 3; at 1.0.0", "keep"),
        // A deprecated version is only selected if it is requested, or if the installed one is deprecated.
        ("at 1.1.0", "keep"),
        ("", "install main/stable 1.1.0"),
        (
            "at 1.1.0; version 1.2.0",
            "upgrade main/stable 1.2.0\n  warning: foo v1.2.0 is deprecated: use 1.1",
        ),
        // Semver and Any do not follow the graph.
        (
            "at 1.0.0; version 1.2.0; policy Semver",
            "upgrade main/stable 1.2.0\n  warning: foo v1.2.0 is deprecated: use 1.1",
        ),
        ("at 1.1.0; version 1.0.0; policy Any", "upgrade main/stable 1.0.0"),
        (
            "at 1.2.0; version <=1.2.0; policy Any",
            "keep\n  warning: foo v1.2.0 is deprecated: use 1.1",
        ),
        // From outside the range, the edges lead towards it.
        ("at 1.0.0; version 1.2.0", "upgrade main/stable 1.1.0"),
        // An incompatible version is reported while the installed one is kept.
        (
            "at 1.2.0; version >=1",
            "keep\n  held back ClusterIncompatible: foo 2.0.0 requires Kubernetes 1.31.0 or later; the \
             cluster runs 1.30.0\n  warning: foo v1.2.0 is deprecated: use 1.1",
        ),
        // A ClusterOperator that is not upgradeable does not block patch versions.
        (
            "at 1.0.0; blocked it migrates",
            "blocked UpgradeBlocked: foo v1.1.0 waits: foo is not upgradeable: it migrates",
        ),
    ];
    for (fields, expected) in cases {
        check(catalog, &format!("foo: {fields}"), &format!("foo: {expected}"));
    }
}
