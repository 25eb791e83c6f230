//! Whatever the schema and the object: pruning and defaulting twice is doing it once, and the object
//! is valid or not.
//!
//! The input is JSON: a list of a schema and an object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_schema::{Schema, apply_defaults, prune, unknown_fields, validate};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Array(input)) = serde_json::from_slice(bytes) else { return };
    let [document, object] = input.as_slice() else { return };
    let Ok(schema) = Schema::from_crd(document, false) else { return };
    let mut pruned = object.clone();
    prune(&schema, &mut pruned);
    assert_eq!(unknown_fields(&schema, &pruned), Vec::<String>::new());
    let mut defaulted = pruned;
    apply_defaults(&schema, &mut defaulted);
    let _ = validate(&schema, &defaulted);
    let _ = validate(&schema, object);
});
