//! Offers are a table: what catalogs have, what is requested, and what is offered in which order.

use super::*;
use crate::package::ChannelEntry;
use crate::problem::CatalogName;

/// Catalogs from lines `CATALOG WEIGHT PACKAGE/CHANNEL: ENTRY, …`. An entry is `VERSION`, then
/// `<VERSION` for what it replaces, `~RANGE` for its skipRange, `!` if it is deprecated, `@VERSION` for
/// the lowest Kubernetes; in ranges `≥` stands for `>=` and `‹` for `<`. The first channel of a package is its default one.
fn catalogs(text: &str) -> Vec<CatalogPart> {
    let mut catalogs: Vec<CatalogPart> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, entries) = line.split_once(": ").unwrap();
        let [catalog, weight, place] = head.split(' ').collect::<Vec<_>>()[..] else { panic!() };
        let (package, channel) = place.split_once('/').unwrap();
        if catalogs.last().is_none_or(|it| it.name.name != catalog) {
            let name = CatalogName { namespace: String::new(), name: catalog.to_owned() };
            let weight = weight.parse().unwrap();
            catalogs.push(CatalogPart { name, weight, packages: Vec::new() });
        }
        let packages = &mut catalogs.last_mut().unwrap().packages;
        if packages.last().is_none_or(|it| it.name != package) {
            packages.push(Package {
                name: package.to_owned(),
                default_channel: Some(channel.to_owned()),
                ..Package::default()
            });
        }
        let package = packages.last_mut().unwrap();
        let mut channel = Channel { name: channel.to_owned(), ..Channel::default() };
        for entry in entries.split(", ") {
            let is_part = |it: char| matches!(it, '<' | '~' | '!' | '@');
            let version = entry.split(is_part).next().unwrap();
            let part = |mark: char| {
                let (_, rest) = entry.split_once(mark)?;
                Some(rest.split(is_part).next().unwrap().to_owned())
            };
            let name = |version: &str| format!("{}.v{version}", package.name);
            channel.entries.push(ChannelEntry {
                name: name(version),
                replaces: part('<').map(|version| name(&version)),
                skip_range: part('~').map(|range| range.replace('≥', ">=").replace('‹', "<")),
                ..ChannelEntry::default()
            });
            let mut bundle = Bundle::new(name(version), Version::parse(version).unwrap());
            bundle.deprecation = entry.contains('!').then(|| "use another".to_owned());
            bundle.min_kube_version = part('@');
            if package.bundles.iter().all(|it| it.name != bundle.name) {
                package.bundles.push(bundle);
            }
        }
        package.channels.push(channel);
    }
    catalogs
}

/// Returns the offers, as `CATALOG/CHANNEL VERSION`, with `+` for a step towards the range and `-` for
/// what does not fit the cluster.
fn offered(catalogs: &[CatalogPart], request: &OfferRequest<'_>) -> String {
    let kubernetes = Some(Version::new(1, 30, 0));
    let facts = ClusterFacts { kubernetes, ..ClusterFacts::default() };
    let offers = offers(catalogs, &facts, request);
    let mut texts: Vec<String> = offers
        .offers
        .iter()
        .map(|it| {
            let mark = if it.is_step { "+" } else { "" };
            let unfit = if it.ineligible.is_some() { "-" } else { "" };
            let catalog = &it.catalog.name;
            format!("{catalog}/{} {}{mark}{unfit}", it.channel, it.bundle.version)
        })
        .collect();
    let tied = offers.tied_catalogs(request.installed.map_or("", |it| it.catalog));
    if !tied.is_empty() {
        texts.push(format!("tied: {}", tied.join(" ")));
    }
    texts.join(", ")
}

#[test]
fn what_is_offered_depends_on_what_is_requested_and_installed() {
    let of = catalogs(
        "a 0 foo/stable: 1.0.0, 1.1.0<1.0.0, 1.2.0<1.1.0, 2.0.0<1.2.0
         a 0 foo/fast: 2.0.0, 2.1.0~≥1.0.0 ‹2.2.0<2.0.0
         b 5 foo/stable: 1.0.0, 1.3.0!~≥1.0.0 ‹1.3.0<1.0.0, 2.2.0@1.31.0<1.3.0",
    );
    let cases = [
        // installed; channel, catalog and range; edges; offers
        (
            "",
            "a",
            "",
            UpgradeEdges::Graph,
            "a/stable 2.0.0, a/stable 1.2.0, a/stable 1.1.0, a/stable 1.0.0",
        ),
        ("", "a", "~1.1", UpgradeEdges::Graph, "a/stable 1.1.0"),
        ("", "a fast", "", UpgradeEdges::Graph, "a/fast 2.1.0, a/fast 2.0.0"),
        ("", "a nosuch", "", UpgradeEdges::Graph, ""),
        ("", "nosuch", "", UpgradeEdges::Graph, ""),
        // What is deprecated comes last, whatever the weight; what does not fit is said.
        ("", "b", "", UpgradeEdges::Graph, "b/stable 2.2.0-, b/stable 1.0.0, b/stable 1.3.0"),
        ("", "", "1.0.0", UpgradeEdges::Graph, "a/stable 1.0.0, b/stable 1.0.0"),
        // Edges lead one step, and steps outside the range only from outside of it.
        ("a stable 1.0.0", "", "", UpgradeEdges::Graph, "a/stable 1.1.0, b/stable 1.3.0"),
        ("a stable 1.0.0", "", "^1", UpgradeEdges::Graph, "a/stable 1.1.0, b/stable 1.3.0"),
        ("a stable 1.0.0", "a", "2.0.0", UpgradeEdges::Graph, "a/stable 1.1.0+"),
        ("a stable 2.0.0", "a", "", UpgradeEdges::Graph, ""),
        ("a stable 1.1.0", "a fast", "", UpgradeEdges::Graph, "a/fast 2.1.0"),
        // The channel and the catalog of what is installed go on.
        ("a fast 2.0.0", "", "", UpgradeEdges::Graph, "a/fast 2.1.0"),
        ("a fast 2.1.0", "a", "", UpgradeEdges::Graph, ""),
        ("b stable 1.0.0", "", "", UpgradeEdges::Graph, "a/stable 1.1.0, b/stable 1.3.0"),
        // Without the graph the highest version wins.
        (
            "a stable 1.0.0",
            "a",
            "",
            UpgradeEdges::Higher,
            "a/stable 2.0.0, a/stable 1.2.0, a/stable 1.1.0",
        ),
        ("a stable 1.2.0", "a", "<1.2", UpgradeEdges::Higher, ""),
        ("a stable 1.2.0", "a", "<1.2", UpgradeEdges::Any, "a/stable 1.1.0, a/stable 1.0.0"),
    ];
    for (installed, place, range, edges, expected) in cases {
        let (catalog, channel) = place.split_once(' ').unwrap_or((place, ""));
        let range = (!range.is_empty()).then(|| Range::parse(range).unwrap());
        let parts: Vec<&str> = installed.split_whitespace().collect();
        let version = parts.last().map(|version| Version::parse(version).unwrap());
        let bundle = version.as_ref().map(|version| format!("foo.v{version}"));
        let installed = version.as_ref().zip(bundle.as_ref()).map(|(version, bundle)| {
            InstalledVersion { bundle, version, catalog: parts[0], channel: parts[1] }
        });
        let request = OfferRequest {
            package: "foo",
            channel,
            catalog,
            range: range.as_ref(),
            installed,
            edges,
        };
        assert_eq!(offered(&of, &request), expected, "{request:?}");
    }
}

#[test]
fn catalogs_of_one_weight_are_a_tie_unless_one_is_followed() {
    let of = catalogs(
        "a 0 foo/stable: 1.0.0, 1.1.0<1.0.0
         b 0 foo/stable: 1.0.0, 1.1.0<1.0.0
         c 1 foo/stable: 1.0.0, 1.1.0<1.0.0",
    );
    let version = Version::new(1, 0, 0);
    let installed = |catalog| {
        Some(InstalledVersion { bundle: "foo.v1.0.0", version: &version, catalog, channel: "" })
    };
    let cases = [
        (
            None,
            "",
            "a/stable 1.1.0, a/stable 1.0.0, b/stable 1.1.0, b/stable 1.0.0, c/stable 1.1.0, c/stable 1.0.0, tied: a b",
        ),
        (None, "b", "b/stable 1.1.0, b/stable 1.0.0"),
        (installed("b"), "", "b/stable 1.1.0, a/stable 1.1.0, c/stable 1.1.0"),
        (installed("gone"), "", "a/stable 1.1.0, b/stable 1.1.0, c/stable 1.1.0, tied: a b"),
    ];
    for (installed, catalog, expected) in cases {
        let request = OfferRequest {
            package: "foo",
            channel: "",
            catalog,
            range: None,
            installed,
            edges: UpgradeEdges::Graph,
        };
        assert_eq!(offered(&of, &request), expected, "{request:?}");
    }
}
