//! Tests of refusals in groups: where no group holds up others, the plans are those of a search for all Operators at
//! once, for less work; otherwise, the others move.

use std::cell::Cell;
use std::fmt::Write as _;

use plimsoll_resolve::BundleExclusion;

use super::*;
use crate::tests::{catalogs, inputs, operators};

/// The versions of each package, 1.0.0 and so on.
const VERSIONS: usize = 4;

/// Plans an update to the newest versions. Returns what was found, as text, and the number of bundles that were
/// taken as installed for that.
fn planned(catalog: &str, present: &str, is_undivided: bool) -> (String, usize) {
    let of = catalogs(catalog);
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let request = ChangeRequest { latest: true, pins: true, ..ChangeRequest::default() };
    let (work, last) = (Cell::new(0), Cell::new(0));
    let progress = |progress: PlanningProgress| {
        let steps = progress.steps;
        work.set(work.get() + steps.checked_sub(last.get()).unwrap_or(steps));
        last.set(steps);
    };
    let start = Start { is_undivided, ..Start::default() };
    let found = propose_from(inputs, &operators, &of, &request, &progress, start);
    let text = match found {
        Ok(it) => format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            it.operators, it.converged, it.solution, it.change_sets, it.held_back, it.unsatisfied
        ),
        Err(ProposalError::Blocked { name, block }) => format!("{name}: {block:?}"),
        Err(ProposalError::Unsatisfiable(explanation)) => explanation.text(),
        Err(ProposalError::LimitExceeded) => "limit exceeded".to_owned(),
    };
    (text, work.get())
}

/// Returns Operators that are all at 1.0.0.
fn at_first(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let _ = writeln!(text, "p{at:02}: version 1.0.0; at 1.0.0");
        text
    })
}

/// Returns a catalog of packages; `requires` returns the requirements of a version of one.
fn catalog(count: usize, requires: &mut dyn FnMut(usize, usize) -> Vec<String>) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(text, "main 0 p{at:02}/stable");
        for version in 0..VERSIONS {
            let mut parts = vec![format!("provides P{at:02}")];
            if let Some(before) = version.checked_sub(1) {
                parts.push(format!("<1.0.{before}"));
            }
            parts.extend(requires(at, version).iter().map(|it| format!("requires {it}")));
            let _ = writeln!(text, "1.0.{version} {}", parts.join(", "));
        }
    }
    text
}

/// Returns pairs: the second of each accepts all versions of the first but one, which the only way leads through.
fn pairs(count: usize) -> String {
    catalog(2 * count, &mut |at, _| match at % 2 {
        0 => Vec::new(),
        _ => vec![format!("p{:02} !=1.0.1", at - 1)],
    })
}

#[test]
fn a_group_that_is_stuck_does_not_hold_up_others_that_only_move_together() {
    // The members of all pairs but the last one require the same version of each other.
    let count = 8;
    let text = catalog(count, &mut |at, version| match (at, at % 2) {
        (6, _) => Vec::new(),
        (7, _) => vec!["p06 !=1.0.1".to_owned()],
        (_, 0) => vec![format!("p{:02} 1.0.{version}", at + 1)],
        _ => vec![format!("p{:02} 1.0.{version}", at - 1)],
    });
    let of = catalogs(&text);
    let operators = operators(&of, &at_first(count));
    let inputs = inputs(&operators);
    let named = operators.keys().map(|it| (it.clone(), Wanted::default()));
    let named = ChangeRequest { wanted: named.collect(), pins: true, ..ChangeRequest::default() };
    let latest = ChangeRequest { latest: true, pins: true, ..ChangeRequest::default() };
    for request in [latest, named] {
        let found = propose(inputs, &operators, &of, &request, &|_| {}).ok().expect("a plan");
        for (name, it) in &found.converged {
            let expected = if name == "p06" { "1.0.0" } else { "1.0.3" };
            let there = it.installed.as_ref().expect("a bundle");
            assert_eq!(there.bundle.version.to_string(), expected, "{name}");
        }
        let held_back: Vec<&String> = found.held_back.keys().collect();
        assert_eq!(held_back, ["p06"]);
        assert_eq!(found.change_sets.len(), found.written.len() / 2);
    }
}

#[test]
fn each_refused_bundle_costs_the_work_of_its_group() {
    let work = |count: usize| planned(&pairs(count), &at_first(2 * count), false).1;
    let (few, many) = (work(6), work(24));
    assert!(many <= 5 * few, "{few} steps for 6 pairs, {many} for 24");
    let (expected, _) = planned(&pairs(6), &at_first(12), true);
    assert_eq!(planned(&pairs(6), &at_first(12), false).0, expected);
}

/// Two Operators that move in one step, and only together.
const PAIR: &str = "
    main 0 alpha/stable
      1.0.0 provides Alpha, requires beta 1.0.0
      1.0.1 <1.0.0, provides Alpha, requires beta 1.0.1
    main 0 beta/stable
      1.0.0 provides Beta, requires alpha 1.0.0
      1.0.1 <1.0.0, provides Beta, requires alpha 1.0.1";

/// A step of the second one is possible only with the last move of the first: alone, that is made before.
const WAY: &str = "
    main 0 end/stable
      1.0.0 provides End
      1.0.1 <1.0.0, provides End
    main 0 way/stable
      1.0.0 provides Way
      1.0.1 <1.0.0, provides Way, requires end 1.0.1
      1.0.2 <1.0.1, provides Way";

/// A step of the first one is possible only before the last move of the second.
const CALM: &str = "
    main 0 calm/stable
      1.0.0 provides Calm
      1.0.1 <1.0.0, provides Calm
      1.0.2 <1.0.1, provides Calm
    main 0 dusk/stable
      1.0.0 provides Dusk
      1.0.1 <1.0.0, provides Dusk, requires calm !=1.0.1";

/// A step of the first one that the second one skips: they cannot get to their newest versions.
const STUCK: &str = "
    main 0 left/stable
      1.0.0 provides Left, requires right 1.0.0
      1.0.1 <1.0.0, provides Left, requires right 1.0.1
      1.0.2 <1.0.1, provides Left, requires right 1.0.2
    main 0 right/stable
      1.0.0 provides Right, requires left 1.0.0
      1.0.2 <1.0.0, provides Right, requires left 1.0.2";

/// Both can only make the first step, together: an update to that is excluded.
const HALFWAY: &str = "
    main 0 goal/stable
      1.0.0 provides Goal
      1.0.1 <1.0.0, provides Goal, requires road !=1.0.0
    main 0 road/stable
      1.0.0 provides Road
      1.0.1 <1.0.0, provides Road, requires goal 1.0.1
      1.0.2 <1.0.1, provides Road, requires goal 1.0.0
      1.0.3 <1.0.2, provides Road";

/// An Operator whose requirement nothing can satisfy.
const LOST: &str = "
    main 0 lost/stable
      1.0.0 provides Lost, requires nowhere >=1.0.0";

/// Checks the versions that an update of all Operators, which are at 1.0.0, leads to, and the number of Operators in
/// the change set.
#[track_caller]
fn check(catalog: &str, together: bool, expected: &str) {
    let of = catalogs(catalog);
    let packages = of.iter().flat_map(|it| &it.packages);
    let present = packages.map(|it| format!("{}: version 1.0.0; at 1.0.0\n", it.name));
    let operators = operators(&of, &present.collect::<String>());
    let inputs = inputs(&operators);
    let exclude = ["road.v1.0.1", "road.v1.0.2"].map(|bundle| BundleExclusion {
        package: "road".to_owned(),
        versions: None,
        bundle: Some(bundle.to_owned()),
    });
    let request = ChangeRequest {
        latest: true,
        pins: true,
        together,
        overrides: ResolutionOverrides {
            exclude: exclude.into(),
            ..ResolutionOverrides::default()
        },
        ..ChangeRequest::default()
    };
    let found = propose(inputs, &operators, &of, &request, &|_| {}).ok().expect("a plan");
    let versions = found.converged.iter().map(|(name, it)| {
        let there = it.installed.as_ref().expect("a bundle");
        format!("{name} {}", there.bundle.version)
    });
    let versions: Vec<String> = versions.collect();
    let members = found.change_sets.iter().filter_map(|it| it.rsplit_once('/'));
    let sets: Vec<&str> = members.map(|(_, members)| members).collect();
    let sets = if sets.is_empty() { "0".to_owned() } else { sets.join(" and ") };
    assert_eq!(format!("{}; set of {sets}", versions.join(", ")), expected);
}

#[test]
fn a_group_whose_state_others_may_change_does_not_keep_the_others_from_being_searched() {
    let cases = [
        ([PAIR, HALFWAY].concat(), "alpha 1.0.1, beta 1.0.1, goal 1.0.0, road 1.0.0", [2, 2]),
        (
            [PAIR, HALFWAY, STUCK, WAY].concat(),
            "alpha 1.0.1, beta 1.0.1, end 1.0.1, goal 1.0.0, left 1.0.0, right 1.0.0, road 1.0.0, \
             way 1.0.2",
            [2, 4],
        ),
    ];
    for (catalog, found, [members, of_all]) in cases {
        check(&catalog, false, &format!("{found}; set of {members}"));
        check(&catalog, true, &format!("{found}; set of {of_all}"));
    }
}

#[test]
fn an_operator_that_cannot_be_repaired_does_not_keep_the_others_from_being_searched() {
    let found = "alpha 1.0.1, beta 1.0.1, left 1.0.0, lost 1.0.0, right 1.0.0; set of 2";
    for together in [false, true] {
        check(&[PAIR, STUCK, LOST].concat(), together, found);
    }
}

#[test]
fn only_what_cannot_be_changed_one_by_one_is_in_the_change_set() {
    let found = "alpha 1.0.1, beta 1.0.1, calm 1.0.2, dusk 1.0.1, end 1.0.1, way 1.0.2; set of 2";
    check(&[PAIR, WAY, CALM].concat(), false, found);
    check(&[WAY, CALM].concat(), false, "calm 1.0.2, dusk 1.0.1, end 1.0.1, way 1.0.2; set of 0");
}

#[test]
fn of_groups_whose_steps_do_not_fit_each_other_one_stays() {
    let found = "alpha 1.0.1, beta 1.0.1, calm 1.0.2, dusk 1.0.1, end 1.0.0, way 1.0.0; set of 4";
    check(&[PAIR, WAY, CALM].concat(), true, found);
}
