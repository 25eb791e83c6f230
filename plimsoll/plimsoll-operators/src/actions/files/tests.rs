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
