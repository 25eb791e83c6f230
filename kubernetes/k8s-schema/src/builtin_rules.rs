//! What kube-apiserver refuses in built-in kinds.
//!
//! Most rules are lines of `data/validation.txt`: a field and a [`Check`](check::Check), in the order
//! in which kube-apiserver reports them. What depends on several fields is a small function each,
//! which the file names. The commonest kinds and fields are here; what is not is accepted.

mod access;
mod check;
mod configuration;
mod containers;
mod event;
mod field_reference;
mod formats;
mod functions;
mod ingress;
mod network;
mod pod;
mod policies;
mod quantities;
mod registration;
mod rules;
mod scheduling;
mod storage;
#[cfg(test)]
mod tests;
mod update;
mod volumes;
mod workloads;

use std::sync::LazyLock;

use serde_json::Value;

use crate::FieldError;
use check::{Rules, apply};
pub use registration::{
    check_review_versions, check_service as check_webhook_service, check_url as check_webhook_url,
};
use rules::ValidationRules;

const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/validation.txt"));

/// Parsed when the first object is validated.
static RULES: LazyLock<ValidationRules> = LazyLock::new(|| {
    ValidationRules::parse(DATA, functions::FUNCTIONS).expect("the tests parse the file of rules")
});

/// Everything wrong with an object of a built-in kind but its metadata; `live` is the object
/// before an update.
pub fn validate_builtin(
    group: &str,
    kind: &str,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = RULES.kind(group, kind);
    apply(rules.fields, object, "", &mut errors);
    if kind == "Event" {
        event::check(group, live, object, &mut errors);
    }
    if let Some(live) = live {
        update::check_immutable(rules.immutable, kind, live, object, &mut errors);
        update::check(group, kind, live, object, &mut errors);
    }
    errors
}

/// Returns the fields of a built-in kind that differ between two objects and that no update changes. The
/// objects need not be complete. A claim counts as bound to a volume of its size: the size of one that is may
/// grow.
pub fn changed_immutable_fields(
    group: &str,
    kind: &str,
    before: &Value,
    after: &Value,
) -> Vec<String> {
    let mut before = before.clone();
    if (group, kind) == ("", "PersistentVolumeClaim") {
        let size = before["spec"]["resources"]["requests"]["storage"].clone();
        before["status"]["phase"] = "Bound".into();
        before["status"]["capacity"]["storage"] = size;
    }
    let mut errors = Vec::new();
    update::check_immutable(RULES.kind(group, kind).immutable, kind, &before, after, &mut errors);
    update::check(group, kind, &before, after, &mut errors);
    let named = |path: String| {
        let is_misspelt = path == update::ATTACH_REQUIRED;
        if is_misspelt { "spec.attachRequired".to_owned() } else { path }
    };
    let mut fields: Vec<String> = errors.into_iter().map(|error| named(error.path)).collect();
    if (group, kind) == ("", "Service") {
        fields.extend(update::service(&before, after).into_iter().map(str::to_owned));
    }
    fields.dedup();
    fields
}

/// The rules of a part of the data file, for functions that apply it between others.
fn part(name: &str) -> Rules {
    RULES.part(name)
}
