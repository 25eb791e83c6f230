//! Deterministic simulation: a seed decides what is done to a cluster and what goes wrong
//! meanwhile; the controller has to keep its promises whatever the seed.
//!
//! `PLIMSOLL_SEED=n` runs one seed, `PLIMSOLL_SEEDS=n` that many, `PLIMSOLL_SEEDS=n..m` some. A seed
//! that fails is reported with the smallest scenario that still does.

mod broken;
mod gateway;
mod invariants;
mod linear;
mod record;
mod release;
mod runner;
mod scenario;
mod shrink;

use std::ops::Range;

use invariants::violations;
use release::releases;
use scenario::Scenario;

/// Number of seeds by default: a quarter second of a processor each.
const SEEDS: u64 = 200;

/// The seeds to run.
fn seeds() -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("the variable is a number");
    if let Ok(seed) = std::env::var("PLIMSOLL_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    match std::env::var("PLIMSOLL_SEEDS") {
        Ok(text) => match text.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => 0..number(&text),
        },
        Err(_) => 0..SEEDS,
    }
}

/// What does not hold with a seed, in sentences.
fn failure(seed: u64) -> Option<String> {
    let scenario = Scenario::of(seed);
    let check = |scenario: &Scenario| violations(&runner::run(scenario), releases());
    let found = check(&scenario);
    if found.is_empty() {
        return None;
    }
    let found = found.join("\n  ");
    let again = "cargo test -p plimsoll-simulation --test sim promises";
    let smallest = shrink::smallest(scenario, |scenario: &Scenario| !check(scenario).is_empty());
    Some(format!(
        "seed {seed} fails; again: PLIMSOLL_SEED={seed} {again}\n  {found}\n\
         the smallest scenario that fails:\n{smallest:#?}"
    ))
}

#[test]
fn the_controller_keeps_its_promises_whatever_the_seed() {
    let seeds: Vec<u64> = seeds().collect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = seeds.iter().skip(worker).step_by(threads);
                scope.spawn(move || mine.filter_map(|seed| failure(*seed)).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect()
    });
    let (broken, total) = (failures.len(), seeds.len());
    assert!(failures.is_empty(), "{broken} of {total} seeds fail\n{}", failures.join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_writes() {
    for seed in 0..5 {
        let scenario = Scenario::of(seed);
        let (first, again) = (runner::run(&scenario), runner::run(&scenario));
        assert!(!first.writes.is_empty());
        let different = first.writes.iter().zip(&again.writes).position(|(one, two)| one != two);
        assert_eq!(different.map(|at| (&first.writes[at], &again.writes[at])), None, "seed {seed}");
        assert_eq!(first.writes.len(), again.writes.len(), "seed {seed}");
    }
}
