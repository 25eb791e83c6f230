//! `cargo xtask bench resolve CATALOG:REQUESTS…`: what a resolution costs once its catalog is
//! loaded, in processor time.
//!
//! `REQUESTS` is `package:channel`, several of them with commas between, or `@file` with one a
//! line.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use plimsoll_content::catalog::IndexedCatalog;
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{CatalogSource, PackageRequest, Query, Resolution, collect_problem, solve};
use plimsoll_source::catalog::open;

/// How often each request is resolved in a batch.
const RUNS: u32 = 40;
/// How many batches are measured.
const BATCHES: u32 = 5;

fn main() -> Result<()> {
    for argument in std::env::args().skip(1) {
        let (catalog, requests) = argument.split_once(':').context("CATALOG:REQUESTS")?;
        measure(Path::new(catalog), requests)?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures are what the program is run for")]
fn measure(catalog: &Path, requests: &str) -> Result<()> {
    let index = open(catalog, None, &mut |_| {})?;
    let requests = read(requests)?;
    let offer = IndexedCatalog::new(&index);
    let source = CatalogSource { name: "catalog", namespace: "", weight: 0, catalog: &offer };
    let collected = || {
        let query = Query { requests: requests.clone(), ..Query::default() };
        collect_problem(&[source], query, &Cel)
    };
    let problem = collected();
    let outcome = solve(&problem, &Cel);
    let collecting = mean(|| drop(collected()))?;
    let solving = mean(|| drop(solve(&problem, &Cel)))?;
    if let Some(failure) = offer.failure() {
        bail!("{failure}");
    }
    let packages = problem.catalogs.iter().map(|catalog| catalog.packages.len());
    println!(
        "{} {} ({} requests): {:.2} ms of processor time, {collecting:.2} of them to collect {} \
         packages: {}",
        catalog.file_name().unwrap_or_default().to_string_lossy(),
        requests.first().map(|request| request.package.as_str()).unwrap_or_default(),
        requests.len(),
        collecting + solving,
        packages.sum::<usize>(),
        result(&outcome)?
    );
    Ok(())
}

/// Milliseconds of processor time that something takes, the least mean of several batches: other
/// programs only ever make it slower, and once is too short to be measured.
fn mean(mut act: impl FnMut()) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..BATCHES {
        let before = processor_milliseconds()?;
        (0..RUNS).for_each(|_| act());
        best = best.min((processor_milliseconds()? - before) / f64::from(RUNS));
    }
    Ok(best)
}

fn result(outcome: &Resolution) -> Result<String> {
    Ok(match outcome {
        Resolution::Solved(solution) => format!("{} bundles", solution.install.len()),
        Resolution::Unsatisfiable(explanation) => format!(
            "unsatisfiable, explained in {} bytes with {} changes",
            explanation.text().len(),
            explanation.conflicts.iter().map(|it| it.changes.len()).sum::<usize>()
        ),
        Resolution::LimitExceeded => bail!("it gave up"),
    })
}

fn read(requests: &str) -> Result<Vec<PackageRequest>> {
    let text = match requests.strip_prefix('@') {
        Some(file) => fs::read_to_string(file).with_context(|| format!("`{file}`"))?,
        None => requests.replace(',', "\n"),
    };
    let request = |line: &str| {
        let (package, channel) = line
            .split_once(':')
            .map_or((line, None), |(package, channel)| (package, Some(channel.to_owned())));
        PackageRequest { package: package.to_owned(), channel, ..PackageRequest::default() }
    };
    Ok(text.split_whitespace().map(request).collect())
}

fn processor_milliseconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/schedstat").context("no schedstat here")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
