//! Files of a catalog, and what is reported of them.

use std::fs;

use super::*;

const CATALOG: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
"#;
/// A value that must not leave its file.
const SECRET: &str = "eyJhbGciOiJSUzI1NiJ9";

/// Refreshes the catalog in a directory after a file of it has got a text.
fn refreshed(
    root: &tempfile::TempDir,
    text: &str,
    before: Option<&ReadCatalog>,
) -> Result<RefreshedCatalog, String> {
    fs::write(root.path().join("catalog"), text).expect("a file");
    let path = root.path().to_string_lossy().into_owned();
    let source = CatalogSource { path, ..CatalogSource::default() };
    let roots = CatalogRoots::new([root.path().to_owned()]);
    refresh(&source, before, &BTreeSet::new(), &CatalogReading { roots, cache: None })
}

#[test]
fn defects_do_not_quote_the_content_of_files() {
    for text in [
        SECRET.to_owned(),
        format!(
            "{{\"schema\": \"olm.package\", \"name\": \"b\", \"{SECRET}\": 1, \"{SECRET}\": 2,}}"
        ),
        format!("{SECRET}: 1\n{SECRET}: 2\n"),
        format!("schema: [{SECRET}]\n"),
        format!("a: *{SECRET}\n"),
    ] {
        let root = tempfile::tempdir().expect("a directory");
        // Alone, it is no catalog; beside one, it is a defect of it.
        let Err(error) = refreshed(&root, &text, None) else { panic!("{text:?} is no catalog") };
        assert!(!error.contains(SECRET), "{error}");
        fs::write(root.path().join("good"), CATALOG).expect("a file");
        let content = refreshed(&root, &text, None).expect("there is a package").content;
        let defects = content.and_then(|it| it.defects).expect("there are defects");
        assert!(!format!("{defects:?}").contains(SECRET), "{defects:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_reported_with_the_reason() {
    let root = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).expect("a link");
    let content = refreshed(&root, CATALOG, None).expect("there is a package").content;
    let defects = content.and_then(|it| it.defects).expect("there is a defect");
    assert_eq!(defects.first[0].message, "the symbolic link leads out of the catalog");
}

#[test]
fn a_source_that_lost_its_content_is_not_read() {
    let root = tempfile::tempdir().expect("a directory");
    let read = refreshed(&root, CATALOG, None).expect("it is a catalog").read;
    let error = |text: &str, before: Option<&ReadCatalog>| {
        refreshed(&root, text, before).map(|_| ()).err().unwrap_or_default()
    };
    let more = " any more, and had 1";
    let syntax = "text that is neither JSON nor YAML, or not of the form that its schema has";
    for (text, expected) in [
        ("{}", format!("it has no valid package{more}; catalog:1: a document without a schema")),
        ("\0 garbage", format!("it has no valid package{more}; catalog:1: {syntax}")),
        ("", format!("it has no valid package{more}")),
        ("{\"schema\":\"other\"}", format!("it has no valid package{more}")),
    ] {
        assert_eq!(error(text, read.as_ref()), expected, "{text:?}");
    }
    // One that never had any content may be empty, but not garbage.
    assert_eq!(error("", None), "");
    assert_eq!(
        error("{}", None),
        "it has no valid package; catalog:1: a document without a schema"
    );
    // Some defects are no loss.
    let partly = CATALOG.replace("1.0.0", "x");
    assert_eq!(error(&format!("{partly}{}", CATALOG.replace("\"a", "\"b")), read.as_ref()), "");
}

#[test]
fn sources_are_in_the_directories_of_the_controller() {
    let (root, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (root, other) = (root.expect("a directory"), other.expect("a directory"));
    fs::write(other.path().join("catalog"), SECRET).expect("a file");
    let path = other.path().join("catalog").to_string_lossy().into_owned();
    let source = CatalogSource { path, ..CatalogSource::default() };
    let roots = CatalogRoots::new([root.path().to_owned()]);
    let reading = CatalogReading { roots, cache: None };
    let refused = refresh(&source, None, &BTreeSet::new(), &reading).map(|_| ());
    let refused = refused.expect_err("it is outside");
    assert!(refused.contains("is in none of the directories that catalogs are read from"));
}

#[test]
fn errors_are_named_before_advice() {
    let advice = |number| DefectCode::BundleAdvice.diagnostic(format!("a{number}"), "advice");
    let mut defects: Vec<Diagnostic> = (0..DEFECTS_NAMED).map(advice).collect();
    defects.push(DefectCode::Syntax.diagnostic("z", "an error"));
    let summary = summary(&defects).expect("there are defects");
    assert_eq!((summary.errors, summary.warnings), (1, DEFECTS_NAMED));
    assert_eq!(summary.first.len(), DEFECTS_NAMED);
    assert_eq!(summary.first[0].file, "z");
}

#[test]
fn offered_bundles_have_their_properties_if_expressions_see_them() {
    let root = tempfile::tempdir().expect("a directory");
    let ruled = CATALOG.replace("\"a", "\"b").replace(
        "\"properties\":[",
        "\"properties\":[{\"type\":\"olm.constraint\",\"value\":{\"cel\":{\"rule\":\"true\"}}},",
    );
    let text = format!("{CATALOG}{ruled}");
    let read = refreshed(&root, &text, None).expect("it is a catalog").read.expect("it is new");
    let read = BTreeMap::from([("main".to_owned(), read)]);
    for (package, is_installed, expected) in [("a", false, 0), ("a", true, 1), ("b", false, 2)] {
        let names = BTreeSet::from([package.to_owned()]);
        let parts = parts([("main", 0)].into_iter(), &read, &names, is_installed);
        let properties = &parts[0].packages[0].bundles[0].properties;
        assert_eq!(properties.len(), expected, "{package} {is_installed}");
    }
}

#[test]
fn a_package_is_changed_if_only_its_properties_are() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().to_string_lossy().into_owned();
    let source = CatalogSource { path, ..CatalogSource::default() };
    let roots = CatalogRoots::new([root.path().to_owned()]);
    let reading = CatalogReading { roots, cache: None };
    let names = BTreeSet::from(["a".to_owned()]);
    let other = CATALOG.replace("\"a", "\"b");
    let property = "\"properties\":[{\"type\":\"example.colour\",\"value\":\"red\"},";
    let coloured = CATALOG.replace("\"properties\":[", property);
    let mut before: Option<ReadCatalog> = None;
    for (text, is_unchanged) in
        [(CATALOG.to_owned(), false), (format!("{CATALOG}{other}"), true), (coloured, false)]
    {
        fs::write(root.path().join("catalog"), &text).expect("a file");
        let refreshed = refresh(&source, before.as_ref(), &names, &reading);
        let RefreshedCatalog { read, content } = refreshed.expect("it is a catalog");
        let unchanged = content.expect("it has changed").unchanged;
        assert_eq!(unchanged.contains("a"), is_unchanged, "{text}");
        before = read;
    }
}

#[test]
fn what_was_read_last_is_restored_after_a_restart() {
    let (root, kept) = (tempfile::tempdir(), tempfile::tempdir());
    let (root, kept) = (root.expect("a directory"), kept.expect("a directory"));
    let path = root.path().to_string_lossy().into_owned();
    let source = CatalogSource { path, ..CatalogSource::default() };
    let roots = CatalogRoots::new([root.path().to_owned()]);
    let reading = CatalogReading { roots, cache: Some(Cache::new(kept.path())) };
    fs::write(root.path().join("catalog"), CATALOG).expect("a file");
    let first = refresh(&source, None, &BTreeSet::new(), &reading).expect("it is a catalog");
    let content = first.content.expect("it is new");
    fs::write(root.path().join("catalog"), "{}").expect("a file");
    let restored = restore(&source, &content.digest, &reading).expect("the cache has it");
    assert_eq!(restored.content, content);
    let lost = refresh(&source, Some(&restored.read), &BTreeSet::new(), &reading).map(|_| ());
    let lost = lost.expect_err("it is garbage");
    assert!(lost.starts_with("it has no valid package any more, and had 1"), "{lost}");
    // The same content again is no other one.
    fs::write(root.path().join("catalog"), CATALOG).expect("a file");
    let again = refresh(&source, Some(&restored.read), &BTreeSet::new(), &reading);
    assert!(again.expect("it is a catalog").content.is_none());
    let unknown = format!("sha256:{}", "0".repeat(64));
    assert!(restore(&source, &unknown, &reading).is_none());
    let elsewhere = CatalogReading { roots: CatalogRoots::default(), ..reading };
    assert!(restore(&source, &content.digest, &elsewhere).is_none(), "it may not be read");
}
