//! Cells of services and the network.
use serde_json::Value;

use super::{NONE, UNSET, items, joined, label_selector, labels, number, or_none, shown, string};

pub(in crate::http::table) fn service_external(object: &Value) -> Value {
    let spec = &object["spec"];
    let addresses = joined(items(&spec["externalIPs"]).iter().map(string));
    match string(&spec["type"]) {
        "ExternalName" => string(&spec["externalName"]).into(),
        "LoadBalancer" => {
            let balancers =
                joined(items(&object["status"]["loadBalancer"]["ingress"]).iter().map(|ingress| {
                    match string(&ingress["ip"]) {
                        "" => string(&ingress["hostname"]),
                        address => address,
                    }
                }));
            match (balancers.is_empty(), addresses.is_empty()) {
                (true, true) => "<pending>".into(),
                (true, false) => addresses.into(),
                (false, true) => balancers.into(),
                (false, false) => format!("{balancers},{addresses}").into(),
            }
        }
        _ => or_none(addresses),
    }
}

pub(in crate::http::table) fn service_ports(object: &Value) -> Value {
    let ports: Vec<String> = items(&object["spec"]["ports"])
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match number(&port["nodePort"]) {
                0 => format!("{}/{protocol}", number(&port["port"])),
                node_port => format!("{}:{node_port}/{protocol}", number(&port["port"])),
            }
        })
        .collect();
    or_none(ports.join(","))
}

pub(in crate::http::table) fn endpoints(object: &Value) -> Value {
    let mut found = Vec::new();
    for subset in items(&object["subsets"]) {
        for address in items(&subset["addresses"]) {
            for port in items(&subset["ports"]) {
                found.push(format!("{}:{}", string(&address["ip"]), number(&port["port"])));
            }
        }
    }
    or_none(found.join(","))
}

pub(in crate::http::table) fn slice_ports(object: &Value) -> Value {
    let ports: Vec<String> =
        items(&object["ports"]).iter().map(|port| shown(&port["port"])).collect();
    if ports.is_empty() { UNSET.into() } else { ports.join(",").into() }
}

pub(in crate::http::table) fn slice_endpoints(object: &Value) -> Value {
    let addresses = joined(
        items(&object["endpoints"])
            .iter()
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .map(string),
    );
    if addresses.is_empty() { UNSET.into() } else { addresses.into() }
}

pub(in crate::http::table) fn ingress_hosts(object: &Value) -> Value {
    let hosts = joined(
        items(&object["spec"]["rules"])
            .iter()
            .map(|rule| string(&rule["host"]))
            .filter(|host| !host.is_empty()),
    );
    if hosts.is_empty() { "*".into() } else { hosts.into() }
}

pub(in crate::http::table) fn ingress_address(object: &Value) -> Value {
    joined(items(&object["status"]["loadBalancer"]["ingress"]).iter().map(|ingress| {
        match string(&ingress["ip"]) {
            "" => string(&ingress["hostname"]),
            address => address,
        }
    }))
    .into()
}

pub(in crate::http::table) fn ingress_ports(object: &Value) -> Value {
    if items(&object["spec"]["tls"]).is_empty() { "80" } else { "80, 443" }.into()
}

pub(in crate::http::table) fn ingress_class_parameters(object: &Value) -> Value {
    let parameters = &object["spec"]["parameters"];
    if parameters.is_null() {
        return NONE.into();
    }
    let group = match string(&parameters["apiGroup"]) {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("{}{group}/{}", string(&parameters["kind"]), string(&parameters["name"])).into()
}

pub(in crate::http::table) fn service_selector(object: &Value) -> Value {
    or_none(labels(&object["spec"]["selector"]))
}

pub(in crate::http::table) fn network_policy_pods(object: &Value) -> Value {
    or_none(label_selector(&object["spec"]["podSelector"]))
}
