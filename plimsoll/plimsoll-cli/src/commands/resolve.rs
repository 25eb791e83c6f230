//! `plimsoll resolve`: what would be installed for packages, or why nothing can be, without a
//! cluster.
//!
//! Exit codes: [`exit::SUCCESS`] when there is a solution, [`exit::UNSATISFIABLE`] when there is
//! none, [`exit::FAILURE`] when the input cannot be read.

pub(crate) mod input;
mod sources;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_resolve::{
    Explanation, PathEnd, Problem, Resolution, Solution, UpdatePath, solve, solve_path,
};
use plimsoll_source::bounded::{GENERATED_SIZE_MAX, read_file};
use plimsoll_source::whole_file;
use semver::Version;
use serde::Serialize;

use crate::arguments::catalog::CatalogPath;
use crate::arguments::value;
use crate::exit;
use crate::render::format::{Format, FormatParser, ignore_broken_pipe};
use crate::render::resolution;

/// Arguments of `plimsoll resolve`.
#[derive(Debug, Args)]
pub struct ResolveArguments {
    /// Packages to install or update
    packages: Vec<String>,
    /// Versions that will do, such as ">=1.2, <2"
    #[arg(long, value_name = "RANGE", value_parser = value::range)]
    version: Option<String>,
    /// Channel to take the packages from; the default one otherwise
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// File or directory of a catalog, or [NAMESPACE/]NAME=PATH; the first is preferred to the second
    #[arg(long, value_name = "FILE", value_parser = CatalogPath::parse)]
    catalog: Vec<CatalogPath>,
    /// What is installed: a YAML or JSON list with package, version and channel of each
    #[arg(long, value_name = "FILE")]
    installed: Option<PathBuf>,
    /// Directory of a bundle that is in no catalog yet; it is what is to be installed
    #[arg(long, value_name = "DIR")]
    bundle: Vec<PathBuf>,
    /// Namespace to install into
    #[arg(long, default_value = "")]
    namespace: String,
    /// Facts of the cluster: a YAML or JSON file with its kubernetes, openshift, apis,
    /// capabilities, architectures, operatorGroups, globalNamespaces
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// Version of the cluster's Kubernetes
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// Consider channels other than the default one
    #[arg(long)]
    any_channel: bool,
    /// Install the packages without their dependencies
    #[arg(long)]
    no_dependencies: bool,
    /// Exclude a package, or one bundle of it
    #[arg(long, value_name = "PACKAGE[/BUNDLE]", value_parser = value::exclusion)]
    exclude: Vec<String>,
    /// Choose the provider of an API
    #[arg(long, value_name = "GROUP/VERSION/KIND=PACKAGE")]
    provider: Vec<String>,
    /// Prefer a catalog to all others, by its name
    #[arg(long, value_name = "NAME")]
    prefer: Vec<String>,
    /// Repeat along the channels until nothing changes
    #[arg(long)]
    path: bool,
    /// Explain why each bundle is chosen
    #[arg(long)]
    explain: bool,
    /// Write the problem to a file
    #[arg(long, value_name = "FILE")]
    write_problem: Option<PathBuf>,
    /// Resolve a problem from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packages", "catalog", "installed", "bundle", "cluster"])]
    problem: Option<PathBuf>,
    /// Ignore the cached indices
    #[arg(long)]
    no_cache: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::PICTURES, default_value_t)]
    output: Format,
}

/// An answer for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
enum ResolutionOutput<'a> {
    Solved {
        steps: &'a [Solution],
    },
    Unsatisfiable {
        /// The steps of a path that lead to where there is no solution.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        steps: &'a [Solution],
        explanation: &'a Explanation,
    },
}

/// Runs the command.
///
/// # Errors
///
/// When catalogs, files or arguments cannot be read, or the output cannot be written.
pub fn run(arguments: &ResolveArguments, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    let problem = problem(arguments)?;
    if let Some(path) = &arguments.write_problem {
        whole_file::write(path, problem.write().as_bytes())
            .with_context(|| format!("failed to write `{}`", path.display()))?;
    }
    let UpdatePath { steps, end } = if arguments.path {
        solve_path(&problem, &Cel)
    } else {
        match solve(&problem, &Cel) {
            Resolution::Solved(solution) => {
                UpdatePath { steps: vec![solution], end: PathEnd::Complete }
            }
            Resolution::Unsatisfiable(explanation) => {
                UpdatePath { steps: Vec::new(), end: PathEnd::Blocked(explanation) }
            }
            Resolution::LimitExceeded => {
                UpdatePath { steps: Vec::new(), end: PathEnd::LimitExceeded }
            }
        }
    };
    let (text, code) = match end {
        PathEnd::Complete => (solved(&steps, arguments)?, exit::SUCCESS),
        PathEnd::Blocked(explanation) => {
            (unsatisfiable(&steps, &explanation, arguments)?, exit::UNSATISFIABLE)
        }
        PathEnd::Circular => bail!(
            "the update path leads back to where it was after {} steps: the entries of a channel update each other; choose another with `--channel`, or end the path with `--version`",
            steps.len()
        ),
        PathEnd::LimitExceeded => bail!(
            "the dependencies are too complex: no solution or proof of none was found within the limit; request fewer packages, or exclude some with `--exclude`"
        ),
    };
    ignore_broken_pipe(out.write_all(text.as_bytes()))?;
    Ok(code.into())
}

fn problem(arguments: &ResolveArguments) -> Result<Problem, anyhow::Error> {
    if let Some(path) = &arguments.problem {
        let bytes = read_file(path, GENERATED_SIZE_MAX)
            .with_context(|| format!("failed to read `{}`", path.display()))?;
        return Problem::read(&bytes)
            .with_context(|| format!("failed to read problem `{}`", path.display()));
    }
    if arguments.catalog.is_empty() && arguments.bundle.is_empty() {
        bail!("no catalog is given: name one with `--catalog` or `--bundle`");
    }
    sources::with_sources(arguments, |sources| input::collected(arguments, sources))
}

fn solved(steps: &[Solution], arguments: &ResolveArguments) -> Result<String, anyhow::Error> {
    let Some(last) = steps.last() else { bail!("a solution has at least one step") };
    match &arguments.output {
        Format::Name => Ok(names(steps)),
        Format::Picture(picture) => Ok(resolution::of_solution(last).draw(*picture)),
        format => {
            let explained = arguments.explain || format.is_wide();
            let text = match steps {
                [only] => only.text(explained),
                _ => numbered(steps, explained),
            };
            data_or(format, &ResolutionOutput::Solved { steps }, text)
        }
    }
}

/// The bundles that are installed, one a line, in their last versions.
fn names(steps: &[Solution]) -> String {
    let last = steps.last().map_or(&[][..], |step| &step.install);
    last.iter().map(|planned| format!("{}\n", on_one_line(&planned.bundle))).collect()
}

fn numbered(steps: &[Solution], explained: bool) -> String {
    let step =
        |(number, step): (usize, &Solution)| format!("step {number}:\n{}", step.text(explained));
    (1..).zip(steps).map(step).collect()
}

fn unsatisfiable(
    steps: &[Solution],
    explanation: &Explanation,
    arguments: &ResolveArguments,
) -> Result<String, anyhow::Error> {
    match &arguments.output {
        Format::Name => Ok(names(steps)),
        Format::Picture(picture) => Ok(resolution::of_explanation(explanation).draw(*picture)),
        format => {
            let why = explanation.text();
            let text = if steps.is_empty() {
                why
            } else {
                let path = numbered(steps, arguments.explain || format.is_wide());
                format!("{path}the path ends here, before what is requested; {why}")
            };
            data_or(format, &ResolutionOutput::Unsatisfiable { steps, explanation }, text)
        }
    }
}

/// An answer in a format for programs, else the text.
fn data_or(
    format: &Format,
    answer: &ResolutionOutput<'_>,
    text: String,
) -> Result<String, anyhow::Error> {
    let mut bytes = Vec::new();
    Ok(if format.write(answer, &mut bytes)? { String::from_utf8(bytes)? } else { text })
}

/// A version as people write those of clusters.
fn cluster_version(text: &str) -> Result<Version, anyhow::Error> {
    plimsoll_resolve::version::parse_tolerant(text)
        .with_context(|| format!("`{text}` is not a version"))
}

#[cfg(test)]
mod tests;
