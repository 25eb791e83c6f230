//! Tests of decisions as tables: the catalogs, the Operators, and the decisions.

use std::fmt::Write as _;

use plimsoll_api::olm::{ConstraintPolicy, InstallConstraints, UpgradeConstraints, UpgradePolicy};
use plimsoll_resolve::{
    Api, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint, Package, Property,
    Requirement,
};
use semver::Version;

use super::*;

pub(super) struct NoExpressions;

impl Expressions for NoExpressions {
    fn evaluate(&self, _: &str, candidates: &[&[Property]]) -> Result<Vec<bool>, String> {
        Ok(vec![false; candidates.len()])
    }
}

/// The fixture of the scenarios: one catalog, every 1.2.x connected by edges.
pub(super) const FIXTURE: &str = "
    main 0 foo/stable
      1.2.2 provides Foo, requires bar >=1.2.3
      1.2.3 <1.2.2, provides Foo, requires bar >=1.2.3
      1.2.5 <1.2.3, provides Foo, requires bar >=1.2.3
      1.2.9 <1.2.5, provides Foo, requires bar >=1.2.7
      2.0.1 <1.2.9, ~>=1.2.2 <2.0.1, provides Foo, requires baz >=1.5.0
    main 0 bar/stable
      1.2.1 provides Bar
      1.2.5 <1.2.1, provides Bar
      1.2.7 <1.2.5, provides Bar
    main 0 baz/stable
      1.2.4 provides Baz
      1.5.6 <1.2.4, provides Baz";

/// Parses catalogs from lines `CATALOG WEIGHT PACKAGE/CHANNEL`, each followed by its entries, `VERSION
/// PARTS`. Parts are `<VERSION` for what it replaces, `~RANGE` for its skipRange, `provides KIND`, `requires
/// PACKAGE RANGE`, `requires KIND`, `deprecated TEXT`, `kubernetes VERSION`.
pub(super) fn catalogs(text: &str) -> Vec<CatalogPart> {
    let mut catalogs: Vec<CatalogPart> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let [catalog, weight, place] = line.split(' ').collect::<Vec<_>>()[..]
            && let Some((package, channel)) = place.split_once('/')
        {
            if catalogs.last().is_none_or(|it| it.name.name != catalog) {
                let name = CatalogName { namespace: String::new(), name: catalog.to_owned() };
                let weight = weight.parse().unwrap();
                catalogs.push(CatalogPart { name, weight, packages: Vec::new() });
            }
            let packages = &mut catalogs.last_mut().unwrap().packages;
            if packages.last().is_none_or(|it| it.name != package) {
                let default_channel = Some(channel.to_owned());
                let name = package.to_owned();
                packages.push(Package { name, default_channel, ..Package::default() });
            }
            let channels = &mut packages.last_mut().unwrap().channels;
            channels.push(Channel { name: channel.to_owned(), ..Channel::default() });
            continue;
        }
        let package = catalogs.last_mut().unwrap().packages.last_mut().unwrap();
        let bundle = bundle(&package.name, line);
        let mut entry = ChannelEntry { name: bundle.name.clone(), ..ChannelEntry::default() };
        for part in parts(line) {
            if let Some(version) = part.strip_prefix('<') {
                entry.replaces = Some(format!("{}.v{version}", package.name));
            } else if let Some(range) = part.strip_prefix('~') {
                entry.skip_range = Some(range.to_owned());
            }
        }
        package.channels.last_mut().unwrap().entries.push(entry);
        if package.bundles.iter().all(|it| it.name != bundle.name) {
            package.bundles.push(bundle);
        }
    }
    catalogs
}

/// Returns catalogs with only some packages.
pub(super) fn part(of: &[CatalogPart], names: &BTreeSet<String>) -> Vec<CatalogPart> {
    let mut catalogs = of.to_vec();
    for catalog in &mut catalogs {
        catalog.packages.retain(|package| names.contains(&package.name));
    }
    catalogs
}

fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split_once(' ').map_or("", |(_, parts)| parts).split(", ").filter(|it| !it.is_empty())
}

fn api(kind: &str) -> Api {
    Api { group: "example.com".into(), version: "v1".into(), kind: kind.into() }
}

fn bundle(package: &str, line: &str) -> Bundle {
    let version = line.split(' ').next().unwrap();
    let mut bundle = Bundle::new(format!("{package}.v{version}"), Version::parse(version).unwrap());
    for part in parts(line) {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        match word {
            "provides" => bundle.provides.push(api(rest)),
            "requires" => bundle.requires.push(Requirement::from(match rest.split_once(' ') {
                Some((name, range)) => {
                    Constraint::Package { name: name.to_owned(), range: range.to_owned() }
                }
                None => Constraint::Api(api(rest)),
            })),
            "deprecated" => bundle.deprecation = Some(rest.to_owned()),
            "kubernetes" => bundle.min_kube_version = Some(rest.to_owned()),
            _ => assert!(part.starts_with(['<', '~']), "{part}"),
        }
    }
    bundle
}

/// Parses Operators from lines `NAME: FIELD; …` with `version RANGE`, `at VERSION` for the installed version,
/// `from CATALOG/CHANNEL` (of the installed version), `install Enforce`, `upgrade Warn`, `policy Any`,
/// `channel NAME`, `repository NAME`, `set ID/MEMBERS`, `created SECONDS`, `revision NUMBER`, `blocked
/// TEXT`, `owns KIND`, `dependency`, `deleting` and `paused`.
pub(super) fn operators(of: &[CatalogPart], text: &str) -> BTreeMap<String, RequestedOperator> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| operator(of, line)).collect()
}

fn operator(of: &[CatalogPart], line: &str) -> (String, RequestedOperator) {
    let (name, fields) = line.split_once(':').unwrap();
    let mut spec = OperatorSpec::default();
    let mut it = RequestedOperator {
        spec: OperatorSpec::default(),
        created: Timestamp::UNIX_EPOCH,
        is_dependency: false,
        change_set: None,
        is_deleting: false,
        installed: None,
        owned: BTreeSet::new(),
    };
    let mut origin = ("main", "stable");
    let mut upgrade_block = None;
    let mut policy = ConstraintPolicy::default();
    for field in fields.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (key, value) = field.split_once(' ').unwrap_or((field, ""));
        let text = value.to_owned();
        match key {
            "version" => spec.version = text,
            "channel" => spec.channel = text,
            "repository" => spec.repository = text,
            "at" => {
                let packages = of.iter().flat_map(|catalog| &catalog.packages);
                let mut bundles = packages.flat_map(|package| &package.bundles);
                let wanted = format!("{name}.v{value}");
                let bundle = bundles
                    .find(|bundle| bundle.name == wanted)
                    .cloned()
                    .unwrap_or_else(|| Bundle::new(wanted, Version::parse(value).unwrap()));
                it.owned = installed::kinds(&bundle);
                it.installed = Some(InstalledOperator {
                    reference: BundleReference {
                        name: bundle.name.clone(),
                        version: value.to_owned(),
                        ..BundleReference::default()
                    },
                    bundle,
                    revision: 3,
                    upgrade_block: None,
                });
            }
            "from" => origin = value.split_once('/').unwrap(),
            "install" => policy.install = InstallConstraints::Enforce,
            "upgrade" => policy.upgrade = UpgradeConstraints::Warn,
            "policy" => {
                spec.upgrade_policy =
                    if value == "Any" { UpgradePolicy::Any } else { UpgradePolicy::Semver };
            }
            "set" => it.change_set = Some(text),
            "created" => it.created = Timestamp::from_second(value.parse().unwrap()).unwrap(),
            "revision" => spec.revision = value.parse().ok(),
            "blocked" => upgrade_block = Some(text),
            "owns" => it.owned = BTreeSet::from([GroupKind::new("example.com", value)]),
            "dependency" => it.is_dependency = true,
            "deleting" => it.is_deleting = true,
            "paused" => spec.paused = true,
            _ => panic!("{field}"),
        }
    }
    spec.constraint_policy = policy;
    it.spec = spec;
    if let Some(installed) = &mut it.installed {
        (installed.reference.catalog, installed.reference.channel) =
            (origin.0.to_owned(), origin.1.to_owned());
        installed.upgrade_block = upgrade_block;
    }
    (name.to_owned(), it)
}

pub(super) fn facts(minor: u64) -> ClusterFacts {
    ClusterFacts { kubernetes: Some(Version::new(1, minor, 0)), ..ClusterFacts::default() }
}

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
            OperatorAction::RollBack { revision } => format!("roll back to revision {revision}"),
            OperatorAction::Install(selected) => format!("install {}", chosen(selected)),
            OperatorAction::Upgrade(selected) => format!("upgrade {}", chosen(selected)),
            OperatorAction::Blocked(blocked) => format!("blocked {}", block(blocked)),
        };
        writeln!(text, "{name}: {action}").unwrap();
        if let OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) =
            &decision.action
        {
            for risk in &selected.accepted_risks {
                writeln!(text, "  accepted: {risk}").unwrap();
            }
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
fn check(catalog: &str, requested: &str, expected: &str) {
    let of = catalogs(catalog);
    let operators = operators(&of, requested);
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &BTreeMap::new(),
        facts: &facts(30),
        expressions: &NoExpressions,
    };
    let decisions = decide(inputs, &operators.keys().cloned().collect(), &|names| part(&of, names));
    let expected: Vec<&str> =
        expected.lines().map(|line| line.trim_start_matches("         ").trim_end()).collect();
    let expected = expected.join("\n").trim_start_matches('\n').trim_end().to_owned();
    assert_eq!(rendered(&decisions).trim_end(), expected, "of {requested}");
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
fn what_nobody_needs_any_more_is_an_orphan() {
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
fn a_change_set_moves_as_a_whole_or_not_at_all() {
    let catalog = "
        main 0 a/stable
          1.0.0 requires b <2.0.0
          2.0.0 <1.0.0, requires b >=2.0.0
        main 0 b/stable
          1.0.0 requires a <2.0.0
          2.0.0 <1.0.0, requires a >=2.0.0, requires c >=1.0.0
        main 0 c/stable
          1.0.0";
    let moved = "a: version 2.0.0; at 1.0.0; set x/2
         b: version 2.0.0; at 1.0.0; set x/2";
    // Neither can be updated alone (OL015 of lint).
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0
         b: version 2.0.0; at 1.0.0
         c: at 1.0.0",
        "a: blocked UpgradeBlocked: a v2.0.0 waits: a depends on b >=2.0.0 but b v1.0.0 is \
         installed; b depends on a <2.0.0 but a v2.0.0 would be installed
           b needs a <2.0.0
         b: blocked UpgradeBlocked: b v2.0.0 waits: b depends on a >=2.0.0 but a v1.0.0 is \
         installed; a depends on b <2.0.0 but b v2.0.0 would be installed
           a needs b <2.0.0
         c: keep",
    );
    check(
        catalog,
        &format!("{moved}\nc: at 1.0.0"),
        "a: upgrade main/stable 2.0.0
           a depends on b >=2.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           b depends on a >=2.0.0 but a v1.0.0 is installed
           a needs b <2.0.0
         c: keep",
    );
    check(
        catalog,
        moved,
        "a: blocked ChangeSetBlocked: change set x waits: b: b v2.0.0 waits: b depends on c >=1.0.0 \
         but c is not installed
           b needs a <2.0.0
         b: blocked UpgradeBlocked: b v2.0.0 waits: b depends on c >=1.0.0 but c is not installed
           a needs b <2.0.0",
    );
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0; set x/2",
        "a: blocked ChangeSetIncomplete: change set x has 1 of its 2 Operators: a
           a depends on b <2.0.0 but b is not installed",
    );
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0; set x",
        "a: blocked InvalidChangeSet: the annotation olm.io/change-set is \"x\"; it must be \
         ID/MEMBERS, such as upgrade-42/2
           a depends on b <2.0.0 but b is not installed",
    );
}

#[test]
fn a_member_of_a_change_set_takes_the_steps_that_lead_to_what_is_requested() {
    let catalog = |step: &str| {
        format!(
            "
        main 0 a/stable
          1.0.0 requires b <2.0.0
          1.1.0 <1.0.0, requires b {step}
          2.0.0 <1.1.0, requires b >=2.0.0
        main 0 b/stable
          1.0.0 requires a <2.0.0
          2.0.0 <1.0.0, requires a >=1.1.0"
        )
    };
    let requested = "a: version 2.0.0; at 1.0.0; set x/2
         b: version 2.0.0; at 1.0.0; set x/2";
    // The step fits the installed bundles: it is made first.
    check(
        &catalog("<3.0.0"),
        requested,
        "a: upgrade main/stable 1.1.0
           b needs a <2.0.0
         b: blocked ChangeSetBlocked: change set x waits: a v1.1.0 comes before v2.0.0
           a needs b <2.0.0",
    );
    check(
        &catalog("<3.0.0"),
        &requested.replacen("at 1.0.0", "at 1.1.0", 1),
        "a: blocked ChangeSetBlocked: change set x waits: b v2.0.0 comes first
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           a needs b <3.0.0",
    );
    check(
        &catalog("<3.0.0"),
        &requested.replacen("at 1.0.0", "at 1.1.0", 1).replace("; at 1.0.0", "; at 2.0.0"),
        "a: upgrade main/stable 2.0.0
           b needs a >=1.1.0
         b: keep
           a needs b <3.0.0",
    );
    // The step fits the bundles that the others move to: it is made with them.
    check(
        &catalog(">=2.0.0"),
        requested,
        "a: upgrade main/stable 1.1.0
           a depends on b >=2.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           b depends on a >=1.1.0 but a v1.0.0 is installed
           a needs b <2.0.0",
    );
    // The step fits neither.
    check(
        &catalog(">=4.0.0"),
        requested,
        "a: blocked UpgradeBlocked: a v1.1.0 waits: a depends on b >=4.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: blocked ChangeSetBlocked: change set x waits: a: a v1.1.0 waits: a depends on b >=4.0.0 \
         but b v1.0.0 is installed
           a needs b <2.0.0",
    );
    // If not all members can reach their version, none makes a step.
    check(
        &catalog("<3.0.0"),
        &requested.replace("b: version 2.0.0", "b: version >=1.0.0, <2.0.0"),
        "a: blocked UpgradeBlocked: a v2.0.0 waits: a depends on b >=2.0.0 but b v1.0.0 is installed; \
         b depends on a <2.0.0 but a v2.0.0 would be installed
           b needs a <2.0.0
         b: keep
           a needs b <2.0.0",
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
    let inputs = OperatorInputs {
        operators: &operators,
        unavailable: &unavailable,
        facts: &facts(30),
        expressions: &NoExpressions,
    };
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
