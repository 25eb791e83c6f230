//! The classes of Actions that Plimsoll serves (OPR-23).

use std::sync::LazyLock;

use serde_json::Value;

const ACTIONS: &str = include_str!("../classes/actions.yaml");

static CLASSES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_saphyr::from_multiple(ACTIONS).expect("our classes are YAML: a test reads them")
});

/// The ActionClasses that are always there.
pub fn built_in() -> Vec<Value> {
    CLASSES.clone()
}
