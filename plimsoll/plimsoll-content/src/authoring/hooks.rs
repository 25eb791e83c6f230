//! What the hooks of Helm charts become in a release.
//!
//! A release has no hooks: it has an order. What a hook does before or after the objects of its chart
//! becomes part of that order; what it does when something is deleted or rolled back has no place
//! and is refused.

use serde_json::Value;

const HOOK: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";
/// Annotations that mean something to Helm alone.
const ANNOTATIONS: [&str; 3] = [HOOK, WEIGHT, "helm.sh/hook-delete-policy"];

/// What becomes of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookPlace {
    /// It is no hook, or only something that hooks need: it has the place of its kind.
    OfKind,
    /// A Job before the workloads of its component, in the order of weights.
    Before(i64),
    /// A Job after everything else of its component, in the order of weights.
    After(i64),
    /// A test: left out.
    Test,
}

/// The hook that a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hook {
    pub(super) place: HookPlace,
    /// Whether Helm would run it again in every update.
    pub(super) each_update: bool,
}

impl Hook {
    /// What is no hook.
    pub(super) const NONE: Self = Self { place: HookPlace::OfKind, each_update: false };
}

/// Whether a document is a hook.
pub(super) fn is_hook(object: &Value) -> bool {
    object["metadata"]["annotations"][HOOK].is_string()
}

/// Reads what hook a document is; `Err` with the reason why it cannot be one here.
pub(super) fn read(object: &Value) -> Result<Hook, String> {
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    let Some(written) = annotation(HOOK) else {
        return Ok(Hook::NONE);
    };
    let events: Vec<&str> = written.split(',').map(str::trim).collect();
    let has = |name: &str| events.contains(&name);
    if events.iter().all(|event| matches!(*event, "test" | "test-success" | "test-failure")) {
        return Ok(Hook { place: HookPlace::Test, each_update: false });
    }
    let known =
        ["pre-install", "pre-upgrade", "post-install", "post-upgrade", "crd-install", "test"];
    if let Some(refused) = events.iter().find(|event| !known.contains(event)) {
        return Err(format!("a release has no {refused} hooks"));
    }
    if object["kind"] != "Job" {
        // What the Jobs of hooks need, such as their account, stays.
        return match object["kind"].as_str() {
            Some("Pod") => Err("a Pod that is a hook has no end that is waited for".to_owned()),
            _ => Ok(Hook::NONE),
        };
    }
    if !has("pre-install") && !has("post-install") {
        return Err(format!("a release cannot run a Job in updates alone ({written})"));
    }
    let weight = annotation(WEIGHT).map_or(Ok(0), str::parse);
    let weight = weight.map_err(|_| format!("its {WEIGHT} is not a number"))?;
    let before = has("pre-install") || has("pre-upgrade");
    Ok(Hook {
        place: if before { HookPlace::Before(weight) } else { HookPlace::After(weight) },
        each_update: has("pre-upgrade") || has("post-upgrade"),
    })
}

/// Removes the annotations that mean something to Helm alone.
pub(super) fn strip(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
        if annotations.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    //! Hooks, and what becomes of them.

    use serde_json::json;

    use super::read;

    #[test]
    fn hooks_have_a_place_or_are_refused_by_name() {
        let check = |kind: &str, hook: &str, weight: &str, expected: &str| {
            let object = json!({"kind": kind, "metadata": {"annotations": {
                "helm.sh/hook": hook, "helm.sh/hook-weight": weight,
            }}});
            let found = match read(&object) {
                Ok(hook) => format!("{:?}, each update: {}", hook.place, hook.each_update),
                Err(error) => error,
            };
            assert_eq!(found, expected, "{kind} {hook}");
        };
        check("Job", "pre-install", "0", "Before(0), each update: false");
        check("Job", "pre-install,pre-upgrade", "-5", "Before(-5), each update: true");
        check("Job", "post-install, post-upgrade", "3", "After(3), each update: true");
        check("Job", "post-install,pre-upgrade", "0", "Before(0), each update: true");
        check("ServiceAccount", "pre-install", "0", "OfKind, each update: false");
        check("Pod", "test", "0", "Test, each update: false");
        check("Job", "test-success", "0", "Test, each update: false");
        check("Job", "pre-delete", "0", "a release has no pre-delete hooks");
        check("Role", "pre-install,post-delete", "0", "a release has no post-delete hooks");
        check(
            "Job",
            "pre-upgrade",
            "0",
            "a release cannot run a Job in updates alone (pre-upgrade)",
        );
        check("Job", "pre-install", "x", "its helm.sh/hook-weight is not a number");
        check("Pod", "pre-install", "0", "a Pod that is a hook has no end that is waited for");
    }
}
