//! Tests of the differences that lock files report.

use plimsoll_resolve::Property;

use super::*;
use crate::tests::{FIXTURE, catalogs, inputs, operators};

fn lock(text: &str, digest: &str) -> OperatorLock {
    let of = catalogs(FIXTURE);
    let operators = operators(&of, text);
    let content = |name: &String| {
        let image = format!("example.com/{name}");
        (name.clone(), LockedContent { image, digest: digest.to_owned() })
    };
    OperatorLock::new(&operators, &operators.keys().map(content).collect(), &of)
}

/// Locks what is installed of foo, which catalogs describe.
fn lock_foo(
    operators: &BTreeMap<String, RequestedOperator>,
    catalogs: &[CatalogPart],
    content: LockedContent,
) -> OperatorLock {
    OperatorLock::new(operators, &BTreeMap::from([("foo".to_owned(), content)]), catalogs)
}

fn content(image: &str, digest: &str) -> LockedContent {
    LockedContent { image: image.to_owned(), digest: digest.to_owned() }
}

/// Gives the bundles of catalogs a property.
fn with_property(mut catalogs: Vec<CatalogPart>, value: &str) -> Vec<CatalogPart> {
    let packages = catalogs.iter_mut().flat_map(|it| &mut it.packages);
    for bundle in packages.flat_map(|it| &mut it.bundles) {
        bundle.properties = vec![property(value)];
    }
    catalogs
}

fn property(value: &str) -> Property {
    Property { kind: "example.com/color".to_owned(), value: value.into() }
}

#[test]
fn a_lock_names_what_is_otherwise() {
    let before = lock("foo: at 1.2.3\nbar: at 1.2.5\nbaz: version 9", "");
    assert_eq!(OperatorLock::read(&before.text()), Ok(before.clone()));
    assert_eq!(before.differences(&before), Vec::<String>::new());
    let after = lock("foo: at 1.2.5\nbaz: at 1.2.4", "");
    let expected = [
        "bar v1.2.5 is locked, and would not be installed",
        "baz v1.2.4 is not locked",
        "foo is locked at v1.2.3, and would be v1.2.5",
    ];
    assert_eq!(before.differences(&after), expected);
    let republished = lock("foo: at 1.2.3\nbar: at 1.2.5; from other/stable", "sha256:0");
    let other = "bar is locked from catalog main, and would be from other";
    // What was not locked of foo is not compared.
    assert_eq!(before.differences(&republished), [other]);
    let before = lock("foo: at 1.2.3\nbar: at 1.2.5", "sha256:1");
    let expected = [other, "foo v1.2.3 is another bundle than the locked one"];
    assert_eq!(before.differences(&republished), expected);
    let expected = "the content of foo v1.2.3 is not locked: its image example.com/foo has no digest, and \
                    its tag may get other content";
    assert_eq!(lock("foo: at 1.2.3", "").unlocked(), [expected]);
    assert_eq!(republished.unlocked(), Vec::<String>::new());
}

#[test]
fn content_without_a_digest_is_neither_locked_nor_compared() {
    let catalogs = catalogs(FIXTURE);
    let operators = operators(&catalogs, "foo: at 1.2.3");
    let of = |digest: &str| lock_foo(&operators, &catalogs, content("", digest));
    let (known, unknown) = (of("sha256:0"), of(""));
    let expected = "the content of foo v1.2.3 is not locked: what is read here of catalog main has neither its \
                    image nor its files";
    assert_eq!(unknown.unlocked(), [expected]);
    // Where the content is known, so may be the image that has it.
    let image = lock("foo: at 1.2.3", "sha256:0");
    for other in [&known, &image] {
        assert_eq!(other.differences(&unknown), Vec::<String>::new());
        assert_eq!(unknown.differences(other), Vec::<String>::new());
        assert_eq!(unknown.uncompared(other), Vec::<String>::new());
    }
    let expected = "the content of foo v1.2.3 is locked, and its digest is not known here: name a copy of the \
                    catalog with `--catalog main=FILE`";
    assert_eq!(known.uncompared(&unknown), [expected]);
    assert_eq!(image.uncompared(&unknown), [expected]);
    for other in [of("sha256:0"), of("sha256:1"), lock("bar: at 1.2.5", "")] {
        assert_eq!(known.uncompared(&other), Vec::<String>::new());
    }
    assert_eq!(unknown.uncompared(&unknown), Vec::<String>::new());
}

/// Returns foo 1.2.3 as an empty directory comes to it, and as a cluster describes that it has it.
fn planned_and_installed(of: &[CatalogPart]) -> [BTreeMap<String, RequestedOperator>; 2] {
    let planned = operators(of, "foo: at 1.2.3");
    let mut installed = planned.clone();
    let operator = installed.get_mut("foo").and_then(|it| it.installed.as_mut()).unwrap();
    operator.bundle.properties = vec![property("red")];
    operator.bundle.min_kube_version = None;
    operator.reference.digest = "sha256:0".to_owned();
    [planned, installed]
}

#[test]
fn bundles_are_locked_as_their_catalogs_describe_them() {
    let line = "1.2.3 <1.2.2, provides Foo, requires bar >=1.2.3";
    let of = catalogs(&FIXTURE.replace(line, &format!("{line}, kubernetes 1.20.0")));
    let [planned, installed] = planned_and_installed(&of);
    let files = || content("", "sha256:0");
    let locked = lock_foo(&planned, &of, files());
    assert_eq!(lock_foo(&installed, &of, files()), locked);
    // The catalog says something else of it now.
    let changed = catalogs(&FIXTURE.replace(line, &format!("{line}, kubernetes 1.21.0")));
    let expected = ["foo v1.2.3 is another bundle than the locked one"];
    for now in [&planned, &installed] {
        let described = lock_foo(now, &changed, files());
        assert_eq!(locked.differences(&described), expected);
        assert_eq!(described.differences(&locked), expected);
        let filled = lock_foo(now, &of, content("", "sha256:1"));
        assert_eq!(locked.differences(&filled), expected);
    }
}

#[test]
fn what_no_catalog_describes_is_compared_by_the_rest() {
    let of = catalogs(FIXTURE);
    let [planned, installed] = planned_and_installed(&of);
    let kept = |digest: &str| lock_foo(&installed, &[], content("", digest));
    for of_catalog in [content("", "sha256:0"), content("example.com/foo", "sha256:0")] {
        let locked = lock_foo(&planned, &of, of_catalog);
        for (one, other) in [(&locked, &kept("sha256:0")), (&kept("sha256:0"), &locked)] {
            assert_eq!(one.differences(other), Vec::<String>::new());
            assert_eq!(one.uncompared(other), Vec::<String>::new());
        }
        let expected = ["foo v1.2.3 is another bundle than the locked one"];
        assert_eq!(locked.differences(&kept("sha256:1")), expected);
        assert_eq!(locked.uncompared(&kept("")).len(), 1);
    }
    let text = kept("sha256:0").text();
    assert!(!text.contains("descriptionDigest"), "{text}");
    assert_eq!(OperatorLock::read(&text), Ok(kept("sha256:0")));
}

#[test]
fn properties_are_compared_where_both_are_known() {
    let [planned, _] = planned_and_installed(&catalogs(FIXTURE));
    let of = |catalogs: Vec<CatalogPart>| lock_foo(&planned, &catalogs, content("", "sha256:0"));
    let unknown = of(catalogs(FIXTURE));
    let [red, blue] = ["red", "blue"].map(|it| of(with_property(catalogs(FIXTURE), it)));
    assert!(!unknown.text().contains("propertiesDigest"), "{}", unknown.text());
    for (one, other) in [(&unknown, &red), (&red, &unknown), (&red, &red)] {
        assert_eq!(one.differences(other), Vec::<String>::new());
    }
    let expected = ["foo v1.2.3 is another bundle than the locked one"];
    assert_eq!(red.differences(&blue), expected);
}

#[test]
fn what_is_locked_counts_as_installed_while_a_catalog_has_it() {
    let of = catalogs(FIXTURE);
    let before = lock("foo: at 1.2.3", "");
    let installed = before.installed("foo", &of).unwrap();
    assert_eq!(installed.bundle.version.to_string(), "1.2.3");
    assert!(before.installed("bar", &of).is_none());
    assert!(before.installed("foo", &[]).is_none());
}

#[test]
fn what_is_locked_leads_to_what_is_requested_or_does_not_count() {
    let of = catalogs(FIXTURE);
    let before = lock("foo: at 1.2.3\nbar: at 1.2.5\nbaz: at 1.5.6", "");
    let check = |requested: &str, expected: &str| {
        let operators = operators(&of, requested);
        let inputs = inputs(&operators);
        let filled = before.filled(inputs, &of);
        let version = |(name, it): (&String, &RequestedOperator)| {
            let version = it.installed.as_ref().map(|it| it.bundle.version.to_string());
            format!("{name} {}", version.unwrap_or_default())
        };
        let found: Vec<String> = filled.operators.iter().map(version).collect();
        assert_eq!(found.join(", "), expected, "{requested}");
        let is_locked = |name: &String| expected.contains(&format!("{name} 1"));
        assert!(filled.locked.iter().all(is_locked), "{:?}", filled.locked);
    };
    check("foo: version ~1.2\nbar: version 1.2.7", "bar 1.2.5, foo 1.2.3");
    // Nothing leads to a lower version, or past a requirement that is not satisfied.
    check("foo: version 1.2.2\nbar: version 1.2.1", "bar , foo ");
    check("foo: version 1.2.9\nbar: version 1.2.5", "bar 1.2.5, foo ");
    check("baz: version 1.2.4; paused", "baz 1.5.6");
    check("baz: version ~1.5; repository other", "baz ");
}

#[test]
fn another_text_is_refused() {
    let refused = |text: &str| OperatorLock::read(text).unwrap_err();
    assert!(refused("foo").starts_with("it is not what `operator lock` writes: "));
    assert!(refused(r#"{"format": 2, "operators": {}, "x": 1}"#).contains("unknown field `x`"));
    let older = refused(r#"{"format": 1, "operators": {"foo": {"digest": "sha256:0"}}}"#);
    assert_eq!(older, "its format is 1, not 2: write it anew with `operator lock`");
}
