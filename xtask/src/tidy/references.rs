//! References lead somewhere: every id of a design statement that code or docs mention is defined in
//! `docs/design`, every link of a document leads to a file and a heading of the tree, and a link from
//! a name to a source leads to a file that declares it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Tree};

const DESIGN: &str = "docs/design/";
/// Files that may refer to design statements.
const REFERRING: [&str; 5] = [".rs", ".md", ".toml", ".yaml", ".json"];
/// How texts refer to documents that are not in the tree, in lower case.
const FOREIGN: &[&str] = &[
    "\u{a7}",
    concat!("design ", "00"),
    concat!("design document", " 0"),
    concat!("../", "shared"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let defined = definitions(tree, &mut findings);
    let prefixes: BTreeSet<&str> =
        defined.iter().filter_map(|id| id.split_once('-').map(|(prefix, _)| prefix)).collect();
    for (path, text) in &tree.files {
        if !REFERRING.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{path}:{}", number + 1);
            for id in ids(line, &prefixes).filter(|id| !defined.contains(*id)) {
                let text = format!("`{id}` is not defined in {DESIGN}");
                findings.push(Finding::new(place(), text));
            }
            let lower = line.to_lowercase();
            if let Some(found) = FOREIGN.iter().find(|found| lower.contains(**found)) {
                let text = format!("`{found}`: refer to a statement of {DESIGN} by its id");
                findings.push(Finding::new(place(), text));
            }
        }
    }
    links(tree, &mut findings);
    findings
}

/// The ids that design documents define: `<a id="cv-1.2"></a>**CV-1.2**`, and `CV-1:` in headings.
fn definitions(tree: &Tree, findings: &mut Vec<Finding>) -> BTreeSet<String> {
    let mut defined = BTreeSet::new();
    for (path, text) in &tree.files {
        if !path.starts_with(DESIGN) || path.ends_with("/README.md") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let Some((anchor, rest)) = anchored(line) else {
                continue;
            };
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.');
            let id = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            let place = format!("{path}:{}", number + 1);
            if id.to_lowercase() != anchor {
                let text = format!("the anchor `{anchor}` is not the id `{id}` in lower case");
                findings.push(Finding::new(place, text));
            } else if !defined.insert(id.to_owned()) {
                findings.push(Finding::new(place, format!("`{id}` is defined twice")));
            }
        }
    }
    defined
}

/// The anchor of a statement and the text after it.
fn anchored(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("<a id=\"")?;
    let (anchor, rest) = rest.split_once("\"></a>")?;
    Some((anchor, rest.trim_start_matches('*')))
}

/// What looks like an id of a design statement: a prefix, a hyphen, a number, perhaps another one.
fn ids<'a>(line: &'a str, prefixes: &BTreeSet<&str>) -> impl Iterator<Item = &'a str> {
    let part_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    line.split(move |c: char| !part_of_id(c)).map(|word| word.trim_end_matches('.')).filter(
        |word| {
            word.split_once('-').is_some_and(|(prefix, number)| {
                let numbers = || number.split('.');
                prefixes.contains(prefix)
                    && numbers().count() <= 2
                    && numbers().all(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()))
            })
        },
    )
}

/// Checks the links between documents.
fn links(tree: &Tree, findings: &mut Vec<Finding>) {
    let documents: BTreeMap<&str, BTreeSet<String>> = tree
        .files
        .iter()
        .filter(|(path, _)| path.ends_with(".md"))
        .map(|(path, text)| (path.as_str(), anchors(text)))
        .collect();
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (number, line) in prose(text) {
            let plain = without_code(line);
            let problems = targets(&plain)
                .into_iter()
                .filter_map(|target| problem(tree, &documents, path, target))
                .chain(
                    names(line).filter_map(|(name, target)| undeclared(tree, path, name, target)),
                );
            for problem in problems {
                findings.push(Finding::new(format!("{path}:{number}"), problem));
            }
        }
    }
}

/// The links of a line whose text is a name, ``[`name`](target)``, with their targets.
fn names(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        rest.split_once(')').map(|(target, _)| (name, target))
    })
}

/// Whether a source that a name links to does not declare it.
fn undeclared(tree: &Tree, from: &str, name: &str, target: &str) -> Option<String> {
    let source = tree.text(&resolve(from, target));
    if !target.ends_with(".rs") || source.is_empty() || name.contains(['/', '.']) {
        return None;
    }
    let name = name.rsplit("::").next().unwrap_or(name).trim_end_matches("()");
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let is_declared = source.lines().any(|line| {
        words(line).windows(2).any(|pair| DECLARING.contains(&pair[0].as_str()) && pair[1] == name)
    });
    (!is_declared).then(|| format!("the link to `{name}`: {target} does not declare it"))
}

/// The keywords before a name that is declared.
const DECLARING: [&str; 6] = ["fn", "struct", "enum", "trait", "type", "const"];

/// Why a link leads nowhere; `None` if it leads somewhere, or out of the tree.
fn problem(
    tree: &Tree,
    documents: &BTreeMap<&str, BTreeSet<String>>,
    from: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { resolve(from, file) };
    let known = tree.files.iter().any(|(name, _)| {
        name.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if !known && !tree.root.join(&path).exists() {
        return Some(format!("the link `{target}` leads to no file"));
    }
    let anchors = documents.get(path.as_str());
    if !anchor.is_empty() && anchors.is_some_and(|anchors| !anchors.contains(anchor)) {
        return Some(format!("the link `{target}` leads to no heading or anchor of {path}"));
    }
    None
}

/// The path of a file that a document names, relative to the root of the tree.
fn resolve(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines of a document outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            code = !code;
            return None;
        }
        (!code).then_some((index + 1, line))
    })
}

/// A line without its spans of code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Where the links of a line lead: `[text](target)` and `[label]: target`.
fn targets(line: &str) -> Vec<&str> {
    let mut targets: Vec<&str> = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split(' ').next().unwrap_or(target))
        .collect();
    if line.starts_with('[') {
        targets.extend(line.split_once("]: ").map(|(_, target)| target.trim()));
    }
    targets
}

/// What a link into a document may name: its headings, as GitHub makes anchors of them, and explicit
/// anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if code {
            continue;
        }
        if let Some((anchor, _)) = anchored(line) {
            anchors.insert(anchor.to_owned());
        }
        if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            let title = title.split_once("</a>").map_or(title, |(_, title)| title);
            let slug: String = title
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let mut unique = slug.clone();
            let mut count = 0;
            while !anchors.insert(unique.clone()) {
                count += 1;
                unique = format!("{slug}-{count}");
            }
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    //! What is found in references and links.

    use super::*;

    const DOCUMENT: (&str, &str) = (
        "docs/design/010-x.md",
        "# X\n\n## <a id=\"cv-1\"></a>CV-1: Payload\n\n- <a id=\"cv-1.1\"></a>**CV-1.1** Text.\n",
    );

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().chain([&DOCUMENT]);
        let files = files.map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        let tree = Tree { root: std::path::PathBuf::new(), files };
        check(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn an_id_has_to_be_defined() {
        for (text, expected) in [
            ("//! By the rules of CV-1.1, CV-1.", None),
            ("//! A CVE-2024-1, CV-x, v1-2 and FOO-7 are no ids.", None),
            ("// Once (CV-1.2).", Some("`CV-1.2` is not defined in docs/design/")),
            ("// See CV-7:", Some("`CV-7` is not defined in docs/design/")),
        ] {
            assert_eq!(found(&[("a.rs", text)]), Vec::from_iter(expected), "{text}");
        }
    }

    #[test]
    fn documents_outside_of_the_tree_are_not_referred_to() {
        for text in ["(cluster-version \u{a7}2)", concat!("as design ", "003 says")] {
            assert_eq!(found(&[("a.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn an_id_is_defined_once_under_its_own_anchor() {
        for (text, expected) in [
            ("- <a id=\"cv-2\"></a>**CV-2** Text.", None),
            ("- <a id=\"cv-1.1\"></a>**CV-1.1** Text.", Some("`CV-1.1` is defined twice")),
            (
                "- <a id=\"cv-3\"></a>**CV-2** Text.",
                Some("the anchor `cv-3` is not the id `CV-2` in lower case"),
            ),
        ] {
            let findings = found(&[("docs/design/020-y.md", text)]);
            assert_eq!(findings.first().map(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        for (text, finds) in [
            ("See [x](docs/design/010-x.md).", false),
            ("See [x](./docs/design/../design/010-x.md#cv-1.1).", false),
            ("See [`x`](docs/design/010-x.md#cv-1-payload), [y](#a-title).\n# A `title`", false),
            ("See [the web](https://example.com/x#y) and [docs](docs).", false),
            ("```\n[x](nowhere.md)\n```\nand `[x](nowhere.md)`", false),
            ("See [x](docs/nowhere.md).", true),
            ("See [x](docs/design/010-x.md#cv-9).", true),
            ("See [x](#nowhere).", true),
            ("[x]: nowhere.md", true),
        ] {
            assert_eq!(!found(&[("README.md", text)]).is_empty(), finds, "{text}");
        }
    }

    #[test]
    fn a_link_from_a_name_leads_to_a_source_that_declares_it() {
        let source = ("a/b.rs", "pub(crate) async fn load(path: &Path) {}\nstruct Loader<T> {}\n");
        for (text, finds) in [
            ("[`load`](a/b.rs), [`Loader`](a/b.rs), [`Loader::load()`](a/b.rs)", false),
            ("[`a/b.rs`](a/b.rs), [b](a/b.rs)", false),
            ("[`loads`](a/b.rs)", true),
            ("[`path`](a/b.rs)", true),
        ] {
            assert_eq!(!found(&[source, ("README.md", text)]).is_empty(), finds, "{text}");
        }
    }
}
