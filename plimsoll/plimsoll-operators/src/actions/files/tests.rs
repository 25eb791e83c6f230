//! Files with Actions, classes and policies.

use super::ActionFiles;
use crate::loadout::LoadoutFile;

#[test]
fn files_are_read_with_all_that_is_wrong() {
    let file = |text: &str| LoadoutFile { path: "a.yaml".into(), text: text.into() };
    let good = file(
        "apiVersion: olm.io/v1\nkind: RetryAction\nmetadata: {name: r}\n\
                     spec: {template: {actionClass: autoremove}}\n",
    );
    let read = ActionFiles::read(&[good]).unwrap();
    assert_eq!(
        (read.actions[0].kind.as_str(), read.actions[0].name.as_str()),
        ("RetryAction", "r")
    );
    let window = |schedule: &str| {
        file(&format!(
            "apiVersion: olm.io/v1\nkind: MaintenanceWindow\nmetadata: {{name: nights}}\n\
             spec: {{windows: [{{schedule: {schedule}, duration: 4h}}]}}\n"
        ))
    };
    let read = ActionFiles::read(&[window("0 22 * * *")]).unwrap();
    assert_eq!(read.windows[0].name, "nights");
    let errors = ActionFiles::read(&[window("often")]).unwrap_err();
    let often = "a.yaml:1: spec.windows[0].schedule: `often` is no schedule: ";
    assert!(errors.len() == 1 && errors[0].starts_with(often), "{errors:?}");
    let excluded = file(
        "apiVersion: olm.io/v1\nkind: MaintenanceWindow\nmetadata: {name: nights}\n\
         spec:\n  windows: [{schedule: 0 22 * * *, duration: 4h}]\n  \
         exclusions: [{from: '2026-01-02T00:00:00Z', until: '2026-01-01T23:00:00-01:00'}]\n",
    );
    let errors = ActionFiles::read(&[excluded]).unwrap_err();
    let excluded =
        "a.yaml:1: spec.exclusions[0].until is 2026-01-02T00:00:00Z: write a time after ";
    assert!(errors.len() == 1 && errors[0].starts_with(excluded), "{errors:?}");
    let bad = file(
        "apiVersion: olm.io/v1\nkind: Action\nmetadata: {name: r}\n\
                    spec: {actionClass: autoremove, packages: foo, keepCRDs: true, dryRun: maybe}\n---\na: [\n",
    );
    let errors = ActionFiles::read(&[bad]).unwrap_err();
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert!(errors[0].starts_with("a.yaml:1: spec.dryRun"), "{errors:?}");
    let parameter =
        "spec.keepCRDs: unknown field; it is a parameter: write spec.parameters.keepCRDs";
    assert!(errors.iter().any(|it| it.ends_with(parameter)), "{errors:?}");
    let similar = "spec.packages: unknown field, did you mean `package`?";
    assert!(errors.iter().any(|it| it.ends_with(similar)), "{errors:?}");
}

#[test]
fn lists_and_labels_of_namespaces_are_read() {
    let text = r"
apiVersion: v1
kind: List
items:
- apiVersion: olm.io/v1
  kind: ActionPolicy
  metadata: {name: b}
  spec: {subjects: [{kind: User, name: alice}], classes: [autoremove]}
- apiVersion: v1
  kind: Namespace
  metadata: {name: tea, labels: {tenant: 'true'}}
---
apiVersion: olm.io/v1
kind: ActionPolicyList
items:
- apiVersion: olm.io/v1
  kind: ActionPolicy
  metadata: {name: a}
  spec: {subjects: [{kind: User, name: alice}], classes: [autoremove]}
---
apiVersion: v1
kind: Namespace
metadata: {name: plain}
";
    let file = |text: &str| LoadoutFile { path: "a.yaml".into(), text: text.into() };
    let read = ActionFiles::read(&[file(text)]).unwrap();
    let names: Vec<&str> = read.policies.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let check = |namespace: &str, expected: &[(&str, &str)]| {
        let labels = read.labels(namespace);
        let found: Vec<(&str, &str)> =
            labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    };
    check("tea", &[("kubernetes.io/metadata.name", "tea"), ("tenant", "true")]);
    check("plain", &[("kubernetes.io/metadata.name", "plain")]);
    check("unknown", &[("kubernetes.io/metadata.name", "unknown")]);
    let wrong = "apiVersion: v1\nkind: Namespace\nmetadata: {name: tea, labels: {tenant: true}}\n";
    let errors = ActionFiles::read(&[file(wrong)]).unwrap_err();
    assert!(
        errors[0].starts_with("a.yaml:1: metadata.labels: invalid type: boolean"),
        "{errors:?}"
    );
}
