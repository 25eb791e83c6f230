//! The commands on the bundle of the repository.

use clap::Parser;
use serde_json::Value;

use super::{BundleCommand, run};

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: BundleCommand,
}

/// Returns what a command prints about `examples/bundles/lantern/2.2.0`.
fn printed(command: &str, words: &[&str]) -> Result<String, anyhow::Error> {
    printed_of("bundles/lantern/2.2.0", command, words)
}

/// Returns what a command prints about a bundle below `examples`.
fn printed_of(path: &str, command: &str, words: &[&str]) -> Result<String, anyhow::Error> {
    let root = std::path::absolute("../../examples").expect("a working directory").join(path);
    let bundle = root.to_string_lossy();
    let words = ["bundle", command, &*bundle].into_iter().chain(words.iter().copied());
    let line = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    run(line.command, &mut out)?;
    Ok(String::from_utf8(out).expect("the output is text"))
}

#[test]
fn a_bundle_is_rendered_in_the_order_of_application() {
    let text = printed("render", &[]).unwrap();
    let expected = "customresourcedefinition.apiextensions.k8s.io/beacons.lantern.example.com\n\
                    deployment.apps/lantern -n lantern\n";
    assert_eq!(text, expected);
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.yaml");
    std::fs::write(&config, "deploymentConfig: {nodeSelector: {disk: ssd}}").expect("a file");
    let config = config.to_string_lossy();
    let words = ["-n", "harbour", "--config", &config, "-o", "json"];
    let objects: Vec<Value> = serde_json::from_str(&printed("render", &words).unwrap()).unwrap();
    assert_eq!(objects[1]["metadata"]["namespace"], "harbour");
    assert_eq!(objects[1]["spec"]["template"]["spec"]["nodeSelector"]["disk"], "ssd");
}

#[test]
fn what_keeps_a_bundle_from_being_rendered_is_listed_with_its_place() {
    let error = printed("render", &["--watch-namespace", "a", "--watch-namespace", "b"]);
    let text = error.unwrap_err().to_string();
    let wanted = "\n  manifests/lantern.clusterserviceversion.yaml:16: error [target-namespaces]: \
                  package lantern: it cannot watch several namespaces: a, b; it supports \
                  AllNamespaces, OwnNamespace";
    assert!(text.ends_with(wanted), "{text}");
}

#[test]
fn the_bundles_of_the_example_catalog_are_in_order() {
    let rendered = |version: &str| {
        let path = format!("catalog/{version}");
        assert_eq!(printed_of(&path, "validate", &[]).unwrap(), "0 errors, 0 warnings\n", "{path}");
        printed_of(&path, "render", &[]).unwrap_or_else(|error| panic!("{path}: {error:#}"))
    };
    let others = ["lantern/1.1.1", "lantern/2.1.0-rc.1", "ledger/1.4.0", "ledger/1.5.0"];
    for version in others.iter().chain(&["tide/0.3.0", "tide/0.4.0"]) {
        rendered(version);
    }
    assert!(
        rendered("ledger/2.0.0").contains("clusterrole.rbac.authorization.k8s.io/databases-viewer")
    );
    let palette = "configmap/lantern-palette -n lantern";
    assert!(rendered("lantern/1.0.0").contains(palette));
    assert!(!rendered("lantern/1.1.0").contains(palette));
    assert!(rendered("lantern/2.0.0").contains("validatingwebhookconfiguration"));
}

#[test]
fn a_bundle_is_valid_only_if_it_can_be_rendered() {
    let root = std::path::absolute("../../examples/bundles/lantern/2.2.0").expect("a directory");
    let copy = tempfile::tempdir().expect("a directory");
    for part in ["manifests", "metadata"] {
        std::fs::create_dir(copy.path().join(part)).expect("a directory");
        for entry in std::fs::read_dir(root.join(part)).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_owned();
            std::fs::copy(&path, copy.path().join(part).join(name)).expect("a file");
        }
    }
    let path = copy.path().to_string_lossy().into_owned();
    assert_eq!(printed_of(&path, "validate", &[]).unwrap(), "0 errors, 0 warnings\n");
    for name in ["a", "b"] {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{from: {name}}}\n"
        );
        std::fs::write(copy.path().join(format!("manifests/{name}.yaml")), text).expect("a file");
    }
    let refused = printed_of(&path, "render", &[]).unwrap_err().to_string();
    assert!(refused.contains("is there twice"), "{refused}");
    let text = printed_of(&path, "validate", &[]).unwrap();
    assert!(text.contains("is there twice") && text.contains("1 error"), "{text}");
}
