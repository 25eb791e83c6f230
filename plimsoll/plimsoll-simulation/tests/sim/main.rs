//! Deterministic simulation: a seed decides what is done to a cluster and what goes wrong
//! meanwhile; the controller has to keep its promises whatever the seed.
//!
//! `PLIMSOLL_SEED=n` runs one seed, `PLIMSOLL_SEEDS=n` that many, `PLIMSOLL_SEEDS=n..m` some. A seed
//! that fails is reported with the smallest scenario that still does.

mod actions;
mod broken;
mod gateway;
mod invariants;
mod linear;
mod processes;
mod record;
mod release;
mod runner;
mod scenario;
mod shrink;

use std::ops::Range;

use invariants::{counted, violations};
use release::releases;
use runner::ScenarioResult;
use scenario::Scenario;

/// Number of seeds by default: a quarter second of a processor each.
const SEEDS: u64 = 200;

/// Of a thousand seeds, those that may fail in what is counted: reported progress falls when a process
/// ends between what it did and its report and the next one begins from an older report.
const COUNTED_PER_THOUSAND: usize = 1;

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

/// How a scenario fails, in sentences.
type Check = fn(&ScenarioResult) -> Vec<String>;

/// What does not hold with a seed, in sentences: what never may, and what is counted.
fn failures(seed: u64) -> [Option<String>; 2] {
    let scenario = Scenario::of(seed);
    let result = runner::run(&scenario);
    let checks: [Check; 2] = [|result| violations(result, releases()), counted];
    checks.map(|check| {
        let found = check(&result);
        if found.is_empty() {
            return None;
        }
        let found = found.join("\n  ");
        let again = "cargo test -p plimsoll-simulation --test sim promises";
        let fails = |scenario: &Scenario| !check(&runner::run(scenario)).is_empty();
        let smallest = shrink::smallest(scenario.clone(), fails);
        Some(format!(
            "seed {seed} fails; again: PLIMSOLL_SEED={seed} {again}\n  {found}\n\
             the smallest scenario that fails:\n{smallest:#?}"
        ))
    })
}

/// What comes of each seed, on all processors.
fn of_each<T: Send>(seeds: &[u64], run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let run = &run;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = seeds.iter().skip(worker).step_by(threads);
                scope.spawn(move || mine.map(|seed| run(*seed)).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect()
    })
}

#[test]
fn the_controller_keeps_its_promises_whatever_the_seed() {
    let seeds: Vec<u64> = seeds().collect();
    let found = of_each(&seeds, failures);
    let total = seeds.len();
    let of = |index: usize| -> Vec<&str> {
        found.iter().filter_map(|failures| failures[index].as_deref()).collect()
    };
    let (broken, counted) = (of(0), of(1));
    assert!(broken.is_empty(), "{} of {total} seeds fail\n{}", broken.len(), broken.join("\n"));
    let ceiling = total * COUNTED_PER_THOUSAND / 1000;
    println!("{} of {total} seeds fail in what is counted, at most {ceiling}", counted.len());
    assert!(
        counted.len() <= ceiling,
        "{} of {total} seeds fail in what is counted, at most {ceiling}\n{}",
        counted.len(),
        counted.join("\n")
    );
}

#[test]
fn actions_keep_their_promises_whatever_the_seed() {
    let is_one = seeds().count() == 1;
    let seeds: Vec<u64> = seeds().filter(|it| is_one || it % actions::SHARE == 0).collect();
    let broken: Vec<String> = of_each(&seeds, actions::failures).into_iter().flatten().collect();
    let total = seeds.len();
    assert!(broken.is_empty(), "{} of {total} seeds fail\n{}", broken.len(), broken.join("\n"));
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
