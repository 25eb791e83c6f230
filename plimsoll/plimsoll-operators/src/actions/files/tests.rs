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
    let bad = file(
        "apiVersion: olm.io/v1\nkind: Action\nmetadata: {name: r}\n\
                    spec: {actionClass: autoremove, packages: foo, dryRun: maybe}\n---\na: [\n",
    );
    let errors = ActionFiles::read(&[bad]).unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("a.yaml:1: spec.dryRun"), "{errors:?}");
    assert!(errors[1].contains("spec.packages: unknown field"), "{errors:?}");
}
