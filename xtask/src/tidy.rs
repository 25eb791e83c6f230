//! What is only written down decays: every rule of this tree that a machine can check is here.
//!
//! `cargo xtask tidy` runs all checks and prints every finding; the test of this crate does the
//! same, so that `cargo test --workspace` keeps the tree tidy.

mod comments;
mod cycles;
mod definitions;
mod dependencies;
mod layers;
mod licences;
mod parameters;
mod purity;
mod references;
pub(crate) mod sources;
mod words;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Something that is not as it should be: where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    place: String,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text)
    }
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

/// Runs all checks.
#[expect(clippy::print_stdout, reason = "the findings are what the command is run for")]
pub(crate) fn run() -> Result<()> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} findings", findings.len())
}

/// Prints the circles of imports alone.
#[expect(clippy::print_stdout, reason = "the findings are what the command is run for")]
pub(crate) fn print_cycles() -> Result<()> {
    for finding in cycles::check(&Tree::read()?) {
        println!("{finding}");
    }
    Ok(())
}

/// Writes the `clippy.toml` of each pure crate.
pub(crate) fn write_clippy_configs() -> Result<()> {
    let root = crate::workspace_root()?;
    for path in purity::PURE_CRATES {
        fs::write(root.join(path).join("clippy.toml"), purity::clippy_config())?;
    }
    Ok(())
}

fn findings() -> Result<Vec<Finding>> {
    let tree = Tree::read()?;
    let mut findings = Vec::new();
    findings.extend(comments::check(&tree));
    findings.extend(definitions::check(&tree)?);
    findings.extend(layers::check(&tree)?);
    findings.extend(cycles::check(&tree));
    findings.extend(dependencies::check(&tree));
    findings.extend(parameters::check(&tree));
    findings.extend(purity::check(&tree));
    findings.extend(references::check(&tree));
    findings.extend(sources::check(&tree));
    findings.extend(words::check(&tree));
    findings.extend(licences::check(&tree)?);
    findings.sort();
    Ok(findings)
}

/// The files of the tree, with their texts.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Paths relative to the root, in order.
    pub(crate) files: Vec<(String, String)>,
}

impl Tree {
    pub(crate) fn read() -> Result<Self> {
        let root = crate::workspace_root()?;
        let mut files = Vec::new();
        for directory in [
            "kubernetes",
            "plimsoll",
            "xtask",
            "docs",
            "deploy",
            "examples",
            ".ci",
            "tests",
            "fuzz",
        ] {
            collect(&root, &root.join(directory), &mut files)?;
        }
        for name in
            ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml"]
        {
            let text = fs::read_to_string(root.join(name))
                .with_context(|| format!("`{name}` belongs to the tree"))?;
            files.push((name.to_owned(), text));
        }
        files.sort();
        Ok(Self { root, files })
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        let mut tree = Self { root: PathBuf::new(), files };
        tree.files.sort();
        tree
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        let found = self.files.iter().find(|(name, _)| name == path);
        found.map_or("", |(_, text)| text.as_str())
    }

    /// Rust sources below a folder.
    pub(crate) fn sources<'a>(
        &'a self,
        folder: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.starts_with(folder) && path.ends_with(".rs"))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Paths of the crates of both families, relative to the root.
    pub(crate) fn crates(&self) -> Vec<&str> {
        self.files
            .iter()
            .filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"))
            .filter(|path| {
                path.split_once('/')
                    .is_some_and(|(family, name)| FAMILIES.contains(&family) && !name.contains('/'))
            })
            .collect()
    }
}

/// The folders that hold crates: what emulates Kubernetes, and the product.
pub(crate) const FAMILIES: [&str; 2] = ["kubernetes", "plimsoll"];

/// Largest file that is not on the list below: what is larger belongs elsewhere.
const FILE_SIZE_MAX: u64 = 200 * 1024;
/// Files that may be larger.
const LARGE_FILES: &[&str] = &["kubernetes/k8s-schema/data/", "tests/control-plane/"];

fn collect(root: &Path, directory: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !matches!(name, "target" | "corpus" | "artifacts" | "proptest-regressions") {
                collect(root, &path, files)?;
            }
            continue;
        }
        let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let size = fs::metadata(&path)?.len();
        let large = LARGE_FILES.iter().any(|allowed| relative.starts_with(allowed));
        if size > FILE_SIZE_MAX && !large {
            bail!("{relative}: {size} bytes; files above {FILE_SIZE_MAX} do not belong here");
        }
        // Files that are not text have nothing to check.
        if let Ok(text) = fs::read_to_string(&path) {
            files.push((relative, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! The tree is tidy, and each check can fail.

    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::of(files)
    }

    #[test]
    fn the_tree_is_tidy() {
        let findings = findings().expect("the tree can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn an_untidy_source_is_found() {
        let ignored = concat!("#[", "ignore]");
        let text = format!("fn main() {{}}\n{ignored}\n");
        let findings = sources::check(&tree(&[("plimsoll/plimsoll-cli/src/utils.rs", &text)]));
        let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
    }

    #[test]
    fn a_test_that_sleeps_and_a_vague_source_are_found() {
        let slept = concat!("slee", "p(PAUSE).await");
        let text = format!("//! x\n// Upstream: somewhere in validation\nfn f() {{ {slept} }}\n");
        let findings = sources::check(&tree(&[("kubernetes/k8s-a/tests/it/main.rs", &text)]));
        assert_eq!(findings.len(), 2, "{findings:?}");
        let data = tree(&[("kubernetes/k8s-a/data/a.tsv", "# Upstream: somewhere\n")]);
        assert_eq!(
            sources::check(&data).len(),
            1,
            "data files name their sources in the same form"
        );
        for (path, script) in [
            ("kubernetes/k8s-a/tests/it/a.txt", concat!("$ until true; do slee", "p 0.2; done\n")),
            ("kubernetes/k8s-a/tests/it/a.py", concat!("time.slee", "p(0.05)\n")),
        ] {
            assert_eq!(sources::check(&tree(&[(path, script)])).len(), 1, "{path}");
        }
        let text = text.replace("somewhere in validation", "k8s.io/api/x.go: F");
        let paused = format!("{text}#[tokio::test(start_paused = true)]");
        let findings = sources::check(&tree(&[("kubernetes/k8s-a/tests/it/main.rs", &paused)]));
        assert_eq!(findings, []);
    }

    #[test]
    fn an_impure_source_is_found() {
        let findings = purity::check(&tree(&[(
            "plimsoll/plimsoll-plan/src/lib.rs",
            "//! x\nasync fn f() {}",
        )]));
        assert!(findings.iter().any(|finding| finding.text.contains("async")), "{findings:?}");
    }

    #[test]
    fn a_write_outside_the_writer_is_found() {
        let text = "//! x\nfn f() { api.patch_status(name, &parameters, &patch) }";
        let findings = sources::check(&tree(&[("plimsoll/plimsoll-controller/src/view.rs", text)]));
        assert!(findings.iter().any(|f| f.text.contains("writes to a cluster")), "{findings:?}");
    }
}
