//! Tests of what an exploration decides: what is asked for, what failed, what is kept.

use super::arguments::{Arguments, parts};
use super::findings::{
    Failure, fuzz_target, of_properties, of_simulation, property_tests, with_line,
};

#[test]
fn arguments_say_how_long_and_which_seeds() {
    let of = |minutes, seeds| Ok(Arguments { minutes, seeds });
    assert_eq!(Arguments::parse(&[]), of(None, None));
    assert_eq!(Arguments::parse(&["--minutes", "5"]), of(Some(5), None));
    assert_eq!(Arguments::parse(&["--seeds=3..7", "--minutes=1"]), of(Some(1), Some(3..7)));
}

#[test]
fn a_wrong_argument_is_named() {
    let cases: [(&[&str], &str); 9] = [
        (&["--seeds", "5..3"], "`--seeds 5..3` names no seed: the second is not played"),
        (&["--seeds", "5..5"], "`--seeds 5..5` names no seed: the second is not played"),
        (&["--seeds", "5"], "`--seeds 5` is no range A..B"),
        (&["--seeds", "a..b"], "`--seeds a..b` is no range A..B"),
        (&["--minutes", "x"], "`--minutes x` is no number of minutes"),
        (&["--minutes", "0"], "`--minutes 0` is no number of minutes"),
        (&["--minutes"], "`--minutes` wants a value"),
        (&["--minutes", "1", "--minutes", "2"], "`--minutes` is there twice"),
        (&["--hours", "1"], "unknown argument `--hours`"),
    ];
    for (words, what) in cases {
        let usage = "usage: cargo xtask soak [--minutes N] [--seeds A..B]";
        assert_eq!(Arguments::parse(words), Err(format!("{what}; {usage}")));
    }
}

#[test]
fn a_range_is_played_in_parts() {
    assert_eq!(parts(5..12, 3).collect::<Vec<_>>(), [5..8, 8..11, 11..12]);
    assert_eq!(parts(0..3, 3).map(|part| part.end).collect::<Vec<_>>(), [3]);
    assert_eq!(parts(u64::MAX - 1..u64::MAX, 3).count(), 1);
}

const AGAIN: &str = "cargo test -p plimsoll-simulation --test sim";

/// What the simulation prints when two seeds fail in one test and one, which has no scenario, in the
/// other.
fn output() -> String {
    format!(
        "\
failures:

---- the_controller_keeps_its_promises_whatever_the_seed stdout ----
seed 3 is counted; again: PLIMSOLL_SEED=3 {AGAIN} promises
  progress falls
the smallest scenario that fails:
Scenario {{
    seed: 3,
}}
1 of 500 seeds fail in what is counted

thread 'the_controller_keeps_its_promises_whatever_the_seed' panicked at main.rs:9:5:
2 of 500 seeds fail
seed 12 fails; again: PLIMSOLL_SEED=12 {AGAIN} promises
  configmaps/doomed is   in the end still as 1.0.0 had it
  another sentence
the smallest scenario that fails:
Scenario {{
    seed: 12,
    actions: [
    ],
}}
seed 14 fails; again: PLIMSOLL_SEED=14 {AGAIN} promises
  it panics: index out of bounds
the smallest scenario that fails:
Scenario {{
    seed: 14,
}}
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- actions_keep_their_promises_whatever_the_seed stdout ----

thread 'actions_keep_their_promises_whatever_the_seed' panicked at main.rs:9:5:
1 of 50 seeds fail
seed 20 fails; again: PLIMSOLL_SEED=20 {AGAIN} actions_keep
  it panics: no
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    the_controller_keeps_its_promises_whatever_the_seed
"
    )
}

#[test]
fn seeds_that_fail_are_read_with_their_command_and_smallest_scenario() {
    let failures = of_simulation(&output());
    let keys: Vec<&str> = failures.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["promises 12", "promises 14", "actions 20"]);
    assert_eq!(failures[0].again, format!("PLIMSOLL_SEED=12 {AGAIN} promises"));
    assert_eq!(failures[0].found, "configmaps/doomed is   in the end still as 1.0.0 had it");
    assert!(failures[0].text.starts_with("seed 12 fails; again: "));
    assert!(failures[0].text.ends_with("    actions: [\n    ],\n}"));
    assert_eq!(failures[1].found, "it panics: index out of bounds");
    assert!(failures[1].text.ends_with("    seed: 14,\n}"));
    assert!(failures[2].text.ends_with("\n  it panics: no"));
    assert_eq!(of_simulation("error: could not compile `plimsoll-plan`\n"), []);
}

#[test]
fn a_seed_is_added_once_with_the_first_sentence_of_what_it_found() {
    let failure = |key: &str, found: &str| Failure {
        again: String::new(),
        key: key.to_owned(),
        found: found.to_owned(),
        text: String::new(),
    };
    let list = "# a list\npromises 12 mended: a loop\n";
    let cases = [
        (list, "promises 12", "x", None),
        (list, "actions 12", "a  b", Some("actions 12 open: a b\n")),
        (list, "promises 1", "", Some("promises 1 open: it does not say\n")),
    ];
    for (list, key, found, line) in cases {
        let expected = line.map(|line| format!("{list}{line}"));
        assert_eq!(with_line(list, &failure(key, found)), expected);
    }
    let unended = with_line("promises 1 open: x", &failure("promises 2", "y"));
    assert_eq!(unended.as_deref(), Some("promises 1 open: x\npromises 2 open: y\n"));
}

#[test]
fn property_tests_that_fail_are_read_with_their_smallest_input() {
    let output = "\
---- managed::laws::applying_twice_is_applying_once stdout ----

thread 'managed::laws::applying_twice_is_applying_once' panicked at laws.rs:107:1:
Test failed: assertion failed: left == right.
minimal failing input: first = Object {
    name: \"a\",
}
\tsuccesses: 3
\tlocal rejects: 0

note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    managed::laws::applying_twice_is_applying_once
";
    let failures = of_properties(output, 7, "2000");
    assert_eq!(failures.len(), 1);
    assert_eq!(
        failures[0].again,
        "PROPTEST_RNG_SEED=7 PROPTEST_CASES=2000 cargo test --workspace --lib --test it \
         managed::laws::applying_twice_is_applying_once"
    );
    assert_eq!(
        failures[0].text,
        "Test failed: assertion failed: left == right.\n\
         minimal failing input: first = Object {\n    name: \"a\",\n}"
    );
    assert_eq!(of_properties("error: could not compile `k8s-schema`\n", 7, "2000"), []);
}

#[test]
fn property_tests_are_the_functions_of_their_blocks() {
    let source = "\
fn helper() {}

proptest::proptest! {
    #[test]
    fn one(set in any_set()) {
    }

    #[test]
    fn two(
        set in any_set(),
    ) {
    }
}

mod other {
    fn three() {}
}
";
    assert_eq!(property_tests(source), ["one", "two"]);
    assert!(property_tests("fn one() {}\n").is_empty());
}

#[test]
fn the_fuzz_target_that_failed_is_named() {
    let failed = "fuzzing yaml: -max_total_time=5\n==1== ERROR\n\
                  fuzzing yaml failed: the input is in target/fuzz/artifacts/yaml\n";
    assert_eq!(fuzz_target(failed), Some("yaml"));
    assert_eq!(fuzz_target("error: could not compile\n"), None);
}
