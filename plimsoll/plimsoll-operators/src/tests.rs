//! Fixtures of tests: catalogs and Operators as texts.

use std::sync::LazyLock;

use plimsoll_api::olm::{
    ConstraintPolicy, InstallConstraints, RemainingObjects, UpgradeConstraints, UpgradePolicy,
};
use plimsoll_resolve::{
    Api, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint, Package, Property,
    Requirement,
};
use semver::Version;

use super::*;
use crate::deletion_plan::{DeletionRequest, RemovedConversion};
use crate::observed::ObservedOperator;

pub(super) struct NoExpressions;

impl Expressions for NoExpressions {
    fn evaluate(
        &self,
        _: &str,
        candidates: &[&[Property]],
        _: &mut u64,
    ) -> Result<Vec<bool>, String> {
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
/// PARTS`. Parts are `<VERSION` for what it replaces, `!VERSION` for what it skips, `~RANGE` for its
/// skipRange, `provides KIND`, `requires PACKAGE RANGE`, `requires KIND`, `deprecated TEXT`, `kubernetes
/// VERSION`.
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
            } else if let Some(version) = part.strip_prefix('!') {
                entry.skips.push(format!("{}.v{version}", package.name));
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
            _ => assert!(part.starts_with(['<', '!', '~']), "{part}"),
        }
    }
    bundle
}

/// Parses Operators from lines `NAME: FIELD; …` with `version RANGE`, `at VERSION` for the installed version,
/// `from CATALOG/CHANNEL` (of the installed version), `install Enforce`, `upgrade Warn`, `policy Any`,
/// `channel NAME`, `repository NAME`, `set ID/MEMBERS`, `created SECONDS`, `revision NUMBER`, `back VERSION` for
/// the version of that revision, `blocked TEXT`, `owns KIND`, `dependency`, `user`, `undeclared`, `deleting`
/// and `paused`.
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
        is_of_user: false,
        is_undeclared: false,
        change_set: None,
        is_deleting: false,
        installed: None,
        returns_to: None,
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
                let bundle = known_bundle(of, name, value);
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
            "back" => it.returns_to = Some(known_bundle(of, name, value)),
            "blocked" => upgrade_block = Some(text),
            "owns" => it.owned = BTreeSet::from([GroupKind::new("example.com", value)]),
            "dependency" => it.is_dependency = true,
            "user" => it.is_of_user = true,
            "undeclared" => it.is_undeclared = true,
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

/// Returns a bundle as a catalog has it; one without requirements if none has it.
fn known_bundle(of: &[CatalogPart], package: &str, version: &str) -> Bundle {
    let packages = of.iter().flat_map(|catalog| &catalog.packages);
    let mut bundles = packages.flat_map(|package| &package.bundles);
    let wanted = format!("{package}.v{version}");
    let known = bundles.find(|bundle| bundle.name == wanted).cloned();
    known.unwrap_or_else(|| Bundle::new(wanted, Version::parse(version).unwrap()))
}

/// Returns the inputs of decisions on Operators of a cluster with Kubernetes 1.30, all of whose catalogs are served.
pub(super) fn inputs(operators: &BTreeMap<String, RequestedOperator>) -> OperatorInputs<'_> {
    static UNAVAILABLE: BTreeMap<String, String> = BTreeMap::new();
    static FACTS: LazyLock<ClusterFacts> = LazyLock::new(|| facts(30));
    OperatorInputs {
        operators,
        unavailable: &UNAVAILABLE,
        facts: &FACTS,
        expressions: &NoExpressions,
    }
}

/// Returns the inputs of a plan that deletes Operators and keeps their dependencies, on a cluster without a
/// release and without objects of their kinds.
pub(super) fn deletion_request<'a>(
    operators: &'a BTreeMap<String, ObservedOperator>,
    names: &'a BTreeSet<String>,
) -> DeletionRequest<'a> {
    static WORKLOADS: BTreeMap<String, Vec<RemainingObjects>> = BTreeMap::new();
    static CONVERSIONS: BTreeMap<String, Vec<RemovedConversion>> = BTreeMap::new();
    static OF_RELEASE: BTreeSet<String> = BTreeSet::new();
    DeletionRequest {
        operators,
        workloads: &WORKLOADS,
        conversions: &CONVERSIONS,
        of_release: &OF_RELEASE,
        names,
        cascade: false,
        keep_crds: false,
    }
}

pub(super) fn facts(minor: u64) -> ClusterFacts {
    ClusterFacts { kubernetes: Some(Version::new(1, minor, 0)), ..ClusterFacts::default() }
}
