//! What is printed for Operators.

use std::fs;

use clap::Parser;
use serde_json::{Value, json};

use super::{ManifestsArguments, RbacArguments, manifests, rbac};

#[derive(Parser)]
enum Line {
    Rbac(RbacArguments),
    Manifests(ManifestsArguments),
}

/// The objects that a command prints; words below `examples/` are paths of the repository.
fn printed(line: &str) -> Result<Vec<Value>, anyhow::Error> {
    let root = std::path::absolute("../..").expect("a working directory");
    let words = line.split_whitespace().map(|word| match word.starts_with("examples/") {
        true => root.join(word).to_string_lossy().into_owned(),
        false => word.to_owned(),
    });
    let mut out = Vec::new();
    match Line::try_parse_from(std::iter::once("plimsoll".to_owned()).chain(words))? {
        Line::Rbac(arguments) => rbac(&arguments, &mut out)?,
        Line::Manifests(arguments) => manifests(&arguments, &mut out)?,
    };
    let out = String::from_utf8(out)?;
    let documents = plimsoll_content::yaml::parse(&out).into_iter();
    Ok(documents.map(|it| it.value.expect("it is YAML")).filter(|it| !it.is_null()).collect())
}

fn named(objects: &[Value]) -> Vec<String> {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let name = |it: &Value| format!("{} {}", text(&it["kind"]), text(&it["metadata"]["name"]));
    objects.iter().map(name).collect()
}

/// The names of roles that may be escalated.
fn escalated(objects: &[Value]) -> Vec<&str> {
    let rules = objects.iter().flat_map(|it| it["rules"].as_array().into_iter().flatten());
    let rules = rules.filter(|it| it["verbs"][0] == "escalate" || it["verbs"][1] == "escalate");
    let names = rules.flat_map(|it| it["resourceNames"].as_array().into_iter().flatten());
    names.filter_map(Value::as_str).collect()
}

const ROLES: [&str; 4] = [
    "ClusterRole plimsoll-operators",
    "ClusterRoleBinding plimsoll-operators",
    "Role plimsoll-operators",
    "RoleBinding plimsoll-operators",
];

#[test]
fn permissions_for_operators_are_roles_of_their_own() {
    let own = printed("rbac --operators").expect("nothing is wrong");
    assert_eq!(named(&own), ROLES);
    assert_eq!(escalated(&own), [""; 0]);
    let both =
        printed("rbac --operators --release examples/payloads/v1.0.0").expect("it is printed");
    let names = named(&both);
    assert_eq!(names[..2], ["ClusterRole plimsoll", "ClusterRoleBinding plimsoll"]);
    assert_eq!(names[4..], ROLES);
}

#[test]
fn a_package_needs_the_permissions_of_all_its_versions() {
    let bundle = printed("rbac --operators --bundle examples/catalog/lantern/1.0.0");
    let bundle = bundle.expect("it is printed");
    let package = printed("rbac --operators --catalog examples/catalog --package lantern");
    let package = package.expect("it is printed");
    let (one, all) = (escalated(&bundle), escalated(&package));
    assert!(one.iter().all(|name| name.starts_with("lantern.v1.0.0-")), "{one:?}");
    assert!(one.iter().all(|name| all.contains(name)), "{all:?}");
    assert_eq!(all.len(), 5 * one.len(), "{all:?}");
}

#[test]
fn the_controller_of_operators_runs_without_a_release() {
    let line = "manifests --operators --image p --catalog-image community=registry/catalog:v1";
    let objects = printed(line).expect("it is printed");
    let names = named(&objects);
    for kind in ["operators", "operatorrevisions", "catalogs"] {
        let definition = format!("CustomResourceDefinition {kind}.olm.io");
        assert!(names.contains(&definition), "{names:?}");
    }
    let deployment = objects.iter().find(|it| it["kind"] == "Deployment").expect("there is one");
    let pod = &deployment["spec"]["template"]["spec"];
    let arguments = &pod["containers"][0]["args"];
    assert_eq!((&arguments[0], &arguments[1]), (&"run".into(), &"--operators".into()));
    assert!(!arguments.to_string().contains("--release"), "{arguments}");
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/catalogs/community");
    assert_eq!(pod["volumes"][0]["image"]["reference"], "registry/catalog:v1");
}

#[test]
fn actions_are_admitted_before_they_are_served() {
    let objects = printed("manifests --operators --actions --action-webhook --image p");
    let objects = objects.expect("it is printed");
    let names = named(&objects);
    let at = |name: &str| names.iter().position(|it| it == name).expect(name);
    let policy = at("ValidatingAdmissionPolicy action-requester.plimsoll.io");
    assert!(policy < at("CustomResourceDefinition actions.olm.io"), "{names:?}");
    at("ClusterRole plimsoll-actions");
    at("Service plimsoll-action-webhook");
    let deployment = objects.iter().find(|it| it["kind"] == "Deployment").expect("there is one");
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    let service = "--action-webhook-service=plimsoll/plimsoll-action-webhook";
    for argument in ["--actions", "--action-webhook=0.0.0.0:9444", service] {
        assert!(arguments.contains(&format!("\"{argument}\"")), "{arguments}");
    }
}

#[test]
fn the_resolver_is_served_to_those_who_are_bound_to_its_role() {
    let objects = printed("manifests --operators --resolver --image p").expect("it is printed");
    let find = |kind: &str, name: &str| {
        let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
        objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let service = find("Service", "plimsoll-resolver");
    assert_eq!(service["metadata"]["labels"]["plimsoll.io/serves"], "resolver");
    find("ClusterRoleBinding", "plimsoll-resolver");
    let client = find("ClusterRole", "plimsoll-resolver-client");
    assert_eq!(client["rules"][0]["nonResourceURLs"], json!(["/v1/*"]));
    let is_bound = |it: &&Value| it["roleRef"]["name"] == "plimsoll-resolver-client";
    assert_eq!(objects.iter().find(is_bound), None);
    let container = &find("Deployment", "plimsoll")["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].to_string();
    for argument in ["--resolver=0.0.0.0:9445", "--resolver-service=plimsoll/plimsoll-resolver"] {
        assert!(arguments.contains(&format!("\"{argument}\"")), "{arguments}");
    }
}

#[test]
fn what_is_missing_or_has_no_use_is_refused() {
    for (line, says) in [
        ("rbac", "--release <DIR|REFERENCE>"),
        ("rbac --bundle examples/catalog/lantern/1.0.0 --release r", "--operators"),
        ("rbac --operators --catalog examples/catalog", "--package"),
        ("rbac --operators --catalog examples/catalog --package anchor", "no package `anchor`"),
        ("rbac --operators --bundle examples/faults", "is no bundle"),
        ("manifests --image p --release r", "--release-image"),
        ("manifests --image p --operators --release-image r", "--release <DIR|REFERENCE>"),
        ("manifests --image p --operators --release r", "add --release-image"),
        ("manifests --image p --operators --catalog-image A=x", "lower case"),
    ] {
        let error = printed(line).expect_err("it is refused");
        assert!(format!("{error:#}").contains(says), "{line}: {error:#}");
    }
}

#[test]
fn what_a_release_replaces_may_be_deleted() {
    let verbs = |annotation: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            fs::write(path, text).expect("it is written");
        };
        fs::create_dir(directory.path().join("manifests")).expect("it is made");
        write(
            "release-manifests/release-metadata",
            r#"{"kind": "cincinnati-metadata-v0", "version": "1.0.0", "previous": []}"#,
        );
        write(
            "release-manifests/image-references",
            r#"{"apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
                "metadata": {"name": "1.0.0"}, "spec": {"tags": []}}"#,
        );
        write(
            "release-manifests/0000_10_a_b.yaml",
            &format!(
                "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: a\n  \
                 annotations:\n    include.release.openshift.io/self-managed-high-availability: 'true'\n    \
                 {annotation}: 'true'\nvalue: 1\n"
            ),
        );
        let line = format!("rbac --release {}", directory.path().display());
        let printed = printed(&line).expect("it is printed");
        let mut rules = printed.iter().flat_map(|it| it["rules"].as_array().into_iter().flatten());
        let rule = rules.find(|it| it["resources"][0] == "priorityclasses").expect("there is one");
        rule["verbs"].clone()
    };
    let all = json!(["create", "delete", "get", "list", "patch", "watch"]);
    assert_eq!(verbs("plimsoll.io/replace"), all);
    assert_eq!(verbs("a"), json!(["create", "get", "list", "patch", "watch"]));
}
