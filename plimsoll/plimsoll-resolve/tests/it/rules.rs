//! The rules of resolution one by one, on catalogs of a few lines.
//!
//! A line is a bundle, `name@version` with what it has: `<-b` replaces, `!b` skips, `+K` provides,
//! `?K` requires an API, `?p:range` a package, `#channel`, `kube=1.30.0`, `modes=OwnNamespace`,
//! `native=K`, `arch=arm64`, `broken`, `~message` that it is deprecated. The package is the name up to its first dot.

use plimsoll_resolve::{
    Api, BundleExclusion, CatalogName, CatalogSource, ChannelPolicy, ExplainedConflict,
    FollowedChannel, InstalledBundle, OperatorGroup, PackageRequest, ProviderChoice, Query,
    Resolution, bundle_from_properties, collect_problem, solve, solve_path,
};
use serde_json::{Value, json};

use crate::NoExpressions;
use crate::catalog::InMemoryCatalog;

pub(crate) fn api(kind: &str) -> Api {
    Api { group: "g".into(), version: "v1".into(), kind: kind.into() }
}

fn package_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

pub(crate) fn catalog(text: &str) -> InMemoryCatalog {
    let mut blobs: Vec<Value> = Vec::new();
    let mut channels: Vec<(String, String, Vec<Value>)> = Vec::new();
    let mut deprecations = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (name, version) = words.next().unwrap().split_once('@').unwrap();
        let package = package_of(name);
        let gvk = |kind: &str| json!({"group": "g", "version": "v1", "kind": kind});
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
        ];
        let mut metadata = json!({});
        let mut entry = json!({"name": name});
        let mut skips: Vec<&str> = Vec::new();
        let mut channel = "stable";
        for word in words {
            if let Some(other) = word.strip_prefix("<-") {
                entry["replaces"] = json!(other);
            } else if let Some(other) = word.strip_prefix('!') {
                skips.push(other);
            } else if let Some(kind) = word.strip_prefix('+') {
                properties.push(json!({"type": "olm.gvk", "value": gvk(kind)}));
            } else if let Some(needed) = word.strip_prefix('?') {
                properties.push(match needed.split_once(':') {
                    Some((package, range)) => json!({"type": "olm.package.required",
                        "value": {"packageName": package, "versionRange": range}}),
                    None => json!({"type": "olm.gvk.required", "value": gvk(needed)}),
                });
            } else if let Some(name) = word.strip_prefix('#') {
                channel = name;
            } else if let Some(version) = word.strip_prefix("kube=") {
                metadata["minKubeVersion"] = json!(version);
            } else if let Some(mode) = word.strip_prefix("modes=") {
                metadata["installModes"] = json!([{"type": mode, "supported": true}]);
            } else if let Some(kind) = word.strip_prefix("native=") {
                metadata["nativeAPIs"] = json!([gvk(kind)]);
            } else if let Some(name) = word.strip_prefix("arch=") {
                let label = format!("operatorframework.io/arch.{name}");
                metadata["labels"] = json!({label: "supported"});
            } else if let Some(message) = word.strip_prefix('~') {
                deprecations.push((package, name, message));
            } else if word == "broken" {
                properties.push(json!({"type": "olm.constraint", "value": {}}));
            } else {
                panic!("`{word}` means nothing");
            }
        }
        entry["skips"] = json!(skips);
        properties.push(json!({"type": "olm.csv.metadata", "value": metadata}));
        match channels.iter_mut().find(|it| it.0 == package && it.1 == channel) {
            Some(known) => known.2.push(entry),
            None => channels.push((package.into(), channel.into(), vec![entry])),
        }
        blobs.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        blobs.push(json!({"schema": "olm.bundle", "name": name, "package": package,
            "properties": properties}));
    }
    for (package, name, entries) in channels {
        blobs.push(json!({"schema": "olm.channel", "package": package, "name": name,
            "entries": entries}));
    }
    let lines: Vec<String> = blobs.iter().map(Value::to_string).collect();
    let mut memory = InMemoryCatalog::read(&lines.join("\n"));
    for (package, bundle, message) in deprecations {
        memory.deprecate(package, bundle, message);
    }
    memory
}

pub(crate) fn request(package: &str) -> PackageRequest {
    PackageRequest { package: package.to_owned(), ..PackageRequest::default() }
}

/// Something of one line of a catalog, installed.
pub(crate) fn installed(line: &str, channel: Option<&str>) -> InstalledBundle {
    let memory = catalog(line);
    let name = line.trim().split('@').next().unwrap();
    let package = package_of(name);
    let properties = plimsoll_resolve::Catalog::properties(&memory, package, name).unwrap();
    InstalledBundle {
        namespace: String::new(),
        package: Some(package.to_owned()),
        follows: channel
            .map(|channel| FollowedChannel { channel: channel.to_owned(), catalog: None }),
        catalog: None,
        ignore_dependencies: false,
        bundle: bundle_from_properties(name, package, &properties),
    }
}

/// Resolves in catalogs of the namespaces and weights given; the answer as one line.
fn answer(catalogs: &[(&str, &str, i64, &str)], query: Query) -> String {
    let memories: Vec<InMemoryCatalog> = catalogs.iter().map(|(.., text)| catalog(text)).collect();
    let sources: Vec<CatalogSource<'_>> = catalogs
        .iter()
        .zip(&memories)
        .map(|((namespace, name, weight, _), catalog)| CatalogSource {
            name,
            namespace,
            weight: *weight,
            catalog,
        })
        .collect();
    let several = catalogs.len() > 1;
    match solve(&collect_problem(&sources, query, &NoExpressions), &NoExpressions) {
        Resolution::Solved(solution) => {
            let names = solution.install.iter().map(|item| match several {
                true => format!("{}/{}", item.catalog.name, item.bundle),
                false => item.bundle.clone(),
            });
            let names: Vec<String> = names.collect();
            names.join(" ")
        }
        Resolution::Unsatisfiable(explanation) => {
            let conflict = |conflict: &ExplainedConflict| {
                let steps = conflict.steps.iter().skip(1).map(|step| step.text.clone());
                let helps = conflict.changes.iter().map(|change| format!("=> {}", change.text));
                steps.chain(helps).collect::<Vec<_>>().join("; ")
            };
            explanation.conflicts.iter().map(conflict).collect::<Vec<_>>().join(" | ")
        }
        Resolution::LimitExceeded => "gave up".to_owned(),
    }
}

pub(crate) fn check(text: &str, query: Query, expected: &str) {
    assert_eq!(answer(&[("", "cat", 0, text)], query), expected, "{text}");
}

#[test]
fn bundles_must_fit_the_cluster() {
    let cluster = || {
        let mut query = Query { requests: vec![request("a")], ..Query::default() };
        query.facts.kubernetes = Some("1.31.2-gke.1".parse().unwrap());
        query.facts.apis = Some(vec![api("Native")]);
        query.facts.architectures = vec!["amd64".to_owned()];
        query.operator_groups = vec![OperatorGroup { namespace: String::new(), targets: vec![] }];
        query
    };
    check("a.v1@1.0.0 kube=1.31.2\na.v2@2.0.0 <-a.v1 kube=1.32.0", cluster(), "a.v1");
    check("a.v1@1.0.0\na.v2@2.0.0 <-a.v1 modes=OwnNamespace", cluster(), "a.v1");
    check("a.v1@1.0.0 native=Native\na.v2@2.0.0 <-a.v1 native=Other", cluster(), "a.v1");
    check("a.v1@1.0.0 arch=amd64\na.v2@2.0.0 <-a.v1 arch=arm64", cluster(), "a.v1");
    check("a.v1@1.0.0 ?Native", cluster(), "a.v1");
    check(
        "a.v1@1.0.0 kube=1.40.0",
        cluster(),
        "a 1.0.0 requires Kubernetes 1.40.0 or later; the cluster runs 1.31.2-gke.1; \
         so `a` cannot be installed; => update the cluster to Kubernetes 1.40.0 or later",
    );
}

#[test]
fn what_is_not_known_of_a_cluster_rules_nothing_out() {
    let query = || Query { requests: vec![request("a")], ..Query::default() };
    check("a.v1@1.0.0 kube=9.0.0 modes=OwnNamespace native=X arch=s390x", query(), "a.v1");
}

#[test]
fn a_malformed_bundle_is_left_out_and_fails_no_other_one() {
    let query = || Query { requests: vec![request("a")], ..Query::default() };
    check("a.v1@1.0.0\na.v2@2.0.0 <-a.v1 broken", query(), "a.v1");
    check("a.v1@1.0.0 ?K\nb.v1@1.0.0 +K broken\nc.v1@1.0.0 +K", query(), "a.v1 c.v1");
    // A package with two heads can satisfy nothing, but another can.
    check("a.v1@1.0.0 ?K\nb.v1@1.0.0 +K\nb.v2@2.0.0 +K\nc.v1@1.0.0 +K", query(), "a.v1 c.v1");
}

#[test]
fn only_channels_that_count_are_used() {
    let text = "a.v1@1.0.0 ?b:>=2.0.0\nb.v1@1.0.0\nb.v2@2.0.0 #edge";
    let query = |channels| Query { requests: vec![request("a")], channels, ..Query::default() };
    check(text, query(ChannelPolicy::PreferDefault), "a.v1 b.v2");
    let why = "a 1.0.0 requires b in `>=2.0.0`, but the catalogs have b 2.0.0 in channel `edge`, and only \
               the default channel or a requested one is used; so `a` cannot be installed; => allow channels other than the \
               default one; => add a catalog that has b in `>=2.0.0`; => widen the requirement of \
               a 1.0.0 on b from `>=2.0.0` to include 1.0.0";
    check(text, query(ChannelPolicy::DefaultOnly), why);
    // The channel of what is installed counts for dependencies too.
    let follows = Query {
        requests: vec![request("a")],
        installed: vec![installed("b.v1@1.0.0", Some("edge"))],
        ..Query::default()
    };
    check("a.v1@1.0.0 ?b:>=2.0.0\nb.v1@1.0.0\nb.v2@2.0.0 #edge <-b.v1", follows, "a.v1 b.v2");
}

#[test]
fn what_is_installed_stays_unless_it_has_to_move() {
    let text = "a.v1@1.0.0 ?b:>=1.0.0\nb.v1@1.0.0\nb.v2@2.0.0 <-b.v1";
    let with = |installed| Query {
        requests: vec![request("a")],
        installed: vec![installed],
        ..Query::default()
    };
    check(text, with(installed("b.v1@1.0.0", Some("stable"))), "a.v1");
    let newer = "a.v1@1.0.0 ?b:>=2.0.0\nb.v1@1.0.0\nb.v2@2.0.0 <-b.v1";
    check(newer, with(installed("b.v1@1.0.0", Some("stable"))), "a.v1 b.v2");
    let why = "`a` is requested, candidates: a 1.0.0; a 1.0.0 requires b in `>=2.0.0`, candidates: b \
               2.0.0; only one version of b can be installed: b 1.0.0 and 2.0.0 conflict; so `a` \
               cannot be installed beside b.v1; => let b.v1 follow channel `stable`; => uninstall b.v1; => install a without its dependencies and provide them yourself";
    check(newer, with(installed("b.v1@1.0.0", None)), why);
}

#[test]
fn updates_go_step_by_step_towards_what_is_asked_for() {
    let text = "a.v1@1.0.0\na.v2@2.0.0 <-a.v1\na.v3@3.0.0 <-a.v2";
    let query = |version: Option<&str>| Query {
        requests: vec![PackageRequest { version: version.map(str::to_owned), ..request("a") }],
        installed: vec![installed("a.v1@1.0.0", Some("stable"))],
        ..Query::default()
    };
    check(text, query(None), "a.v2");
    check(text, query(Some("3.0.0")), "a.v2");
    check(text, query(Some("<3")), "a.v2");
    let memory = catalog(text);
    let source = CatalogSource { name: "cat", namespace: "", weight: 0, catalog: &memory };
    let steps =
        solve_path(&collect_problem(&[source], query(None), &NoExpressions), &NoExpressions).steps;
    let names: Vec<&str> = steps.iter().map(|step| step.install[0].bundle.as_str()).collect();
    assert_eq!(names, ["a.v2", "a.v3"]);
}

#[test]
fn a_pin_with_build_metadata_is_about_one_build() {
    let text = "a.v1@2.7.0+1\na.v2@2.7.0+2 <-a.v1\na.v3@2.7.0+3 <-a.v2";
    let query = |version: &str| Query {
        requests: vec![PackageRequest { version: Some(version.to_owned()), ..request("a") }],
        ..Query::default()
    };
    check(text, query("2.7.0+1"), "a.v1");
    check(text, query("=2.7.0+2"), "a.v2");
    check(text, query("2.7.0"), "a.v3");
    check(text, query("~2.7.0+1"), "a.v3");
    let mut update = query("2.7.0+2");
    update.installed = vec![installed("a.v1@2.7.0+1", Some("stable"))];
    check(text, update, "a.v2");
}

#[test]
fn catalogs_are_preferred_in_the_order_of_the_design() {
    let query = || Query { requests: vec![request("a")], ..Query::default() };
    let (needs, old, new) = ("a.v1@1.0.0 ?b:>=1.0.0", "b.v1@1.0.0", "b.v2@2.0.0");
    let own = format!("{needs}\n{old}");
    // The catalog of the bundle itself, although another has less weight and a newer version.
    assert_eq!(
        answer(&[("", "own", 5, &own), ("", "other", 0, new)], query()),
        "own/a.v1 own/b.v1"
    );
    // The namespace, although another has less weight.
    let here = [("x", "first", 0, needs), ("x", "far", -9, new), ("", "near", 9, old)];
    assert_eq!(answer(&here, query()), "first/a.v1 near/b.v1");
    // The lower weight, then the name.
    let weights = [("", "own", 0, needs), ("", "a", 2, old), ("", "b", 1, new), ("", "c", 1, old)];
    assert_eq!(answer(&weights, query()), "own/a.v1 b/b.v2");
}

#[test]
fn overrides_come_before_every_preference() {
    let text = "a.v1@1.0.0 ?K\nb.v1@1.0.0 +K\nc.v1@1.0.0 +K";
    let query = || Query { requests: vec![request("a")], ..Query::default() };
    check(text, query(), "a.v1 b.v1");
    let mut chosen = query();
    let choice = ProviderChoice { api: api("K"), package: "c".into(), catalog: None };
    chosen.overrides.providers.push(choice);
    check(text, chosen, "a.v1 c.v1");
    let mut excluded = query();
    let exclusion = BundleExclusion { package: "b".into(), versions: None, bundle: None };
    excluded.overrides.exclude.push(exclusion);
    check(text, excluded, "a.v1 c.v1");
    let mut alone = query();
    alone.requests[0].ignore_dependencies = true;
    check(text, alone, "a.v1");
    let mut preferred = query();
    let name = CatalogName { namespace: String::new(), name: "other".into() };
    preferred.overrides.prefer_catalogs.push(name);
    let catalogs = [("", "own", 0, text), ("", "other", 7, "b.v1@1.0.0 +K")];
    assert_eq!(answer(&catalogs, preferred), "own/a.v1 other/b.v1");
}

#[test]
fn operators_that_watch_the_same_namespaces_do_not_share_apis() {
    let text = "a.v1@1.0.0 +K\nb.v1@1.0.0 +K";
    let query = |targets: [&[&str]; 2]| {
        let at = |package: &str, namespace: &str| PackageRequest {
            namespace: namespace.to_owned(),
            ..request(package)
        };
        let group = |namespace: &str, targets: &[&str]| OperatorGroup {
            namespace: namespace.to_owned(),
            targets: targets.iter().map(|it| (*it).to_owned()).collect(),
        };
        Query {
            requests: vec![at("a", "one"), at("b", "two")],
            operator_groups: vec![group("one", targets[0]), group("two", targets[1])],
            ..Query::default()
        }
    };
    check(text, query([&["one"], &["two"]]), "a.v1 b.v1");
    assert!(
        answer(&[("", "cat", 0, text)], query([&["one"], &[]]))
            .contains("only one operator may provide K (g/v1): a 1.0.0 and b 1.0.0 conflict")
    );
}

#[test]
fn what_is_missing_is_said_with_what_there_is() {
    let query = |request| Query { requests: vec![request], ..Query::default() };
    let versions = "a.v1@1.0.0\na.v2@2.0.0 <-a.v1\na.v3@3.0.0 <-a.v2";
    let explanation = |request| {
        let memory = catalog(versions);
        let source = CatalogSource { name: "cat", namespace: "", weight: 0, catalog: &memory };
        match solve(&collect_problem(&[source], query(request), &NoExpressions), &NoExpressions) {
            Resolution::Unsatisfiable(explanation) => explanation.text(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        explanation(PackageRequest { version: Some(">=4".into()), ..request("a") }),
        "no solution found:\n  `a` with version `>=4` is requested, but no version matches `>=4`; \
         available: 1.0.0 to 3.0.0 (3 versions)\n  so `a` with version `>=4` cannot be installed\n\n\
         help: this change makes it solvable:\n  request another version of a, such as 3.0.0\n"
    );
    assert_eq!(
        explanation(request("z")),
        "no solution found:\n  `z` is requested, but no catalog has a package `z`\n  so `z` cannot \
         be installed\n\nhelp: this change makes it solvable:\n  add a catalog that has package z\n"
    );
}
