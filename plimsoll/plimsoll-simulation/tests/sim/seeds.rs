//! Seeds that a test plays: a fixed range and the list of those that once found something, or those
//! that variables name.
//!
//! A seed of the list that is marked `open` is known to fail: it is played and reported, and does not
//! fail the test. What is reported goes to the stderr of the process, past the capture of the test
//! harness, and is appended to the file that `OPEN_SEEDS` names, from which a run makes its closing
//! lines.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Range;

/// The seeds that are always played: a quarter second of a processor each.
const FIXED: Range<u64> = 0..200;
/// The list, as seen from the root of the tree.
const LIST: &str = "tests/seeds/simulation.txt";
/// Names the file to which open seeds are appended, a line each.
const RECORD: &str = "OPEN_SEEDS";

/// The test that a seed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Test {
    Promises,
    Actions,
    Operators,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Promises => "promises",
            Self::Actions => "actions",
            Self::Operators => "operators",
        })
    }
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    test: Test,
    seed: u64,
    /// Whether what it found is not mended yet.
    is_open: bool,
    found: String,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.test, self.seed, self.found)
    }
}

/// What a test plays.
pub(crate) struct Seeds {
    pub(crate) played: Vec<u64>,
    /// Those of the list that are known to fail; none if variables name the seeds.
    open: Vec<Listed>,
}

impl Seeds {
    /// Returns what a test plays that takes one of `share` seeds of a range.
    pub(crate) fn of(test: Test, share: u64) -> Self {
        if let Some(range) = named() {
            let is_one = range.end - range.start == 1;
            let played = range.filter(|seed| is_one || seed % share == 0).collect();
            return Self { played, open: Vec::new() };
        }
        let mut listed = list();
        listed.retain(|it| it.test == test);
        let mut played: Vec<u64> = FIXED.filter(|seed| seed % share == 0).collect();
        for listed in &listed {
            if !played.contains(&listed.seed) {
                played.push(listed.seed);
            }
        }
        listed.retain(|it| it.is_open);
        Self { played, open: listed }
    }

    /// Decides what fails the test, of what failed with its seed, and reports the open seeds.
    pub(crate) fn judge(&self, failures: Vec<(u64, String)>) -> Judged {
        let judged = self.judged(failures);
        for line in &judged.open {
            report(line);
        }
        judged
    }

    fn judged(&self, failures: Vec<(u64, String)>) -> Judged {
        let failed: BTreeSet<u64> = failures.iter().map(|(seed, _)| *seed).collect();
        let open = self.open.iter().map(|it| outcome(it, failed.contains(&it.seed))).collect();
        let mut judged = Judged { broken: Vec::new(), known: Vec::new(), open };
        for (seed, failure) in failures {
            let is_known = self.open.iter().any(|it| it.seed == seed);
            if is_known { &mut judged.known } else { &mut judged.broken }.push(failure);
        }
        judged
    }
}

/// What a test makes of what failed.
#[derive(Debug, PartialEq)]
pub(crate) struct Judged {
    /// What fails it.
    pub(crate) broken: Vec<String>,
    /// What seeds say that are known to fail.
    pub(crate) known: Vec<String>,
    /// A line for each open seed.
    open: Vec<String>,
}

/// Returns whether these are the seeds of every run, for which what is counted has its ceiling.
pub(crate) fn are_fixed() -> bool {
    named().is_none()
}

/// Returns whether a seed is one of the range that is always played.
pub(crate) fn is_fixed(seed: u64) -> bool {
    FIXED.contains(&seed)
}

/// Says at the end of a run how many lines of the list are open.
pub(crate) fn print_number_of_open() {
    if are_fixed() {
        let open = list().iter().filter(|it| it.is_open).count();
        // A closed stderr is not read.
        let _ = writeln!(std::io::stderr(), "{open} seeds of {LIST} are open");
    }
}

/// Returns the report of an open seed.
fn outcome(listed: &Listed, failed: bool) -> String {
    if failed {
        return listed.to_string();
    }
    format!("{} {} passes now, mark it as mended: {}", listed.test, listed.seed, listed.found)
}

fn report(line: &str) {
    // A closed stderr is not read.
    let _ = std::io::stderr().write_all(format!("open seed: {line}\n").as_bytes());
    if let Some(path) = std::env::var_os(RECORD)
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path)
    {
        // The run that reads the record fails if it is not there.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Returns whether a variable names one seed.
pub(crate) fn is_one_named() -> bool {
    std::env::var_os("PLIMSOLL_SEED").is_some()
}

/// The seeds that variables name.
fn named() -> Option<Range<u64>> {
    let number = |text: &str| text.parse::<u64>().expect("the variable is a number");
    if let Ok(seed) = std::env::var("PLIMSOLL_SEED") {
        return Some(number(&seed)..number(&seed) + 1);
    }
    let text = std::env::var("PLIMSOLL_SEEDS").ok()?;
    let range = match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(&text),
    };
    assert!(!range.is_empty(), "PLIMSOLL_SEEDS={text} names no seed");
    Some(range)
}

/// The list as it is in the tree.
fn list() -> Vec<Listed> {
    let path = format!("{}/../../{LIST}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the tree has the list of seeds");
    parse(&text).expect("each line of the list is one")
}

/// Reads the list.
///
/// # Errors
///
/// When a line is none of the list, or names a seed again; with the file and the line.
fn parse(text: &str) -> Result<Vec<Listed>, String> {
    let mut known = BTreeSet::new();
    let mut list = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let place = |what: &str| format!("{LIST}:{}: {what}: `{line}`", number + 1);
        let listed = listed(line).map_err(place)?;
        if !known.insert((listed.test, listed.seed)) {
            return Err(place("the seed is there before"));
        }
        list.push(listed);
    }
    Ok(list)
}

/// Reads one line: `TEST SEED STATE: FOUND`.
fn listed(line: &str) -> Result<Listed, &'static str> {
    let wanted = "wants `TEST SEED STATE: what it found`";
    let (head, found) = line.split_once(": ").ok_or(wanted)?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [test, seed, state] = words[..] else { return Err(wanted) };
    let test = match test {
        "promises" => Test::Promises,
        "actions" => Test::Actions,
        "operators" => Test::Operators,
        _ => return Err("the test is `promises`, `actions` or `operators`"),
    };
    let seed = seed.parse().map_err(|_| "the seed is a number")?;
    let is_open = match state {
        "open" => true,
        "mended" => false,
        _ => return Err("the state is `open` or `mended`"),
    };
    let found = found.trim().to_owned();
    if found.is_empty() {
        return Err("says nothing of what it found");
    }
    Ok(Listed { test, seed, is_open, found })
}

#[test]
fn a_line_of_the_list_has_a_test_a_seed_a_state_and_what_was_found() {
    let list =
        "# promises 1 open: a comment\n\npromises 6104 mended: a: deletion\nactions 7 open: x\n";
    let line =
        |test, seed, is_open, found: &str| Listed { test, seed, is_open, found: found.to_owned() };
    let expected =
        vec![line(Test::Promises, 6104, false, "a: deletion"), line(Test::Actions, 7, true, "x")];
    assert_eq!(parse(list), Ok(expected));
    assert_eq!(parse(""), Ok(Vec::new()));
}

#[test]
fn a_bad_line_of_the_list_is_named_with_its_file_and_number() {
    let cases = [
        ("promises 1 open", "wants `TEST SEED STATE: what it found`"),
        ("promises open: found", "wants `TEST SEED STATE: what it found`"),
        ("promises 1 not open: found", "wants `TEST SEED STATE: what it found`"),
        ("laws 1 open: found", "the test is `promises`, `actions` or `operators`"),
        ("promises -1 open: found", "the seed is a number"),
        ("promises 1 closed: found", "the state is `open` or `mended`"),
        ("promises 1 open:  ", "says nothing of what it found"),
    ];
    for (line, what) in cases {
        let expected = Err(format!("tests/seeds/simulation.txt:2: {what}: `{line}`"));
        assert_eq!(parse(&format!("# a list\n{line}\n")), expected);
    }
    let twice = parse("promises 1 open: x\nactions 1 open: x\npromises 1 mended: y\n");
    let expected = "tests/seeds/simulation.txt:3: the seed is there before: `promises 1 mended: y`";
    assert_eq!(twice, Err(expected.to_owned()));
}

#[test]
fn an_open_seed_is_reported_and_does_not_fail() {
    let open = parse("promises 7 open: a loop\npromises 8 open: a flap\n").expect("a list");
    let seeds = Seeds { played: vec![1, 7, 8, 9], open };
    let failed = |seed: u64| (seed, format!("seed {seed} fails"));
    let judged = seeds.judged(vec![failed(7), failed(9)]);
    assert_eq!(judged.broken, ["seed 9 fails"]);
    assert_eq!(judged.known, ["seed 7 fails"]);
    let expected = ["promises 7: a loop", "promises 8 passes now, mark it as mended: a flap"];
    assert_eq!(judged.open, expected);
}
