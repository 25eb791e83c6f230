//! Small random catalogs: what the resolver answers is valid, minimal and preferred, as a search
//! through every set of bundles finds it; and what must not matter does not.

use std::collections::{BTreeSet, VecDeque};

use plimsoll_resolve::{
    Api, Bundle, BundleExclusion, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint,
    Package, PackageRequest, Problem, Query, Requirement, Resolution, Solution, solve,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use semver::Version;

use crate::NoExpressions;

const PACKAGES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
struct Sketch {
    /// Of each package its versions, the oldest first: APIs that each provides, and what it needs.
    packages: Vec<Vec<(BTreeSet<u8>, Vec<Need>)>>,
    requests: Vec<(usize, Option<u8>)>,
}

#[derive(Debug, Clone)]
enum Need {
    Api(u8),
    /// A package in a version of at least, or less than, a major number.
    Package(usize, bool, u8),
}

fn need() -> impl Strategy<Value = Need> {
    prop_oneof![
        (0..3u8).prop_map(Need::Api),
        (0..PACKAGES.len(), any::<bool>(), 1..4u8)
            .prop_map(|(package, least, major)| Need::Package(package, least, major)),
    ]
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let bundle = (prop::collection::btree_set(0..3u8, 0..2), prop::collection::vec(need(), 0..3));
    let package = prop::collection::vec(bundle, 1..4);
    let packages = prop::collection::vec(package, PACKAGES.len());
    let request = (0..PACKAGES.len(), prop::option::weighted(0.3, 1..4u8));
    let requests = prop::collection::vec(request, 1..3);
    (packages, requests).prop_map(|(packages, requests)| Sketch { packages, requests })
}

fn api(number: u8) -> Api {
    Api { group: "g".into(), version: "v1".into(), kind: format!("K{number}") }
}

fn requirement(need: &Need) -> Requirement {
    match need {
        Need::Api(number) => Constraint::Api(api(*number)).into(),
        Need::Package(package, least, major) => {
            let comparison = if *least { ">=" } else { "<" };
            let range = format!("{comparison}{major}.0.0");
            Constraint::Package { name: PACKAGES[*package].into(), range }.into()
        }
    }
}

/// One catalog with one channel a package, in which each version replaces the one before.
fn problem(sketch: &Sketch) -> Problem {
    let packages = sketch.packages.iter().zip(PACKAGES).map(|(versions, name)| {
        let bundle_name = |major: usize| format!("{name}.v{major}");
        let bundles = versions.iter().enumerate().map(|(at, (provides, needs))| Bundle {
            provides: provides.iter().map(|number| api(*number)).collect(),
            requires: needs.iter().map(requirement).collect(),
            ..Bundle::new(bundle_name(at + 1), Version::new(at as u64 + 1, 0, 0))
        });
        let entries = (1..=versions.len()).map(|major| ChannelEntry {
            name: bundle_name(major),
            replaces: (major > 1).then(|| bundle_name(major - 1)),
            ..ChannelEntry::default()
        });
        Package {
            name: name.to_owned(),
            default_channel: Some("stable".to_owned()),
            channels: vec![Channel {
                name: "stable".to_owned(),
                entries: entries.collect(),
                ..Channel::default()
            }],
            bundles: bundles.collect(),
            ..Package::default()
        }
    });
    let requests = sketch.requests.iter().map(|(package, major)| PackageRequest {
        package: PACKAGES[*package].to_owned(),
        version: major.map(|major| format!("<={major}.0.0")),
        ..PackageRequest::default()
    });
    let name = CatalogName { namespace: "olm".to_owned(), name: "cat".to_owned() };
    let mut problem = Problem {
        format: plimsoll_resolve::FORMAT,
        query: Query { requests: requests.collect(), ..Query::default() },
        catalogs: vec![CatalogPart { name, weight: 0, packages: packages.collect() }],
    };
    problem.canonicalize();
    problem
}

/// Everything there is, as package and number of the version.
type Chosen = BTreeSet<(usize, usize)>;

/// Returns whether a bundle is what another one needs.
fn satisfies(bundle: &(BTreeSet<u8>, Vec<Need>), at: (usize, usize), need: &Need) -> bool {
    match need {
        Need::Api(number) => bundle.0.contains(number),
        Need::Package(package, least, major) => {
            at.0 == *package && (at.1 as u8 + 1 >= *major) == *least
        }
    }
}

/// Returns whether a set of bundles satisfies everything, by the words of the specification.
fn valid(sketch: &Sketch, chosen: &Chosen) -> bool {
    let of = |(package, version): &(usize, usize)| &sketch.packages[*package][*version];
    let one_per_package = PACKAGES
        .iter()
        .enumerate()
        .all(|(at, _)| chosen.iter().filter(|it| it.0 == at).count() < 2);
    let one_provider =
        (0..3).all(|number| chosen.iter().filter(|it| of(it).0.contains(&number)).count() < 2);
    let satisfied = |need: &Need| chosen.iter().any(|it| satisfies(of(it), *it, need));
    let requested = sketch.requests.iter().all(|(package, major)| {
        chosen.iter().any(|it| it.0 == *package && major.is_none_or(|major| (it.1 as u8) < major))
    });
    one_per_package
        && one_provider
        && requested
        && chosen.iter().all(|it| of(it).1.iter().all(satisfied))
}

/// All sets of at most one version of each package.
fn all_sets(sketch: &Sketch) -> Vec<Chosen> {
    let mut sets = vec![Chosen::new()];
    for (package, versions) in sketch.packages.iter().enumerate() {
        let mut next = sets.clone();
        for version in 0..versions.len() {
            next.extend(sets.iter().map(|set| {
                let mut set = set.clone();
                set.insert((package, version));
                set
            }));
        }
        sets = next;
    }
    sets
}

fn chosen(solution: &Solution) -> Chosen {
    solution
        .install
        .iter()
        .map(|item| {
            let package = PACKAGES.iter().position(|name| *name == item.package);
            (package.expect("a known package"), item.version.major as usize - 1)
        })
        .collect()
}

fn solved(problem: &Problem) -> Option<Solution> {
    match solve(problem, &NoExpressions) {
        Resolution::Solved(solution) => Some(solution),
        Resolution::Unsatisfiable(_) => None,
        Resolution::LimitExceeded => panic!("it is not that hard"),
    }
}

/// Returns what satisfies a choice, in the order of preference: of what is requested, or of what a bundle
/// needs, the newest versions of a package first.
fn candidates(sketch: &Sketch, would_do: impl Fn((usize, usize)) -> bool) -> Vec<(usize, usize)> {
    let bundles = sketch.packages.iter().enumerate().flat_map(|(package, versions)| {
        (0..versions.len()).rev().map(move |version| (package, version))
    });
    bundles.filter(|bundle| would_do(*bundle)).collect()
}

/// The choices that the order of preference makes, by trying every set of bundles: each takes its
/// first candidate that some set has together with what was chosen before.
fn preferred(sketch: &Sketch, possible: &[Chosen]) -> Chosen {
    let mut without = Chosen::new();
    loop {
        let chosen = choices(sketch, possible, &without);
        let mut needed: Chosen = chosen.iter().copied().collect();
        for bundle in chosen.iter().rev() {
            let enough = possible.iter().filter(|set| set.is_subset(&needed));
            let enough = enough.filter(|set| !set.contains(bundle)).max_by_key(|set| set.len());
            if let (true, Some(enough)) = (needed.contains(bundle), enough) {
                without.extend(needed.difference(enough));
                needed = enough.clone();
            }
        }
        if needed.len() == chosen.len() {
            return needed;
        }
    }
}

fn choices(sketch: &Sketch, possible: &[Chosen], without: &Chosen) -> Vec<(usize, usize)> {
    let mut requests = sketch.requests.clone();
    requests.sort();
    let mut agenda: VecDeque<Vec<(usize, usize)>> = requests
        .iter()
        .map(|(package, major)| {
            candidates(sketch, |it| {
                it.0 == *package && major.is_none_or(|major| (it.1 as u8) < major)
            })
        })
        .collect();
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    while let Some(candidates) = agenda.pop_front() {
        if candidates.iter().any(|it| chosen.contains(it)) {
            continue;
        }
        let goes = |candidate: &&(usize, usize)| {
            possible.iter().any(|set| {
                set.is_disjoint(without)
                    && set.contains(*candidate)
                    && chosen.iter().all(|it| set.contains(it))
            })
        };
        let next = *candidates.iter().find(goes).expect("what was possible stays possible");
        chosen.push(next);
        let mut needs = sketch.packages[next.0][next.1].1.clone();
        needs.sort_by_key(requirement);
        agenda.extend(needs.iter().map(|need| {
            self::candidates(sketch, |it| satisfies(&sketch.packages[it.0][it.1], it, need))
        }));
    }
    chosen
}

/// The cases that failed once, which are played first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/seeds/properties.txt"
));

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: Some(Box::new(FAILED)), ..ProptestConfig::default() })]

    #[test]
    fn answers_are_valid_minimal_and_preferred(sketch in sketch()) {
        let possible: Vec<Chosen> =
            all_sets(&sketch).into_iter().filter(|set| valid(&sketch, set)).collect();
        let Some(solution) = solved(&problem(&sketch)) else {
            prop_assert!(possible.is_empty(), "there is {possible:?}");
            return Ok(());
        };
        let found = chosen(&solution);
        prop_assert!(valid(&sketch, &found), "{found:?}");
        let smaller = possible.iter().find(|set| **set != found && set.is_subset(&found));
        prop_assert!(smaller.is_none(), "{found:?} has more than {smaller:?}");
        prop_assert_eq!(&found, &preferred(&sketch, &possible), "of {:?}", possible);
    }

    #[test]
    fn what_was_not_chosen_can_be_missing(sketch in sketch(), package in 0..PACKAGES.len(), version in 0..3usize) {
        let problem = problem(&sketch);
        let Some(solution) = solved(&problem) else { return Ok(()) };
        let found = chosen(&solution);
        prop_assume!(!found.contains(&(package, version)));
        let mut without = problem.clone();
        without.query.overrides.exclude.push(BundleExclusion {
            package: PACKAGES[package].to_owned(),
            versions: None,
            bundle: Some(format!("{}.v{}", PACKAGES[package], version + 1)),
        });
        let again = solved(&without).map(|solution| chosen(&solution));
        prop_assert_eq!(again, Some(found));
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(sketch in sketch()) {
        let problem = problem(&sketch);
        let mut turned = problem.clone();
        turned.query.requests.reverse();
        for package in &mut turned.catalogs[0].packages {
            package.bundles.reverse();
            package.channels[0].entries.reverse();
            for bundle in &mut package.bundles {
                bundle.requires.reverse();
            }
        }
        turned.catalogs[0].packages.reverse();
        prop_assert_eq!(problem.write(), turned.write());
        let read = Problem::read(turned.write().as_bytes()).expect("what was written can be read");
        prop_assert_eq!(&read, &problem);
        turned.canonicalize();
        prop_assert_eq!(solve(&turned, &NoExpressions), solve(&problem, &NoExpressions));
    }

    #[test]
    fn a_catalog_of_lower_priority_changes_nothing_that_was_preferred(
        sketch in sketch(), other in sketch(),
    ) {
        let problem = problem(&sketch);
        let Some(solution) = solved(&problem) else { return Ok(()) };
        prop_assume!(solution.install.iter().all(|item| item.instead_of.is_empty()));
        let mut more = problem.clone();
        let mut part = self::problem(&other).catalogs.remove(0);
        part.name.name = "other".to_owned();
        part.weight = 10;
        more.catalogs.push(part);
        let again = solved(&more).map(|solution| chosen(&solution));
        prop_assert_eq!(again, Some(chosen(&solution)));
    }
}
