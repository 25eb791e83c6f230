//! `cargo xtask bench [WHAT…]`: measures what the program costs, in release builds.
//!
//! The measurements themselves are the example `bench` of `plimsoll-cli`; `docs/benchmarks.md`
//! holds their results.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Builds the program, then measures.
pub(crate) fn run(what: &[&str]) -> Result<()> {
    cargo(&["build", "--release", "--package", "plimsoll-cli"])?;
    let measure = ["run", "--release", "--package", "plimsoll-cli", "--example", "bench", "--"];
    cargo(&[&measure, what].concat())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo).args(arguments).status().context("failed to run cargo")?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}
