//! Texts and what becomes of them.

mod hostile;

use std::borrow::Cow;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

use plimsoll_resolve::{Catalog as _, CatalogSource, PackageRequest, Query, collect_problem};

use super::{CatalogIndex, CatalogLoader, DefectCode, IndexStorage, IndexedCatalog, LoadedCatalog};
use crate::diagnostic::Diagnostic;
use crate::expressions::Cel;

const PACKAGE: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}"#;
const CHANNEL: &str =
    r#"{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"}]}"#;
const BUNDLE: &str = r#"{"schema":"olm.bundle","package":"a","name":"a.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}"#;

fn load(text: &str) -> LoadedCatalog {
    let mut loader = CatalogLoader::new();
    loader.read_file("c", text.as_bytes());
    loader.finish()
}

fn reported(defects: &[Diagnostic]) -> String {
    defects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is said about a text, without the name of its file.
fn check(text: &str, expected: &str) {
    assert_eq!(reported(&load(text).defects).replace("c:", ""), expected, "{text}");
}

/// A bundle `a.v1` with further properties.
fn bundle_with(properties: &str) -> String {
    let with = BUNDLE.replace("\"properties\":[", &format!("\"properties\":[{properties},"));
    format!("{PACKAGE}\n{CHANNEL}\n{with}\n")
}

/// What the resolver sees of the one bundle of a text.
fn offered(text: &str) -> plimsoll_resolve::Bundle {
    let index = load(text).open();
    let offer = IndexedCatalog::new(&index);
    let package = offer.package("a").expect("there is a package a");
    package.bundles.into_iter().next().expect("there is a bundle")
}

#[test]
fn json_and_yaml_in_pieces_of_any_size_say_the_same() {
    let json = format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n");
    let yaml = "---\nschema: olm.package\nname: a\ndefaultChannel: s\n---\nschema: olm.channel\n\
                package: a\nname: s\nentries:\n- name: a.v1\n---\nschema: olm.bundle\npackage: a\n\
                name: a.v1\nimage: i\nproperties:\n- type: olm.package\n  value:\n    \
                packageName: a\n    version: 1.0.0\n";
    let whole = load(&json);
    assert_eq!(reported(&whole.defects), "");
    for text in [json.as_str(), yaml] {
        for size in [1, 2, 7, 64, 4096] {
            let mut loader = CatalogLoader::new();
            let mut file = loader.file("c");
            text.as_bytes().chunks(size).for_each(|piece| file.push(piece));
            file.finish();
            let loaded = loader.finish();
            assert_eq!(reported(&loaded.defects), "", "in pieces of {size}: {text}");
            assert_eq!(loaded.index, whole.index, "in pieces of {size}: {text}");
        }
    }
}

#[test]
fn the_order_of_documents_and_files_means_nothing() {
    let other = BUNDLE.replace("a.v1", "a.v2").replace("1.0.0", "2.0.0");
    let channel = CHANNEL
        .replace(r#"[{"name":"a.v1"}]"#, r#"[{"name":"a.v1"},{"name":"a.v2","replaces":"a.v1"}]"#);
    let documents = [PACKAGE, &channel, BUNDLE, &other];
    let index = |order: [usize; 4]| {
        let mut loader = CatalogLoader::new();
        for at in order {
            loader.read_file(&format!("{at}.json"), documents[at].as_bytes());
        }
        loader.finish().index
    };
    let first = index([0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        assert_eq!(index(order), first, "{order:?}");
    }
}

#[test]
fn keys_are_found_in_any_case_and_unknown_schemas_are_left_alone() {
    check(
        r#"{"Schema":"olm.package","NAME":"a","defaultchannel":"s"}
{"schema":"olm.channel","Package":"a","name":"s","Entries":[{"Name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","Image":"i","properties":[{"Type":"olm.package","VALUE":{"packagename":"a","version":"1.0.0"}}]}
{"schema":"example.com/other","package":"a","entries":7}"#,
        "",
    );
}

#[test]
fn a_document_that_cannot_be_read_does_not_hide_the_next() {
    let good = format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n");
    check(
        &format!("{{\"schema\": nonsense}}\n{good}"),
        "1: error [syntax]: not JSON: expected ident",
    );
    check(
        &format!("{{\"schema\":\"olm.bundle\",\n\"name\": \"x\n{good}"),
        "2: error [syntax]: not JSON: control character (\\u0000-\\u001F) found while parsing a string",
    );
    check(
        &format!("{good}{{\"schema\":\"olm.bundle\",\"package\":\"a\""),
        "4: error [syntax]: not JSON: EOF while parsing an object",
    );
    check(&format!("{good}{{\"name\":\"b\"}}"), "4: error [no-schema]: no field `schema`");
    check(
        &format!("{good}{{\"schema\":\"olm.bundle\",\"package\":\"a\"}}"),
        "4: error [no-name]: package a: olm.bundle without a name",
    );
    check(
        &format!("{good}{{\"schema\":\"olm.package\",\"schema\":\"olm.package\",\"name\":\"a\"}}"),
        "4: error [syntax]: the key `schema` occurs twice",
    );
    check(
        "schema: olm.package\n---\na: [\n---\nschema: olm.channel\n",
        "1: error [no-name]: olm.package without the field `name`\n\
         3: error [syntax]: invalid YAML: unclosed bracket '['\n\
         5: error [no-name]: olm.channel without the field `package`",
    );
}

#[test]
fn a_defective_package_is_invalid_and_hides_no_other() {
    let other = format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n").replace("\"a", "\"b");
    let cases = [
        (format!("{CHANNEL}\n{BUNDLE}\n"), DefectCode::NoPackage),
        (format!("{PACKAGE}\n{BUNDLE}\n"), DefectCode::NoChannels),
        (format!("{PACKAGE}\n{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n"), DefectCode::Duplicate),
        (
            format!("{}\n{CHANNEL}\n{BUNDLE}\n", PACKAGE.replace("\"s\"", "\"t\"")),
            DefectCode::DefaultChannel,
        ),
        (
            format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n").replace("\"a\"", "\"A_\""),
            DefectCode::PackageName,
        ),
    ];
    for (text, code) in cases {
        let loaded = load(&format!("{text}{other}"));
        assert!(loaded.defects.iter().any(|it| it.code == code), "{}", reported(&loaded.defects));
        let index = loaded.open();
        assert_eq!(index.counts().invalid, 1, "{text}");
        let offer = IndexedCatalog::new(&index);
        let b = offer.package("b").expect("there is a package b");
        assert_eq!(b.bundles[0].defects, Vec::<String>::new(), "{text}");
        let a = offer.package("a").or_else(|| offer.package("A_")).expect("it is there, too");
        assert!(!a.bundles[0].defects.is_empty(), "{text}");
    }
}

#[test]
fn bundles_channels_and_deprecations_are_checked() {
    let with = |line: &str| format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n{line}\n");
    check(
        &with(&BUNDLE.replace("a.v1", "a.v2")),
        "1: warning [no-channel]: package a: bundle a.v2 is in no channel\n\
         4: error [same-version]: package a: bundles a.v1 and a.v2 are both 1.0.0",
    );
    check(&with(BUNDLE), "4: error [duplicate]: package a: there is more than one bundle a.v1");
    check(&with(CHANNEL), "4: error [duplicate]: package a: there is more than one channel s");
    check(
        &with(&CHANNEL.replace("\"s\"", "\"t\"").replace("a.v1", "a.v9")),
        "4: error [no-bundle]: package a: channel t: there is no bundle a.v9",
    );
    check(
        &with(&CHANNEL.replace("\"s\"", "\"t\"").replace("}]", ",\"skipRange\":\"<v1.0.0\"}]")),
        "4: error [skip-range]: package a: channel t, entry a.v1: skipRange: `<v1.0.0` is not a \
         range: `<v` is not a comparison",
    );
    check(
        &with(
            r#"{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.bundle","name":"x"},"message":"m"}]}"#,
        ),
        "4: error [deprecation]: package a: deprecates olm.bundle x, which does not exist",
    );
    check(
        &with("").replace("1.0.0", "v1"),
        "3: error [version]: package a: bundle a.v1: `v1` is not of the form MAJOR.MINOR.PATCH",
    );
}

#[test]
fn entries_without_an_update_are_reported_and_stay_what_they_are() {
    let entries = r#"[{"name":"a.v1"},{"name":"a.v2","replaces":"a.v1"},{"name":"a.v3","replaces":"a.v2","skips":["a.v2"]}]"#;
    let channel = CHANNEL.replace(r#"[{"name":"a.v1"}]"#, entries);
    let other = |version: usize| {
        let bundle = BUNDLE.replace("a.v1", &format!("a.v{version}"));
        bundle.replace("1.0.0", &format!("{version}.0.0"))
    };
    let text = format!("{PACKAGE}\n{channel}\n{BUNDLE}\n{}\n{}\n", other(2), other(3));
    check(
        &text,
        "2: warning [no-update]: package a: channel s: no update leads on from a.v1: what replaces or \
         skips them is skipped itself; a later entry must skip them as well, in `skips` or `skipRange`",
    );
    check(&text.replace(r#"["a.v2"]"#, r#"["a.v1","a.v2"]"#), "");
}

#[test]
fn malformed_properties_set_their_bundle_aside() {
    let cases = [
        (r#"{"type":"olm.gvk","value":7}"#, DefectCode::Property),
        (r#"{"type":"olm.gvk","value":{"group":"g"}}"#, DefectCode::Property),
        (
            r#"{"value":{"group":"g","version":"v","kind":"K"},"type":"olm.gvk.required"}"#,
            DefectCode::Syntax,
        ),
        (
            r#"{"type":"olm.package.required","value":{"packageName":"b","versionRange":"^1.0.0"}}"#,
            DefectCode::Dependency,
        ),
        (r#"{"type":"olm.constraint","value":{}}"#, DefectCode::Dependency),
        (r#"{"type":"olm.constraint","value":{"none":{}}}"#, DefectCode::Dependency),
        (r#"{"type":"olm.maxOpenShiftVersion","value":"4"}"#, DefectCode::Property),
        (r#"{"type":"olm.maxOpenShiftVersion","value":4.9}"#, DefectCode::Property),
        (
            r#"{"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}"#,
            DefectCode::Property,
        ),
    ];
    for (property, code) in cases {
        let text = bundle_with(property);
        let bundle = offered(&text);
        if code == DefectCode::Syntax {
            // The value before the type is as good as after it.
            assert_eq!(bundle.requires.len(), 1, "{property}");
            continue;
        }
        assert!(!bundle.defects.is_empty(), "{property}");
        let defects = load(&text).defects;
        assert!(
            defects.iter().any(|it| it.code == code && it.line == Some(3)),
            "{}",
            reported(&defects)
        );
    }
}

#[test]
fn a_number_where_a_version_is_meant_is_an_error_that_says_to_quote_it() {
    const QUOTE: &str =
        "is the number 4.2, not text: write it in quotes, since 4.20 is the same number as 4.2";
    // In YAML, as people write it.
    let with = |property: &str| {
        format!(
            "schema: olm.package\nname: a\ndefaultChannel: s\n---\nschema: olm.channel\npackage: a\n\
             name: s\nentries:\n- name: a.v1\n---\nschema: olm.bundle\npackage: a\nname: a.v1\nimage: i\n\
             properties:\n- {{type: olm.package, value: {{packageName: a, version: 1.0.0}}}}\n\
             - {property}\n"
        )
    };
    let quoted = with("{type: olm.maxOpenShiftVersion, value: '4.20'}");
    assert_eq!(reported(&load(&quoted).defects), "");
    assert_eq!(offered(&quoted).max_openshift_version.as_deref(), Some("4.20"));
    for property in [
        "{type: olm.maxOpenShiftVersion, value: 4.20}",
        "{type: olm.package.required, value: {packageName: b, versionRange: 4.20}}",
        "{type: olm.constraint, value: {package: {packageName: b, versionRange: 4.20}}}",
        "{type: olm.gvk, value: {group: g, kind: K, version: 4.20}}",
        "{type: olm.csv.metadata, value: {minKubeVersion: 4.20}}",
    ] {
        let text = with(property);
        let said = reported(&load(&text).defects);
        assert!(said.contains(": error [") && said.contains(QUOTE), "{property}: {said}");
        assert!(!offered(&text).defects.is_empty(), "{property}");
    }
    let identity = with("{type: x, value: 1}").replace("version: 1.0.0", "version: 4.20");
    let said = reported(&load(&identity).defects);
    assert!(said.contains(QUOTE), "{said}");
    assert!(!said.contains("no property olm.package"), "{said}");
    let incomplete = with("{type: x, value: 1}").replace(", version: 1.0.0", "");
    let said = reported(&load(&incomplete).defects);
    assert!(said.contains("property olm.package: no packageName or version"), "{said}");
    assert!(!said.contains("no property olm.package"), "{said}");
}

#[test]
fn the_resolver_sees_what_the_properties_say() {
    let text = bundle_with(
        r#"{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},
{"type":"olm.gvk.required","value":{"group":"h","version":"v1","kind":"L"}},
{"type":"olm.package.required","value":{"packageName":"b","versionRange":"\u003e=1.0.0"}},
{"type":"olm.label.required","value":{"label":"x"}},
{"type":"olm.constraint","value":{"failureMessage":"m","any":{"constraints":[{"cel":{"rule":"true"}},{"gvk":{"group":"g","version":"v","kind":"K"}}]}}},
{"type":"olm.maxOpenShiftVersion","value":"4.9"},
{"type":"example.com/x","value":{"y":[1]}},
{"type":"olm.csv.metadata","value":{"installModes":[{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace","supported":false}],"minKubeVersion":"1.30.0","labels":{"operatorframework.io/arch.arm64":"supported"}}}"#,
    );
    let bundle = offered(&text);
    assert_eq!(bundle.defects, Vec::<String>::new());
    assert_eq!(bundle.provides[0].to_string(), "K (g/v1)");
    assert_eq!(bundle.requires.len(), 4, "{:?}", bundle.requires);
    assert_eq!(bundle.install_modes, Some(vec![plimsoll_resolve::InstallMode::AllNamespaces]));
    assert_eq!(bundle.min_kube_version.as_deref(), Some("1.30.0"));
    assert_eq!(bundle.max_openshift_version.as_deref(), Some("4.9"));
    assert_eq!(bundle.architectures, ["arm64"]);
    let index = load(&text).open();
    let offer = IndexedCatalog::new(&index);
    assert_eq!(offer.providers(&bundle.provides[0]), ["a"]);
    let properties = offer.properties("a", "a.v1").expect("there is such a bundle");
    let kinds: Vec<&str> = properties.iter().map(|it| it.kind.as_str()).collect();
    assert!(kinds.contains(&"example.com/x") && kinds.contains(&"olm.constraint"), "{kinds:?}");
    // What was read through the index is what the properties say themselves.
    let direct = plimsoll_resolve::bundle_from_properties("a.v1", "a", &properties);
    assert_eq!(direct.requires.len(), bundle.requires.len());
    assert_eq!(direct.provides, bundle.provides);
}

/// An index in memory that counts how often it is read.
struct CountedStorage {
    bytes: Vec<u8>,
    reads: Rc<Cell<usize>>,
}

impl IndexStorage for CountedStorage {
    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>> {
        self.reads.set(self.reads.get() + 1);
        self.bytes.read(offset, length)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

#[test]
fn expressions_read_a_package_as_often_whatever_number_of_bundles_it_has() {
    let rule = r#"{"type":"olm.constraint","value":{"cel":{"rule":"properties.exists(p, p.type == 'x')"}}},{"type":"x","value":1}"#;
    let reads_of = |bundles: usize| {
        let mut text = format!("{PACKAGE}\n");
        let entries: Vec<String> = (0..bundles)
            .map(|at| match at {
                0 => r#"{"name":"a.v0"}"#.to_owned(),
                _ => format!(r#"{{"name":"a.v{at}","replaces":"a.v{}"}}"#, at - 1),
            })
            .collect();
        let channel = CHANNEL.replace(r#"{"name":"a.v1"}"#, &entries.join(","));
        text.push_str(&format!("{channel}\n"));
        for at in 0..bundles {
            let with = BUNDLE.replace("\"properties\":[", &format!("\"properties\":[{rule},"));
            let bundle = with.replace("a.v1", &format!("a.v{at}"));
            text.push_str(&format!("{}\n", bundle.replace("1.0.0", &format!("1.0.{at}"))));
        }
        // The rule may hold for a bundle of any package.
        let both = format!("{text}{}", text.replace("\"a", "\"b"));
        let reads = Rc::new(Cell::new(0));
        let storage = CountedStorage { bytes: load(&both).index, reads: Rc::clone(&reads) };
        let index = CatalogIndex::open(storage).expect("what was just written can be opened");
        reads.set(0);
        let catalog = IndexedCatalog::new(&index);
        let source = CatalogSource { name: "c", namespace: "", weight: 0, catalog: &catalog };
        let request = PackageRequest { package: "a".to_owned(), ..PackageRequest::default() };
        let query = Query { requests: vec![request], ..Query::default() };
        let problem = collect_problem(&[source], query, &Cel);
        let packages = &problem.catalogs[0].packages;
        assert_eq!(packages.len(), 2);
        let mut bundles = packages.iter().flat_map(|package| &package.bundles);
        assert!(bundles.all(|bundle| bundle.properties.len() == 3), "{problem:?}");
        reads.get()
    };
    assert_eq!(reads_of(2), reads_of(40));
}

#[test]
fn a_query_reads_no_package_but_its_own() {
    let text = format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n");
    let both = format!("{text}{}", text.replace("\"a", "\"b"));
    let whole = load(&both).index;
    let at = whole.windows(4).position(|it| it == b"b.v1").expect("b's block names its bundle");
    let mut damaged = whole;
    damaged[at] ^= 1;
    let index = CatalogIndex::open(damaged).expect("its directories are whole");
    assert!(index.package("a").expect("a is whole").is_some());
    assert!(index.package("b").is_err());
    let offer = IndexedCatalog::new(&index);
    assert!(offer.package("b").is_none());
    assert!(offer.failure().is_some());
}
