//! Services, endpoints and network policies.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::check::{
    Check::{self, Exactly, OneOf, Text},
    PORT, address, apply, duplicate, error, forbidden, invalid, is_empty, items, network,
    not_supported, port_or_name, problems, required, text,
};
use crate::names::{label, subdomain};
use crate::{FieldError, FieldErrorKind};

const PROTOCOL: Check = OneOf(&["SCTP", "TCP", "UDP"]);

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateService
pub(super) fn service(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(spec, "type");
    let ports = items(spec, "ports");
    let is_headless = spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None";
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(required(format!("{path}.ports"), ""));
    }
    if kind == "ExternalName" {
        let name = text(spec, "externalName").trim_end_matches('.');
        let at = format!("{path}.externalName");
        if name.is_empty() {
            errors.push(required(at, ""));
        } else {
            problems(&at, &name.into(), subdomain(name), errors);
        }
    }
    if kind == "NodePort" && is_headless {
        let detail = "may not be set to 'None' for NodePort services";
        errors.push(invalid(format!("{path}.clusterIPs[0]"), &"None".into(), detail));
    }
    if kind == "LoadBalancer" && is_headless {
        let detail = "may not be set to 'None' for LoadBalancer services";
        errors.push(invalid(format!("{path}.clusterIPs[0]"), &"None".into(), detail));
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("{path}.ports[{index}]");
        service_port(port, ports.len() > 1, &at, &mut names, errors);
    }
    apply(super::part("service-after-ports"), spec, path, errors);
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let key = (text(port, "protocol"), port["port"].as_i64());
        if !seen.insert(key) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            let at = format!("{path}.ports[{index}]");
            errors.push(duplicate(at, &Value::Null).with_shown(shown));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateServicePort
fn service_port<'a>(
    port: &'a Value,
    needs_name: bool,
    path: &str,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(port, "name");
    let at = format!("{path}.name");
    if name.is_empty() {
        if needs_name {
            errors.push(required(at, ""));
        }
    } else {
        problems(&at, &name.into(), label(name), errors);
        if !names.insert(name) {
            errors.push(duplicate(at, &name.into()));
        }
    }
    let number = json!(port["port"].as_i64().unwrap_or_default());
    apply(&[("", PORT)], &number, &format!("{path}.port"), errors);
    apply(&[("protocol", PROTOCOL)], port, path, errors);
    port_or_name(&port["targetPort"], &format!("{path}.targetPort"), errors);
}

pub(super) fn affinity(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    let fits = |seconds: i64| (1..=86_400).contains(&seconds);
    if spec["sessionAffinity"] == "ClientIP" && seconds.as_i64().is_some_and(|s| !fits(s)) {
        let at = format!("{path}.sessionAffinityConfig.clientIP.timeoutSeconds");
        errors.push(invalid(at, seconds, "must be greater than 0 and less than 86400"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateServiceClusterIPsRelatedFields
pub(super) fn cluster_addresses(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    for (index, family) in items(spec, "ipFamilies").iter().enumerate() {
        if family != "IPv4" && family != "IPv6" {
            let at = format!("{path}.ipFamilies[{index}]");
            errors.push(not_supported(&at, family, &["IPv4", "IPv6"]));
        }
    }
    apply(&[("ipFamilyPolicy", OneOf(&POLICIES))], spec, path, errors);
    let given = match items(spec, "clusterIPs") {
        [] => std::slice::from_ref(&spec["clusterIP"]),
        list => list,
    };
    for (index, given) in given.iter().enumerate() {
        let text = given.as_str().unwrap_or_default();
        if !text.is_empty() && text != "None" {
            problems(&format!("{path}.clusterIPs[{index}]"), given, address(text), errors);
        }
    }
}

pub(super) fn addresses(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, given) in value.as_array().into_iter().flatten().enumerate() {
        let found = address(given.as_str().unwrap_or_default());
        problems(&format!("{path}[{index}]"), given, found, errors);
    }
}

pub(super) fn node_ports(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !matches!(text(spec, "type"), "ClusterIP" | "") {
        return;
    }
    for (index, port) in items(spec, "ports").iter().enumerate() {
        if port["nodePort"].as_i64().is_some_and(|number| number != 0) {
            let at = format!("{path}.ports[{index}].nodePort");
            errors.push(forbidden(at, "may not be used when `type` is 'ClusterIP'"));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateServiceExternalTrafficPolicy
pub(super) fn policies(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(spec, "type");
    let policy = text(spec, "externalTrafficPolicy");
    let is_external = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !items(spec, "externalIPs").is_empty());
    let at = format!("{path}.externalTrafficPolicy");
    if !policy.is_empty() && !is_external {
        let detail = "may only be set for externally-accessible services";
        errors.push(invalid(at, &policy.into(), detail));
    } else if !matches!(policy, "" | "Cluster" | "Local") {
        errors.push(not_supported(&at, &policy.into(), &["Cluster", "Local"]));
    }
    let check = &spec["healthCheckNodePort"];
    let is_checked = kind == "LoadBalancer" && policy == "Local";
    if !is_empty(check) && !is_checked {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` \
                      is 'Local'";
        errors.push(invalid(format!("{path}.healthCheckNodePort"), check, detail));
    }
    if !is_empty(&spec["loadBalancerClass"]) && kind != "LoadBalancer" {
        let at = format!("{path}.loadBalancerClass");
        errors.push(forbidden(at, "may only be used when `type` is 'LoadBalancer'"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateEndpointIP
fn loopback(text: &str) -> Option<&'static str> {
    let is_loopback = text.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback.then_some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateEndpointSubsets
pub(super) fn subset(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let ready = items(value, "addresses");
    let others = items(value, "notReadyAddresses");
    if ready.is_empty() && others.is_empty() {
        let detail = "must specify `addresses` or `notReadyAddresses`";
        errors.push(required(path, detail));
    }
    for (field, list) in [("addresses", ready), ("notReadyAddresses", others)] {
        for (index, entry) in list.iter().enumerate() {
            let at = format!("{path}.{field}[{index}].ip");
            let given = text(entry, "ip");
            let found = address(given);
            if !found.is_empty() {
                problems(&at, &given.into(), found, errors);
                errors.push(invalid(&at, &given.into(), "must be a valid IP address"));
            } else if let Some(detail) = loopback(given) {
                errors.push(invalid(&at, &given.into(), detail));
            }
        }
    }
    let ports = items(value, "ports");
    for (index, port) in ports.iter().enumerate() {
        let at = format!("{path}.ports[{index}]");
        if ports.len() > 1 && text(port, "name").is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        }
        let number = json!(port["port"].as_i64().unwrap_or_default());
        apply(&[("", PORT)], &number, &format!("{at}.port"), errors);
        apply(&[("protocol", PROTOCOL)], port, &at, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/discovery/validation/validation.go: validateAddressType
pub(super) fn address_type(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
    match value.as_str().unwrap_or_default() {
        "" => errors.push(required(path, "")),
        known if TYPES.contains(&known) => {}
        _ => errors.push(not_supported(path, value, &TYPES)),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/discovery/validation/validation.go: validateEndpoints
pub(super) fn slice_endpoints(slice: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(slice, "addressType");
    for (index, endpoint) in items(slice, "endpoints").iter().enumerate() {
        let at = format!("endpoints[{index}]");
        let addresses = items(endpoint, "addresses");
        if addresses.is_empty() {
            errors.push(required(format!("{at}.addresses"), ""));
        }
        for (inner, given) in addresses.iter().enumerate() {
            slice_address(kind, given, &format!("{at}.addresses"), inner, errors);
        }
        apply(&[("hostname", Text(label))], endpoint, &at, errors);
    }
}

fn slice_address(
    kind: &str,
    given: &Value,
    path: &str,
    index: usize,
    errors: &mut Vec<FieldError>,
) {
    let text = given.as_str().unwrap_or_default();
    let at = format!("{path}[{index}]");
    let parsed = text.parse::<IpAddr>();
    match (kind, parsed) {
        ("FQDN", _) => problems(&at, given, subdomain(text), errors),
        ("IPv4" | "IPv6", Err(_)) => problems(&at, given, address(text), errors),
        ("IPv4", Ok(IpAddr::V6(_))) => {
            errors.push(invalid(path, given, "must be an IPv4 address"));
        }
        ("IPv6", Ok(IpAddr::V4(_))) => {
            errors.push(invalid(path, given, "must be an IPv6 address"));
        }
        _ => {}
    }
    if let (true, Some(detail)) = (kind != "FQDN", loopback(text)) {
        errors.push(invalid(at, given, detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/discovery/validation/validation.go: validatePorts
pub(super) fn slice_ports(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, port) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            problems(&format!("{at}.name"), &name.into(), label(name), errors);
        }
        if !names.insert(name) {
            errors.push(duplicate(format!("{at}.name"), &name.into()));
        }
        apply(&[("protocol", PROTOCOL)], port, &at, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateNetworkPolicySpec
pub(super) fn policy_types(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let types = value.as_array().map_or(&[][..], Vec::as_slice);
    if types.len() > 2 {
        return errors.push(invalid(path, value, "may not specify more than two policyTypes"));
    }
    for (index, kind) in types.iter().enumerate() {
        const TYPE: Check = Exactly(&["Ingress", "Egress"]);
        apply(&[("", TYPE)], kind, &format!("{path}[{index}]"), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateNetworkPolicyPort
pub(super) fn policy_port(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (port, end) = (&value["port"], &value["endPort"]);
    port_or_name(port, &format!("{path}.port"), errors);
    let Some(last) = end.as_i64() else { return };
    let at = format!("{path}.endPort");
    match port {
        Value::Null => {
            errors.push(invalid(at, end, "may not be specified when `port` is not specified"));
        }
        Value::String(_) => {
            errors.push(invalid(at, end, "may not be specified when `port` is non-numeric"));
        }
        port if port.as_i64().is_some_and(|first| last < first) => {
            errors.push(invalid(at, end, "must be greater than or equal to `port`"));
        }
        _ => apply(&[("", PORT)], end, &at, errors),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateIPBlock
pub(super) fn block(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() {
        return;
    }
    let range = text(value, "cidr");
    let at = format!("{path}.cidr");
    if range.is_empty() {
        return errors.push(required(at, ""));
    }
    let found = network(range);
    if !found.is_empty() {
        return problems(&at, &range.into(), found, errors);
    }
    for (index, except) in items(value, "except").iter().enumerate() {
        let at = format!("{path}.except[{index}]");
        let inner = except.as_str().unwrap_or_default();
        let found = network(inner);
        if !found.is_empty() {
            problems(&at, except, found, errors);
        } else if !is_within(inner, range) {
            errors.push(invalid(at, except, "must be a strict subset of `cidr`"));
        }
    }
}

/// Whether one CIDR is a strict subset of another.
fn is_within(inner: &str, outer: &str) -> bool {
    let parse = |text: &str| -> Option<(u128, u32, u32)> {
        let (address, bits) = text.split_once('/')?;
        let bits: u32 = bits.parse().ok()?;
        Some(match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => (u128::from(u32::from(address)), bits, 32),
            IpAddr::V6(address) => (u128::from(address), bits, 128),
        })
    };
    let (Some(inner), Some(outer)) = (parse(inner), parse(outer)) else { return false };
    let prefix = |(address, _, width): (u128, u32, u32)| {
        address.checked_shr(width - outer.1.min(width)).unwrap_or_default()
    };
    inner.2 == outer.2 && inner.1 > outer.1 && prefix(inner) == prefix(outer)
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateNetworkPolicyPeer
pub(super) fn peer(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let is_set = |field: &str| !value[field].is_null();
    let by_label = is_set("podSelector") || is_set("namespaceSelector");
    if !by_label && !is_set("ipBlock") {
        errors.push(required(path, "must specify a peer"));
    } else if by_label && is_set("ipBlock") {
        let detail = "may not specify both ipBlock and another peer";
        errors.push(error(path, FieldErrorKind::Forbidden, detail));
    }
}
