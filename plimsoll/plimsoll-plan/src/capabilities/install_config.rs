//! The `capabilities` of an install-config: the installer's rules (CV-24), in its
//! words, and what a cluster installed with it would have.
//!
//! Only what concerns capabilities is looked at. Where the installer says no more than that a name
//! is not supported, the one that was probably meant is added.

use std::collections::BTreeSet;

use plimsoll_api::config::CapabilitiesSpec;
use plimsoll_content::capability::{CURRENT, CapabilityRegistry, NONE, most_similar};
use plimsoll_content::diagnostic::FieldProblem;
use serde_json::Value;

const STANZA: &str = "capabilities";
const BASELINE: &str = "baselineCapabilitySet";
const ADDITIONAL: &str = "additionalEnabledCapabilities";

/// What there is to say about the capabilities of an install-config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// What the installer refuses, in the order of its checks.
    pub refusals: Vec<FieldProblem>,
    /// What a cluster would have; names that do not exist are not among them.
    pub enabled: BTreeSet<String>,
    /// What it would not have, of what there is.
    pub disabled: BTreeSet<String>,
    /// What the ClusterVersion requests; `None` if the install-config says nothing of it.
    pub spec: Option<CapabilitiesSpec>,
}

/// Assesses an install-config, where `gates` are the feature gates that are on.
pub fn assess(
    config: &Value,
    registry: &CapabilityRegistry,
    gates: &BTreeSet<String>,
) -> Assessment {
    let mut refusals = Vec::new();
    let empty = Value::Null;
    let stanza = match config {
        Value::Object(fields) => fields.get(STANZA).unwrap_or(&empty),
        _ => {
            refusals.push(refusal("", "an install-config must be a mapping".to_owned()));
            &empty
        }
    };
    let requested = RequestedComponents::read(stanza, &mut refusals);
    if !stanza.is_null() {
        names(&requested, registry, &mut refusals);
    }
    let baseline = if requested.baseline.is_empty() { CURRENT } else { requested.baseline };
    let set = registry.set(baseline).map(|set| set.capabilities.clone()).unwrap_or_default();
    let additional = requested.additional.iter().flatten().map(|name| (*name).to_owned());
    let mut enabled: BTreeSet<String> = set.into_iter().chain(additional).collect();
    enabled.retain(|name| registry.is_known(name, gates));
    if !stanza.is_null() {
        requirements(&requested, &enabled, registry, &mut refusals);
        // A capability that the release does not have is not left out.
        let lacks = |name: &str| registry.capability(name).is_some() && !enabled.contains(name);
        platform(config, stanza, &requested, &lacks, &mut refusals);
    }
    let there = registry.capabilities().filter(|it| it.is_allowed(gates));
    let disabled = there.map(|it| it.name.clone()).filter(|name| !enabled.contains(name)).collect();
    let names = requested.additional.iter().flatten().map(|name| (*name).to_owned());
    let spec = (!stanza.is_null()).then(|| CapabilitiesSpec {
        baseline_capability_set: requested.baseline.to_owned(),
        additional_enabled_capabilities: names.collect(),
    });
    Assessment { refusals, enabled, disabled, spec }
}

fn refusal(field: &str, message: String) -> FieldProblem {
    let field = if field.is_empty() { "install-config" } else { field };
    FieldProblem::new(field, message)
}

/// What the stanza holds, as far as it can be read.
struct RequestedComponents<'a> {
    baseline: &'a str,
    /// `None` for an entry that is not text.
    additional: Vec<Option<&'a str>>,
    list: &'a Value,
}

impl<'a> RequestedComponents<'a> {
    fn read(stanza: &'a Value, refusals: &mut Vec<FieldProblem>) -> Self {
        let mut requested = Self { baseline: "", additional: Vec::new(), list: &Value::Null };
        let fields = match stanza {
            Value::Null => return requested,
            Value::Object(fields) => fields,
            other => {
                refusals.push(refusal(STANZA, invalid(other, "must be a mapping")));
                return requested;
            }
        };
        for (name, value) in fields {
            let path = format!("{STANZA}.{name}");
            match (name.as_str(), value) {
                (BASELINE, Value::String(text)) => requested.baseline = text,
                (BASELINE, Value::Null) | (ADDITIONAL, Value::Null) => {}
                (BASELINE, other) => refusals.push(refusal(&path, invalid(other, "must be text"))),
                (ADDITIONAL, Value::Array(names)) => {
                    requested.list = value;
                    requested.additional = names.iter().map(Value::as_str).collect();
                }
                (ADDITIONAL, other) => {
                    refusals.push(refusal(&path, invalid(other, "must be a list of names")));
                }
                (name, _) => {
                    let similar = most_similar(name, [BASELINE, ADDITIONAL].into_iter());
                    let text = format!("unknown field{}", suggestion(similar));
                    refusals.push(refusal(&path, text));
                }
            }
        }
        requested
    }
}

fn invalid(value: &Value, message: &str) -> String {
    format!("Invalid value: {value}: {message}")
}

fn suggestion(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

fn unsupported<'a>(
    value: &Value,
    supported: impl Iterator<Item = &'a str>,
    similar: Option<&str>,
) -> String {
    let supported: Vec<String> = supported.map(|name| format!("{name:?}")).collect();
    let similar = suggestion(similar);
    format!("Unsupported value: {value}: supported values: {}{similar}", supported.join(", "))
}

/// Names that do not exist. An empty set is none of them, although no stanza at all means
/// `vCurrent`.
fn names(
    requested: &RequestedComponents<'_>,
    registry: &CapabilityRegistry,
    refusals: &mut Vec<FieldProblem>,
) {
    if registry.set(requested.baseline).is_none() {
        let sets = registry.sets().iter().map(|set| set.name.as_str());
        let similar = registry.similar_set(requested.baseline);
        let message = unsupported(&requested.baseline.into(), sets, similar);
        refusals.push(refusal(&format!("{STANZA}.{BASELINE}"), message));
    }
    for (index, name) in requested.additional.iter().enumerate() {
        if name.is_some_and(|name| registry.capability(name).is_some()) {
            continue;
        }
        let similar = name.and_then(|name| registry.similar(name));
        let known = registry.capabilities().map(|it| it.name.as_str());
        let message = unsupported(&requested.list[index], known, similar);
        refusals.push(refusal(&format!("{STANZA}.{ADDITIONAL}[{index}]"), message));
    }
}

/// Capabilities without what they require. The installer knows of `marketplace` alone; the others
/// are looked at where they are asked for by name.
fn requirements(
    requested: &RequestedComponents<'_>,
    enabled: &BTreeSet<String>,
    registry: &CapabilityRegistry,
    refusals: &mut Vec<FieldProblem>,
) {
    let by_name: BTreeSet<&str> = requested.additional.iter().copied().flatten().collect();
    let of_note = enabled.iter().map(String::as_str);
    for name in of_note.filter(|name| *name == "marketplace" || by_name.contains(name)) {
        let missing: Vec<&str> = registry.missing_for(name, enabled).into_iter().collect();
        let what = match missing.as_slice() {
            [] => continue,
            [only] => format!("the {name} capability requires the {only} capability"),
            several => format!("the {name} capability requires {}", several.join(", ")),
        };
        refusals.push(refusal(ADDITIONAL, invalid(requested.list, &what)));
    }
}

/// What the platform does not let be left out; `lacks` tells what is.
fn platform(
    config: &Value,
    stanza: &Value,
    requested: &RequestedComponents<'_>,
    lacks: &dyn Fn(&str) -> bool,
    refusals: &mut Vec<FieldProblem>,
) {
    let platform = &config["platform"];
    let on = |name: &str| !platform[name].is_null();
    if requested.baseline == NONE && on("baremetal") && lacks("baremetal") {
        let what = "platform baremetal requires the baremetal capability";
        refusals.push(refusal(ADDITIONAL, invalid(requested.list, what)));
    }
    let mut refuse = |what: &str| refusals.push(refusal(STANZA, invalid(stanza, what)));
    if lacks("CloudCredential") && !on("none") && !on("baremetal") {
        refuse("disabling CloudCredential capability available only for baremetal platforms");
    }
    if lacks("CloudControllerManager") {
        if !on("none") && !on("baremetal") && !on("external") {
            refuse(
                "disabling CloudControllerManager is only supported on the Baremetal, None, or \
                 External platform with cloudControllerManager value none",
            );
        }
        if platform["external"]["cloudControllerManager"] == "External" {
            refuse(
                "disabling CloudControllerManager on External platform supported only with \
                 cloudControllerManager value none",
            );
        }
    }
    if lacks("Ingress") {
        refuse("the Ingress capability is required");
    }
}

#[cfg(test)]
mod tests;
