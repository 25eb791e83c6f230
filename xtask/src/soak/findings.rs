//! Findings: what failed, read from the output of tests, and the lines that keep it.

/// The line with which a test of the simulation begins what it says of a seed.
const FAILS: &str = " fails; again: ";
/// How much of what was found is kept in a line of the list, in characters.
const FOUND_MAX: usize = 200;

/// Something that failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    /// The command that repeats it.
    pub(super) again: String,
    /// What a line of the list begins with, `TEST SEED`; empty for what is not of the simulation.
    pub(super) key: String,
    /// The first sentence of what was found.
    pub(super) found: String,
    /// All that the test says.
    pub(super) text: String,
}

/// Reads what failed from the output of the simulation.
pub(super) fn of_simulation(output: &str) -> Vec<Failure> {
    let lines: Vec<&str> = output.lines().collect();
    let starts = (0..lines.len()).filter_map(|at| Some((at, seed_and_command(lines[at])?)));
    let failures = starts.map(|(at, (seed, again))| {
        let text = &lines[at..end(&lines, at)];
        let found = text.get(1).map_or("", |line| line.trim());
        let filter = again.rsplit(' ').next().unwrap_or_default();
        let test = filter.strip_suffix("_keep").unwrap_or("promises");
        Failure {
            again: again.to_owned(),
            key: format!("{test} {seed}"),
            found: found.to_owned(),
            text: text.join("\n"),
        }
    });
    failures.collect()
}

fn seed_and_command(line: &str) -> Option<(u64, &str)> {
    let (seed, again) = line.strip_prefix("seed ")?.split_once(FAILS)?;
    Some((seed.parse().ok()?, again))
}

/// Where what is said of a seed ends: with its smallest scenario, or where the next begins.
fn end(lines: &[&str], start: usize) -> usize {
    let mut is_smallest = false;
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        if line.is_empty()
            || line.starts_with("note: run with")
            || line.starts_with("stack backtrace:")
            || seed_and_command(line).is_some()
        {
            return at;
        }
        is_smallest |= line.starts_with("the smallest scenario");
        if is_smallest && *line == "}" {
            return at + 1;
        }
    }
    lines.len()
}

/// The list of seeds with an open line for a failure at its end; `None` if its seed is there.
pub(super) fn with_line(list: &str, failure: &Failure) -> Option<String> {
    let (test, seed) = failure.key.split_once(' ')?;
    let is_there = list.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(test) && words.next() == Some(seed)
    });
    if is_there {
        return None;
    }
    let found: Vec<&str> = failure.found.split_whitespace().collect();
    let found: String = found.join(" ").chars().take(FOUND_MAX).collect();
    let found = if found.is_empty() { "it does not say" } else { &found };
    let separator = if list.is_empty() || list.ends_with('\n') { "" } else { "\n" };
    Some(format!("{list}{separator}{} open: {found}\n", failure.key))
}

/// Reads the property tests that failed from the output of the tests.
pub(super) fn of_properties(output: &str, seed: u64, cases: &str) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut rest = output.split("---- ");
    rest.next();
    for section in rest {
        let Some((name, said)) = section.split_once(" stdout ----\n") else { continue };
        // What a test says ends with how many inputs it passed before.
        let from = said.find("Test failed: ").unwrap_or(0);
        let said = &said[from..];
        let to = ["\n\tsuccesses:", "\nstack backtrace:", "\nnote: run with", "\n\nfailures:\n"];
        let to = to.iter().filter_map(|end| said.find(end)).min().unwrap_or(said.len());
        let said = said[..to].trim_end();
        let variables = format!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}");
        failures.push(Failure {
            again: format!("{variables} cargo test --workspace --lib --test it {name}"),
            key: String::new(),
            found: said.lines().next().unwrap_or_default().to_owned(),
            text: said.to_owned(),
        });
    }
    failures
}

/// The names of the property tests in a source file: functions of blocks that begin at a margin.
pub(super) fn property_tests(source: &str) -> Vec<String> {
    let mut is_block = false;
    let mut names = Vec::new();
    for line in source.lines() {
        if line.ends_with("proptest! {") && !line.starts_with(' ') {
            is_block = true;
        } else if line == "}" {
            is_block = false;
        }
        if is_block
            && let Some(rest) = line.strip_prefix("    fn ")
            && let Some((name, _)) = rest.split_once('(')
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// The fuzz target that failed, as `fuzz/run.sh` names it.
pub(super) fn fuzz_target(output: &str) -> Option<&str> {
    output.lines().rev().find_map(|line| {
        let (name, _) = line.strip_prefix("fuzzing ")?.split_once(" failed: the input is in ")?;
        Some(name)
    })
}
