//! Packages that a change may concern: requirements and kinds connect them, in any number of steps.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::requirement::RequiredNames;
use plimsoll_resolve::{Api, Bundle, CatalogPart};

use super::installed;
use crate::{OperatorInputs, RequestedOperator};

/// What bundles have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node<'a> {
    Package(&'a str),
    Kind(&'a str, &'a str),
}

impl<'a> Node<'a> {
    fn of(api: &'a Api) -> Self {
        Self::Kind(&api.group, &api.kind)
    }
}

/// What connects packages: requirements and kinds.
#[derive(Default)]
struct Links<'a> {
    links: BTreeMap<Node<'a>, BTreeSet<Node<'a>>>,
    /// The packages and kinds that are offered or there. Others connect nothing: no plan brings them.
    available: BTreeSet<Node<'a>>,
}

impl<'a> Links<'a> {
    /// Returns the links of all bundles that are offered or installed; `None` if a requirement does not name what
    /// satisfies it.
    fn of(inputs: OperatorInputs<'a>, catalogs: &'a [CatalogPart]) -> Option<Self> {
        let mut links = Self::default();
        for package in catalogs.iter().flat_map(|it| &it.packages) {
            links.available.insert(Node::Package(&package.name));
            for bundle in &package.bundles {
                links.add(&package.name, bundle)?;
            }
        }
        for name in inputs.operators.keys() {
            links.available.insert(Node::Package(name));
        }
        for (name, bundle) in installed(inputs.operators) {
            links.add(name, bundle)?;
        }
        Some(links)
    }

    /// Adds the links of a bundle of a package.
    fn add(&mut self, name: &'a str, bundle: &'a Bundle) -> Option<()> {
        let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
        if is_open {
            return None;
        }
        self.available.extend(bundle.provides.iter().map(Node::of));
        let kinds = apis.into_iter().chain(&bundle.provides).map(Node::of);
        for other in packages.into_iter().map(Node::Package).chain(kinds) {
            self.connect(Node::Package(name), other);
        }
        Some(())
    }

    fn connect(&mut self, one: Node<'a>, other: Node<'a>) {
        self.links.entry(one).or_default().insert(other);
        self.links.entry(other).or_default().insert(one);
    }

    /// Returns the packages that are connected with some, and these.
    fn reached(&self, names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut queue: Vec<Node<'a>> = names.into_iter().map(Node::Package).collect();
        let mut seen: BTreeSet<Node<'a>> = queue.iter().copied().collect();
        while let Some(node) = queue.pop() {
            let next = self.links.get(&node).into_iter().flatten().copied();
            let next = next.filter(|it| self.available.contains(it));
            queue.extend(next.filter(|it| seen.insert(*it)));
        }
        let packages = seen.into_iter().filter_map(|it| match it {
            Node::Package(name) => Some(name),
            Node::Kind(..) => None,
        });
        packages.collect()
    }
}

/// Returns the packages that are connected with some; `None` if that may be all, because a requirement does not
/// name what satisfies it.
pub(crate) fn related<'a>(
    inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    names: impl IntoIterator<Item = &'a str>,
) -> Option<BTreeSet<&'a str>> {
    Some(Links::of(inputs, catalogs)?.reached(names))
}

/// Returns the packages of all Operators, in groups that nothing connects, with those that are related; `None` if
/// a requirement does not name what satisfies it. `present` are the Operators with what is really installed.
pub(crate) fn groups<'a>(
    inputs: OperatorInputs<'a>,
    present: &'a BTreeMap<String, RequestedOperator>,
    catalogs: &'a [CatalogPart],
) -> Option<Vec<BTreeSet<&'a str>>> {
    let mut links = Links::of(inputs, catalogs)?;
    for (name, bundle) in installed(present) {
        links.add(name, bundle)?;
    }
    for (name, operator) in inputs.operators.iter().chain(present) {
        links.available.insert(Node::Package(name));
        for kind in &operator.owned {
            let kind = Node::Kind(&kind.group, &kind.kind);
            links.available.insert(kind);
            links.connect(Node::Package(name), kind);
        }
        if let Some(bundle) = &operator.returns_to {
            links.add(name, bundle)?;
        }
    }
    let mut groups = Vec::new();
    let mut grouped: BTreeSet<&str> = BTreeSet::new();
    for name in inputs.operators.keys() {
        if !grouped.contains(name.as_str()) {
            let group = links.reached([name.as_str()]);
            grouped.extend(&group);
            groups.push(group);
        }
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{FIXTURE, NoExpressions, catalogs, facts, operators};

    #[test]
    fn what_no_catalog_has_connects_nothing() {
        let of = catalogs(
            "main 0 one/stable
              1.0.0 provides One, requires Monitor
              1.1.0 <1.0.0, provides One, requires nowhere >=1.0.0, requires Monitor
            main 0 other/stable
              1.0.0 provides Other, requires Monitor
              1.1.0 <1.0.0, provides Other, requires nowhere >=1.0.0
            main 0 third/stable
              1.0.0 provides Third, requires Monitor, requires other >=1.0.0",
        );
        let text = "one: at 1.0.0
            other: at 1.0.0
            third: at 1.0.0";
        let cases =
            [("", "one; other third"), ("monitor: owns Monitor", "monitor one other third")];
        for (more, expected) in cases {
            let operators = operators(&of, &format!("{text}\n{more}"));
            let inputs = OperatorInputs {
                operators: &operators,
                unavailable: &BTreeMap::new(),
                facts: &facts(30),
                expressions: &NoExpressions,
            };
            let found = groups(inputs, &operators, &of).expect("names");
            let found: Vec<String> = found
                .into_iter()
                .map(|group| group.into_iter().collect::<Vec<_>>().join(" "))
                .collect();
            assert_eq!(found.join("; "), expected);
        }
    }

    #[test]
    fn packages_are_related_by_requirements_and_kinds() {
        let of = catalogs(&format!(
            "{FIXTURE}
            main 0 caller/stable
              1.0.0 provides Caller, requires Baz
            main 0 rival/stable
              1.0.0 provides Bar
            main 0 alone/stable
              1.0.0 provides Alone
            main 0 other/stable
              1.0.0 provides Other, requires alone >=1.0.0"
        ));
        let operators = operators(&of, "caller: version 1.0.0; at 1.0.0");
        let inputs = OperatorInputs {
            operators: &operators,
            unavailable: &BTreeMap::new(),
            facts: &facts(30),
            expressions: &NoExpressions,
        };
        for (name, expected) in
            [("baz", "bar baz caller foo rival"), ("alone", "alone other"), ("new", "new")]
        {
            let found = related(inputs, &of, [name]).expect("names");
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected);
        }
    }
}
