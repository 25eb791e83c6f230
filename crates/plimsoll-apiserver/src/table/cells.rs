//! Cells that are more than the value of a field.
use jiff::Timestamp;
use serde_json::Value;

use super::age;

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";
const UNKNOWN: &str = "<unknown>";

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn joined<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

fn or_none(text: String) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

pub(super) fn none(_: &Value) -> Value {
    NONE.into()
}

pub(super) fn data_count(object: &Value) -> Value {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).into()
}

// Pods and what makes them.

fn fields_of(containers: &Value, field: &str) -> Value {
    joined(items(containers).iter().map(|container| string(&container[field]))).into()
}

pub(super) fn template_containers(object: &Value) -> Value {
    fields_of(&object["spec"]["template"]["spec"]["containers"], "name")
}

pub(super) fn template_images(object: &Value) -> Value {
    fields_of(&object["spec"]["template"]["spec"]["containers"], "image")
}

pub(super) fn pod_template_containers(object: &Value) -> Value {
    fields_of(&object["template"]["spec"]["containers"], "name")
}

pub(super) fn pod_template_images(object: &Value) -> Value {
    fields_of(&object["template"]["spec"]["containers"], "image")
}

pub(super) fn pod_template_labels(object: &Value) -> Value {
    or_none(labels(&object["template"]["metadata"]["labels"]))
}

pub(super) fn cron_containers(object: &Value) -> Value {
    fields_of(
        &object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"],
        "name",
    )
}

pub(super) fn cron_images(object: &Value) -> Value {
    fields_of(
        &object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"],
        "image",
    )
}

fn labels(labels: &Value) -> String {
    labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", string(value)))
        .collect::<Vec<_>>()
        .join(",")
}

fn label_selector(selector: &Value) -> String {
    let mut parts = Vec::new();
    let plain = labels(&selector["matchLabels"]);
    if !plain.is_empty() {
        parts.push(plain);
    }
    for expression in items(&selector["matchExpressions"]) {
        let key = string(&expression["key"]);
        let values = joined(items(&expression["values"]).iter().map(string));
        parts.push(match string(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

pub(super) fn selector(object: &Value) -> Value {
    let selector = &object["spec"]["selector"];
    or_none(if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
        label_selector(selector)
    } else {
        labels(selector)
    })
}

pub(super) fn service_selector(object: &Value) -> Value {
    or_none(labels(&object["spec"]["selector"]))
}

pub(super) fn network_policy_pods(object: &Value) -> Value {
    or_none(label_selector(&object["spec"]["podSelector"]))
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

pub(super) fn desired_replicas(object: &Value) -> Value {
    replicas(object).into()
}

pub(super) fn current_replicas(object: &Value) -> Value {
    number(&object["status"]["replicas"]).into()
}

pub(super) fn ready_replicas(object: &Value) -> Value {
    number(&object["status"]["readyReplicas"]).into()
}

pub(super) fn updated_replicas(object: &Value) -> Value {
    number(&object["status"]["updatedReplicas"]).into()
}

pub(super) fn available_replicas(object: &Value) -> Value {
    number(&object["status"]["availableReplicas"]).into()
}

pub(super) fn ready_of_desired(object: &Value) -> Value {
    format!(
        "{}/{}",
        number(&object["status"]["readyReplicas"]),
        replicas(object)
    )
    .into()
}

pub(super) fn daemons_desired(object: &Value) -> Value {
    number(&object["status"]["desiredNumberScheduled"]).into()
}

pub(super) fn daemons_current(object: &Value) -> Value {
    number(&object["status"]["currentNumberScheduled"]).into()
}

pub(super) fn daemons_ready(object: &Value) -> Value {
    number(&object["status"]["numberReady"]).into()
}

pub(super) fn daemons_updated(object: &Value) -> Value {
    number(&object["status"]["updatedNumberScheduled"]).into()
}

pub(super) fn daemons_available(object: &Value) -> Value {
    number(&object["status"]["numberAvailable"]).into()
}

pub(super) fn daemons_nodes(object: &Value) -> Value {
    or_none(labels(&object["spec"]["template"]["spec"]["nodeSelector"]))
}

pub(super) fn controller(object: &Value) -> Value {
    items(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
        .map_or_else(
            || NONE.into(),
            |owner| {
                let kind = string(&owner["kind"]).to_lowercase();
                let group = string(&owner["apiVersion"])
                    .split_once('/')
                    .map_or(String::new(), |(group, _)| format!(".{group}"));
                format!("{kind}{group}/{}", string(&owner["name"])).into()
            },
        )
}

pub(super) fn pod_ready(object: &Value) -> Value {
    let ready = items(&object["status"]["containerStatuses"])
        .iter()
        .filter(|status| status["ready"] == true)
        .count();
    format!("{ready}/{}", items(&object["spec"]["containers"]).len()).into()
}

pub(super) fn pod_status(object: &Value) -> Value {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    let waiting = items(&object["status"]["containerStatuses"])
        .iter()
        .rev()
        .find_map(|status| {
            ["waiting", "terminated"]
                .iter()
                .find_map(|state| status["state"][*state]["reason"].as_str())
        });
    waiting
        .or_else(|| object["status"]["reason"].as_str())
        .or_else(|| object["status"]["phase"].as_str())
        .unwrap_or_default()
        .into()
}

pub(super) fn pod_restarts(object: &Value) -> Value {
    items(&object["status"]["containerStatuses"])
        .iter()
        .map(|status| number(&status["restartCount"]))
        .sum::<i64>()
        .to_string()
        .into()
}

// Jobs.

fn has_condition(object: &Value, condition_type: &str) -> bool {
    items(&object["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == condition_type && condition["status"] == "True")
}

pub(super) fn job_status(object: &Value) -> Value {
    for (condition, shown) in [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ] {
        if has_condition(object, condition) {
            return shown.into();
        }
    }
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    "Running".into()
}

pub(super) fn job_completions(object: &Value) -> Value {
    let succeeded = number(&object["status"]["succeeded"]);
    match object["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match number(&object["spec"]["parallelism"]) {
            parallel if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
            _ => format!("{succeeded}/1"),
        },
    }
    .into()
}

pub(super) fn job_duration(object: &Value, now: Timestamp) -> Value {
    let time = |field: &str| -> Option<Timestamp> {
        object["status"][field].as_str().and_then(|text| text.parse().ok())
    };
    match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => {
            age::format_seconds(end.as_second() - start.as_second()).into()
        }
        (Some(start), None) => age::format_seconds(now.as_second() - start.as_second()).into(),
        (None, _) => "".into(),
    }
}

pub(super) fn cron_suspended(object: &Value) -> Value {
    // Shown the way Go prints what a pointer points to.
    if object["spec"]["suspend"] == true { "True" } else { "False" }.into()
}

pub(super) fn cron_active(object: &Value) -> Value {
    items(&object["status"]["active"]).len().into()
}

pub(super) fn cron_last(object: &Value, now: Timestamp) -> Value {
    match object["status"]["lastScheduleTime"].as_str() {
        Some(time) => age::since(Some(time), now).into(),
        None => NONE.into(),
    }
}

// Events.

fn time_since(times: &[&Value], now: Timestamp) -> Value {
    let time = times.iter().find_map(|time| time.as_str());
    age::since(time, now).into()
}

pub(super) fn event_last_seen(object: &Value, now: Timestamp) -> Value {
    time_since(
        &[
            &object["series"]["lastObservedTime"],
            &object["lastTimestamp"],
            &object["deprecatedLastTimestamp"],
            &object["eventTime"],
        ],
        now,
    )
}

pub(super) fn event_first_seen(object: &Value, now: Timestamp) -> Value {
    time_since(
        &[
            &object["firstTimestamp"],
            &object["deprecatedFirstTimestamp"],
            &object["eventTime"],
        ],
        now,
    )
}

fn either<'a>(object: &'a Value, one: &str, other: &str) -> &'a Value {
    object.get(one).unwrap_or(&object[other])
}

pub(super) fn event_object(object: &Value) -> Value {
    let subject = either(object, "involvedObject", "regarding");
    format!("{}/{}", string(&subject["kind"]).to_lowercase(), string(&subject["name"])).into()
}

pub(super) fn event_subobject(object: &Value) -> Value {
    string(&either(object, "involvedObject", "regarding")["fieldPath"]).into()
}

pub(super) fn event_source(object: &Value) -> Value {
    let source = either(object, "source", "deprecatedSource");
    let (component, host) = (string(&source["component"]), string(&source["host"]));
    let component = if component.is_empty() {
        string(either(object, "reportingComponent", "reportingController"))
    } else {
        component
    };
    if host.is_empty() {
        component.into()
    } else {
        format!("{component}, {host}").into()
    }
}

pub(super) fn event_message(object: &Value) -> Value {
    string(either(object, "message", "note")).trim().into()
}

pub(super) fn event_count(object: &Value) -> Value {
    let series = number(&object["series"]["count"]);
    let count = number(either(object, "count", "deprecatedCount"));
    series.max(count).max(1).into()
}

// Services and the network.

pub(super) fn service_external(object: &Value) -> Value {
    let spec = &object["spec"];
    let addresses = joined(items(&spec["externalIPs"]).iter().map(string));
    match string(&spec["type"]) {
        "ExternalName" => string(&spec["externalName"]).into(),
        "LoadBalancer" => {
            let balancers = joined(
                items(&object["status"]["loadBalancer"]["ingress"])
                    .iter()
                    .map(|ingress| match string(&ingress["ip"]) {
                        "" => string(&ingress["hostname"]),
                        address => address,
                    }),
            );
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

pub(super) fn service_ports(object: &Value) -> Value {
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

pub(super) fn endpoints(object: &Value) -> Value {
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

pub(super) fn slice_ports(object: &Value) -> Value {
    let ports: Vec<String> = items(&object["ports"]).iter().map(|port| shown(&port["port"])).collect();
    if ports.is_empty() { UNSET.into() } else { ports.join(",").into() }
}

pub(super) fn slice_endpoints(object: &Value) -> Value {
    let addresses = joined(
        items(&object["endpoints"])
            .iter()
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .map(string),
    );
    if addresses.is_empty() { UNSET.into() } else { addresses.into() }
}

pub(super) fn ingress_hosts(object: &Value) -> Value {
    let hosts = joined(
        items(&object["spec"]["rules"])
            .iter()
            .map(|rule| string(&rule["host"]))
            .filter(|host| !host.is_empty()),
    );
    if hosts.is_empty() { "*".into() } else { hosts.into() }
}

pub(super) fn ingress_address(object: &Value) -> Value {
    joined(
        items(&object["status"]["loadBalancer"]["ingress"])
            .iter()
            .map(|ingress| match string(&ingress["ip"]) {
                "" => string(&ingress["hostname"]),
                address => address,
            }),
    )
    .into()
}

pub(super) fn ingress_ports(object: &Value) -> Value {
    if items(&object["spec"]["tls"]).is_empty() { "80" } else { "80, 443" }.into()
}

pub(super) fn ingress_class_parameters(object: &Value) -> Value {
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

// Nodes and volumes.

pub(super) fn node_status(object: &Value) -> Value {
    let ready = items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Ready");
    let mut text = match ready.map(|condition| string(&condition["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    text.into()
}

pub(super) fn node_roles(object: &Value) -> Value {
    let roles: Vec<&str> = object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            key.strip_prefix("node-role.kubernetes.io/")
                .or_else(|| (key == "kubernetes.io/role").then(|| string(value)))
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.join(","))
}

fn node_address(object: &Value, kind: &str) -> Value {
    items(&object["status"]["addresses"])
        .iter()
        .find(|address| address["type"] == kind)
        .map_or_else(|| NONE.into(), |address| address["address"].clone())
}

pub(super) fn node_internal_address(object: &Value) -> Value {
    node_address(object, "InternalIP")
}

pub(super) fn node_external_address(object: &Value) -> Value {
    node_address(object, "ExternalIP")
}

pub(super) fn access_modes(object: &Value) -> Value {
    joined(items(&object["spec"]["accessModes"]).iter().map(|mode| match string(mode) {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }))
    .into()
}

pub(super) fn volume_claim(object: &Value) -> Value {
    let claim = &object["spec"]["claimRef"];
    if claim.is_null() {
        return "".into();
    }
    format!("{}/{}", string(&claim["namespace"]), string(&claim["name"])).into()
}

pub(super) fn storage_expands(object: &Value) -> Value {
    (object["allowVolumeExpansion"] == true).into()
}

fn quota(object: &Value, limits: bool) -> Value {
    object["status"]["hard"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = object["status"]["used"].get(name).map_or("0".to_owned(), shown);
            format!("{name}: {used}/{}", shown(hard))
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

pub(super) fn quota_requests(object: &Value) -> Value {
    quota(object, false)
}

pub(super) fn quota_limits(object: &Value) -> Value {
    quota(object, true)
}

// Authorization.

pub(super) fn bound_role(object: &Value) -> Value {
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

pub(super) fn bound_users(object: &Value) -> Value {
    bound(object, "User")
}

pub(super) fn bound_groups(object: &Value) -> Value {
    bound(object, "Group")
}

pub(super) fn bound_accounts(object: &Value) -> Value {
    bound(object, "ServiceAccount")
}

// Extensions of the API.

pub(super) fn definition_versions(object: &Value) -> Value {
    items(&object["spec"]["versions"])
        .iter()
        .map(|version| {
            let name = string(&version["name"]);
            if version["storage"] == true { format!("{name}(storage)") } else { name.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(",")
        .into()
}

pub(super) fn definition_short_names(object: &Value) -> Value {
    joined(items(&object["spec"]["names"]["shortNames"]).iter().map(string)).into()
}

pub(super) fn definition_established(object: &Value) -> Value {
    has_condition(object, "Established").into()
}

pub(super) fn api_service_target(object: &Value) -> Value {
    let service = &object["spec"]["service"];
    if service.is_null() {
        return "Local".into();
    }
    format!("{}/{}", string(&service["namespace"]), string(&service["name"])).into()
}

pub(super) fn api_service_available(object: &Value) -> Value {
    items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Available")
        .map_or_else(
            || "Unknown".into(),
            |condition| match string(&condition["status"]) {
                "True" => "True".into(),
                status => format!("{status} ({})", string(&condition["reason"])).into(),
            },
        )
}

pub(super) fn webhook_count(object: &Value) -> Value {
    items(&object["webhooks"]).len().into()
}

pub(super) fn validation_count(object: &Value) -> Value {
    items(&object["spec"]["validations"]).len().into()
}

pub(super) fn policy_parameter_kind(object: &Value) -> Value {
    let kind = &object["spec"]["paramKind"];
    if kind.is_null() {
        return UNSET.into();
    }
    format!("{}/{}", string(&kind["apiVersion"]), string(&kind["kind"])).into()
}

pub(super) fn policy_parameter(object: &Value) -> Value {
    let parameter = &object["spec"]["paramRef"];
    if parameter.is_null() {
        return UNSET.into();
    }
    match string(&parameter["namespace"]) {
        "" => string(&parameter["name"]).into(),
        namespace => format!("{namespace}/{}", string(&parameter["name"])).into(),
    }
}

// Scaling and scheduling.

fn amount_or(value: &Value, missing: &str) -> Value {
    if value.is_null() { missing.into() } else { shown(value).into() }
}

pub(super) fn budget_min(object: &Value) -> Value {
    amount_or(&object["spec"]["minAvailable"], "N/A")
}

pub(super) fn budget_max(object: &Value) -> Value {
    amount_or(&object["spec"]["maxUnavailable"], "N/A")
}

pub(super) fn priority_is_default(object: &Value) -> Value {
    (object["globalDefault"] == true).into()
}

pub(super) fn autoscaler_reference(object: &Value) -> Value {
    let target = &object["spec"]["scaleTargetRef"];
    format!("{}/{}", string(&target["kind"]), string(&target["name"])).into()
}

pub(super) fn autoscaler_min(object: &Value) -> Value {
    amount_or(&object["spec"]["minReplicas"], UNSET)
}

pub(super) fn autoscaler_replicas(object: &Value) -> Value {
    number(&object["status"]["currentReplicas"]).into()
}

pub(super) fn autoscaler_targets(object: &Value) -> Value {
    if let Some(percentage) = object["spec"]["targetCPUUtilizationPercentage"].as_i64() {
        return format!("cpu: {UNKNOWN}/{percentage}%").into();
    }
    let targets: Vec<String> = items(&object["spec"]["metrics"])
        .iter()
        .map(|metric| {
            let resource = &metric["resource"];
            let target = &resource["target"];
            let wanted = target["averageUtilization"]
                .as_i64()
                .map_or_else(|| shown(&target["averageValue"]), |percent| format!("{percent}%"));
            format!("{}: {UNKNOWN}/{wanted}", string(&resource["name"]))
        })
        .collect();
    or_none(targets.join(", "))
}
