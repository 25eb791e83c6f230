//! Writes of ActionClasses by Dora, who may write all of them.

use super::Case;

/// Writes of classes, in this order.
pub(crate) const CLASS_NAMES: &[Case] = &[
    (
        "a class of another controller",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "seal"}, "spec": {"controller": "example.com/seal", "aliases": ["sealing"]}}"#,
        201,
        "sealing",
    ),
    (
        "the name of a built-in class",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "operator-install"}, "spec": {"controller": "example.com/seal"}}"#,
        422,
        "built-in classes, which olm.io/plimsoll serves, are named operator-install: choose other names",
    ),
    (
        "the alias of a built-in class as a name",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "resolution-debug"}, "spec": {"controller": "example.com/seal"}}"#,
        422,
        "are named resolution-debug: choose other names",
    ),
    (
        "the name of a built-in class as an alias",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "mine"}, "spec": {"controller": "example.com/seal", "aliases": ["a", "autoremove"]}}"#,
        422,
        "are named autoremove: choose other names",
    ),
    (
        "the alias of a built-in class as an alias that is added",
        "dora",
        "PATCH actionclasses/seal",
        r#"{"spec": {"aliases": ["operator-deletion"]}}"#,
        422,
        "are named operator-deletion: choose other names",
    ),
    (
        "a class that only the program could serve",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "mine"}, "spec": {"controller": "olm.io/plimsoll"}}"#,
        422,
        "spec.controller is olm.io/plimsoll, which serves the built-in classes only: set it to the name of the controller that serves class mine",
    ),
    (
        "a class that is handed over to the program",
        "dora",
        "PATCH actionclasses/seal",
        r#"{"spec": {"controller": "olm.io/plimsoll"}}"#,
        422,
        "which serves the built-in classes only",
    ),
    (
        "a built-in class",
        "dora",
        "POST actionclasses",
        r#"{"metadata": {"name": "operator-install"}, "spec": {"controller": "olm.io/plimsoll", "aliases": ["operator-installation"]}}"#,
        201,
        "operator-installation",
    ),
    (
        "a built-in class is handed over to another controller",
        "dora",
        "PATCH actionclasses/operator-install",
        r#"{"spec": {"controller": "example.com/seal"}}"#,
        422,
        "are named operator-install and operator-installation: choose other names",
    ),
    (
        "a built-in class is described otherwise",
        "dora",
        "PATCH actionclasses/operator-install",
        r#"{"spec": {"description": "installs"}}"#,
        200,
        "installs",
    ),
];
