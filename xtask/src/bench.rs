//! `cargo xtask bench [WHAT…]`: measures what the program costs, in release builds (the memory
//! of the image's program), and with
//! `server` first what the embedded API server costs, with `catalogs` first what loading one costs,
//! with `resolve` first what resolving in one costs, with `rendering` first what rendering a bundle
//! costs, with `operators` first what deciding and keeping Operators costs.
//!
//! The measurements themselves are the examples `bench` of `plimsoll-cli`, `server` of
//! `k8s-testkit`, `catalogs` and `resolve` of `plimsoll-source`, `rendering` of `plimsoll-bundle`,
//! `operators` of `plimsoll-controller`; `docs/benchmarks.md` holds their results.

use std::env::consts::ARCH;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Builds what is measured, and measures.
pub(crate) fn run(what: &[&str]) -> Result<()> {
    if let ["server", what @ ..] = what {
        let measure = ["run", "--release", "--package", "k8s-testkit", "--example", "server", "--"];
        return cargo(&[&measure, what].concat());
    }
    if let ["resolve", what @ ..] = what {
        let measure =
            ["run", "--release", "--package", "plimsoll-source", "--example", "resolve", "--"];
        return cargo(&[&measure, what].concat());
    }
    if let ["rendering", what @ ..] = what {
        let measure =
            ["run", "--release", "--package", "plimsoll-bundle", "--example", "rendering", "--"];
        return cargo(&[&measure, what].concat());
    }
    if let ["operators", what @ ..] = what {
        let measure = [
            "run",
            "--release",
            "--package",
            "plimsoll-controller",
            "--example",
            "operators",
            "--",
        ];
        return cargo(&[&measure, what].concat());
    }
    if let ["catalogs", what @ ..] = what {
        let measure =
            ["run", "--release", "--package", "plimsoll-source", "--example", "catalogs", "--"];
        return cargo(&[&measure, what].concat());
    }
    if what.is_empty() || what.contains(&"memory") {
        let image = format!("--target={ARCH}-unknown-linux-musl");
        let program = ["--package", "plimsoll-cli", "--features", "telemetry"];
        cargo(&[&["build", "--profile", "dist", &image], &program[..]].concat())?;
    }
    let measure = ["run", "--release", "--package", "plimsoll-cli", "--example", "bench", "--"];
    cargo(&[&measure, what].concat())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo).args(arguments).status().context("failed to run cargo")?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}
