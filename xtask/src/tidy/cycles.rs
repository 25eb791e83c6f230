//! Modules of a crate do not import each other in a circle.
//!
//! A file and its children are one room: they may use each other. Between the modules below one
//! parent, everything in their folders included, imports run one way. A name that a module hands on
//! (`pub use`) counts as an import of the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in tree.crates() {
        let source = format!("{path}/src/");
        let files = tree.sources(&source).filter(|(file, _)| !is_test(file));
        let modules = Modules::read(&source, files);
        for circle in modules.circles() {
            let text = format!("imported in a circle: {}", circle.join(" -> "));
            findings.push(Finding::new(path, text));
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/") || path.ends_with("_tests.rs")
}

/// A module by the names that lead to it, the root being empty.
type Module = Vec<String>;

/// The modules of one crate.
struct Modules {
    /// The text of each, without its tests.
    texts: BTreeMap<Module, String>,
    /// Which module defines a name that another hands on.
    exports: BTreeMap<(Module, String), Module>,
}

impl Modules {
    fn read<'a>(source: &str, files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut texts = BTreeMap::new();
        for (path, text) in files {
            let name = path.strip_prefix(source).unwrap_or(path).trim_end_matches(".rs");
            if name == "main" {
                continue;
            }
            let module: Module = match name {
                "lib" => Module::new(),
                name => name.split('/').map(str::to_owned).collect(),
            };
            texts.insert(module, code(text));
        }
        let mut modules = Self { texts, exports: BTreeMap::new() };
        let mut exports = BTreeMap::new();
        for (module, text) in &modules.texts {
            for path in exported(text) {
                let Some((name, target)) = modules.exported_from(module, &path) else { continue };
                exports.insert((module.clone(), name), target);
            }
        }
        modules.exports = exports;
        modules
    }

    /// What a `pub use` hands on: the name, and the module it comes from.
    fn exported_from(&self, module: &Module, path: &[String]) -> Option<(String, Module)> {
        let name = path.last()?.clone();
        let first = path.first()?.as_str();
        let absolute = match first {
            "crate" | "super" | "self" => absolute(module, path)?,
            _ => module.iter().chain(path).cloned().collect(),
        };
        let target = self.deepest(&absolute);
        (target != *module).then_some((name, target))
    }

    /// The module in which a path ends that may go on with names of items.
    fn deepest(&self, path: &[String]) -> Module {
        let longest = (0..=path.len()).rev().find(|end| self.texts.contains_key(&path[..*end]));
        path[..longest.unwrap_or(0)].to_vec()
    }

    /// The module that defines what a path names.
    fn target(&self, path: &[String]) -> Module {
        let mut module = self.deepest(path);
        let mut rest = path[module.len()..].to_vec();
        // Names can be handed on more than once; a dozen times is a circle of them.
        for _ in 0..12 {
            let Some(name) = rest.first() else { break };
            let Some(next) = self.exports.get(&(module.clone(), name.clone())) else { break };
            module.clone_from(next);
            rest.truncate(1);
        }
        module
    }

    /// Modules below one parent that reach each other, as paths.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut edges: BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> =
            BTreeMap::new();
        for (module, text) in &self.texts {
            for path in paths(text) {
                let Some(absolute) = absolute(module, &path) else { continue };
                let target = self.target(&absolute);
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) else {
                    continue;
                };
                let because = format!("{} uses {}", module.join("::"), absolute.join("::"));
                let siblings = edges.entry(module[..shared].to_vec()).or_default();
                siblings.entry(from.clone()).or_default().entry(to.clone()).or_insert(because);
            }
        }
        edges.values().flat_map(circles_of).collect()
    }
}

/// For each group of names that reach each other, the imports along one way round.
fn circles_of(edges: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<Vec<String>> {
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for start in edges.keys() {
        if seen.contains(start.as_str()) {
            continue;
        }
        if let Some(way) = way_back(edges, start) {
            seen.extend(
                reached(edges, start)
                    .into_iter()
                    .filter(|it| reached(edges, it).contains(start.as_str())),
            );
            circles.push(way);
        }
    }
    circles
}

/// Everything that is reached from a name.
fn reached<'a>(
    edges: &'a BTreeMap<String, BTreeMap<String, String>>,
    start: &str,
) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(start).into_iter().flatten().map(|(to, _)| &**to).collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(edges.get(name).into_iter().flatten().map(|(to, _)| &**to));
        }
    }
    found
}

/// The shortest way from a name back to it: what imports what.
fn way_back(
    edges: &BTreeMap<String, BTreeMap<String, String>>,
    start: &str,
) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(name) = open.pop_front() {
        for (to, because) in edges.get(name).into_iter().flatten() {
            if to == start {
                let mut way = vec![because.clone()];
                let mut at = name;
                while at != start {
                    let (previous, because) = before[at];
                    way.insert(0, because.to_owned());
                    at = previous;
                }
                return Some(way);
            }
            if !before.contains_key(to.as_str()) {
                before.insert(to, (name, because));
                open.push_back(to);
            }
        }
    }
    None
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().filter_map(|line| line.split("//").next()).collect::<Vec<_>>().join("\n")
}

/// The path from the root that a path within a module means.
fn absolute(module: &Module, path: &[String]) -> Option<Module> {
    let mut out = match path.first()?.as_str() {
        "crate" => Module::new(),
        "super" | "self" => module.clone(),
        _ => return None,
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => {
                out.pop();
            }
            name => out.push(name.to_owned()),
        }
    }
    Some(out)
}

/// Every path of a text that begins with `crate::` or `super::`, groups taken apart.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            expand(&mut text[at..].chars().peekable(), &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Every path of the `pub use` items of a text.
fn exported(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if text[line..at].starts_with("pub") {
            expand(&mut text[at + 4..].chars().peekable(), &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads `a::b::{c, d::e}` after a prefix.
fn expand(
    text: &mut std::iter::Peekable<std::str::Chars<'_>>,
    prefix: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    let length = prefix.len();
    loop {
        while text.next_if(|c| c.is_whitespace()).is_some() {}
        let mut name = String::new();
        while let Some(c) = text.next_if(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if name.is_empty() {
            if text.next_if_eq(&'{').is_some() {
                loop {
                    expand(text, prefix, found);
                    while text.next_if(|c| c.is_whitespace()).is_some() {}
                    if text.next_if_eq(&',').is_none() {
                        break;
                    }
                }
                text.next_if_eq(&'}');
            } else if prefix.len() > length {
                // `path::*`, or a path that ends in generics.
                found.push(prefix.clone());
            }
            break;
        }
        prefix.push(name);
        let mut ahead = text.clone();
        if ahead.next() == Some(':') && ahead.next() == Some(':') {
            text.next();
            text.next();
            continue;
        }
        found.push(prefix.clone());
        // `… as name` within a group.
        while text.next_if(|c| c.is_whitespace()).is_some() {}
        if text.peek() == Some(&'a') {
            while text.next_if(|c| !matches!(c, ',' | '}' | ';')).is_some() {}
        }
        break;
    }
    prefix.truncate(length);
}

#[cfg(test)]
mod tests {
    //! Circles are found through groups and names that are handed on, families are none.

    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let modules = Modules::read("", files.iter().copied());
        let circles: Vec<String> =
            modules.circles().iter().map(|circle| circle.join(" -> ")).collect();
        assert_eq!(circles, expected);
    }

    #[test]
    fn siblings_that_import_each_other_are_a_circle() {
        check(
            &[("a.rs", "use crate::b::X;"), ("b.rs", "use super::a::{self, Y};")],
            &["a uses b::X -> b uses a"],
        );
    }

    #[test]
    fn folders_count_as_their_module() {
        check(
            &[
                ("a.rs", ""),
                ("a/deep.rs", "fn f() -> crate::b::X {}"),
                ("b.rs", "use crate::{c::Z, d};"),
                ("c.rs", ""),
                ("d.rs", "use crate::a::Y;"),
            ],
            &["a::deep uses b::X -> b uses d -> d uses a::Y"],
        );
    }

    #[test]
    fn a_name_that_is_handed_on_counts_where_it_is_defined() {
        check(
            &[("lib.rs", "pub use b::X;"), ("a.rs", "use crate::X;"), ("b.rs", "use crate::a::Y;")],
            &["a uses X -> b uses a::Y"],
        );
    }

    #[test]
    fn a_file_and_its_children_are_one_room() {
        check(
            &[("a.rs", "use crate::a::b::X;"), ("a/b.rs", "use super::Y; use crate::a::Z;")],
            &[],
        );
    }

    #[test]
    fn comments_and_tests_do_not_count() {
        check(
            &[
                ("a.rs", "use crate::b::X; // crate::b::Y"),
                ("b.rs", "// crate::a::X\n#[cfg(test)]\nmod tests { use crate::a::X; }"),
            ],
            &[],
        );
    }
}
