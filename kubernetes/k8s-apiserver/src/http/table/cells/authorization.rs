//! Cells of role bindings.
use serde_json::Value;

use super::{items, string};

pub(in crate::http::table) fn bound_role(object: &Value) -> Value {
    let role = &object["roleRef"];
    format!("{}/{}", string(&role["kind"]), string(&role["name"])).into()
}

fn bound(object: &Value, kind: &str) -> Value {
    items(&object["subjects"])
        .iter()
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| match (kind, string(&subject["namespace"])) {
            ("ServiceAccount", namespace) => format!("{namespace}/{}", string(&subject["name"])),
            _ => string(&subject["name"]).to_owned(),
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

pub(in crate::http::table) fn bound_users(object: &Value) -> Value {
    bound(object, "User")
}

pub(in crate::http::table) fn bound_groups(object: &Value) -> Value {
    bound(object, "Group")
}

pub(in crate::http::table) fn bound_accounts(object: &Value) -> Value {
    bound(object, "ServiceAccount")
}
