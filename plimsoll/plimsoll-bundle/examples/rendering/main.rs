//! `cargo xtask bench rendering DIRECTORY`: what it costs to make the objects of an installation, in
//! processor time. In the directory lie bundle directories.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the figures are what the program is run for; it reads files and clocks"
)]

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use plimsoll_bundle::{Bundle, CertificateProvider, InstallRequest, load, revision_objects};
use plimsoll_content::bundle::BundleFile;
use serde_json::json;

/// How long a batch takes at least, in milliseconds: the processor time is counted in steps of a few.
const BATCH_TIME: f64 = 60.0;
/// How many batches are measured.
const BATCHES: u32 = 3;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).context("the directory of bundle directories")?;
    let (mut loads, mut renderings) = (Vec::new(), Vec::new());
    for path in entries(Path::new(&directory))? {
        let files = bundle_files(&path)?;
        let Ok(bundle) = load(&files) else { continue };
        let watched = json!({ "watchNamespace": "quay" });
        let Some(config) =
            [None, Some(&watched)].into_iter().find(|it| objects(&bundle, *it).is_some())
        else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let count = objects(&bundle, config).unwrap_or_default();
        loads.push((mean(|| load(&files))?, name.clone(), count));
        renderings.push((mean(|| objects(&bundle, config))?, name, count));
    }
    ensure!(!loads.is_empty(), "no bundle of {directory} can be installed");
    report("loading", loads);
    report("rendering", renderings);
    Ok(())
}

/// The number of objects; absent if the bundle cannot be installed.
fn objects(bundle: &Bundle, config: Option<&serde_json::Value>) -> Option<usize> {
    let certificates = CertificateProvider::BuiltIn;
    let operator = bundle.package.as_str();
    let request = InstallRequest { operator, namespace: "harbour", config, certificates };
    revision_objects(bundle, &request).ok().map(|revision| revision.objects.len())
}

fn report(what: &str, mut measured: Vec<(f64, String, usize)>) {
    measured.sort_by(|one, other| one.0.total_cmp(&other.0));
    let median = measured[measured.len() / 2].0;
    let slowest: Vec<String> = measured
        .iter()
        .rev()
        .take(3)
        .map(|(time, name, count)| format!("{name} ({count} objects) {time:.2} ms"))
        .collect();
    println!("{what} {} bundles: median {median:.3} ms; {}", measured.len(), slowest.join(", "));
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let found: Result<Vec<PathBuf>, std::io::Error> =
        fs::read_dir(directory)?.map(|entry| entry.map(|it| it.path())).collect();
    let mut found = found?;
    found.sort();
    Ok(found)
}

fn bundle_files(directory: &Path) -> Result<Vec<BundleFile>> {
    let mut files = Vec::new();
    for part in ["manifests", "metadata"].iter().filter(|it| directory.join(it).is_dir()) {
        for path in entries(&directory.join(part))?.into_iter().filter(|it| it.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push(BundleFile { path: format!("{part}/{name}"), bytes: fs::read(&path)? });
        }
    }
    Ok(files)
}

/// Milliseconds of processor time that something takes, the least mean of several batches: other
/// programs only ever make it slower.
fn mean<T>(mut act: impl FnMut() -> T) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..BATCHES {
        let before = processor_milliseconds()?;
        let (mut runs, mut passed) = (0.0, 0.0);
        while passed < BATCH_TIME {
            std::hint::black_box(act());
            runs += 1.0;
            passed = processor_milliseconds()? - before;
        }
        best = best.min(passed / runs);
    }
    Ok(best)
}

fn processor_milliseconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/schedstat").context("no schedstat here")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
