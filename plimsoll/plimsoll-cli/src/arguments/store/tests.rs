//! What a name on the command line means, and what is said when it means nothing.

use std::fs;
use std::path::Path;

use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::SourceFile;

use super::{Location, StoreArguments, parse};
use plimsoll_simulation::sample;

fn write(files: &[SourceFile], directory: &Path) {
    for file in files {
        let path = directory.join(file.directory.name()).join(&file.name);
        fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory");
        fs::write(path, &file.bytes).expect("a file");
    }
}

/// A store `releases` with both versions of the sample, an empty one, and a file.
fn here() -> tempfile::TempDir {
    let here = tempfile::tempdir().expect("a directory");
    write(&sample::v1(), &here.path().join("releases/first"));
    write(&sample::v2(), &here.path().join("releases/second"));
    fs::create_dir(here.path().join("empty")).expect("a directory");
    fs::write(here.path().join("file"), "text").expect("a file");
    here
}

/// What a name means with a store; `~` is the directory of [`here`].
#[track_caller]
fn check(store: Option<&str>, name: &str, expected: &str) {
    let here = here();
    let root = here.path().to_str().expect("it is text");
    let full = |text: &str| text.replace('~', root);
    let payloads = store.map(|store| parse(&full(store)).expect("it names a store"));
    let reported = match (StoreArguments { payloads, ..StoreArguments::default() }).load(
        &full(name),
        DEFAULT_PROFILE,
        None,
    ) {
        Ok(payload) => {
            assert!(payload.image.contains("@sha256:"), "{}", payload.image);
            payload.release.version
        }
        Err(error) => format!("{error:#}"),
    };
    let reported = reported.replace(root, "~");
    assert!(reported.starts_with(expected), "{store:?} {name}:\n{reported}\nand not\n{expected}");
}

#[test]
fn a_host_makes_a_reference_and_everything_else_is_a_path() {
    let kind = |text: &str| match parse(text) {
        Ok(Location::Directory(_)) => "directory".to_owned(),
        Ok(Location::Oci(_)) => "layout".to_owned(),
        Ok(Location::Registry(reference)) => format!("image {reference}"),
        Err(problem) => problem,
    };
    for path in
        ["payloads", "payloads/v1.0.0", "./quay.io/a", "/quay.io/a", "releases-1.0/a", ".x/a"]
    {
        assert_eq!(kind(path), "directory", "{path}");
    }
    assert_eq!(kind("oci:quay.io/a"), "layout");
    for reference in
        ["quay.io/a/b", "quay.io/a/b:1.0.0", "localhost/a", "10.0.0.1/a", "pier:5000/a"]
    {
        assert_eq!(kind(reference), format!("image {reference}"));
    }
    assert_eq!(
        kind("quay.io/a/b:"),
        "\"quay.io/a/b:\" is not a reference to an image: invalid reference format"
    );
    // What exists is a path: tests run in the directory of their crate.
    assert!(Path::new("src/lib.rs").exists());
    assert_eq!(kind("src/lib.rs"), "directory");
}

#[test]
fn a_release_is_a_version_of_the_store_or_a_directory() {
    check(Some("~/releases"), "1.1.0", "1.1.0");
    check(Some("~/releases/first"), "1.0.0", "1.0.0");
    check(Some("~/releases"), "~/releases/first", "1.0.0");
    check(None, "~/releases/second", "1.1.0");
}

#[test]
fn without_a_name_the_error_lists_what_there_is() {
    let store = Some("~/releases");
    let nothing = "the store `~/releases` has no release \"1.2.0\", nor is there a directory of that \
                   name; the store has 1.0.0, 1.1.0";
    check(store, "1.2.0", nothing);
    check(Some("~/empty"), "1.1.0", "the store `~/empty` has no release \"1.1.0\", nor is there a");
    check(Some("~/no"), "1.1.0", "--payloads: the store `~/no` cannot be read: cannot read ~/no:");
    check(Some("oci:~/no"), "1.1.0", "--payloads: the store `oci:~/no` cannot be read: ");
    check(None, "1.1.0", "release 1.1.0 has no store to load from: name one with --payloads DIR");
    check(None, "~/no", "\"~/no\" is neither a version nor a directory; ");
    check(
        None,
        "~/empty",
        "failed to load release `~/empty`: 2 files of the payload cannot be read",
    );
    check(None, "~/file", "failed to load release `~/file`: 1 file of the payload cannot be read");
    let inside = "failed to load release `~/releases`; it is a store of releases: use --payloads \
                  ~/releases and name one of 1.0.0, 1.1.0: ";
    check(None, "~/releases", inside);
}
