//! Loading whole payloads.

use std::fs;
use std::path::Path;

use plimsoll_content::payload::TemplateContext;

use super::load;

const METADATA: &str = r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0"}"#;
const IMAGES: &str =
    r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0"}}"#;

/// A payload of two good files, prepared further, and what loading it says.
fn check(prepare: impl Fn(&Path), expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let files = [
        ("release-metadata", METADATA),
        ("image-references", IMAGES),
        ("0000_10_a_b.yaml", "kind: A\nmetadata: {name: b}\n"),
        ("0000_10_a_a.yaml", "kind: A\nmetadata: {name: a}\n"),
    ];
    fs::create_dir(root.join("manifests")).unwrap();
    fs::create_dir(root.join("release-manifests")).unwrap();
    for (name, text) in files {
        fs::write(root.join("release-manifests").join(name), text).unwrap();
    }
    prepare(root);
    let text = match load(root, &TemplateContext::default()) {
        Ok(payload) => {
            payload.manifests.iter().map(|it| it.key.name.as_str()).collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(text, expected);
}

#[test]
fn documents_come_in_order_whichever_thread_reads_them() {
    check(|_| {}, "a b");
    check(
        |root| {
            for number in 0..200 {
                let text = format!("kind: A\nmetadata: {{name: m{number:03}}}\n");
                fs::write(root.join(format!("manifests/0000_{number:03}_a_b.yaml")), text).unwrap();
            }
        },
        &((0..200).map(|number| format!("m{number:03} ")).collect::<String>() + "a b"),
    );
}

#[test]
fn defects_of_reading_and_of_content_come_together() {
    check(
        |root| {
            let folder = root.join("release-manifests");
            fs::write(folder.join("0000_20_a_b.yaml"), "kind: [").unwrap();
            fs::remove_file(folder.join("release-metadata")).unwrap();
            std::os::unix::fs::symlink("nowhere", folder.join("release-metadata")).unwrap();
        },
        "1 file of the payload cannot be read\n  release-manifests/release-metadata: the symbolic link leads nowhere\n\
         the payload has 1 defect\n  release-manifests/0000_20_a_b.yaml:1 (document 0): invalid YAML: unclosed bracket '[', column 7",
    );
}

#[test]
fn a_missing_directory_is_one_defect_and_not_three() {
    check(
        |root| fs::remove_dir_all(root.join("release-manifests")).unwrap(),
        "1 file of the payload cannot be read\n  release-manifests: no such directory: a payload has the directories manifests and release-manifests",
    );
}
