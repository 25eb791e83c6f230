//! Deterministic simulation: a seed decides what is done to a cluster and what goes wrong
//! meanwhile; the controller has to keep its promises whatever the seed.
//!
//! A fixed range of seeds is played, and those of `tests/seeds/simulation.txt`. `PLIMSOLL_SEED=n` plays
//! one seed instead, `PLIMSOLL_SEEDS=n` that many, `PLIMSOLL_SEEDS=n..m` some. A seed that fails and was
//! named by `PLIMSOLL_SEED` is reported with the smallest scenario that still does; with
//! `PLIMSOLL_WRITES` set, what was written is printed instead.

mod actions;
mod broken;
mod gateway;
mod invariants;
mod linear;
mod operators;
mod processes;
mod record;
mod release;
mod runner;
mod scenario;
mod seeds;
mod shrink;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use invariants::{counted, violations};
use release::releases;
use runner::ScenarioResult;
use scenario::Scenario;
use seeds::{Seeds, Test};
use serde_json::Value;

/// The command that plays seeds; a filter follows.
const TESTS: &str = "cargo test -p plimsoll-simulation --test sim";
/// Of how many seeds one is run with Operators, which takes longer.
const OPERATORS_SHARE: u64 = 10;

/// What came of a scenario; of one that panics, a sentence that says so.
type Outcome = Result<ScenarioResult, String>;

/// How a scenario fails, in sentences.
type Check = fn(&Outcome) -> Vec<String>;

/// Runs the scenario of a seed in virtual time.
fn in_virtual_time<T>(seed: u64, scenario: impl Future<Output = T>) -> T {
    // What is created once for all scenarios takes random names.
    releases();
    operators::catalogs();
    // The only randomness but ours: the jitter of the watches' patience.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let result = runtime.block_on(scenario);
    runtime.shutdown_background();
    result
}

fn run(scenario: &Scenario) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| runner::run(scenario))).map_err(|panic| panics(&*panic))
}

/// Returns what must never happen and did; that it panics is one such thing.
fn broken(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Ok(result) => {
            let mut found = violations(result, releases());
            found.extend(operators::promises::violations(result));
            found
        }
        Err(panics) => vec![panics.clone()],
    }
}

/// Returns what may happen with a few seeds, but for the fixed ones: reported progress falls when a process
/// ends between what it did and its report and the next one begins from an older report.
fn counts(outcome: &Outcome) -> Vec<String> {
    outcome.as_ref().map(counted).unwrap_or_default()
}

/// Says that a scenario panics.
fn panics(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panics: {}", text.unwrap_or("with no text"))
}

/// Returns what does not hold with a seed, in sentences: what never may, and what is counted.
fn failures(scenario: &Scenario, again: &str) -> [Option<String>; 2] {
    let seed = scenario.seed;
    let outcome = run(scenario);
    let checks: [(&str, Check); 2] = [("fails", broken), ("is counted", counts)];
    checks.map(|(verb, check)| {
        let found = check(&outcome);
        if found.is_empty() {
            return None;
        }
        let found = found.join("\n  ");
        let says =
            format!("seed {seed} {verb}; again: PLIMSOLL_SEED={seed} {TESTS} {again}\n  {found}");
        if std::env::var_os("PLIMSOLL_WRITES").is_some() {
            let writes = outcome.iter().flat_map(|it| &it.writes).map(ToString::to_string);
            return Some(format!("{says}\n{}", writes.collect::<Vec<_>>().join("\n")));
        }
        if !seeds::is_one_named() {
            return Some(says);
        }
        let smallest = shrink::smallest(scenario.clone(), |it| !check(&run(it)).is_empty());
        Some(format!("{says}\nthe smallest scenario that fails:\n{smallest:#?}"))
    })
}

/// Runs each seed and returns the results, on all processors.
fn of_each<T: Send>(seeds: &[u64], run: impl Fn(u64) -> T + Sync) -> Vec<(u64, T)> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let run = &run;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = seeds.iter().skip(worker).step_by(threads);
                scope.spawn(move || mine.map(|seed| (*seed, run(*seed))).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect()
    })
}

/// Fails with what is broken.
fn assert_none(broken: &[String], total: usize) {
    assert!(broken.is_empty(), "{} of {total} seeds fail\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn the_controller_keeps_its_promises_whatever_the_seed() {
    let seeds = Seeds::of(Test::Promises, 1);
    let mut broken = Vec::new();
    let mut counted = Vec::new();
    let play = |seed| failures(&Scenario::of(seed), "promises");
    for (seed, [fails, counts]) in of_each(&seeds.played, play) {
        broken.extend(fails.map(|failure| (seed, failure)));
        counted.extend(counts.map(|failure| (seed, failure)));
    }
    let judged = seeds.judge(broken);
    seeds::print_number_of_open();
    for failure in judged.known.iter().chain(counted.iter().map(|(_, failure)| failure)) {
        println!("{failure}");
    }
    println!("{} of {} seeds fail in what is counted", counted.len(), seeds.played.len());
    assert_none(&judged.broken, seeds.played.len());
    let fixed = counted.iter().filter(|(seed, _)| seeds::is_fixed(*seed)).count();
    assert!(
        !seeds::are_fixed() || fixed == 0,
        "reported progress falls with {fixed} of the fixed seeds, with which it never does"
    );
}

#[test]
fn operators_keep_their_promises_whatever_the_seed() {
    let seeds = Seeds::of(Test::Operators, OPERATORS_SHARE);
    let play = |seed| failures(&Scenario::with_operators(seed), "operators_keep");
    let found = of_each(&seeds.played, play);
    let found = found.into_iter().filter_map(|(seed, [fails, _])| Some((seed, fails?))).collect();
    let judged = seeds.judge(found);
    for failure in &judged.known {
        println!("{failure}");
    }
    assert_none(&judged.broken, seeds.played.len());
}

#[test]
fn actions_keep_their_promises_whatever_the_seed() {
    let seeds = Seeds::of(Test::Actions, actions::SHARE);
    let play = |seed| {
        catch_unwind(|| actions::failures(seed)).unwrap_or_else(|panic| {
            let panics = panics(&*panic);
            let again = format!("PLIMSOLL_SEED={seed} {TESTS} actions_keep");
            Some(format!("seed {seed} fails; again: {again}\n  {panics}"))
        })
    };
    let found = of_each(&seeds.played, play);
    let found = found.into_iter().filter_map(|(seed, failure)| Some((seed, failure?))).collect();
    let judged = seeds.judge(found);
    for failure in &judged.known {
        println!("{failure}");
    }
    assert_none(&judged.broken, seeds.played.len());
}

#[test]
fn the_same_seed_gives_the_same_writes() {
    // Several watches of one resource, faults, and processes that end.
    let with_operators = [30, 100_530].map(Scenario::with_operators);
    for scenario in (0..5).map(Scenario::of).chain(with_operators) {
        let (first, again) = (runner::run(&scenario), runner::run(&scenario));
        assert!(!first.writes.is_empty());
        // What is sent for a bundle has certificates, which are random.
        let lines = |writes: &[record::Write]| -> Vec<record::Write> {
            writes.iter().map(|it| record::Write { sent: Value::Null, ..it.clone() }).collect()
        };
        let (first, again) = (lines(&first.writes), lines(&again.writes));
        let different = first.iter().zip(&again).find(|(one, two)| one != two);
        assert_eq!(different, None, "seed {}", scenario.seed);
        assert_eq!(first.len(), again.len(), "seed {}", scenario.seed);
    }
}
