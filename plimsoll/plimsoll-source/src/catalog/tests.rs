//! Catalogs from files, and from the cache.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{Bytes, Cache, CatalogError, documents, is_bundles, load, open, rebuild};
use plimsoll_content::catalog::{CatalogIndex, FORMAT_VERSION, IndexError};

const CATALOG: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
"#;

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("a directory");
    fs::write(&path, text).expect("a file");
    // Long ago, so that its times can be trusted.
    let file = fs::File::options().write(true).open(&path).expect("it was just written");
    file.set_modified(UNIX_EPOCH).expect("the times of our own file");
}

fn names(index: &CatalogIndex<Bytes>) -> Vec<String> {
    index.package_names().map(str::to_owned).collect()
}

fn opened(path: &Path, cache: &Cache) -> (CatalogIndex<Bytes>, bool) {
    let mut was_read = false;
    let index = open(path, Some(cache), &mut |_| was_read = true).expect("it can be opened");
    (index, was_read)
}

#[test]
fn every_file_of_a_directory_counts_but_those_that_are_left_out() {
    let root = tempfile::tempdir().expect("a directory");
    let other = CATALOG.replace("\"a", "\"b");
    write(root.path(), "a/catalog.json", CATALOG);
    write(root.path(), "b/strange name", &other);
    write(root.path(), "c/notes.txt", "- not: a catalog\n");
    write(root.path(), ".indexignore", "*.txt\n");
    write(root.path(), "d/.indexignore", "x/**\n!x/keep\n");
    write(root.path(), "d/x/notes", "- neither\n");
    write(root.path(), ".hidden.json", &CATALOG.replace("\"a", "\"h"));
    let loaded = load(root.path(), &mut |_| {}).expect("there are files");
    assert_eq!(loaded.defects, []);
    assert_eq!(loaded.open().package_names().collect::<Vec<_>>(), ["a", "b", "h"]);
}

#[test]
fn what_a_later_pattern_brings_back_is_found_in_every_directory() {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), ".indexignore", "**/*\n!*.yaml\n");
    write(root.path(), "a/deep/catalog.yaml", CATALOG);
    write(root.path(), "a/deep/notes.txt", "- not: a catalog\n");
    // What is left out does not count, not even a link.
    std::os::unix::fs::symlink("/", root.path().join("a/everything")).expect("a link");
    let loaded = load(root.path(), &mut |_| {}).expect("there are files");
    assert_eq!(loaded.defects, []);
    assert_eq!(loaded.open().package_names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_catalog_that_did_not_change_is_not_read_again() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = Cache::new(&root.path().join("cache"));
    let path = root.path().join("c.json");
    write(root.path(), "c.json", CATALOG);
    let (first, was_read) = opened(&path, &cache);
    assert!(was_read && names(&first) == ["a"]);
    let (second, was_read) = opened(&path, &cache);
    assert!(!was_read && names(&second) == ["a"]);
    assert!(second.package("a").expect("the block is whole").is_some());
    // The same content elsewhere is known, too.
    write(root.path(), "copy/c.json", CATALOG);
    assert!(!opened(&root.path().join("copy/c.json"), &cache).1);
    // Another content is not.
    write(root.path(), "c.json", &CATALOG.replace("\"a", "\"b"));
    let (third, was_read) = opened(&path, &cache);
    assert!(was_read && names(&third) == ["b"]);
}

#[test]
fn a_damaged_index_is_built_anew() {
    let root = tempfile::tempdir().expect("a directory");
    let directory = root.path().join("cache");
    let cache = Cache::new(&directory);
    let path = root.path().join("c.json");
    write(root.path(), "c.json", CATALOG);
    drop(opened(&path, &cache));
    let index = fs::read_dir(directory.join(format!("v{FORMAT_VERSION}")))
        .expect("the cache has a directory for its version")
        .map(|entry| entry.expect("its entries can be read").path())
        .find(|path| path.extension().is_some_and(|it| it == "index"))
        .expect("there is an index");
    let good = fs::read(&index).expect("the index");
    // In the header: noticed when it is opened.
    let mut bad = good.clone();
    bad[20] ^= 1;
    fs::write(&index, &bad).expect("our own file");
    assert_eq!(names(&opened(&path, &cache).0), ["a"]);
    assert_eq!(fs::read(&index).expect("it was written again"), good);
    // In a package: noticed when that is asked for.
    let at = good.windows(4).position(|it| it == b"a.v1").expect("the block of the package");
    let mut bad = good.clone();
    bad[at] ^= 1;
    fs::write(&index, &bad).expect("our own file");
    let (damaged, was_read) = opened(&path, &cache);
    assert!(!was_read);
    assert!(matches!(damaged.package("a"), Err(IndexError::Damaged(_))));
    let rebuilt = rebuild(&path, Some(&cache), &mut |_| {}).expect("it can be read");
    assert!(rebuilt.package("a").expect("it is whole again").is_some());
    assert_eq!(fs::read(&index).expect("it was written again"), good);
    // Of another version, or cut off.
    for bytes in [b"plimcatl\x09".to_vec(), good[..40].to_vec(), Vec::new()] {
        fs::write(&index, bytes).expect("our own file");
        assert_eq!(names(&opened(&path, &cache).0), ["a"]);
    }
}

#[test]
fn what_is_no_catalog_is_refused_and_what_leads_out_of_one_is_not_read() {
    let root = tempfile::tempdir().expect("a directory");
    let missing = load(&root.path().join("missing"), &mut |_| {});
    assert!(matches!(missing, Err(CatalogError::Unreadable { .. })));
    let empty = root.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    assert!(matches!(load(&empty, &mut |_| {}), Err(CatalogError::Empty(_))));
    write(root.path(), "secret.json", CATALOG);
    write(root.path(), "catalog/b.json", &CATALOG.replace("\"a", "\"b"));
    std::os::unix::fs::symlink("../secret.json", root.path().join("catalog/link.json"))
        .expect("a link");
    let loaded = load(&root.path().join("catalog"), &mut |_| {}).expect("there are files");
    assert_eq!(loaded.defects.len(), 1, "{:?}", loaded.defects);
    assert!(loaded.defects[0].message.contains("leads out"), "{}", loaded.defects[0]);
    assert_eq!(loaded.open().package_names().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn the_bundle_of_the_repository_becomes_a_catalog() {
    let root = std::path::absolute("../../examples/bundles").expect("a working directory");
    assert!(is_bundles(&root).expect("there are files"));
    let (documents, defects) = documents(&root).expect("there are files");
    assert_eq!(defects, []);
    let schemas: Vec<&str> = documents.iter().filter_map(|it| it["schema"].as_str()).collect();
    assert_eq!(schemas, ["olm.package", "olm.channel", "olm.channel", "olm.bundle"]);
    let loaded = load(&root, &mut |_| {}).expect("there are files");
    assert_eq!(loaded.defects, []);
    // Written out, it says the same.
    let copy = tempfile::tempdir().expect("a directory");
    let text: String = documents.iter().map(|it| format!("{it}\n")).collect();
    write(copy.path(), "catalog.json", &text);
    let again = load(copy.path(), &mut |_| {}).expect("there are files");
    assert_eq!(again.index, loaded.index);
}

#[test]
fn a_link_out_of_a_catalog_is_a_problem_and_not_followed() {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), "a/catalog.json", CATALOG);
    std::os::unix::fs::symlink("/", root.path().join("a/everything")).expect("a link");
    let loaded = load(root.path(), &mut |_| {}).expect("there are files");
    let problems: Vec<String> = loaded.defects.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["a/everything: error [syntax]: the symbolic link leads out of the catalog"]
    );
    assert_eq!(loaded.open().package_names().collect::<Vec<_>>(), ["a"]);
}
