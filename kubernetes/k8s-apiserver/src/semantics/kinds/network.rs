//! Allocation of cluster IPs and node ports to services.
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use k8s_schema::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use crate::semantics::cluster::Cluster;
use crate::semantics::metadata;
use crate::semantics::registry::ApiResource;
use crate::semantics::settings::ServiceRange;
use crate::status::{ApiError, Result};

/// Ports that services get on all nodes.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Gives a service the addresses and node ports that it needs and does not have.
///
/// # Errors
/// When it requests an address that another service has or that is out of range, or when no address
/// is left.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go: allocateCreate
pub(crate) fn allocate(
    cluster: &Cluster,
    resource: &ApiResource,
    live: Option<&Value>,
    object: &mut Value,
) -> Result<()> {
    if !resource.is("", "Service") {
        return Ok(());
    }
    let taken = Taken::by_others(cluster, resource, object);
    let kind = object["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    if kind == "ExternalName" {
        if let Some(spec) = object["spec"].as_object_mut() {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(field);
            }
        }
        return Ok(());
    }
    allocate_address(cluster.settings.service_range, resource, &taken, object)?;
    if kind == "NodePort" || kind == "LoadBalancer" {
        allocate_ports(&taken, live, object);
    }
    Ok(())
}

/// Addresses and ports of the other services.
struct Taken {
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
}

impl Taken {
    fn by_others(cluster: &Cluster, resource: &ApiResource, object: &Value) -> Self {
        let mut taken = Self { addresses: BTreeSet::new(), ports: BTreeSet::new() };
        let uid = metadata::text(object, "uid");
        for stored in cluster.store.list(&resource.storage, None) {
            if &*stored.uid == uid {
                continue;
            }
            let service = stored.decode();
            let spec = &service["spec"];
            if let Some(address) = spec["clusterIP"].as_str() {
                taken.addresses.insert(address.to_owned());
            }
            taken.ports.extend(
                spec["ports"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|port| port["nodePort"].as_i64()),
            );
        }
        taken
    }
}

/// Upstream: k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go: txnAllocClusterIPs
fn allocate_address(
    range: ServiceRange,
    resource: &ApiResource,
    taken: &Taken,
    object: &mut Value,
) -> Result<()> {
    let is_outside =
        |address: &str| address.parse().is_ok_and(|address: Ipv4Addr| !range.contains(address));
    let name = metadata::text(object, "name").to_owned();
    let spec = &mut object["spec"];
    let asked = spec["clusterIP"]
        .as_str()
        .or_else(|| spec["clusterIPs"][0].as_str())
        .filter(|address| !address.is_empty())
        .map(str::to_owned);
    let address = match asked {
        Some(address) if address != "None" && taken.addresses.contains(&address) => {
            return Err(ApiError::invalid(
                resource.kind_subject(),
                &name,
                &[FieldError::new(
                    "spec.clusterIPs",
                    FieldErrorKind::Invalid,
                    format!("failed to allocate IP {address}: provided IP is already allocated"),
                )
                .with_value(json!([address]))],
            ));
        }
        Some(address) if is_outside(&address) => {
            let detail = format!(
                "failed to allocate IP {address}: the provided IP ({address}) is not in the valid \
                 range. The range of valid IPs is {range}"
            );
            let error = FieldError::new("spec.clusterIPs", FieldErrorKind::Invalid, detail);
            let errors = [error.with_value(json!([address]))];
            return Err(ApiError::invalid(resource.kind_subject(), &name, &errors));
        }
        Some(address) => address,
        None => range
            .addresses()
            .map(|bits| Ipv4Addr::from(bits).to_string())
            .find(|address| !taken.addresses.contains(address))
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?,
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
    if let Some(spec) = spec.as_object_mut() {
        // A headless service without selector may have endpoints of either family.
        let is_free = spec["clusterIP"] == "None" && !spec.contains_key("selector");
        let families = if is_free { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
        let policy = if is_free { "RequireDualStack" } else { "SingleStack" };
        spec.entry("ipFamilies").or_insert(families);
        spec.entry("ipFamilyPolicy").or_insert_with(|| policy.into());
    }
    Ok(())
}

/// Upstream: k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go: txnAllocNodePorts
fn allocate_ports(taken: &Taken, live: Option<&Value>, object: &mut Value) {
    let mut used = taken.ports.clone();
    let before: Vec<Value> =
        live.and_then(|live| live["spec"]["ports"].as_array()).cloned().unwrap_or_default();
    for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_i64().is_some_and(|number| number > 0) {
            continue;
        }
        let kept = before
            .iter()
            .find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"])
            .and_then(|old| old["nodePort"].as_i64());
        let number = kept.or_else(|| NODE_PORTS.clone().find(|number| !used.contains(number)));
        if let Some(number) = number {
            used.insert(number);
            port["nodePort"] = number.into();
        }
    }
}
