//! Generates `kubernetes/k8s-schema/data/left-out-at-zero.txt`: `cargo xtask codegen zero --from DIR
//! VERSION`.
//!
//! Published OpenAPI does not tell `""` from nothing. The Go types do: a field with `omitempty`
//! whose type is no pointer is left out at its zero value. DIR holds the Go modules `k8s.io/api`,
//! `k8s.io/apimachinery`, `k8s.io/apiextensions-apiserver` and `k8s.io/kube-aggregator` as the
//! module cache lays them out (`$(go env GOMODCACHE)/k8s.io`), VERSION is theirs: `v0.37.1`.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

const OUTPUT: &str = "kubernetes/k8s-schema/data/left-out-at-zero.txt";
const SCALARS: [&str; 11] = [
    "string", "bool", "int", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64",
];

/// The types of a package: structs, and other names of scalars.
#[derive(Default)]
struct Package {
    structs: BTreeMap<String, Vec<Field>>,
    scalars: BTreeSet<String>,
}

struct Field {
    go_type: String,
    /// Nothing for an embedded struct.
    name: Option<String>,
    omits_zero: bool,
}

/// Runs the generator on the directory of the modules; `version` is that of the libraries, such as
/// `v0.37.1`.
pub(crate) fn run(directory: &Path, version: &str) -> Result<()> {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for (module, root, prefix) in [
        ("api", "", "io.k8s.api"),
        ("apimachinery", "pkg/apis", "io.k8s.apimachinery.pkg.apis"),
        ("apiextensions-apiserver", "pkg/apis", "io.k8s.apiextensions-apiserver.pkg.apis"),
        ("kube-aggregator", "pkg/apis", "io.k8s.kube-aggregator.pkg.apis"),
    ] {
        let root = directory.join(format!("{module}@{version}")).join(root);
        for group in directories(&root)? {
            for version in directories(&group)?.into_iter().filter(|path| is_stable(path)) {
                let name = format!("{prefix}.{}.{}", last(&group), last(&version));
                packages.insert(name, read_package(&version)?);
            }
        }
    }
    let mut out = String::new();
    for (package, types) in &packages {
        for name in types.structs.keys() {
            let mut fields = BTreeSet::new();
            collect(&packages, types, name, &mut fields);
            if !fields.is_empty() {
                let fields: Vec<String> = fields.into_iter().collect();
                writeln!(out, "{package}.{name} {}", fields.join(" "))?;
            }
        }
    }
    fs::write(OUTPUT, out).with_context(|| format!("cannot write {OUTPUT}"))
}

fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut out: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    out.sort();
    Ok(out)
}

fn last(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_stable(path: &Path) -> bool {
    last(path).strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read_package(directory: &Path) -> Result<Package> {
    let mut package = Package::default();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = last(&path);
        let holds_types = (name.starts_with("types") || name == "micro_time.go")
            && name.ends_with(".go")
            && !name.contains("_test")
            && !name.contains("swagger");
        if holds_types {
            read_types(&fs::read_to_string(&path)?, &mut package);
        }
    }
    Ok(package)
}

fn read_types(text: &str, package: &mut Package) {
    let mut open: Option<String> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&open, words.as_slice()) {
            (None, ["type", name, "struct", "{", ..]) => {
                package.structs.insert((*name).to_owned(), Vec::new());
                open = Some((*name).to_owned());
            }
            (None, ["type", name, base, ..]) if SCALARS.contains(base) => {
                package.scalars.insert((*name).to_owned());
            }
            (Some(_), ["}", ..]) if line.starts_with('}') => open = None,
            (Some(name), _) => {
                let fields = package.structs.entry(name.clone()).or_default();
                fields.extend(read_field(line));
            }
            (None, _) => {}
        }
    }
}

fn read_field(line: &str) -> Option<Field> {
    let (before, rest) = line.split_once("`")?;
    if before.trim_start().starts_with("//") {
        return None;
    }
    let tag = rest.split_once("json:\"")?.1.split_once('"')?.0;
    let mut parts = tag.split(',');
    let name = parts.next().unwrap_or_default();
    let options: Vec<&str> = parts.collect();
    let words: Vec<&str> = before.split_whitespace().collect();
    Some(Field {
        go_type: (*words.last()?).to_owned(),
        name: (!options.contains(&"inline")).then(|| name.to_owned()),
        omits_zero: options.contains(&"omitempty") || options.contains(&"omitzero"),
    })
}

fn collect(
    packages: &BTreeMap<String, Package>,
    home: &Package,
    name: &str,
    fields: &mut BTreeSet<String>,
) {
    for field in home.structs.get(name).into_iter().flatten() {
        let base = field.go_type.rsplit('.').next().unwrap_or_default();
        let is_qualified = field.go_type.contains('.');
        match &field.name {
            None if is_qualified => {
                let other = packages.values().find(|package| package.structs.contains_key(base));
                if let Some(other) = other {
                    collect(packages, other, base, fields);
                }
            }
            None => collect(packages, home, base, fields),
            Some(_) if field.go_type.starts_with(['*', '[']) => {}
            Some(name) => {
                let is_scalar = SCALARS.contains(&base)
                    || base == "UID"
                    || home.scalars.contains(base)
                    || (is_qualified
                        && packages.values().any(|package| package.scalars.contains(base)));
                if is_scalar && field.omits_zero {
                    fields.insert(name.clone());
                }
            }
        }
    }
}
