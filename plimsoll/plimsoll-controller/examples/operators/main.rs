//! `cargo xtask bench operators CATALOG [NUMBER…]`: what it costs to decide and keep so many Operators
//! over five catalogs of that content, in processor time and resident memory. Each number is measured in
//! a process of its own; 500, 1,000 and 2,000 if none is given.

#![expect(clippy::print_stdout, reason = "the figures are what the program is run for")]

mod cluster;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use plimsoll_api::olm::{CatalogSource, CatalogSourceType};
use plimsoll_content::catalog::CatalogIndex;
use plimsoll_source::catalog::{Bytes, Cache, open_source};

use self::cluster::MeasuredCluster;

/// Catalogs that are served.
const CATALOGS: usize = 5;
/// Packages that change one after the other.
const CHANGES: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [measured, directory, number] if measured == "--measured" => {
            measure(Path::new(directory), number.parse()?)
        }
        [catalog] => each(Path::new(catalog), &["500", "1000", "2000"]),
        [catalog, numbers @ ..] => {
            each(Path::new(catalog), &numbers.iter().map(String::as_str).collect::<Vec<_>>())
        }
        [] => Err("the file of the catalog is missing".into()),
    }
}

/// Copies the catalog, since one of other content has an index of its own, and measures each number.
fn each(catalog: &Path, numbers: &[&str]) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let text = fs::read(catalog)?;
    for number in 0..CATALOGS {
        let copy = directory.path().join(format!("catalog-{number}"));
        fs::create_dir(&copy)?;
        let mut text = text.clone();
        text.extend(vec![b'\n'; number]);
        fs::write(copy.join("catalog.json"), text)?;
    }
    for number in numbers {
        let mut program = Command::new(std::env::current_exe()?);
        let status = program.arg("--measured").arg(directory.path()).arg(number).status()?;
        if !status.success() {
            return Err(format!("measuring {number} Operators failed").into());
        }
    }
    Ok(())
}

fn measure(directory: &Path, number: usize) -> Result<(), Box<dyn Error>> {
    let cache = Cache::new(&directory.join("cache"));
    let mut catalogs: Vec<Arc<CatalogIndex<Bytes>>> = Vec::new();
    for at in 0..CATALOGS {
        let source = CatalogSource {
            type_: CatalogSourceType::Directory,
            path: directory.join(format!("catalog-{at}")).display().to_string(),
            ..CatalogSource::default()
        };
        catalogs.push(Arc::new(open_source(&source, Some(&cache))?.index));
    }
    let opened = resident()?;
    let names: Vec<String> = catalogs[0].package_names().map(str::to_owned).collect();
    let step = (names.len() / number.max(1)).max(1);
    let names: Vec<String> = names.into_iter().step_by(step).take(number).collect();
    let before = processor_milliseconds()?;
    let mut cluster = MeasuredCluster::new(catalogs, &names);
    cluster.run_until_idle();
    let installed = processor_milliseconds()? - before;
    let kept = resident()?;

    let (mut slowest, mut all, mut decided) = (0.0_f64, 0.0, 0);
    for name in names.iter().step_by((names.len() / CHANGES).max(1)).take(CHANGES) {
        let before = processor_milliseconds()?;
        decided += cluster.change_package(name);
        let passed = processor_milliseconds()? - before;
        (slowest, all) = (slowest.max(passed), all + passed);
    }
    let before = processor_milliseconds()?;
    cluster.change_facts();
    let everything = processor_milliseconds()? - before;
    let (count, changes) = (names.len(), CHANGES.min(names.len()));
    println!(
        "{count} Operators: a changed package is decided in {:.2} ms (slowest {slowest:.2} ms, {decided} \
         decisions for {changes} packages), all anew in {everything:.0} ms; installing all takes \
         {installed:.0} ms; the catalogs take {opened:.0} MiB, everything {kept:.0} MiB, at most {:.0} \
         MiB",
        all / changes as f64,
        peak()?
    );
    Ok(())
}

fn processor_milliseconds() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}

fn resident() -> Result<f64, Box<dyn Error>> {
    mebibytes("VmRSS:")
}

fn peak() -> Result<f64, Box<dyn Error>> {
    mebibytes("VmHWM:")
}

fn mebibytes(what: &str) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(PathBuf::from("/proc/self/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes / 1024.0)
}
