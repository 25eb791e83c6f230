//! Whatever is written in a bundle, it ends in objects or in defects that name a file.

use plimsoll_bundle::{CertificateProvider, RenderOptions, load, read_config, render};
use plimsoll_content::bundle::BundleFile;
use serde_json::json;

use crate::golden::{bundle_files, committed};

/// What takes the place of a value.
const VALUES: &[&str] = &["-1", "99999999999999999999", "true", "[]", "{}", "[~]", "\"\"", "'*'"];

fn check(files: &[BundleFile]) {
    let defects = match load(files) {
        Ok(bundle) => {
            let config = json!({ "deploymentConfig": {
                "env": [{ "name": "A" }], "volumes": [{ "name": "v", "emptyDir": {} }],
                "volumeMounts": [{ "name": "v", "mountPath": "/v" }], "affinity": {},
                "tolerations": [{ "key": "k" }], "nodeSelector": {}, "annotations": { "a": "b" },
                "resources": {} } });
            let config = read_config(&bundle, "harbour", &config).unwrap_or_default();
            let options = RenderOptions {
                install_namespace: "harbour".to_owned(),
                target_namespaces: config.watch_namespace.into_iter().collect(),
                certificates: CertificateProvider::BuiltIn,
                deployment_config: config.deployment,
            };
            render(&bundle, &options).err().unwrap_or_default()
        }
        Err(defects) => {
            assert!(!defects.is_empty());
            defects
        }
    };
    for defect in defects {
        assert!(!defect.file.is_empty() && !defect.message.is_empty(), "{defect}");
    }
}

#[test]
fn every_line_may_be_missing_or_say_something_else() {
    for bundle in ["crane", "buoy", "pier"] {
        let files = bundle_files(&committed().join("bundles").join(bundle));
        check(&files);
        for (number, file) in files.iter().enumerate() {
            let text = String::from_utf8(file.bytes.clone()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for changed in 0..lines.len() {
                let key = lines[changed].split_once(": ").map_or(lines[changed], |(key, _)| key);
                let key = key.trim_end_matches(':');
                let replaced = VALUES.iter().map(|value| Some(format!("{key}: {value}")));
                for line in replaced.chain([None]) {
                    let mut lines: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
                    match line {
                        Some(line) => lines[changed] = line,
                        None => drop(lines.remove(changed)),
                    }
                    let mut files = files.clone();
                    files[number].bytes = lines.join("\n").into_bytes();
                    check(&files);
                }
            }
        }
    }
}
