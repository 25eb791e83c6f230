//! Packages that a change may concern: requirements and kinds connect them, in any number of steps.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::requirement::RequiredNames;
use plimsoll_resolve::{Api, CatalogPart};

use super::installed;
use crate::OperatorInputs;

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

/// Returns the packages that are connected with some; `None` if that may be all, because a requirement does not
/// name what satisfies it.
pub(crate) fn related<'a>(
    inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    names: impl IntoIterator<Item = &'a str>,
) -> Option<BTreeSet<&'a str>> {
    let packages = catalogs.iter().flat_map(|it| &it.packages);
    let offered = packages
        .flat_map(|package| package.bundles.iter().map(|bundle| (package.name.as_str(), bundle)));
    let mut links: BTreeMap<Node<'a>, BTreeSet<Node<'a>>> = BTreeMap::new();
    for (name, bundle) in offered.chain(installed(inputs.operators)) {
        let RequiredNames { packages, apis, is_open } = RequiredNames::of(bundle);
        if is_open {
            return None;
        }
        let package = Node::Package(name);
        let kinds = apis.into_iter().chain(&bundle.provides).map(Node::of);
        for other in packages.into_iter().map(Node::Package).chain(kinds) {
            links.entry(package).or_default().insert(other);
            links.entry(other).or_default().insert(package);
        }
    }
    let mut queue: Vec<Node<'a>> = names.into_iter().map(Node::Package).collect();
    let mut seen: BTreeSet<Node<'a>> = queue.iter().copied().collect();
    while let Some(node) = queue.pop() {
        let next = links.get(&node).into_iter().flatten().copied();
        queue.extend(next.filter(|it| seen.insert(*it)));
    }
    let packages = seen.into_iter().filter_map(|it| match it {
        Node::Package(name) => Some(name),
        Node::Kind(..) => None,
    });
    Some(packages.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{FIXTURE, NoExpressions, catalogs, facts, operators};

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
