//! What the commands print that make releases and compare them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::run_command;

const SOURCE: [(&str, &str); 4] = [
    (
        "release.yaml",
        "name: pier\nversion: 1.0.0\nimages:\n- {name: lamp, from: r.org/lamp, image: 'r.org/lamp@sha256:01'}\n\
         components:\n- name: base\n- name: lamp\n  namespace: pier\n",
    ),
    (
        "base/base.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: pier}\n---\napiVersion: v1\nkind: Secret\n\
         metadata: {name: key, namespace: pier}\nstringData: {pin: left}\n",
    ),
    ("base/old.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: pier}\n"),
    (
        "lamp/lamp.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: lamp}\nspec:\n  containers: [{name: lamp, image: 'r.org/lamp:1'}]\n",
    ),
];

/// Runs a command on two sources, DIR/a and DIR/b, where b differs from a in every way.
fn output(arguments: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (name, text) in SOURCE {
        write(&path.join("a").join(name), text);
        let text = text.replace("1.0.0", "1.1.0").replace("pin: left", "pin: right");
        let text = text.replace("- name: lamp\n", "- name: lamp\n  runLevel: 30\n");
        write(&path.join("b").join(name), &text.replace("sha256:01", "sha256:02"));
    }
    fs::rename(path.join("b/base/old.yaml"), path.join("b/base/new.yaml")).unwrap();
    let new = fs::read_to_string(path.join("b/base/new.yaml")).unwrap();
    write(&path.join("b/base/new.yaml"), &new.replace("name: old", "name: new"));
    let (text, success) = run_command(arguments, path);
    assert!(success, "{text}");
    text
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_tree_has_levels_components_and_files_with_their_sources() {
    let expected = "\
1.0.0
level 00
  pier
    releasecapabilities.plimsoll.io/pier  0000_00_pier_00_capabilities.releasecapabilities.yaml
level 10
  base
    namespace/pier         0000_10_base_00_pier.namespace.yaml < base/base.yaml:1
    secret/key -n pier     0000_10_base_30_key.secret.yaml < base/base.yaml:5
    configmap/old -n pier  0000_10_base_30_old.configmap.yaml < base/old.yaml:1
level 20
  lamp
    pod/lamp -n pier  0000_20_lamp_60_lamp.pod.yaml < lamp/lamp.yaml:1
";
    assert_eq!(output("release tree DIR/a"), expected);
    assert_eq!(output("release build DIR/a --dry-run"), expected);
    let report: Value = serde_json::from_str(&output("release tree DIR/a -o json")).unwrap();
    let lamp = &report["runLevels"][2]["components"][0];
    assert_eq!((&report["runLevels"][2]["runLevel"], &lamp["name"]), (&20.into(), &"lamp".into()));
    assert_eq!(lamp["manifests"][0]["source"], "lamp/lamp.yaml:1");
}

#[test]
fn profiles_and_feature_sets_are_shown_where_something_depends_on_them() {
    let text = output("release info DIR/a");
    let lower = text.to_lowercase();
    assert!(text.contains("KIND"), "{text}");
    assert!(!lower.contains("feature set") && !lower.contains("profile"), "{text}");
    let text = output("release info DIR/a --profile edge -o json");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["included"], &report["release"]["anyProfile"]), (&4.into(), &true.into()));
}

#[test]
fn a_plan_names_the_conditions_that_it_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in SOURCE {
        let text = text.replace(
            "kind: Pod\nmetadata: {name: lamp}",
            "kind: Pod\nmetadata: {name: lamp, annotations: {plimsoll.io/ready-when: conditions}}",
        );
        write(&directory.path().join("a").join(name), &text);
    }
    let (text, success) = run_command("release plan --to DIR/a", directory.path());
    let expected = "1 created, then waits for pod/lamp -n pier (conditions)\n";
    assert!(success && text.contains(expected), "{text}");
}

#[test]
fn a_tree_says_what_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in SOURCE {
        let text = text.replace(
            "kind: Pod\nmetadata: {name: lamp}",
            "kind: Pod\nmetadata: {name: lamp, annotations: {release.openshift.io/delete: 'true'}}",
        );
        write(&directory.path().join("a").join(name), &text);
    }
    let (text, success) = run_command("release tree DIR/a", directory.path());
    assert!(success && text.contains("    pod/lamp -n pier (deleted)  0000_20"), "{text}");
}

#[test]
fn a_diff_has_what_was_added_removed_changed_and_moved() {
    assert_eq!(
        output("release diff DIR/a DIR/b"),
        "- configmap/old -n pier (0000_10_base_30_old.configmap.yaml)\n\
         + configmap/new -n pier (0000_10_base_30_new.configmap.yaml)\n\
         ~ pod/lamp -n pier (0000_20_lamp_60_lamp.pod.yaml -> 0000_30_lamp_60_lamp.pod.yaml)\n\
         ~ secret/key -n pier (0000_10_base_30_key.secret.yaml)\n\
         1.0.0 -> 1.1.0: 1 added, 1 removed, 2 changed, 2 unchanged\n"
    );
    assert_eq!(
        output("release diff DIR/a DIR/b -o name"),
        "configmap/old -n pier\nconfigmap/new -n pier\npod/lamp -n pier\nsecret/key -n pier\n"
    );
    assert_eq!(output("release diff DIR/a DIR/a -o diff"), "");
    let report: Value = serde_json::from_str(&output("release diff DIR/a DIR/b -o json")).unwrap();
    assert_eq!((&report["from"], &report["unchanged"]), (&"1.0.0".into(), &2.into()));
    assert_eq!(report["added"][0]["name"], "new");
    assert_eq!(report["added"][0]["before"], Value::Null);
}

#[test]
fn a_namespace_that_a_kind_does_not_have_is_no_difference() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in SOURCE {
        write(&directory.path().join("a").join(name), text);
        let text = text.replace("1.0.0", "1.1.0");
        let text = text.replace("metadata: {name: pier}", "metadata: {name: pier, namespace: a}");
        write(&directory.path().join("b").join(name), &text);
    }
    for (from, to) in [("a", "b"), ("b", "a")] {
        let command = format!("release diff DIR/{from} DIR/{to}");
        let (text, success) = run_command(&command, directory.path());
        assert!(success, "{text}");
        assert!(text.ends_with(": 0 added, 0 removed, 0 changed, 5 unchanged\n"), "{text}");
    }
}

#[test]
fn a_text_diff_has_every_changed_line_and_no_value_of_a_secret() {
    let text = output("release diff DIR/a DIR/b -o diff");
    for part in [
        "--- a/0000_10_base_30_old.configmap.yaml\n+++ /dev/null\n@@ -1,5 +0,0 @@\n-apiVersion: v1\n",
        "--- /dev/null\n+++ b/0000_10_base_30_new.configmap.yaml\n@@ -0,0 +1,5 @@\n+apiVersion: v1\n",
        "--- a/0000_20_lamp_60_lamp.pod.yaml\n+++ b/0000_30_lamp_60_lamp.pod.yaml\n@@",
        "-  - image: r.org/lamp@sha256:01\n+  - image: r.org/lamp@sha256:02\n     name: lamp\n",
        "-  pin: \"*** (before)\"\n+  pin: \"*** (after)\"\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("left") && !text.contains("right"), "{text}");
}

#[test]
fn images_are_listed_with_what_uses_them() {
    assert_eq!(
        output("release images DIR/a"),
        "IMAGE                  NAME   USED BY            CONTAINER\n\
         r.org/lamp@sha256:01   lamp   pod/lamp -n pier   lamp\n"
    );
    assert_eq!(output("release images DIR/a -o name"), "r.org/lamp@sha256:01\n");
    assert_eq!(output("release image-for DIR/b lamp"), "r.org/lamp@sha256:02\n");
}

#[test]
fn files_are_extracted_one_by_one_or_all() {
    let text = output("release extract DIR/a --file 0000_10_base_00_pier.namespace.yaml");
    assert!(text.starts_with("apiVersion: v1\nkind: Namespace\n"), "{text}");
    assert_eq!(output("release extract DIR/a --to DIR/c"), "wrote 7 files to DIR/c\n");
    let text = output("release build DIR/a --output DIR/c --version 1.0.1");
    assert!(text.starts_with("built 1.0.1 in DIR/c: 5 manifests, sha256:"), "{text}");
}
