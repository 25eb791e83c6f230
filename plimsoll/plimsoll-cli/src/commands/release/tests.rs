//! What the commands print, and how they end.

mod authoring;

use std::fs;
use std::path::Path;

use clap::Parser;
use serde_json::Value;

use super::{ReleaseCommand, run};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: ReleaseCommand,
}

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations:\n    include.release.openshift.io/self-managed-high-availability: \"true\"\n";

fn payload(directory: &Path) {
    let files = [
        ("manifests/0000_00_own_a.yaml", NAMESPACE.to_owned() + "    capability.openshift.io/name: Console\n"),
        ("release-manifests/0000_10_other_a.yaml", NAMESPACE.to_owned() + "    release.openshift.io/feature-set: OKD\n    include.release.openshift.io/other: \"true\"\n"),
        ("release-manifests/release-metadata", r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0"}"#.to_owned()),
        ("release-manifests/image-references", r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0"}}"#.to_owned()),
    ];
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Runs a command on the payload; its output, or its error, and whether it succeeded.
fn output(arguments: &str, prepare: impl Fn(&Path)) -> (String, bool) {
    let directory = tempfile::tempdir().unwrap();
    payload(directory.path());
    prepare(directory.path());
    run_command(arguments, directory.path())
}

/// Runs a command, in which DIR is a directory.
fn run_command(arguments: &str, directory: &Path) -> (String, bool) {
    let path = directory.to_str().unwrap();
    let arguments = arguments.replace("DIR", path);
    let command = Arguments::parse_from(arguments.split(' ')).command;
    let mut out = Vec::new();
    match run(command, &mut out) {
        Ok(code) => {
            let success = format!("{code:?}") == format!("{:?}", std::process::ExitCode::SUCCESS);
            (String::from_utf8(out).unwrap().replace(path, "DIR"), success)
        }
        Err(error) => (format!("{error:#}").replace(path, "DIR"), false),
    }
}

#[test]
fn info_tells_each_document_and_why() {
    let (text, success) = output("release info DIR", |_| {});
    assert!(success);
    for line in [
        "Version:       1.0.0",
        "Documents:     2: 1 included, 1 excluded",
        "KIND        DOCUMENTS   INCLUDED",
        "Namespace   2           1",
        "00          1           1",
        "Console      1           1",
        "OKD           2           2",
        "0000_00_own_a.yaml     0          Namespace a   yes",
        "0000_10_other_a.yaml   0          Namespace a   no         \"Default\" is required, and release.openshift.io/feature-set=OKD",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.lines().any(|it| words(it) == words(line)), "{line}\n{text}");
    }
}

#[test]
fn info_as_json_has_the_documented_fields() {
    let (text, success) = output("release info DIR --feature-set OKD -o json", |_| {});
    assert!(success);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["version"], "1.0.0");
    assert_eq!((&report["documents"], &report["included"]), (&2.into(), &2.into()));
    assert_eq!(report["excluded"], 0);
    let (text, _) = output("release info DIR --profile other -o json", |_| {});
    let report: Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "file": "0000_00_own_a.yaml", "document": 0, "group": "", "version": "v1",
        "kind": "Namespace", "namespace": "", "name": "a", "included": false,
        "reason": "include.release.openshift.io/other unset",
    });
    assert_eq!(report["manifests"][0], expected);
}

#[test]
fn info_of_a_defective_payload_fails_with_every_defect() {
    let (text, success) = output("release info DIR", |directory| {
        fs::write(directory.join("manifests/0000_05_a_b.yaml"), "a: [").unwrap();
        fs::remove_file(directory.join("release-manifests/release-metadata")).unwrap();
    });
    assert!(!success);
    assert_eq!(
        text,
        "failed to load release `DIR`: the payload has 2 defects\n  \
         release-manifests/release-metadata: the payload has no such file\n  \
         manifests/0000_05_a_b.yaml:1 (document 0): invalid YAML: unclosed bracket '[', column 4"
    );
}

#[test]
fn lint_fails_on_errors_only() {
    let (text, success) = output("release lint DIR", |_| {});
    assert!(success, "{text}");
    assert_eq!(
        text,
        "release-manifests/0000_10_other_a.yaml:4 (document 0): warning [duplicate-object]: namespace/a is in 0000_00_own_a.yaml, too: both are applied, in order\n0 errors, 1 warning\n"
    );
    let (text, success) = output("release lint DIR -o json", |directory| {
        fs::write(directory.join("manifests/0000_05_a_b.yaml"), "a: [").unwrap();
        fs::remove_dir_all(directory.join("release-manifests")).unwrap();
    });
    assert!(!success);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["errors"], &report["warnings"]), (&2.into(), &0.into()));
    assert_eq!(report["findings"][0]["line"], 1);
    assert_eq!(report["findings"][0]["code"], "load");
    let (text, success) = output("release lint DIR -o sarif", |_| {});
    assert!(success, "{text}");
    assert!(text.contains("/release-manifests/0000_10_other_a.yaml\""), "{text}");
}

#[test]
fn a_plan_hides_values_of_secrets() {
    let secret = |value: &str| {
        let secret = NAMESPACE.replace("Namespace", "Secret");
        format!("{secret}type: Opaque\nstringData: {{pin: {value}}}\ndata: {{key: {value}}}\n")
    };
    let two = |directory: &Path| {
        let next = directory.join("next");
        payload(&next);
        for (directory, value) in [(directory, "bGVmdA=="), (&next, "cmlnaHQ=")] {
            let file = directory.join("release-manifests/0000_20_keys_a.yaml");
            fs::write(file, secret(value)).unwrap();
        }
    };
    for format in ["text", "json", "markdown"] {
        let line = format!("release plan --from DIR --to DIR/next --details -o {format}");
        let (text, success) = output(&line, two);
        assert!(success, "{text}");
        assert!(text.contains("data.key") && text.contains("*** (after)"), "{text}");
        assert!(!text.contains("bGVmdA") && !text.contains("cmlnaHQ"), "{text}");
    }
}
