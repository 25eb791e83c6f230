//! Convergence is the same as deciding on all Operators again and again.

use std::cell::Cell;
use std::fmt::Write as _;

use super::*;
use crate::decide;
use crate::tests::{FIXTURE, catalogs, inputs, operators, part};

/// Decides on all Operators and carries it out until nothing moves.
fn step_by_step(of: &[CatalogPart], requested: &str) -> ConvergedOperators {
    let mut operators = operators(of, requested);
    let names: BTreeSet<String> = operators.keys().cloned().collect();
    let indexed = IndexedParts::of(of);
    loop {
        let decisions = decide(inputs(&operators), &names, &|names| part(of, names));
        let mut is_moved = false;
        for (name, decision) in &decisions {
            if let OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) =
                &decision.action
            {
                let operator = operators.get_mut(name).unwrap();
                let bundle = indexed.bundle(name, selected).unwrap();
                operator.owned.extend(kinds(bundle));
                let before = operator.installed.take();
                operator.installed = Some(InstalledOperator {
                    reference: selected.reference.clone(),
                    bundle: bundle.clone(),
                    revision: before.as_ref().map_or(0, |it| it.revision) + 1,
                    upgrade_block: before.and_then(|it| it.upgrade_block),
                });
                is_moved = true;
            }
        }
        if !is_moved {
            return ConvergedOperators { operators, decisions };
        }
    }
}

fn installed(converged: &ConvergedOperators) -> String {
    let mut text = String::new();
    for (name, operator) in &converged.operators {
        let version = operator.installed.as_ref().map(|it| it.bundle.version.to_string());
        let _ = writeln!(text, "{name} {}", version.as_deref().unwrap_or("-"));
    }
    text
}

/// Lists what is reported, but for `judged`, which has what was judged on the whole way.
fn reported(converged: &ConvergedOperators) -> BTreeMap<&String, OperatorDecision> {
    let decisions = converged.decisions.iter();
    decisions
        .map(|(name, it)| (name, OperatorDecision { judged: Default::default(), ..it.clone() }))
        .collect()
}

#[track_caller]
fn check(catalog: &str, requested: &str) {
    let of = catalogs(catalog);
    let operators = operators(&of, requested);
    let converged = converge(inputs(&operators), &of);
    let expected = step_by_step(&of, requested);
    assert_eq!(installed(&converged), installed(&expected), "{requested}");
    assert_eq!(reported(&converged), reported(&expected), "{requested}");
}

/// A channel of versions 1.0.0 to 1.0.`steps`, each a step.
fn chain(name: &str, steps: usize, more: &dyn Fn(usize) -> &'static str) -> String {
    let mut text = format!("main 0 {name}/stable\n  1.0.0\n");
    for at in 1..=steps {
        let _ = writeln!(text, "  1.0.{at} <1.0.{}{}", at - 1, more(at));
    }
    text
}

#[test]
fn only_what_a_move_affects_is_decided_again_and_that_makes_no_difference() {
    for requested in [
        "foo: version 1.2.2; at 1.2.2\nbar: version 1.2.5; at 1.2.5; dependency",
        "foo: version ~1.2; at 1.2.2\nbar: version >=1.2.5; at 1.2.5; dependency",
        "foo: version >=1\nbar: version >=1",
        "foo: version >=1; install Enforce\nbar: version >=1; install Enforce",
        "foo: at 1.2.2; set one/2\nbar: at 1.2.5; set one/2",
        "foo: at 1.2.2; set one/2\nbar: at 1.2.5; set one/2; paused",
        "foo: at 1.2.2; set one/3\nbar: at 1.2.5; set one/3",
    ] {
        check(FIXTURE, requested);
    }
    let plain = |_: usize| "";
    // The steps of one Operator wait for those of the other.
    let waits = |at: usize| match at {
        3 => ", requires b >=1.0.4",
        5 => ", requires b >=1.0.2",
        _ => "",
    };
    let provides = |at: usize| if at == 2 { ", provides Foo" } else { "" };
    let alike = format!("{}{}", chain("a", 6, &waits), chain("b", 6, &plain));
    let owners = format!("{}{}", chain("a", 6, &provides), chain("b", 6, &provides));
    for requested in [
        "a: version 1.0.6; at 1.0.0\nb: version 1.0.6; at 1.0.0",
        "a: at 1.0.0\nb: at 1.0.0",
        "a: at 1.0.0\nb: version 1.0.3; at 1.0.0",
        "a: version 1.0.6; at 1.0.0; upgrade Warn\nb: version 1.0.3; at 1.0.0",
        "a: at 1.0.4\nb: at 1.0.1",
        "a: version 1.0.6; at 1.0.0; set x/2\nb: version 1.0.6; at 1.0.0; set x/2",
        "a: version 1.0.2\nb: version 1.0.2",
        "a: version 1.0.2; at 1.0.0\nb: version 1.0.4; at 1.0.0",
    ] {
        check(&alike, requested);
        check(&owners, requested);
    }
}

#[test]
fn an_operator_reaches_its_version_in_any_number_of_steps() {
    for more in ["", "\nother: version 1.0.0; at 1.0.0"] {
        let requires = |at: usize| if at == 7 { ", requires other >=1.0.0" } else { "" };
        let other = chain("other", 3, &|_| "");
        let of = catalogs(&format!("{}{other}", chain("long", 2_000, &requires)));
        let requested = format!("long: version 1.0.2000; at 1.0.0; upgrade Warn{more}");
        let operators = operators(&of, &requested);
        let steps = Cell::new(0);
        let converged = converge_shown(inputs(&operators), &of, &|it| steps.set(it.steps));
        assert!(installed(&converged).contains("long 1.0.2000"), "{}", installed(&converged));
        assert_eq!(steps.get(), 2_000);
    }
}

#[test]
fn operators_that_move_in_a_circle_are_blocked() {
    let catalog = format!(
        "main 0 foo/stable
          1.0.0
          1.1.0 <1.0.0, ~>=1.2.0 <1.3.0
          1.2.0 <1.1.0
        {}",
        chain("bar", 300, &|_| "")
    );
    let of = catalogs(&catalog);
    let operators = operators(&of, "foo: at 1.0.0\nbar: version 1.0.300; at 1.0.0");
    let converged = converge(inputs(&operators), &of);
    let OperatorAction::Blocked(block) = &converged.decisions["foo"].action else { panic!() };
    assert_eq!(block.reason, Reason::NoUpgradePath);
    assert!(block.message.starts_with("foo moves in a circle: updates lead from v1."), "{block:?}");
    assert!(installed(&converged).contains("bar 1.0.300"), "{}", installed(&converged));
}
