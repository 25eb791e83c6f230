//! The folder of a component: plain YAML, a kustomization or a Helm chart, by what is in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_content::authoring::{
    ChartValues, Component, RELEASE_FILE, ReleaseSource, RenderedComponent, RenderedFile,
};
use plimsoll_content::diagnostic::{Diagnostic, FindingCode};

use super::{links, program};
use crate::bounded::read_text;
use crate::directory::FILE_SIZE_MAX;

const CHART: &str = "Chart.yaml";
/// The names that kustomize knows.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The endings of the names of manifest files.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// The file that makes a directory a payload.
const PAYLOAD_MARK: &str = "release-manifests/release-metadata";
/// Most files of a component: real ones have some hundred.
const FILES_MAX: usize = 10_000;

/// Reads or renders the manifests of a component.
pub(super) fn render(
    directory: &Path,
    source: &ReleaseSource,
    component: &Component,
) -> Result<RenderedComponent, Vec<Diagnostic>> {
    let folder = directory.join(&component.name);
    let problem = |message: String| {
        let message = format!("component {:?} {message}", component.name);
        vec![FindingCode::Source.diagnostic(RELEASE_FILE, message).at_line(component.line)]
    };
    if !folder.is_dir() {
        return Err(problem(format!("has no folder `{}` beside {RELEASE_FILE}", component.name)));
    }
    let is_chart = folder.join(CHART).is_file();
    let kustomization = KUSTOMIZATIONS.iter().find(|name| folder.join(name).is_file());
    let for_charts = [
        ("values", component.values != ChartValues::Own),
        ("apiVersions", !component.api_versions.is_empty()),
    ];
    if let Some((name, _)) = for_charts.iter().find(|(_, is_given)| *is_given && !is_chart) {
        return Err(problem(format!("has {name} and is no Helm chart: it has no {CHART}")));
    }
    if kustomization.is_some() || is_chart {
        let problems = links::leading_out(directory, &folder);
        if !problems.is_empty() {
            return Err(problems);
        }
    }
    let rendered = match kustomization {
        Some(name) if is_chart => {
            return Err(problem(format!("has both {CHART} and {name}: keep one of them")));
        }
        Some(_) => program::kustomize(&folder),
        None if is_chart => program::helm(directory, source, component),
        None => {
            program::inside(directory, &folder)
                .map_err(|error| problem(format!("cannot be read: {error}")))?;
            return plain(&folder, &component.name);
        }
    };
    let (text, program) = rendered.map_err(|error| problem(error.to_string()))?;
    let file = RenderedFile { path: component.name.clone(), text, is_rendered: true };
    Ok(RenderedComponent { files: vec![file], program: Some(program) })
}

/// Reads the manifests of a folder and of those below it, in the order of their paths.
fn plain(folder: &Path, name: &str) -> Result<RenderedComponent, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let root = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    find(&root, folder, name, &mut found, &mut problems);
    found.sort();
    let mut files = Vec::new();
    for (path, file) in found {
        match read_text(&file, FILE_SIZE_MAX) {
            Ok(text) => files.push(RenderedFile { path, text, is_rendered: false }),
            Err(error) => problems.push(FindingCode::Source.diagnostic(path, error.to_string())),
        }
    }
    if problems.is_empty() {
        Ok(RenderedComponent { files, program: None })
    } else {
        problems.sort_by(|one, other| one.file.cmp(&other.file));
        Err(problems)
    }
}

/// Finds manifest files: their paths in the source, and in the file system.
fn find(
    root: &Path,
    folder: &Path,
    name: &str,
    found: &mut Vec<(String, PathBuf)>,
    problems: &mut Vec<Diagnostic>,
) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(FindingCode::Source.diagnostic(name, error.to_string()));
            return;
        }
    };
    for entry in entries {
        let written = entry.file_name();
        let path = entry.path();
        let inner = format!("{name}/{}", written.to_string_lossy());
        if written.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            if path.join(PAYLOAD_MARK).exists() {
                let message = "a payload in the folder of a component: write it elsewhere";
                problems.push(FindingCode::Source.diagnostic(inner, message));
                continue;
            }
            find(root, &path, &inner, found, problems);
            continue;
        }
        let is_manifest =
            path.extension().is_some_and(|it| EXTENSIONS.iter().any(|end| it == *end));
        if !is_manifest && !path.is_dir() {
            continue;
        }
        match check_file(root, &path) {
            Ok(()) if found.len() < FILES_MAX => found.push((inner, path)),
            Ok(()) => {
                let message = format!("more than {FILES_MAX} files");
                problems.push(FindingCode::Source.diagnostic(name, message));
                return;
            }
            Err(message) => problems.push(FindingCode::Source.diagnostic(inner, message)),
        }
    }
}

/// Whether a file can be read as one of the component: it is ordinary, and inside its folder.
fn check_file(root: &Path, path: &Path) -> Result<(), String> {
    let target = fs::canonicalize(path).map_err(|error| error.to_string())?;
    if !target.starts_with(root) {
        return Err(format!("the symbolic link leads out of the folder, to {}", target.display()));
    }
    if path.file_name().is_some_and(|name| name.to_str().is_none()) {
        return Err("its name is not UTF-8; rename the file".to_owned());
    }
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => {
            Err("symbolic links to directories are not followed; copy the directory".to_owned())
        }
        Ok(_) => Err("not an ordinary file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
