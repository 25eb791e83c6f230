//! `cargo xtask soak [--minutes N] [--seeds A..B]`: exploration with seeds that no other run plays, which
//! has no place in a gate that decides the same each time for the same tree.
//!
//! It plays the simulation, the property tests and the fuzz targets in turn until the time is over,
//! whatever fails meanwhile. What failed is printed with the command that repeats it, and kept: seeds of
//! the simulation as `open` lines of `tests/seeds/simulation.txt`, and inputs of fuzz targets in
//! `fuzz/seeds`, which the ordinary tests and `fuzz/run.sh check` play from then on. Seeds of property
//! tests are kept by proptest, if the tests say where.

mod arguments;
mod findings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};

use crate::Usage;
use arguments::Arguments;
use findings::Failure;

/// How long it takes when nothing is said, in minutes.
const MINUTES: u64 = 20;
/// Seeds of the simulation that are played at a time: what fails is known after each such part.
const PART: u64 = 500;
/// Seeds for each second of the clock, more than are played in one: no two runs share a seed.
const SEEDS_PER_SECOND: u64 = 1000;
/// Cases of each property test: starting the tests takes longer than the usual number of cases.
const CASES: &str = "2000";
/// How long each fuzz target runs at a time, in seconds.
const FUZZ_SECONDS: &str = "5";
/// The seeds of the simulation that found something.
const SIMULATION: &str = "tests/seeds/simulation.txt";
/// The cases of property tests that failed, as proptest keeps them.
const PROPERTIES: &str = "tests/seeds/properties.txt";
/// How much is printed of what ended without naming what failed, in lines.
const TAIL: usize = 60;

/// Explores.
///
/// # Errors
///
/// When the arguments are wrong, when something failed, or when tests cannot be run.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let arguments = Arguments::parse(words).map_err(Usage)?;
    let mut soak = Soak {
        root: crate::workspace_root()?,
        found: Vec::new(),
        broken: Vec::new(),
        inputs: BTreeSet::new(),
    };
    match arguments {
        Arguments { minutes: None, seeds: Some(seeds) } => soak.play_seeds(seeds)?,
        Arguments { minutes, seeds } => {
            let until = Instant::now() + Duration::from_secs(60 * minutes.unwrap_or(MINUTES));
            soak.play_until(until, seeds)?;
        }
    }
    soak.finish()
}

/// A run, and what it found.
struct Soak {
    root: PathBuf,
    /// What failed, in one line each.
    found: Vec<String>,
    /// What ended without naming what failed, such as tests that do not compile.
    broken: Vec<String>,
    /// Fuzz targets and inputs that they fail with. They are kept at the end: a target that begins with
    /// one finds nothing else, and those after it are not run.
    inputs: BTreeSet<(String, PathBuf)>,
}

impl Soak {
    /// Plays exactly these seeds of the simulation.
    fn play_seeds(&mut self, seeds: Range<u64>) -> Result<()> {
        arguments::parts(seeds, PART).try_for_each(|part| self.simulation(&part))
    }

    /// Plays everything in turn, as long as there is time. What has begun ends.
    fn play_until(&mut self, until: Instant, seeds: Option<Range<u64>>) -> Result<()> {
        let seeds = match seeds {
            Some(seeds) => seeds,
            None => new_seeds()?,
        };
        say(&format!("the first seed is {}", seeds.start));
        let properties = property_tests(&self.root)?;
        let mut parts = arguments::parts(seeds.clone(), PART);
        for round in 0.. {
            let is_over = || Instant::now() >= until;
            if is_over() || !self.broken.is_empty() {
                break;
            }
            if let Some(part) = parts.next() {
                self.simulation(&part)?;
            }
            if !is_over() {
                self.properties(seeds.start + round, &properties)?;
            }
            if !is_over() {
                self.fuzz()?;
            }
        }
        Ok(())
    }

    fn simulation(&mut self, seeds: &Range<u64>) -> Result<()> {
        let Range { start, end } = seeds;
        say(&format!("simulation: seeds {start}..{end}"));
        let mut command = cargo(&["test", "--locked", "--workspace", "--test", "sim", "promises"]);
        command.args(["--", "--show-output"]);
        command.env_remove("PLIMSOLL_SEED").env("PLIMSOLL_SEEDS", format!("{start}..{end}"));
        let Some(output) = self.failed_output(&mut command)? else { return Ok(()) };
        let failures = findings::of_simulation(&output);
        let list = self.root.join(SIMULATION);
        for failure in &failures {
            say(&failure.text);
            let text = fs::read_to_string(&list).with_context(|| format!("read {SIMULATION}"))?;
            let grown = findings::with_line(&text, failure);
            if let Some(grown) = &grown {
                fs::write(&list, grown).with_context(|| format!("write {SIMULATION}"))?;
            }
            let became = if grown.is_some() { "added to" } else { "already in" };
            self.found.push(format!("{}: {became} {SIMULATION}", failure.again));
        }
        self.unless_named(&failures, "the simulation", &output);
        Ok(())
    }

    fn properties(&mut self, seed: u64, names: &[String]) -> Result<()> {
        say(&format!("property tests: {} with seed {seed}", names.len()));
        let kept = fs::read_to_string(self.root.join(PROPERTIES)).unwrap_or_default();
        let test = ["test", "--locked", "--workspace", "--no-fail-fast", "--lib", "--test", "it"];
        let mut command = cargo(&test);
        command.arg("--").args(names);
        command.env("PROPTEST_RNG_SEED", seed.to_string()).env("PROPTEST_CASES", CASES);
        let Some(output) = self.failed_output(&mut command)? else { return Ok(()) };
        let failures = findings::of_properties(&output, seed, CASES);
        for failure in &failures {
            say(&format!("{}\n{}", failure.again, failure.text));
            self.found.push(failure.again.clone());
        }
        let now = fs::read_to_string(self.root.join(PROPERTIES)).unwrap_or_default();
        for line in now.strip_prefix(kept.as_str()).unwrap_or_default().lines() {
            say(&format!("added to {PROPERTIES}: {line}"));
        }
        self.unless_named(&failures, "the property tests", &output);
        Ok(())
    }

    fn fuzz(&mut self) -> Result<()> {
        say(&format!("fuzz targets: {FUZZ_SECONDS} s each"));
        let fuzz = self.root.join("fuzz");
        let begun = SystemTime::now();
        let mut command = Command::new("sh");
        command.arg(fuzz.join("run.sh")).arg(FUZZ_SECONDS);
        let Some(output) = self.failed_output(&mut command)? else { return Ok(()) };
        let Some(name) = findings::fuzz_target(&output) else {
            self.unless_named(&[], "fuzzing", &output);
            return Ok(());
        };
        say(&tail(&output));
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(fuzz.join("target"), PathBuf::from);
        let inputs = inputs_since(&target.join("fuzz/artifacts").join(name), begun)?;
        self.inputs.extend(inputs.into_iter().map(|input| (name.to_owned(), input)));
        Ok(())
    }

    /// Keeps an input where `fuzz/run.sh check` begins with it.
    fn keep(&mut self, name: &str, input: &Path) -> Result<()> {
        let file = Path::new(input.file_name().context("an input is a file")?);
        let directory = Path::new("fuzz/seeds").join(name);
        fs::create_dir_all(self.root.join(&directory))
            .and_then(|()| fs::copy(input, self.root.join(&directory).join(file)))
            .with_context(|| format!("keep {}", input.display()))?;
        let kept = directory.join(file);
        self.found.push(format!("sh fuzz/run.sh check: {name} fails with {}", kept.display()));
        Ok(())
    }

    /// Runs a command from the root of the tree; its output if it failed.
    fn failed_output(&self, command: &mut Command) -> Result<Option<String>> {
        command.current_dir(&self.root).stdin(Stdio::null()).env_remove("OPEN_SEEDS");
        // What cargo tells this program of itself: crates that look at it would be built again.
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&variable);
            }
        }
        let started = Instant::now();
        let output = command.output().with_context(|| format!("failed to run {command:?}"))?;
        say(&format!("  {} after {} s", output.status, started.elapsed().as_secs()));
        if output.status.success() {
            return Ok(None);
        }
        let (stdout, stderr) = (output.stdout, output.stderr);
        Ok(Some([stdout, stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).join("\n")))
    }

    /// Remembers what failed but does not say with what.
    fn unless_named(&mut self, failures: &[Failure], what: &str, output: &str) {
        if failures.is_empty() {
            say(&tail(output));
            self.broken.push(format!("{what} failed, and named nothing that does"));
        }
    }

    /// Keeps what is left to keep, and says what was found.
    fn finish(mut self) -> Result<()> {
        for (name, input) in std::mem::take(&mut self.inputs) {
            self.keep(&name, &input)?;
        }
        self.found.append(&mut self.broken);
        if self.found.is_empty() {
            say("nothing failed");
            return Ok(());
        }
        bail!("{} failed:\n  {}", self.found.len(), self.found.join("\n  "))
    }
}

/// Seeds that no other run plays.
fn new_seeds() -> Result<Range<u64>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_secs() * SEEDS_PER_SECOND..u64::MAX)
}

/// The names of all property tests of the workspace.
fn property_tests(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![root.join("kubernetes"), root.join("plimsoll")];
    while let Some(folder) = folders.pop() {
        let read = || format!("read {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(read)? {
            let path = entry.with_context(read)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(findings::property_tests(&fs::read_to_string(&path)?));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The files of a directory that were written since then.
fn inputs_since(directory: &Path, begun: SystemTime) -> Result<Vec<PathBuf>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("{}", directory.display()))? {
        let entry = entry?;
        if entry.metadata()?.modified()? >= begun {
            inputs.push(entry.path());
        }
    }
    Ok(inputs)
}

fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(arguments);
    command
}

/// The last lines of an output.
fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

#[expect(clippy::print_stdout, reason = "what it found is what it is run for")]
fn say(text: &str) {
    println!("{text}");
}
