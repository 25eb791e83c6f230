//! Whatever is applied by whom: it is merged or refused, and applying it again changes nothing.
//!
//! The input is JSON: a schema (or null, for a Deployment), then for each step the manager, whether
//! it forces, and the object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_schema::managed::{ManagerInfo, server_side_apply, track_update};
use k8s_schema::{Schema, builtin};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Array(input)) = serde_json::from_slice(bytes) else { return };
    let Some((schema, steps)) = input.split_first() else { return };
    let schema = if schema.is_null() {
        builtin::schema("apps", "v1", "Deployment")
    } else {
        Schema::from_crd(schema, false).ok()
    };
    let Some(schema) = schema else { return };
    let mut live: Option<Value> = None;
    for step in steps {
        if !step[2].is_object() {
            continue;
        }
        let manager = step[0].as_str().unwrap_or("unnamed");
        let actor = ManagerInfo {
            manager,
            api_version: "example.com/v1",
            subresource: "",
            now: "2020-01-01T00:00:00Z",
            reset_fields: &["status"],
        };
        // A server refuses what is not of the version that it was sent to.
        let mut object = step[2].clone();
        object["apiVersion"] = actor.api_version.into();
        let force = step[1] == true;
        if step[1].is_null() {
            live = Some(track_update(&schema, live.as_ref(), object, &actor));
            continue;
        }
        let Ok(merged) = server_side_apply(&schema, live.as_ref(), &object, &actor, force) else {
            continue;
        };
        if let Ok(again) = server_side_apply(&schema, Some(&merged), &object, &actor, force)
            && live.is_some()
        {
            assert_eq!(again["metadata"]["managedFields"], merged["metadata"]["managedFields"]);
        }
        live = Some(merged);
    }
});
