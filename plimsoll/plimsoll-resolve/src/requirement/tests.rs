//! Requirements against what is installed, as a table.

use semver::Version;

use super::*;
use crate::bundle::Api;

/// An expression that is `true` holds for all, `broken` does not compile, others hold for none.
struct Rules;

impl Expressions for Rules {
    fn evaluate(
        &self,
        rule: &str,
        candidates: &[&[Property]],
        _: &mut u64,
    ) -> Result<Vec<bool>, String> {
        match rule {
            "broken" => Err("no such function".to_owned()),
            _ => Ok(vec![rule == "true"; candidates.len()]),
        }
    }
}

fn api(kind: &str) -> Api {
    Api { group: "example.com".into(), version: "v1".into(), kind: kind.into() }
}

fn package(name: &str, range: &str) -> Constraint {
    Constraint::Package { name: name.to_owned(), range: range.to_owned() }
}

fn bundle(version: &str, provides: &[&str]) -> Bundle {
    Bundle {
        provides: provides.iter().map(|kind| api(kind)).collect(),
        ..Bundle::new("it", Version::parse(version).unwrap())
    }
}

#[test]
fn a_requirement_is_satisfied_by_what_is_installed_or_says_what_is_there_instead() {
    let (bar, foo) = (bundle("1.2.1", &["Bar"]), bundle("1.0.0", &["Foo"]));
    let installed = InstalledPackages::new(BTreeMap::from([("foo", &foo), ("bar", &bar)]));
    let by_bar = || Some(Provider::Installed("bar".to_owned()));
    let facts = ClusterFacts { apis: Some(vec![api("Served")]), ..ClusterFacts::default() };
    let cel = |rule: &str| Constraint::Cel { rule: rule.to_owned() };
    let any = |names: [Constraint; 2]| Constraint::Any(names.map(Requirement::from).to_vec());
    let cases = [
        (package("bar", ">=1.2.0"), by_bar(), "bar >=1.2.0", ""),
        (package("bar", ">=1.2.3"), None, "bar >=1.2.3", "bar v1.2.1 is installed"),
        (package("baz", ">=1.0.0"), None, "baz >=1.0.0", "baz is not installed"),
        (Constraint::Api(api("Bar")), by_bar(), "a provider of Bar (example.com/v1)", ""),
        (
            Constraint::Api(api("Served")),
            Some(Provider::Cluster),
            "a provider of Served (example.com/v1)",
            "",
        ),
        (
            Constraint::Api(api("New")),
            Some(Provider::Itself),
            "a provider of New (example.com/v1)",
            "",
        ),
        // The installed version of the package itself is about to go.
        (
            Constraint::Api(api("Foo")),
            None,
            "a provider of Foo (example.com/v1)",
            "nothing that is installed satisfies it",
        ),
        (
            any([package("baz", ">=1.0.0"), package("bar", "<2.0.0")]),
            by_bar(),
            "baz in `>=1.0.0` or bar in `<2.0.0`",
            "",
        ),
        (cel("true"), Some(Provider::Itself), "a bundle for which `true`", ""),
        (
            cel("false"),
            None,
            "a bundle for which `false`",
            "nothing that is installed satisfies it",
        ),
        (
            cel("broken"),
            None,
            "a bundle for which `broken`",
            "its expression is invalid: no such function",
        ),
    ];
    for (constraint, provider, text, missing) in cases {
        let of = Bundle { requires: vec![constraint.into()], ..bundle("2.0.0", &["New"]) };
        let [checked] = &installed.check("foo", &of, &facts, &Rules)[..] else {
            panic!("one requirement")
        };
        assert_eq!((checked.provider.clone(), checked.text.as_str()), (provider, text));
        assert_eq!(checked.missing, missing, "{text}");
    }
}

#[test]
fn what_a_change_would_bring_is_not_said_to_be_installed() {
    let (bar, newer) = (bundle("1.2.1", &["Bar"]), bundle("3.0.0", &[]));
    let foo = bundle("1.0.0", &["Foo"]);
    let installed = InstalledPackages::new(BTreeMap::from([("foo", &foo), ("bar", &bar)]));
    let facts = ClusterFacts { apis: Some(vec![api("Served")]), ..ClusterFacts::default() };
    let of = Bundle {
        requires: vec![package("bar", "<3.0.0").into(), Constraint::Api(api("Bar")).into()],
        ..bundle("2.0.0", &[])
    };
    let checked = installed.with("bar", &newer).check("foo", &of, &facts, &Rules);
    let missing: Vec<&str> = checked.iter().map(|it| it.missing.as_str()).collect();
    assert_eq!(
        missing,
        ["bar v3.0.0 would be installed", "nothing that is installed satisfies it"]
    );
}

#[test]
fn the_version_is_that_of_who_satisfies_it_or_of_the_package_that_is_there_instead() {
    let bar =
        Bundle { provides: vec![api("Bar")], ..Bundle::new("bar.v1.2.1", Version::new(1, 2, 1)) };
    let installed = InstalledPackages::new(BTreeMap::from([("bar", &bar)]));
    let facts = ClusterFacts { apis: Some(vec![api("Served")]), ..ClusterFacts::default() };
    let check = |constraint: Constraint, expected: Option<&str>| {
        let requires = vec![constraint.into()];
        let bundle = Bundle { requires, ..Bundle::new("foo.v1.0.0", Version::new(1, 0, 0)) };
        let checked = installed.check("foo", &bundle, &facts, &Rules);
        let versions: Vec<Option<String>> =
            checked.iter().map(|it| it.version.as_ref().map(ToString::to_string)).collect();
        assert_eq!(versions, [expected.map(str::to_owned)], "{checked:?}");
    };
    check(package("bar", ">=1.2.0"), Some("1.2.1"));
    check(package("bar", ">=2.0.0"), Some("1.2.1"));
    check(Constraint::Api(api("Bar")), Some("1.2.1"));
    check(package("baz", ">=1.0.0"), None);
    check(Constraint::Api(api("Served")), None);
    check(Constraint::Api(api("None")), None);
}

#[test]
fn who_may_be_concerned_is_found_by_what_requirements_name() {
    let bundle = |provides: &str, requires: Vec<Constraint>| Bundle {
        provides: vec![api(provides)],
        requires: requires.into_iter().map(Requirement::from).collect(),
        ..Bundle::new("it", Version::new(1, 0, 0))
    };
    let any =
        Constraint::Any(vec![package("db", "*").into(), Constraint::Api(api("Queue")).into()]);
    let not = Constraint::Not(vec![package("old", "*").into()]);
    let bundles = [
        ("app", bundle("App", vec![package("db", ">=1.0.0")])),
        ("caller", bundle("Caller", vec![Constraint::Api(api("Db"))])),
        ("either", bundle("Either", vec![any])),
        ("open", bundle("Open", vec![not])),
        ("other", bundle("Other", Vec::new())),
    ];
    let installed =
        InstalledPackages::new(bundles.iter().map(|(name, bundle)| (*name, bundle)).collect());
    let concerned = |name: &str, provides: &str| {
        let names = installed.concerned_by(name, &[api(provides)]);
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(concerned("db", "Db"), "app caller either open");
    assert_eq!(concerned("mq", "Queue"), "either open");
    assert_eq!(concerned("mq", "Nothing"), "open");
}

/// Counts how often expressions are compiled.
struct CountedRules(std::cell::Cell<usize>);

impl Expressions for CountedRules {
    fn evaluate(
        &self,
        rule: &str,
        candidates: &[&[Property]],
        cost_left: &mut u64,
    ) -> Result<Vec<bool>, String> {
        self.0.set(self.0.get() + 1);
        Rules.evaluate(rule, candidates, cost_left)
    }
}

#[test]
fn an_expression_is_compiled_once_for_all_that_is_installed() {
    let names: Vec<String> = (0..50).map(|at| format!("p{at:02}")).collect();
    let bundle = bundle("1.0.0", &[]);
    let installed =
        InstalledPackages::new(names.iter().map(|name| (name.as_str(), &bundle)).collect());
    let check = |rule: &str, expected: Option<Provider>| {
        let requires = vec![Constraint::Cel { rule: rule.to_owned() }.into()];
        let of = Bundle { requires, ..bundle.clone() };
        let rules = CountedRules(std::cell::Cell::new(0));
        let checked = installed.check("p07", &of, &ClusterFacts::default(), &rules);
        assert_eq!(checked[0].provider, expected, "{rule}");
        assert_eq!(rules.0.get(), 1, "{rule}");
    };
    check("true", Some(Provider::Itself));
    check("false", None);
    check("broken", None);
}

#[test]
fn the_authors_words_are_repeated() {
    let message = Some("install the bar first".to_owned());
    let requirement = Requirement { message, constraint: package("bar", ">=1.0.0") };
    let bundle = Bundle { requires: vec![requirement], ..Bundle::new("a", Version::new(1, 0, 0)) };
    let checked = InstalledPackages::new(BTreeMap::new()).check(
        "foo",
        &bundle,
        &ClusterFacts::default(),
        &Rules,
    );
    assert_eq!(checked[0].missing, "bar is not installed (install the bar first)");
    assert_eq!(checked[0].package.as_deref(), Some("bar"));
}

#[test]
fn a_bundle_that_does_not_fit_the_cluster_says_why() {
    let mut bundle = Bundle::new("foo.v1.0.0", Version::new(1, 0, 0));
    bundle.min_kube_version = Some("1.31.0".to_owned());
    let facts = |minor| ClusterFacts {
        kubernetes: Some(Version::new(1, minor, 0)),
        ..ClusterFacts::default()
    };
    assert_eq!(unfit_for("foo", &bundle, &facts(31)), None);
    assert_eq!(
        unfit_for("foo", &bundle, &facts(30)).as_deref(),
        Some("foo 1.0.0 requires Kubernetes 1.31.0 or later; the cluster runs 1.30.0")
    );
}
