//! `cargo xtask bench catalogs [FILE…]`: what it costs to load a catalog.
//!
//! Each load runs in a process of its own, so that processor time and resident memory are those
//! of a program that does nothing else. Without files, catalogs of several sizes are made first;
//! the largest, of 10,000 packages with 50 versions, only with `--large`.

mod made;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use plimsoll_source::catalog::{Cache, load, open};

/// How often a catalog is opened from the cache.
const OPENED: u32 = 500;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--load", path] => report(Path::new(path), None),
        ["--open", path, cache] => report(Path::new(path), Some(&Cache::new(Path::new(cache)))),
        ["--large"] => measure_made(&[(10_000, 50)]),
        [] => measure_made(&[(300, 10), (1000, 20), (3000, 20)]),
        paths => {
            let directory = tempfile::tempdir()?;
            paths.iter().try_for_each(|path| measure(Path::new(path), directory.path()))
        }
    }
}

fn measure_made(sizes: &[(usize, usize)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    for (packages, versions) in sizes {
        let path = directory.path().join(format!("{packages}x{versions}.json"));
        made::write(*packages, *versions, &path)?;
        measure(&path, directory.path())?;
    }
    Ok(())
}

/// Measures a cold load, the load that fills the cache, and opening from the cache.
#[expect(clippy::print_stdout, reason = "the figures are what the program is run for")]
fn measure(path: &Path, directory: &Path) -> Result<()> {
    let cache = directory.join("cache");
    let program = std::env::current_exe()?;
    let run = |what: &str, arguments: &[&Path]| -> Result<()> {
        let mut best: Option<String> = None;
        // The best of several: other programs only ever make it slower.
        for _ in 0..5 {
            let output = Command::new(&program).arg(what).args(arguments).output()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let time = |line: &str| line.split(' ').next().and_then(|it| it.parse::<f64>().ok());
            if best.as_deref().is_none_or(|best| time(&text) < time(best)) {
                best = Some(text);
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("{name} {what}: {}", best.unwrap_or_default());
        Ok(())
    };
    // Files that changed a moment ago are not remembered by their times.
    fs::File::open(path)?.set_modified(std::time::UNIX_EPOCH)?;
    run("--load", &[path])?;
    drop(open(path, Some(&Cache::new(&cache)), &mut |_| {})?);
    run("--open", &[path, &cache])
}

/// Loads or opens a catalog and prints what that cost.
#[expect(clippy::print_stdout, reason = "the figures are what the program is run for")]
fn report(path: &Path, cache: Option<&Cache>) -> Result<()> {
    let before = processor_milliseconds()?;
    let (bytes, counts) = match cache {
        None => {
            let loaded = load(path, &mut |_| {})?;
            let bytes = loaded.index.len();
            (bytes, loaded.open().counts())
        }
        Some(_) => {
            // Once is too short to be measured.
            for _ in 1..OPENED {
                drop(open(path, cache, &mut |_| {})?);
            }
            let index = open(path, cache, &mut |_| {})?;
            let name = index.package_names().next().unwrap_or_default().to_owned();
            let block = index.package(&name)?.context("the first package is there")?;
            ensure!(!block.read()?.name.is_empty(), "a package has a name");
            (0, index.counts())
        }
    };
    let times = if cache.is_some() { f64::from(OPENED) } else { 1.0 };
    let time = (processor_milliseconds()? - before) / times;
    println!(
        "{time:.2} ms of processor time, {} MiB resident at most, index {} KiB, {} packages, {} bundles",
        peak_mebibytes()?,
        bytes >> 10,
        counts.packages,
        counts.bundles,
    );
    Ok(())
}

fn processor_milliseconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/schedstat").context("no schedstat here")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}

fn peak_mebibytes() -> Result<u64> {
    let text = fs::read_to_string(PathBuf::from("/proc/self/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes >> 10)
}
