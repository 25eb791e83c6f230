//! Warnings about pods and their templates.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What of a pod is deprecated or no longer works; the header describes the format.
const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/pod-warnings.tsv"));

/// The names at a place of [`DATA`], and what the warnings say of them.
fn deprecated(place: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    DATA.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(move |line| line.strip_prefix(place)?.strip_prefix('\t')?.split_once('\t'))
}

/// Everything to warn of in a pod or a template at `path`.
///
/// Upstream: k8s.io/kubernetes/pkg/api/pod/warnings.go: warningsForPodSpecAndMeta
pub(super) fn warnings(path: &str, pod: &Value) -> Vec<String> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    let spec = &pod["spec"];
    let mut found = Vec::new();
    for (label, message) in deprecated("label") {
        if spec["nodeSelector"].get(label).is_some() {
            found.push(format!("{prefix}spec.nodeSelector[{label}]: {message}"));
        }
    }
    spread(&prefix, spec, &mut found);
    for (key, message) in deprecated("annotation") {
        if pod["metadata"]["annotations"].get(key).is_some() {
            found.push(format!("{prefix}metadata.annotations[{key}]: {message}"));
        }
    }
    for (index, volume) in items(&spec["volumes"]) {
        for (kind, message) in deprecated("volume") {
            if volume.get(kind).is_some() {
                // The path has the name of the field in Go.
                let kind = if kind == "storageos" { "storageOS" } else { kind };
                found.push(format!("{prefix}spec.volumes[{index}].{kind}: {message}"));
            }
        }
    }
    duplicates(&prefix, spec, "hostAliases", "ip", &mut found);
    duplicates(&prefix, spec, "imagePullSecrets", "name", &mut found);
    for (index, secret) in items(&spec["imagePullSecrets"]) {
        if secret["name"].as_str().unwrap_or_default().is_empty() {
            found.push(format!(
                "{prefix}spec.imagePullSecrets[{index}].name: invalid empty name \"\""
            ));
        }
    }
    let containers: Vec<(String, &Value)> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| {
            let prefix = prefix.clone();
            items(&spec[list])
                .map(move |(index, container)| (format!("{prefix}spec.{list}[{index}]"), container))
        })
        .collect();
    for (path, container) in &containers {
        hidden_variables(path, container, &mut found);
    }
    ports(&containers, &mut found);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        found.push(format!(
            "{prefix}spec.terminationGracePeriodSeconds: must be >= 0; negative values are \
             invalid and will be treated as 1"
        ));
    }
    found
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// Upstream: k8s.io/kubernetes/pkg/api/pod/warnings.go: warningsForPodSpecAndMeta
fn spread(prefix: &str, spec: &Value, found: &mut Vec<String>) {
    for (index, constraint) in items(&spec["topologySpreadConstraints"]) {
        let at = format!("{prefix}spec.topologySpreadConstraints[{index}]");
        let key = constraint["topologyKey"].as_str().unwrap_or_default();
        if let Some((_, message)) = deprecated("label").find(|(label, _)| *label == key) {
            found.push(format!("{at}.topologyKey: {key} is {message}"));
        }
        if constraint.get("labelSelector").is_none() {
            found.push(format!(
                "{at}.labelSelector: a null labelSelector results in matching no pod"
            ));
        }
    }
}

fn duplicates(prefix: &str, spec: &Value, list: &str, field: &str, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items(&spec[list]) {
        let text = item[field].as_str().unwrap_or_default();
        if !seen.insert(text) {
            found.push(format!("{prefix}spec.{list}[{index}].{field}: duplicate {field} {text:?}"));
        }
    }
}

/// Environment variables that replace one of the same name without using it.
///
/// Upstream: k8s.io/kubernetes/pkg/api/pod/warnings.go: warningsForPodSpecAndMeta
fn hidden_variables(path: &str, container: &Value, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(&container["env"]) {
        let name = variable["name"].as_str().unwrap_or_default();
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable["value"].as_str().unwrap_or_default();
        let uses_it = value != reference && value.contains(&reference);
        if variable.get("valueFrom").is_some() || !uses_it {
            found.push(format!(
                "{path}.env[{index}]: hides previous definition of {name:?}, which may be dropped \
                 when using apply"
            ));
        }
    }
}

/// Ports that two containers, or one twice, listen on.
///
/// Upstream: k8s.io/kubernetes/pkg/api/pod/warnings.go: warningsForPodSpecAndMeta
fn ports(containers: &[(String, &Value)], found: &mut Vec<String>) {
    let mut seen: BTreeMap<String, Vec<(String, &Value)>> = BTreeMap::new();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut of_names = Vec::new();
    let host = |port: &Value| {
        (
            port["hostIP"].as_str().unwrap_or_default().to_owned(),
            port["hostPort"].as_i64().unwrap_or_default(),
        )
    };
    for (path, container) in containers {
        for (index, port) in items(&container["ports"]) {
            let at = format!("{path}.ports[{index}]");
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            let others = seen.entry(format!("{}/{protocol}", port["containerPort"])).or_default();
            let (address, number) = host(port);
            for (other_at, other) in others.iter() {
                let (other_address, other_number) = host(other);
                let how = if (&address, number) == (&other_address, other_number) {
                    "duplicate"
                } else if number == 0 || other_number == 0 {
                    "overlapping"
                } else if number == other_number && address.is_empty() != other_address.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                found.push(format!("{at}: {how} port definition with {other_at}"));
            }
            others.push((at.clone(), port));
            let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) else {
                continue;
            };
            match names.get(name) {
                Some(other) => of_names.push(format!(
                    "{at}: duplicate port name {name:?} with {other}, services and probes that \
                     select ports by name will use {other}"
                )),
                None => {
                    names.insert(name, at);
                }
            }
        }
    }
    found.append(&mut of_names);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &str, expected: &[&str]) {
        let spec: Value = serde_json::from_str(spec).unwrap();
        let found = warnings("spec.template", &serde_json::json!({"spec": spec}));
        assert_eq!(found, expected);
    }

    #[test]
    fn every_line_of_the_data_is_about_a_place() {
        let lines = DATA.lines().filter(|line| !line.starts_with('#')).count();
        let places = ["label", "annotation", "volume"].map(|place| deprecated(place).count());
        assert!(!places.contains(&0), "{places:?}");
        assert_eq!(places.iter().sum::<usize>(), lines);
    }

    #[test]
    fn what_should_be_written_otherwise_is_warned_of() {
        check(r#"{"containers": [{"env": [{"name": "A"}]}]}"#, &[]);
        check(
            r#"{"nodeSelector": {"beta.kubernetes.io/os": "linux"}}"#,
            &[
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            ],
        );
        check(
            r#"{"containers": [{"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]}]}"#,
            &[
                "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        );
        check(
            r#"{"containers": [{"ports": [{"containerPort": 80, "name": "w"}]}, {"ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 9, "name": "w"}]}]}"#,
            &[
                "spec.template.spec.containers[1].ports[0]: overlapping port definition with spec.template.spec.containers[0].ports[0]",
                "spec.template.spec.containers[1].ports[0]: duplicate port name \"w\" with spec.template.spec.containers[0].ports[0], services and probes that select ports by name will use spec.template.spec.containers[0].ports[0]",
            ],
        );
        check(
            r#"{"volumes": [{"name": "v", "gitRepo": {}}], "terminationGracePeriodSeconds": -1}"#,
            &[
                "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ],
        );
    }
}
