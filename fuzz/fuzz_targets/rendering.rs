//! Whatever the files of a bundle directory: they become objects or defects, for every provider of
//! certificates and any configuration; and what an Operator installs is marked and where it belongs.
//!
//! The input is files separated by lines of `===` and a path; `config` is the configuration.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_bundle::{
    CertificateProvider, InstallRequest, RenderOptions, config_schema, load, object_key,
    read_config, render, revision_objects,
};
use plimsoll_content::bundle::BundleFile;
use plimsoll_content::yaml;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut files = Vec::new();
    let mut config = serde_json::Value::Null;
    for (path, text) in text.split("===").filter_map(|part| part.split_once('\n')) {
        match path.trim() {
            "config" => config = yaml::read(text).unwrap_or_default(),
            path => {
                files.push(BundleFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() });
            }
        }
    }
    let Ok(bundle) = load(&files) else { return };
    let _ = config_schema(&bundle, "harbour");
    let request = InstallRequest {
        operator: &bundle.package,
        namespace: "harbour",
        config: Some(&config),
        certificates: CertificateProvider::BuiltIn,
    };
    let revision = revision_objects(&bundle, &request).unwrap_or_default();
    let watched = config["watchNamespace"].as_str().unwrap_or_default();
    for object in &revision.objects {
        let key = object_key(object);
        assert_eq!(object["metadata"]["labels"]["olm.io/operator"], bundle.package.as_str(), "{key}");
        // The API server's own binding for those behind it is the only one elsewhere.
        let is_binding = key.namespace == "kube-system" && key.name.ends_with("-auth-reader");
        let own = ["", "harbour", watched];
        assert!(own.contains(&key.namespace.as_str()) || is_binding, "{key}");
    }
    let config = read_config(&bundle, "harbour", &config).unwrap_or_default();
    let targets: Vec<String> = config.watch_namespace.into_iter().collect();
    for certificates in CertificateProvider::ALL {
        for target_namespaces in [targets.clone(), vec!["a".to_owned(), "b".to_owned()]] {
            let options = RenderOptions {
                install_namespace: "harbour".to_owned(),
                target_namespaces,
                certificates,
                deployment_config: config.deployment.clone(),
            };
            let _ = render(&bundle, &options);
        }
    }
});
