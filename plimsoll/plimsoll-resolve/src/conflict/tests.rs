//! Conflicts are conflicts, and nothing in them is too much: held against every set of solvables.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use semver::Version;

use super::*;
use crate::bundle::{Api, Bundle, Constraint, Property};
use crate::catalog::Expressions;
use crate::model::ChoiceId;
use crate::package::{Channel, ChannelEntry, Package};
use crate::problem::{CatalogName, CatalogPart, PackageRequest, Problem, Query};
use crate::sat::WorkBudget;

struct NoExpressions;

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

/// What each of two versions of each of three packages provides and needs, by kind.
type Sketch = Vec<(Option<u8>, Option<u8>, bool)>;

fn problem(sketch: &Sketch) -> Problem {
    let api = |kind: u8| Api { group: "g".into(), version: "v1".into(), kind: format!("K{kind}") };
    let packages = sketch.chunks(2).zip(["a", "b", "c"]).map(|(versions, name)| {
        let versions = versions.iter().zip(1u64..);
        let bundles: Vec<Bundle> = versions
            .map(|((provides, requires, deprecated), major)| Bundle {
                provides: provides.map(api).into_iter().collect(),
                requires: requires
                    .map(|kind| Constraint::Api(api(kind)).into())
                    .into_iter()
                    .collect(),
                deprecated: *deprecated,
                ..Bundle::new(format!("{name}{major}"), Version::new(major, 0, 0))
            })
            .collect();
        let entries = vec![
            ChannelEntry { name: format!("{name}1"), ..ChannelEntry::default() },
            ChannelEntry {
                name: format!("{name}2"),
                replaces: Some(format!("{name}1")),
                ..ChannelEntry::default()
            },
        ];
        Package {
            name: name.to_owned(),
            default_channel: Some("stable".to_owned()),
            channels: vec![Channel { name: "stable".to_owned(), entries, ..Channel::default() }],
            bundles,
            ..Package::default()
        }
    });
    let request =
        |name: &str| PackageRequest { package: name.to_owned(), ..PackageRequest::default() };
    let name = CatalogName { namespace: String::new(), name: "cat".to_owned() };
    let mut problem = Problem {
        format: crate::FORMAT,
        query: Query { requests: vec![request("a"), request("b")], ..Query::default() },
        catalogs: vec![CatalogPart { name, weight: 0, packages: packages.collect() }],
    };
    problem.canonicalize();
    problem
}

/// Returns whether some set of solvables satisfies these reasons, whatever the others say.
fn satisfiable(model: &Model<'_>, reasons: &[Reason]) -> bool {
    let holds = |set: u32, reason: &Reason| {
        let has = |solvable: &SolvableId| set & (1 << solvable) != 0;
        let chosen = |choice: ChoiceId| model.choices[choice].candidates.iter().any(has);
        match *reason {
            Reason::Ineligible(solvable) => !has(&solvable),
            Reason::Exclusion(at) => {
                model.exclusions[at].solvables.iter().filter(|solvable| has(solvable)).count() < 2
            }
            Reason::Choice(choice) => {
                let owner = model.needs.iter().position(|needs| needs.contains(&choice));
                owner.is_some_and(|owner| !has(&owner)) || chosen(choice)
            }
        }
    };
    (0..1u32 << model.solvables.len()).any(|set| reasons.iter().all(|reason| holds(set, reason)))
}

/// The cases that failed once, which are played first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/seeds/properties.txt"
));

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: Some(Box::new(FAILED)), ..ProptestConfig::default() })]

    #[test]
    fn a_conflict_is_one_and_loses_that_with_any_of_its_reasons(
        sketch in prop::collection::vec(
            (prop::option::of(0..3u8), prop::option::weighted(0.8, 0..4u8), prop::bool::weighted(0.2)), 6,
        ),
    ) {
        let problem = problem(&sketch);
        let model = Model::new(&problem, &NoExpressions);
        let conflict = Conflicts::new(&model, &WorkBudget::new()).between(&[]);
        let all: Vec<Reason> = (0..model.choices.len()).map(Reason::Choice)
            .chain((0..model.exclusions.len()).map(Reason::Exclusion))
            .chain((0..model.solvables.len()).filter(|id| model.solvables[*id].ineligible.is_some()).map(Reason::Ineligible))
            .collect();
        let Some(conflict) = conflict else {
            prop_assert!(satisfiable(&model, &all));
            return Ok(());
        };
        prop_assert!(!satisfiable(&model, &conflict.reasons), "{conflict:?}");
        for at in 0..conflict.reasons.len() {
            let mut fewer = conflict.reasons.clone();
            let left_out = fewer.remove(at);
            prop_assert!(satisfiable(&model, &fewer), "{left_out:?} is too much");
        }
    }
}
