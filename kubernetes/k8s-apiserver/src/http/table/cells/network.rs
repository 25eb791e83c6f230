//! Cells of services and the network.
use serde_json::Value;

use super::{Context, items, joined, number, shown, string};

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: getServiceExternalIP
pub(in crate::http::table) fn service_external(object: &Value, _: &Context) -> Value {
    let spec = &object["spec"];
    let addresses = joined(items(&spec["externalIPs"]).iter().map(string));
    match string(&spec["type"]) {
        "ExternalName" => string(&spec["externalName"]).into(),
        "LoadBalancer" => {
            let balancers = load_balancer_addresses(&object["status"]["loadBalancer"]["ingress"]);
            match (balancers.is_empty(), addresses.is_empty()) {
                (true, true) => "<pending>".into(),
                (true, false) => addresses.into(),
                (false, true) => balancers.into(),
                (false, false) => format!("{balancers},{addresses}").into(),
            }
        }
        _ if addresses.is_empty() => "<none>".into(),
        _ => addresses.into(),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: makePortString
pub(in crate::http::table) fn service_ports(ports: &Value, _: &Context) -> Value {
    let ports: Vec<String> = items(ports)
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match number(&port["nodePort"]) {
                0 => format!("{}/{protocol}", number(&port["port"])),
                node_port => format!("{}:{node_port}/{protocol}", number(&port["port"])),
            }
        })
        .collect();
    ports.join(",").into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatEndpoints
pub(in crate::http::table) fn endpoints(subsets: &Value, _: &Context) -> Value {
    let mut found = Vec::new();
    for subset in items(subsets) {
        for address in items(&subset["addresses"]) {
            for port in items(&subset["ports"]) {
                found.push(format!("{}:{}", string(&address["ip"]), number(&port["port"])));
            }
        }
    }
    found.join(",").into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatDiscoveryPorts
pub(in crate::http::table) fn slice_ports(ports: &Value, _: &Context) -> Value {
    let ports: Vec<String> = items(ports).iter().map(|port| shown(&port["port"])).collect();
    ports.join(",").into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatDiscoveryEndpoints
pub(in crate::http::table) fn slice_addresses(endpoints: &Value, _: &Context) -> Value {
    let endpoints = items(endpoints).iter();
    joined(endpoints.flat_map(|endpoint| items(&endpoint["addresses"])).map(string)).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatHosts
pub(in crate::http::table) fn ingress_hosts(rules: &Value, _: &Context) -> Value {
    let hosts = items(rules).iter().map(|rule| string(&rule["host"]));
    joined(hosts.filter(|host| !host.is_empty())).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: ingressLoadBalancerStatusStringer
pub(in crate::http::table) fn load_balancer(ingress: &Value, _: &Context) -> Value {
    load_balancer_addresses(ingress).into()
}

fn load_balancer_addresses(ingress: &Value) -> String {
    joined(items(ingress).iter().map(|ingress| match string(&ingress["ip"]) {
        "" => string(&ingress["hostname"]),
        address => address,
    }))
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatPorts
pub(in crate::http::table) fn ingress_ports(tls: &Value, _: &Context) -> Value {
    if items(tls).is_empty() { "80" } else { "80, 443" }.into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printIngressClass
pub(in crate::http::table) fn ingress_class_parameters(parameters: &Value, _: &Context) -> Value {
    let group = match string(&parameters["apiGroup"]) {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("{}{group}/{}", string(&parameters["kind"]), string(&parameters["name"])).into()
}
