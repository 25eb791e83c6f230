//! Sources in directories, and the directories that their payloads are written to.

use std::fs;
use std::path::Path;

use plimsoll_content::payload::SourceFile;

use super::{build, write_payload};
use crate::directory::read_directory;

const RELEASE: &str =
    "name: pier\nversion: 1.0.0\ncomponents:\n- name: lamp\n  namespace: default\n";
const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";

/// Writes files in an order; a name that ends with a slash is a directory.
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = directory.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).expect("a directory");
            continue;
        }
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
}

fn source(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), files);
    directory
}

/// What is wrong with a source.
fn check(files: &[(&str, &str)], expected: &str) {
    let directory = source(files);
    let error = build(directory.path(), None).expect_err("a problem").to_string();
    let path = directory.path().display().to_string();
    assert_eq!(error.replace(&path, "DIR"), expected);
}

#[test]
fn the_same_input_gives_the_same_bytes_in_whatever_order_files_were_created() {
    let one = |name: &str| CONFIG.replace("NAME", name);
    let (a, b, c) = (one("a"), one("b"), one("c"));
    // Two manifests of one object are applied in the order of their files.
    let again = format!("{a}data: {{again: 'true'}}\n");
    let files = [
        ("release.yaml", RELEASE),
        ("lamp/b/again.yaml", &again),
        ("lamp/a.yaml", &a),
        ("lamp/more/b.yml", &b),
        ("lamp/c.json", &c),
        ("lamp/README.md", "words"),
        ("lamp/.hidden.yaml", "a: ["),
    ];
    let mut reversed = files;
    reversed.reverse();
    let first = build(source(&files).path(), None).expect("a release");
    let second = build(source(&reversed).path(), None).expect("a release");
    assert_eq!(first, second);
    let manifests = first.files.iter().filter(|file| file.holds_manifests());
    assert_eq!(manifests.count(), 5, "{:#?}", first.files);
    let last = first.files.iter().find(|file| file.name.ends_with("a.configmap_2.yaml"));
    assert!(last.is_some_and(|file| file.bytes.starts_with(b"apiVersion: v1\ndata:\n  again")));
    let other = build(source(&files).path(), Some("2.0.0")).expect("a release");
    assert_ne!(first.files, other.files);
}

#[test]
fn what_is_wrong_with_folders_is_reported() {
    check(&[("a", "")], "`DIR` has no release.yaml: `plimsoll release new` makes a source");
    check(
        &[("release.yaml", RELEASE)],
        "the source has 1 problem\n  release.yaml:4: component \"lamp\" has no folder `lamp` beside release.yaml",
    );
    check(
        &[("release.yaml", RELEASE), ("lamp/", "")],
        "the source has 1 problem\n  release.yaml:4: component \"lamp\" has no manifests",
    );
    check(
        &[("release.yaml", RELEASE), ("lamp/Chart.yaml", ""), ("lamp/Kustomization", "")],
        "the source has 1 problem\n  release.yaml:4: component \"lamp\" has both Chart.yaml and Kustomization: keep one of them",
    );
    check(
        &[
            ("release.yaml", RELEASE),
            ("lamp/a.yaml", CONFIG),
            ("lamp/out/release-manifests/release-metadata", ""),
        ],
        "the source has 1 problem\n  lamp/out: a payload in the folder of a component: write it elsewhere",
    );
    let values = format!("{RELEASE}  values: {{a: 1}}\n");
    check(
        &[("release.yaml", &values), ("lamp/a.yaml", CONFIG)],
        "the source has 1 problem\n  release.yaml:4: component \"lamp\" has values and is no Helm chart: it has no Chart.yaml",
    );
}

#[test]
fn links_out_of_a_folder_are_not_followed() {
    let directory = source(&[("release.yaml", RELEASE), ("lamp/a.yaml", CONFIG), ("secret", "a")]);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(directory.path().join(target), directory.path().join(name))
            .expect("a link");
    };
    link("secret", "lamp/b.yaml");
    link("lamp", "lamp/c");
    let error = build(directory.path(), None).expect_err("links").to_string();
    assert!(error.contains("lamp/b.yaml: the symbolic link leads out of the folder"), "{error}");
    assert!(error.contains("lamp/c: symbolic links to directories are not followed"), "{error}");
}

#[test]
fn links_out_of_the_source_are_not_given_to_programs() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret"), "a").expect("a file");
    let secret = fs::canonicalize(outside.path().join("secret")).expect("it exists");
    for mark in ["lamp/Chart.yaml", "lamp/kustomization.yaml"] {
        let directory = source(&[("release.yaml", RELEASE), (mark, ""), ("common/b", "")]);
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, directory.path().join(name)).expect("a link");
        };
        // Links within the source are followed, also in a circle.
        link(Path::new("../common"), "lamp/common");
        link(Path::new("../lamp"), "common/back");
        link(&secret, "lamp/.secret");
        link(&secret, "common/secret");
        let error = build(directory.path(), None).expect_err("links").to_string();
        let leads = format!("the symbolic link leads out of the source, to {}", secret.display());
        let expected =
            format!("the source has 2 problems\n  common/secret: {leads}\n  lamp/.secret: {leads}");
        assert_eq!(error, expected, "{mark}");
    }
    let directory = source(&[("release.yaml", RELEASE)]);
    std::os::unix::fs::symlink(outside.path(), directory.path().join("lamp")).expect("a link");
    let error = build(directory.path(), None).expect_err("a link").to_string();
    assert!(
        error.ends_with("component \"lamp\" cannot be read: it is not in the source"),
        "{error}"
    );
    let directory = source(&[("release.yaml", RELEASE), ("own.yaml", "")]);
    std::os::unix::fs::symlink(&secret, directory.path().join("values.yaml")).expect("a link");
    let inside =
        |name: &str| super::program::inside(directory.path(), &directory.path().join(name));
    assert!(inside("own.yaml").is_ok());
    assert_eq!(inside("values.yaml").expect_err("outside").to_string(), "it is not in the source");
}

#[test]
fn an_earlier_build_is_replaced_as_a_whole_and_nothing_else_is() {
    let directory = source(&[("release.yaml", RELEASE), ("lamp/a.yaml", CONFIG)]);
    let out = directory.path().join("deep/out");
    let built = |version| build(directory.path(), Some(version)).expect("a release").files;
    let read = || -> Vec<SourceFile> { read_directory(&out).expect("a payload") };
    write_payload(&built("1.0.0"), &out).expect("it is absent");
    assert_eq!(read(), built("1.0.0"));
    fs::write(out.join("release-manifests/0000_99_old_a.yaml"), "").expect("a file");
    write_payload(&built("1.1.0"), &out).expect("it is a build");
    assert_eq!(read(), built("1.1.0"));
    let beside = fs::read_dir(directory.path().join("deep")).expect("a directory").count();
    assert_eq!(beside, 1, "nothing is left beside it");
    for name in ["manifests/mine.yaml", "release-manifests/mine.yaml", "notes.txt"] {
        fs::write(out.join(name), "mine").expect("a file");
        let refused = write_payload(&built("1.2.0"), &out).expect_err("it holds something else");
        let expected = "is not empty and not an earlier build";
        assert!(refused.to_string().contains(expected), "{name}: {refused}");
        fs::remove_file(out.join(name)).expect("it is there still");
    }
    assert_eq!(read(), built("1.1.0"));
    write_payload(&built("1.2.0"), &directory.path().join("lamp")).expect_err("it is a source");
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    write_payload(&built("1.2.0"), &empty).expect("it is empty");
}
