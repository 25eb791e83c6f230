//! Texts for people: nothing about versions is silent, nothing is false, every fix helps.

use plimsoll_resolve::{
    Bundle, BundleExclusion, CatalogName, CatalogSource, Constraint, OperatorGroup, PackageRequest,
    PathEnd, Query, Requirement, Resolution, collect_problem, solve, solve_path,
};
use semver::Version;

use crate::NoExpressions;
use crate::catalog::InMemoryCatalog;
use crate::hostile::{entry, package, problem};
use crate::rules::{catalog, check, installed, request};

/// Returns the text for a query about catalogs, each with its name.
fn text(catalogs: &[(&str, &str)], query: Query) -> String {
    let memories: Vec<InMemoryCatalog> = catalogs.iter().map(|(_, text)| catalog(text)).collect();
    let sources: Vec<CatalogSource<'_>> = catalogs
        .iter()
        .zip(&memories)
        .map(|((name, _), catalog)| CatalogSource { name, namespace: "", weight: 0, catalog })
        .collect();
    match solve(&collect_problem(&sources, query, &NoExpressions), &NoExpressions) {
        Resolution::Solved(solution) => solution.text(false),
        Resolution::Unsatisfiable(explanation) => explanation.text(),
        Resolution::LimitExceeded => "gave up\n".to_owned(),
    }
}

/// Compares what is printed for a query about one catalog, line by line.
fn prints(text_of_catalog: &str, query: Query, lines: &[&str]) {
    let printed = text(&[("cat", text_of_catalog)], query);
    let printed: Vec<&str> = printed.lines().map(str::trim).collect();
    assert_eq!(printed, lines, "{text_of_catalog}");
}

fn requests(packages: &[&str]) -> Query {
    Query { requests: packages.iter().map(|name| request(name)).collect(), ..Query::default() }
}

fn in_range(range: &str) -> PackageRequest {
    PackageRequest { version: Some(range.to_owned()), ..request("a") }
}

/// An update of `a` within a range, from a line of a catalog that is installed.
fn update(line: &str, range: Option<&str>) -> Query {
    let request = range.map_or_else(|| request("a"), in_range);
    Query {
        requests: vec![request],
        installed: vec![installed(line, Some("stable"))],
        ..Query::default()
    }
}

#[test]
fn what_is_newer_is_named_with_the_reason_it_was_not_taken() {
    prints(
        "a.v1@1.0.0\na.v2@2.0.0 <-a.v1 ?K\na.v3@3.0.0 <-a.v2 ?K",
        requests(&["a"]),
        &[
            "install a 1.0.0",
            "a.v1 from channel stable of catalog cat",
            "not a.v3, the first of 2 that cannot be selected:",
            "a 3.0.0 requires a provider of K (g/v1), but no catalog has one",
        ],
    );
    prints(
        "a.v1@1.0.0\na.v2@2.0.0 #edge",
        requests(&["a"]),
        &[
            "install a 1.0.0",
            "a.v1 from channel stable of catalog cat",
            "a.v2 is newer, but in channel `edge`, and only the default channel is used",
        ],
    );
}

#[test]
fn what_is_deprecated_is_the_last_choice_and_warned_about() {
    let text = "a.v1@1.0.0\na.v2@2.0.0 <-a.v1 ~loses-data";
    prints(
        text,
        requests(&["a"]),
        &[
            "install a 1.0.0",
            "a.v1 from channel stable of catalog cat",
            "a.v2 from channel `stable` also qualifies, but it is deprecated: loses-data",
        ],
    );
    prints(
        text,
        Query { requests: vec![in_range(">1")], ..Query::default() },
        &[
            "install a 2.0.0",
            "a.v2 from channel stable of catalog cat",
            "warning: a.v2 is deprecated: loses-data",
        ],
    );
    prints(
        text,
        update("a.v1@1.0.0", None),
        &[
            "nothing to do",
            "keep a.v1",
            "because `a` is requested",
            "a.v2 from channel `stable` would update it, but it is deprecated: loses-data",
        ],
    );
}

#[test]
fn an_installed_version_that_no_update_leads_on_from_is_named_with_what_it_cannot_reach() {
    // The only update of v1 is skipped by a later entry, which does not skip v1.
    let text = "a.v1@1.0.0\na.v2@2.0.0 <-a.v1\na.v3@3.0.0 <-a.v2 !a.v2\na.v4@4.0.0 <-a.v3";
    let kept = ["nothing to do", "keep a.v1", "because `a` is requested"];
    let with = |line: &'static str| [&kept[..], &[line]].concat();
    prints(
        text,
        update("a.v1@1.0.0", None),
        &with("no update leads from it to 4.0.0 of channel stable of catalog cat"),
    );
    prints(
        text,
        update("a.v1@1.0.0", Some("<4")),
        &[
            "nothing to do",
            "keep a.v1",
            "because `a` with version `<4` is requested",
            "no update leads from it to 3.0.0 of channel stable of catalog cat",
        ],
    );
    // Nothing else is requested, or there is nothing later.
    prints(text, update("a.v1@1.0.0", Some("1.0.0")), &["nothing to do"]);
    prints(text, update("a.v4@4.0.0", None), &["nothing to do"]);
    // What follows its channel on its own says so, too.
    let mut query = requests(&["b"]);
    query.installed = vec![installed("a.v1@1.0.0", Some("stable"))];
    prints(
        &format!("{text}\nb.v1@1.0.0"),
        query,
        &[
            "install b 1.0.0",
            "b.v1 from channel stable of catalog cat",
            "keep a.v1",
            "no update leads from it to 4.0.0 of channel stable of catalog cat",
        ],
    );
}

#[test]
fn a_step_towards_the_requested_range_says_so() {
    prints(
        "a.v1@1.0.0\na.v2@2.0.0 <-a.v1\na.v3@3.0.0 <-a.v2",
        update("a.v1@1.0.0", Some(">=3")),
        &[
            "update a 2.0.0",
            "a.v2 from channel stable of catalog cat, replacing a.v1",
            "a step towards `>=3`, which no update leads to directly",
        ],
    );
}

#[test]
fn a_path_that_ends_before_its_goal_says_why() {
    let path = |text: &str, query| {
        let memory = catalog(text);
        let source = CatalogSource { name: "cat", namespace: "", weight: 0, catalog: &memory };
        let problem = collect_problem(&[source], query, &NoExpressions);
        let path = solve_path(&problem, &NoExpressions);
        let steps = path.steps.iter().map(|step| match step.install.as_slice() {
            [] => "nothing".to_owned(),
            [item, ..] => item.bundle.clone(),
        });
        (steps.collect::<Vec<_>>().join(" "), path.end)
    };
    let text = "a.v1@1.0.0\na.v2@2.0.0 <-a.v1\na.v3@3.0.0 <-a.v2 ?K";
    let (steps, end) = path(text, update("a.v1@1.0.0", Some(">=3")));
    assert_eq!(steps, "a.v2");
    let PathEnd::Blocked(explanation) = end else { panic!("{end:?}") };
    let why = explanation.text();
    assert!(
        why.contains("a 3.0.0 requires a provider of K (g/v1), but no catalog has one"),
        "{why}"
    );
    let (steps, end) = path(text, update("a.v1@1.0.0", None));
    assert_eq!((steps.as_str(), end), ("a.v2 nothing", PathEnd::Complete));
    let (steps, end) = path("a.v1@1.0.0\na.v2@2.0.0 <-a.v1", update("a.v1@1.0.0", None));
    assert_eq!((steps.as_str(), end), ("a.v2", PathEnd::Complete));
}

#[test]
fn what_no_update_path_leads_to_is_not_said_to_be_missing() {
    let text = "a.v1@1.0.0\na.v2@1.2.0 <-a.v1\na.v4@1.4.0 <-a.v2 !a.v3 !a.v1.3.5\na.v3@1.3.0\n\
         a.v9@9.0.0 #edge";
    let why = |query| {
        let printed = self::text(&[("cat", text)], query);
        printed.lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    let fresh = |range| Query { requests: vec![in_range(range)], ..Query::default() };
    for (query, expected) in [
        (
            update("a.v2@1.2.0", Some("<1.2.0")),
            "`a` with version `<1.2.0` is requested, but a.v2 is installed, and no update path \
             leads from it to a version that matches `<1.2.0`; the channel has 1.0.0",
        ),
        (
            fresh("1.3.0"),
            "`a` with version `1.3.0` is requested, but a 1.3.0 is skipped in channel `stable`",
        ),
        (
            fresh("1.3.5"),
            "`a` with version `1.3.5` is requested, but a 1.3.5 is skipped by a.v4 in channel \
             `stable`",
        ),
        (
            fresh("9.0.0"),
            "`a` with version `9.0.0` is requested, but the catalogs have a 9.0.0 in channel \
             `edge`, and only the default channel or a requested one is used",
        ),
        (
            update("a.v4@1.4.0", Some("9.0.0")),
            "`a` with version `9.0.0` is requested, but the catalogs have a 9.0.0 in channel \
             `edge`, and only the requested or followed channel is used",
        ),
        (
            fresh("7"),
            "`a` with version `7` is requested, but no version matches `7`; available: 1.0.0 to \
             1.4.0 (3 versions)",
        ),
    ] {
        assert_eq!(why(query), expected);
    }
    let stranded = "a.v1@1.0.0\na.v3@3.0.0 <-a.v2 !a.v1\nb.v2@2.0.0 <-b.v1\nb.v1@1.0.0 <-b.v0\n\
                    b.v0@0.5.0 !b.v1";
    let query = Query {
        requests: vec![PackageRequest { version: Some("0.5.0".into()), ..request("b") }],
        ..Query::default()
    };
    let printed = self::text(&[("cat", stranded)], query);
    assert!(!printed.contains("is skipped"), "{printed}");
}

fn at(package: &str, namespace: &str) -> PackageRequest {
    PackageRequest { namespace: namespace.to_owned(), ..request(package) }
}

fn group(namespace: &str, targets: &[&str]) -> OperatorGroup {
    OperatorGroup {
        namespace: namespace.to_owned(),
        targets: targets.iter().map(|it| (*it).to_owned()).collect(),
    }
}

#[test]
fn an_operator_that_watches_all_namespaces_serves_every_namespace() {
    let text = "a.v1@1.0.0 ?K\nb.v1@1.0.0 +K\nc.v1@1.0.0 ?K";
    let query = |requests: Vec<PackageRequest>, targets: &[&str]| Query {
        requests,
        operator_groups: vec![group("one", &["one"]), group("two", targets)],
        ..Query::default()
    };
    check(text, query(vec![at("a", "one"), at("b", "two")], &[]), "a.v1 b.v1");
    check(text, query(vec![at("a", "one"), at("b", "two")], &["one", "two"]), "a.v1 b.v1");
    // What two namespaces require is installed once, where it serves both.
    check(text, query(vec![at("a", "one"), at("c", "two")], &[]), "a.v1 b.v1 c.v1");
    let mut there = query(vec![at("a", "one")], &[]);
    let mut item = installed("b.v1@1.0.0 +K", Some("stable"));
    item.namespace = "two".to_owned();
    there.installed.push(item);
    check(text, there, "a.v1");
}

#[test]
fn every_independent_conflict_is_explained_with_what_resolves_it() {
    let shown =
        text(&[("cat", "a.v1@1.0.0 ?K\nb.v1@1.0.0 ?c:>=2.0.0\nc.v1@1.0.0")], requests(&["a", "b"]));
    assert_eq!(
        shown,
        "no solution found: 2 independent conflicts\n\nconflict 1:\n  `a` is requested, candidates: a \
         1.0.0\n  a 1.0.0 requires a provider of K (g/v1), but no catalog has one\n  so `a` cannot be \
         installed\n\nhelp: each of these changes resolves this conflict:\n  add a catalog that has a \
         provider of K (g/v1)\n  install a without its dependencies and provide them yourself\n\nconflict \
         2:\n  `b` is requested, candidates: b 1.0.0\n  b 1.0.0 requires c in `>=2.0.0`, but no version of \
         c matches `>=2.0.0`; available: 1.0.0\n  so `b` cannot be installed\n\nhelp: each of these \
         changes resolves this conflict:\n  add a catalog that has c in `>=2.0.0`\n  widen the \
         requirement of b 1.0.0 on c from `>=2.0.0` to include 1.0.0\n  install b without its \
         dependencies and provide them yourself\n"
    );
}

#[test]
fn fixes_are_concrete_and_were_tried_out() {
    let grouped = |targets: &[&str]| Query {
        requests: vec![at("a", "one")],
        operator_groups: vec![group("one", targets)],
        ..Query::default()
    };
    check(
        "a.v1@1.0.0 modes=OwnNamespace",
        grouped(&[]),
        "a 1.0.0 does not support install mode AllNamespaces, which the operator group of namespace \
         `one` requires; so `a` for namespace `one` cannot be installed; => let the operator group of \
         namespace `one` select only its own namespace (install mode OwnNamespace)",
    );
    // No operator group helps when the parts of a solution need different ones.
    check(
        "a.v1@1.0.0 modes=OwnNamespace ?K\nb.v1@1.0.0 modes=AllNamespaces +K",
        grouped(&[]),
        "a 1.0.0 does not support install mode AllNamespaces, which the operator group of namespace \
         `one` requires; so `a` for namespace `one` cannot be installed",
    );
    // Many channels do not hide what helps.
    let channels = (0..40).map(|number| format!("a.v{number}@1.{number}.0 ?K #c{number}\n"));
    let text: String = channels.collect();
    check(
        &format!("{text}a.v99@2.0.0 ?K"),
        requests(&["a"]),
        "a 2.0.0 requires a provider of K (g/v1), but no catalog has one; so `a` cannot be installed; \
         => add a catalog that has a provider of K (g/v1); => install a without its dependencies and \
         provide them yourself",
    );
    let mut query = requests(&["a"]);
    let exclusion = |package: &str| BundleExclusion {
        package: package.to_owned(),
        versions: None,
        bundle: None,
    };
    query.overrides.exclude = vec![exclusion("b"), exclusion("z")];
    check(
        "a.v1@1.0.0 ?b:>=1.0.0\nb.v1@1.0.0",
        query,
        "a 1.0.0 requires b in `>=1.0.0`, candidates: b 1.0.0; b 1.0.0 is excluded by an override; so \
         `a` cannot be installed; => take back the exclusion of b; => remove all overrides; => install a \
         without its dependencies and provide them yourself",
    );
}

#[test]
fn catalogs_are_named_when_several_carry_a_package() {
    let catalogs = [("one", "a.v1@1.0.0 ?K"), ("two", "a.v2@2.0.0 ?K\nb.v1@1.0.0")];
    let printed = text(&catalogs, requests(&["a"]));
    let second = printed.lines().nth(1).unwrap_or_default();
    assert_eq!(
        second,
        "  `a` is requested, candidates: a 1.0.0 of catalog one and a 2.0.0 of catalog two"
    );
    let mut named = requests(&["a"]);
    named.requests[0].catalog = Some(CatalogName { namespace: String::new(), name: "two".into() });
    assert!(!text(&catalogs, named).contains("catalog one"));
}

#[test]
fn versions_are_listed_by_their_order() {
    let text = "a.v1@1.0.0 ?b:>=1.0.0\nb.v0@0.1.0\nb.v10@10.0.0 #edge\nb.v9@9.0.0 #fast\nb.v2@2.0.0 #edge <-b.v10";
    let printed = self::text(&[("cat", text)], requests(&["a"]));
    let listed = "b 2.0.0 and 10.0.0 in channel `edge` and b 9.0.0 in channel `fast`";
    assert!(printed.contains(listed), "{printed}");
}

#[test]
fn constraints_inside_constraints_are_in_brackets() {
    let label = |name: &str| Requirement::from(Constraint::Label(name.to_owned()));
    let any = Constraint::Any(vec![label("x"), label("y")]);
    let not = Constraint::Not(vec![label("z")]);
    let mut a = Bundle::new("a1", Version::new(1, 0, 0));
    a.requires.push(Constraint::All(vec![any.into(), not.into()]).into());
    let problem = problem(vec![package("a", vec![a], vec![entry("a1", None)])]);
    let Resolution::Unsatisfiable(explanation) = solve(&problem, &NoExpressions) else {
        panic!("nothing has these labels")
    };
    assert_eq!(
        explanation.conflicts[0].steps[1].text,
        "a 1.0.0 requires one bundle that is (a bundle with label `x` or a bundle with label `y`) and \
         also (a bundle that is not a bundle with label `z`), but no catalog has one"
    );
}
