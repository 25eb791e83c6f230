//! The files of a loadout, now or at a revision of Git.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use plimsoll_operators::loadout::LoadoutFile;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};

/// The extensions of the files that are read.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads all manifests below a directory, in the order of their paths; hidden files are left out. A directory
/// to which symbolic links lead is read once, and not at all if it is elsewhere.
///
/// # Errors
///
/// When the directory or a file cannot be read.
pub(crate) fn read_files(path: &Path) -> Result<Vec<LoadoutFile>, anyhow::Error> {
    if path.as_os_str() == "-" {
        bail!("standard input is not read here: name a file or a directory");
    }
    let mut files = Vec::new();
    if path.is_dir() {
        let context = || format!("failed to read `{}`", path.display());
        let root = fs::canonicalize(path).with_context(context)?;
        add_directory(path, &root, &mut BTreeSet::new(), &mut files)?;
    } else {
        add_file(path, &mut files)?;
    }
    Ok(files)
}

/// Adds the manifests below a directory, which is below `root`. `read` are the directories that were read, by
/// their paths without links.
fn add_directory(
    path: &Path,
    root: &Path,
    read: &mut BTreeSet<PathBuf>,
    files: &mut Vec<LoadoutFile>,
) -> Result<(), anyhow::Error> {
    let context = || format!("failed to read `{}`", path.display());
    let target = fs::canonicalize(path).with_context(context)?;
    if !target.starts_with(root) || !read.insert(target) {
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(context)?;
    let mut entries: Vec<PathBuf> =
        entries.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>().with_context(context)?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if entry.is_dir() {
            add_directory(&entry, root, read, files)?;
        } else if is_manifest(&entry) {
            add_file(&entry, files)?;
        }
    }
    Ok(())
}

fn add_file(path: &Path, files: &mut Vec<LoadoutFile>) -> Result<(), anyhow::Error> {
    let text = read_text(path, WRITTEN_SIZE_MAX)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    files.push(LoadoutFile { path: path.display().to_string(), text });
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    EXTENSIONS.iter().any(|it| extension == *it)
}

/// Reads the manifests below a directory, or a single file, as they are at a revision of its Git repository. A
/// file that is not there at the revision has no manifests.
///
/// # Errors
///
/// When Git cannot be run, or does not know the revision.
pub(crate) fn read_revision(
    path: &Path,
    revision: &str,
) -> Result<Vec<LoadoutFile>, anyhow::Error> {
    let context = || format!("failed to read `{}` at {revision}", path.display());
    let is_file = !path.is_dir();
    let directory = match path.parent() {
        Some(parent) if is_file && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if is_file => parent,
        Some(_) | None => path,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_read = |listed: &str| match is_file {
        true => listed == name,
        false => is_manifest(Path::new(listed)) && !listed.split('/').any(|it| it.starts_with('.')),
    };
    let commit = format!("{revision}^{{commit}}");
    let commit = git(directory, &["rev-parse", "--verify", "--end-of-options", &commit])
        .with_context(context)?;
    let commit = commit.trim();
    let listed = git(directory, &["ls-tree", "-r", "-z", "--full-tree", "--name-only", commit])
        .with_context(context)?;
    let prefix = git(directory, &["rev-parse", "--show-prefix"]).with_context(context)?;
    let prefix = prefix.trim_end_matches('\n');
    let listed = listed.split('\0').filter_map(|it| it.strip_prefix(prefix));
    let mut files = Vec::new();
    for listed in listed.filter(|it| is_read(it)) {
        let object = format!("{commit}:{prefix}{listed}");
        let text = git(directory, &["cat-file", "blob", &object]).with_context(context)?;
        let path = if is_file { path.to_owned() } else { directory.join(listed) };
        files.push(LoadoutFile { path: path.display().to_string(), text });
    }
    Ok(files)
}

/// Runs Git in a directory, and returns its output.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, anyhow::Error> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be run")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("git: {}", why.trim().lines().next().unwrap_or("no reason given"));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    //! Directories with symbolic links.

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_directories_are_followed_once_and_not_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("inner")).expect("a directory");
        fs::write(path("inner/a.yaml"), "").expect("a file");
        for name in ["one", "two", "inner/up"] {
            symlink(directory.path(), path(name)).expect("a link");
        }
        symlink("inner", path("same")).expect("a link");
        symlink("/", path("all")).expect("a link");
        let files = read_files(directory.path()).expect("it ends");
        let names: Vec<PathBuf> = files.iter().map(|it| PathBuf::from(&it.path)).collect();
        assert_eq!(names, [path("inner/a.yaml")]);
    }
}
