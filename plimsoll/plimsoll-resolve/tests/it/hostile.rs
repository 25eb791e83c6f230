//! Catalogs that were made to do harm end in an answer all the same.

use plimsoll_resolve::{
    Bundle, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint, Expressions, FORMAT,
    Package, PackageRequest, Problem, Property, Query, Requirement, Resolution, solve,
};
use semver::Version;

use crate::NoExpressions;

pub(crate) fn problem(packages: Vec<Package>) -> Problem {
    let request = PackageRequest { package: "a".to_owned(), ..PackageRequest::default() };
    let name = CatalogName { namespace: String::new(), name: "cat".to_owned() };
    let mut problem = Problem {
        format: FORMAT,
        query: Query { requests: vec![request], ..Query::default() },
        catalogs: vec![CatalogPart { name, weight: 0, packages }],
    };
    problem.canonicalize();
    problem
}

pub(crate) fn package(name: &str, bundles: Vec<Bundle>, entries: Vec<ChannelEntry>) -> Package {
    Package {
        name: name.to_owned(),
        default_channel: Some("stable".to_owned()),
        channels: vec![Channel { name: "stable".to_owned(), entries, ..Channel::default() }],
        bundles,
        ..Package::default()
    }
}

pub(crate) fn entry(name: &str, replaces: Option<String>) -> ChannelEntry {
    ChannelEntry { name: name.to_owned(), replaces, ..ChannelEntry::default() }
}

#[test]
fn a_channel_of_many_entries_is_only_long() {
    const ENTRIES: u64 = 100_000;
    let entries = (0..ENTRIES)
        .map(|at| entry(&format!("a{at}"), at.checked_sub(1).map(|at| format!("a{at}"))));
    let bundle = Bundle::new("a0", Version::new(1, 0, 0));
    let problem = problem(vec![package("a", vec![bundle], entries.collect())]);
    let Resolution::Solved(solution) = solve(&problem, &NoExpressions) else {
        panic!("it has a bundle")
    };
    assert_eq!(solution.install[0].bundle, "a0");
}

/// Evaluates one expression, which costs all that there is.
struct CostlyExpressions;

impl Expressions for CostlyExpressions {
    fn evaluate(
        &self,
        _: &str,
        candidates: &[&[Property]],
        cost_left: &mut u64,
    ) -> Result<Vec<bool>, String> {
        if *cost_left == 0 {
            return Err("it costs too much".to_owned());
        }
        *cost_left = 0;
        Ok(vec![true; candidates.len()])
    }
}

#[test]
fn a_bundle_whose_expressions_cost_too_much_is_left_out_and_named() {
    let entries = vec![entry("a2", Some("a1".into())), entry("a1", None)];
    let rules: [Requirement; 2] =
        ["one", "two"].map(|rule| Constraint::Cel { rule: rule.to_owned() }.into());
    let costly = Bundle { requires: rules.to_vec(), ..Bundle::new("a2", Version::new(2, 0, 0)) };
    let bundles = vec![costly, Bundle::new("a1", Version::new(1, 0, 0))];
    let problem = problem(vec![package("a", bundles, entries)]);
    let Resolution::Solved(solution) = solve(&problem, &CostlyExpressions) else {
        panic!("the other bundle will do")
    };
    assert_eq!(solution.install[0].bundle, "a1");
    assert_eq!(
        solution.warnings,
        [
            "bundle a2 of package `a` in catalog cat is ignored: its expression is invalid: it costs too \
          much"
        ]
    );
}

#[test]
fn a_circle_is_a_broken_channel() {
    let entries = vec![entry("a1", Some("a2".into())), entry("a2", Some("a1".into()))];
    let bundle = Bundle::new("a1", Version::new(1, 0, 0));
    let problem = problem(vec![package("a", vec![bundle], entries)]);
    let Resolution::Unsatisfiable(explanation) = solve(&problem, &NoExpressions) else {
        panic!("a circle")
    };
    assert!(explanation.conflicts[0].steps[0].text.contains("its entries replace each other"));
}

#[test]
fn a_deep_constraint_is_followed_to_its_end() {
    let mut requirement: Requirement = Constraint::Label("x".to_owned()).into();
    for _ in 0..100 {
        requirement = Constraint::All(vec![requirement]).into();
    }
    let mut a = Bundle::new("a1", Version::new(1, 0, 0));
    a.requires.push(requirement);
    let mut b = Bundle::new("b1", Version::new(1, 0, 0));
    b.labels.push("x".to_owned());
    let problem = problem(vec![
        package("a", vec![a], vec![entry("a1", None)]),
        package("b", vec![b], vec![entry("b1", None)]),
    ]);
    let Resolution::Solved(solution) = solve(&problem, &NoExpressions) else {
        panic!("b has the label")
    };
    assert_eq!(solution.install.len(), 2);
}

#[test]
fn pigeons_without_holes_are_given_up_or_refuted() {
    // Each of n+1 packages needs one of n labels' bundles for itself: exponentially hard for
    // every solver that only resolves.
    const HOLES: usize = 7;
    let mut packages = Vec::new();
    let mut a = Bundle::new("a1", Version::new(1, 0, 0));
    for pigeon in 0..=HOLES {
        a.requires.push(Constraint::Label(format!("pigeon{pigeon}")).into());
        for hole in 0..HOLES {
            let name = format!("p{pigeon}-{hole}");
            let mut bundle = Bundle::new(format!("{name}.v1"), Version::new(1, 0, 0));
            bundle.labels.push(format!("pigeon{pigeon}"));
            bundle.provides.push(plimsoll_resolve::Api {
                group: "g".into(),
                version: "v1".into(),
                kind: format!("Hole{hole}"),
            });
            let entries = vec![entry(&bundle.name.clone(), None)];
            packages.push(package(&name, vec![bundle], entries));
        }
    }
    packages.push(package("a", vec![a], vec![entry("a1", None)]));
    match solve(&problem(packages), &NoExpressions) {
        Resolution::Solved(solution) => panic!("there are too few holes: {solution:?}"),
        Resolution::Unsatisfiable(explanation) => {
            let conflicts = &explanation.conflicts;
            assert!(!conflicts.is_empty(), "an explanation is never empty");
            assert!(conflicts.iter().all(|conflict| !conflict.steps.is_empty()), "{conflicts:?}");
        }
        Resolution::LimitExceeded => {}
    }
}

#[test]
fn a_problem_of_another_format_is_refused() {
    let text = problem(Vec::new()).write().replacen("\"format\": 1", "\"format\": 2", 1);
    let error = Problem::read(text.as_bytes()).expect_err("another format");
    assert_eq!(error.to_string(), "unsupported problem format 2, expected 1");
}

#[test]
fn many_versions_that_lack_the_same_are_explained_together() {
    const VERSIONS: u64 = 5_000;
    let versions = (0..VERSIONS).map(|minor| {
        let mut bundle = Bundle::new(format!("a{minor}"), Version::new(1, minor, 0));
        bundle.requires.push(Constraint::Label("missing".to_owned()).into());
        bundle
    });
    let entries = (0..VERSIONS)
        .map(|at| entry(&format!("a{at}"), at.checked_sub(1).map(|at| format!("a{at}"))));
    let problem = problem(vec![package("a", versions.collect(), entries.collect())]);
    let Resolution::Unsatisfiable(explanation) = solve(&problem, &NoExpressions) else {
        panic!("nothing has the label")
    };
    assert_eq!(
        explanation.conflicts[0].steps[1].text,
        "a 1.0.0 to 1.4999.0 (5000 versions) require a bundle with label `missing`, but no catalog \
         has one"
    );
}

#[test]
fn text_of_others_stays_on_its_line() {
    let mut a = Bundle::new("a1", Version::new(1, 0, 0));
    let label = "x\n  so all is well\u{202e}\u{1b}[2J".to_owned();
    a.requires.push(Requirement {
        message: Some("\r\nhelp: run this".to_owned()),
        ..Constraint::Label(label).into()
    });
    let problem = problem(vec![package("a", vec![a], vec![entry("a1", None)])]);
    let Resolution::Unsatisfiable(explanation) = solve(&problem, &NoExpressions) else {
        panic!("nothing has the label")
    };
    let text = explanation.text();
    assert!(!text.contains(['\u{202e}', '\u{1b}', '\r']), "{text}");
    assert!(text.contains(r"x\n  so all is well\u{202e}\u{1b}[2J"), "{text}");
}
