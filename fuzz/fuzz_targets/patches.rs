//! Whatever the patch: it is applied or refused, and a merge patch applied twice is applied once.
//!
//! The input is JSON: a list of an object and a patch.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_schema::{builtin, patch};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Array(input)) = serde_json::from_slice(bytes) else { return };
    let [object, document] = input.as_slice() else { return };
    let _ = patch::json_patch(object, document);
    let merged = patch::merge_patch(object, document);
    assert_eq!(patch::merge_patch(&merged, document), merged);
    for (group, version, kind) in
        [("apps", "v1", "Deployment"), ("", "v1", "Service"), ("", "v1", "ServiceAccount")]
    {
        let schema = builtin::schema(group, version, kind).expect("the kind is built in");
        let _ = patch::strategic_merge_patch(&schema, object, document);
    }
});
