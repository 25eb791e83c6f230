//! The Go modules that generators read, as the module cache lays them out.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Kubernetes and the libraries that are modules of their own.
pub(super) struct GoModules {
    /// The directory of each module in the cache.
    roots: BTreeMap<&'static str, PathBuf>,
}

impl GoModules {
    /// The modules below `directory`, which is `$(go env GOMODCACHE)/k8s.io`, at a version of
    /// Kubernetes such as `v1.37.1`.
    pub(super) fn new(directory: &Path, version: &str) -> Result<Self> {
        // Kubernetes 1.X.Y takes its libraries from modules of version 0.X.Y.
        let Some(minor) = version.strip_prefix("v1.") else {
            bail!("{version} is no version of Kubernetes such as v1.37.1");
        };
        let mut roots = BTreeMap::from([(
            "k8s.io/kubernetes",
            directory.join(format!("kubernetes@{version}")),
        )]);
        for (module, name) in [
            ("k8s.io/api", "api"),
            ("k8s.io/apimachinery", "apimachinery"),
            ("k8s.io/apiextensions-apiserver", "apiextensions-apiserver"),
            ("k8s.io/kube-aggregator", "kube-aggregator"),
        ] {
            roots.insert(module, directory.join(format!("{name}@v0.{minor}")));
        }
        Ok(Self { roots })
    }

    /// Where a file or directory is, given by module and path in it.
    pub(super) fn locate(&self, path: &str) -> Result<PathBuf> {
        let found = self.roots.iter().find_map(|(module, root)| {
            Some(root.join(path.strip_prefix(module)?.strip_prefix('/')?))
        });
        found.with_context(|| format!("{path} is in none of the modules"))
    }

    /// The text of a file, given by module and path in it.
    pub(super) fn read(&self, path: &str) -> Result<String> {
        let file = self.locate(path)?;
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// A kind as `KIND` or `GROUP/KIND`, given by the package of its internal type.
    pub(super) fn qualified_kind(&self, package: &str, kind: &str) -> Result<String> {
        let text = self.read(&format!("{package}/register.go"))?;
        let group =
            text.split_once("const GroupName = \"").and_then(|(_, rest)| rest.split_once('"'));
        let (group, _) = group.with_context(|| format!("{package} declares no group"))?;
        Ok(if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") })
    }
}

/// The packages that a file imports, by the names that it uses for them.
pub(super) fn imports(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .take_while(|line| !line.starts_with("func "))
        .filter_map(|line| {
            let (before, rest) = line.strip_prefix('\t')?.split_once('"')?;
            let path = rest.strip_suffix('"')?;
            let name = match before.trim() {
                "" => path.rsplit('/').next()?,
                alias => alias,
            };
            Some((name.to_owned(), path.to_owned()))
        })
        .collect()
}
