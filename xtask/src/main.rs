//! Checks, generators, measurements and exploration: `cargo xtask tidy`, `codegen`, `bench`, `soak`.

mod bench;
mod codegen;
mod policy;
mod soak;
mod tidy;
mod upstream;
mod zero;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

#[expect(clippy::print_stderr, reason = "a tool of this tree; stderr is where it speaks")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::run(),
        ["tidy", "cycles"] => tidy::print_cycles(),
        ["codegen", "clippy"] => tidy::write_clippy_configs(),
        ["codegen", "zero", "--from", directory, version] => {
            zero::run(std::path::Path::new(directory), version)
        }
        ["upstream", "--from", cache] => upstream::run(std::path::Path::new(cache)),
        ["codegen", rest @ ..] => codegen::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["soak", rest @ ..] => soak::run(rest),
        _ => Err(anyhow::Error::new(Usage(String::from(
            "usage: cargo xtask tidy | upstream --from GOMODCACHE | codegen clippy | codegen crds | \
             codegen openapi|protobuf|documents --from DIR | codegen policy --from KUBECONFIG | \
             codegen zero|columns|kinds --from DIR VERSION | bench \
             [install|update|drift|memory]... | bench server \
             [ready|apply|list|watch|size|day]... | soak [--minutes N] [--seeds A..B]",
        )))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if error.is::<Usage>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// The exit code for a command line that is wrong.
const USAGE: u8 = 2;

/// What is wrong with a command line.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The directory of the workspace. Asked for at run time: a build can be kept while the checkout moves.
///
/// # Errors
///
/// When cargo did not start this process.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").context("run it as `cargo xtask`")?;
    Ok(PathBuf::from(xtask).join(".."))
}
