//! Built-in kinds that are rich in merge directives, and the shapes of what is sent of them.
use serde_json::json;

use super::random::Random;
use super::shape::Ownership::{Atomic, Granular};
use super::shape::{Field, Shape, Taste};
use super::target::{Target, Version};

/// All built-in targets.
pub(super) fn all() -> Vec<Target> {
    vec![
        deployment(),
        pod_template(),
        service(),
        config_map(),
        service_account(),
        disruption_budget(),
        ingress(),
        network_policy(),
        autoscaler(),
        cron_job(),
        node(),
        webhooks(),
    ]
}

fn target(
    kind: &'static str,
    plural: &'static str,
    group: &str,
    version: &str,
    fields: Vec<Field>,
) -> Target {
    let shape = Shape::Object(fields, Granular);
    Target {
        kind,
        plural,
        namespaced: true,
        versions: vec![Version::new(group, version, shape)],
        has_status: false,
        has_scale: false,
        definition: None,
    }
}

fn object(fields: Vec<Field>) -> Shape {
    Shape::Object(fields, Granular)
}

fn text_map() -> Shape {
    Shape::Map(Box::new(Shape::words(&["x", "y", ""])), Granular)
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the values in place")]
fn any(values: serde_json::Value) -> Shape {
    Shape::OneOf("object", values.as_array().cloned().unwrap_or_default())
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the shape in place")]
fn with_status(mut target: Target, status: Shape) -> Target {
    target.has_status = true;
    for version in &mut target.versions {
        if let Shape::Object(fields, _) = &mut version.shape {
            fields.push(Field::new("status", status.clone()));
        }
    }
    target
}

fn container() -> Vec<Field> {
    let env = vec![
        Field::required("name", Shape::words(&["A", "B", "C"])),
        Field::new("value", Shape::words(&["1", "2", ""])),
    ];
    let mounts = vec![
        Field::required("mountPath", Shape::words(&["/a", "/b"])),
        Field::required("name", Shape::words(&["v1"])),
        Field::new("readOnly", any(json!([true, false]))),
    ];
    vec![
        Field::required("name", Shape::words(&["c1", "c2", "c3"])),
        Field::required("image", Shape::words(&["i:1", "i:2", "i"])),
        Field::new("command", Shape::List(Box::new(Shape::words(&["a", "b"])))),
        Field::new("env", Shape::ListMap(vec!["name"], env)),
        Field::new("ports", Shape::ListMap(vec!["containerPort", "protocol"], container_port())),
        Field::new("volumeMounts", Shape::ListMap(vec!["mountPath"], mounts)),
        Field::new(
            "resources",
            any(json!([
                {"requests": {"cpu": "1", "memory": "1Gi"}},
                {"limits": {"cpu": "1"}},
                {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
                {}
            ])),
        ),
        Field::new(
            "livenessProbe",
            any(json!([
                {"exec": {"command": ["x"]}},
                {"httpGet": {"port": 80}, "periodSeconds": 3},
                {"tcpSocket": {"port": "p"}}
            ])),
        ),
        Field::new("securityContext", any(json!([{"privileged": true}, {"runAsUser": 0}, {}]))),
    ]
}

fn container_port() -> Vec<Field> {
    let mut protocol = Field::new("protocol", Shape::words(&["TCP", "UDP"]));
    protocol.default = Some(json!("TCP"));
    vec![
        Field::required("containerPort", Shape::numbers(&[80, 81])),
        protocol,
        Field::new("name", Shape::words(&["p"])),
    ]
}

fn pod_spec() -> Shape {
    let volumes = any(json!([
        [{"name": "v1", "emptyDir": {}}],
        [{"name": "v1", "configMap": {"name": "c"}}],
        [{"name": "v2", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "v1", "emptyDir": {}}]
    ]));
    let tolerations = any(json!([
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
    ]));
    object(vec![
        Field::required("containers", Shape::ListMap(vec!["name"], container()).filled()),
        Field::required("volumes", volumes),
        Field::new("tolerations", Shape::List(Box::new(tolerations))),
        Field::new("nodeSelector", text_map()),
        Field::new("serviceAccountName", Shape::words(&["default", "other"])),
        Field::new("terminationGracePeriodSeconds", Shape::numbers(&[5, 30])),
        Field::new("securityContext", any(json!([{"fsGroup": 1}, {}]))),
        Field::new(
            "imagePullSecrets",
            Shape::ListMap(
                vec!["name"],
                vec![Field::required("name", Shape::words(&["s1", "s2"]))],
            ),
        ),
    ])
}

fn template() -> Shape {
    object(vec![
        Field::required("metadata", Shape::fixed(json!({"labels": {"app": "x"}}))),
        Field::required("spec", pod_spec()),
    ])
}

fn selector() -> Field {
    Field::required("selector", Shape::fixed(json!({"matchLabels": {"app": "x"}})))
}

fn conditions(types: &[&str], times: &[&'static str]) -> Shape {
    let mut fields: Vec<Field> = times
        .iter()
        .map(|name| Field::required(name, Shape::words(&["2020-01-01T00:00:00Z"])))
        .collect();
    fields.extend(condition(types));
    Shape::ListMap(vec!["type"], fields)
}

fn condition(types: &[&str]) -> Vec<Field> {
    vec![
        Field::required("type", Shape::words(types)),
        Field::required("status", Shape::words(&["True", "False"])),
        Field::new("message", Shape::words(&["m", ""])),
    ]
}

fn deployment() -> Target {
    let strategy = any(json!([
        {"type": "Recreate"},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        {"rollingUpdate": {"maxUnavailable": "10%"}},
        {}
    ]));
    let spec = object(vec![
        Field::new("replicas", Shape::numbers(&[0, 1, 2])),
        selector(),
        Field::required("template", template()),
        Field::new("strategy", strategy),
        Field::new("minReadySeconds", Shape::numbers(&[0, 5])),
        Field::new("paused", any(json!([true, false]))),
    ]);
    let status = object(vec![
        Field::new("replicas", Shape::numbers(&[0, 1])),
        Field::new("observedGeneration", Shape::numbers(&[1, 2])),
        Field::new(
            "conditions",
            conditions(&["Available", "Progressing"], &["lastUpdateTime", "lastTransitionTime"]),
        ),
    ]);
    let fields = vec![Field::required("spec", spec)];
    let mut target = with_status(target("Deployment", "deployments", "apps", "v1", fields), status);
    target.has_scale = true;
    target
}

fn pod_template() -> Target {
    target("PodTemplate", "podtemplates", "", "v1", vec![Field::required("template", template())])
}

fn service() -> Target {
    let mut protocol = Field::new("protocol", Shape::words(&["TCP", "UDP"]));
    protocol.default = Some(json!("TCP"));
    let ports = vec![
        Field::required("port", Shape::numbers(&[80, 81, 82])),
        protocol,
        Field::required("name", Shape::words(&["a", "b", "c"])),
        Field::new("targetPort", any(json!([8080, "http", 0]))),
        Field::new("appProtocol", Shape::words(&["http"])),
    ];
    let spec = object(vec![
        Field::required("clusterIP", Shape::words(&["None"])),
        Field::new("ports", Shape::ListMap(vec!["port", "protocol"], ports)),
        Field::required("selector", any(json!([{"a": "b"}, {"a": "c", "d": ""}]))),
        Field::new("sessionAffinity", Shape::words(&["None", "ClientIP"])),
        Field::new("publishNotReadyAddresses", any(json!([true, false]))),
    ]);
    let status = object(vec![Field::new("conditions", condition_list())]);
    with_status(
        target("Service", "services", "", "v1", vec![Field::required("spec", spec)]),
        status,
    )
}

/// Conditions of `metav1`, all of whose fields are required.
fn condition_list() -> Shape {
    let time = Shape::words(&["2020-01-01T00:00:00Z"]);
    Shape::ListMap(
        vec!["type"],
        vec![
            Field::required("type", Shape::words(&["Ready", "Other"])),
            Field::required("status", Shape::words(&["True", "False"])),
            Field::required("reason", Shape::words(&["R", "S"])),
            Field::required("message", Shape::words(&["m", ""])),
            Field::required("lastTransitionTime", time),
        ],
    )
}

fn config_map() -> Target {
    let value = || Shape::words(&["x", "y", "", "long\ntext"]);
    // The keys of a config map are file names.
    let data =
        ["one", "two", "three.txt"].into_iter().map(|key| Field::new(key, value())).collect();
    target(
        "ConfigMap",
        "configmaps",
        "",
        "v1",
        vec![
            Field::new("data", object(data)),
            Field::new("binaryData", object(vec![Field::new("bin", any(json!(["YQ==", ""])))])),
            Field::new("immutable", any(json!([false]))),
        ],
    )
}

fn service_account() -> Target {
    let names = || vec![Field::required("name", Shape::words(&["s1", "s2", "s3"]))];
    target(
        "ServiceAccount",
        "serviceaccounts",
        "",
        "v1",
        vec![
            Field::new("secrets", Shape::ListMap(vec!["name"], names())),
            Field::new("imagePullSecrets", Shape::List(Box::new(object(names())))),
            Field::new("automountServiceAccountToken", any(json!([true, false]))),
        ],
    )
}

fn disruption_budget() -> Target {
    let spec = object(vec![
        Field::new("maxUnavailable", any(json!([1, "10%", 0]))),
        selector(),
        Field::new("unhealthyPodEvictionPolicy", Shape::words(&["AlwaysAllow"])),
    ]);
    let status = object(vec![
        Field::required("disruptionsAllowed", Shape::numbers(&[0, 1])),
        Field::required("currentHealthy", Shape::numbers(&[0, 1])),
        Field::required("desiredHealthy", Shape::numbers(&[0, 1])),
        Field::required("expectedPods", Shape::numbers(&[0, 1])),
        Field::new("conditions", condition_list()),
    ]);
    let fields = vec![Field::required("spec", spec)];
    with_status(
        target("PodDisruptionBudget", "poddisruptionbudgets", "policy", "v1", fields),
        status,
    )
}

fn ingress() -> Target {
    let backend = any(json!([
        {"service": {"name": "s", "port": {"number": 80}}},
        {"service": {"name": "s", "port": {"name": "http"}}}
    ]));
    let path = object(vec![
        Field::required("path", Shape::words(&["/", "/a"])),
        Field::required("pathType", Shape::words(&["Prefix", "Exact"])),
        Field::required("backend", backend.clone()),
    ]);
    let http = any(json!([
        {"paths": [path.value(&mut Random::new(1, 0), Taste::WHOLE)]},
        {"paths": [path.value(&mut Random::new(2, 0), Taste::WHOLE)]}
    ]));
    let rule = object(vec![
        Field::new("host", Shape::words(&["a.example.com", "b.example.com"])),
        Field::new("http", http),
    ]);
    let tls = object(vec![
        Field::new("hosts", Shape::List(Box::new(Shape::words(&["a.example.com"])))),
        Field::new("secretName", Shape::words(&["s"])),
    ]);
    let spec = object(vec![
        Field::required("defaultBackend", backend),
        Field::new("rules", Shape::List(Box::new(rule))),
        Field::new("tls", Shape::List(Box::new(tls))),
        Field::new("ingressClassName", Shape::words(&["c"])),
    ]);
    let status = object(vec![Field::new(
        "loadBalancer",
        any(json!([{"ingress": [{"ip": "1.2.3.4"}]}, {"ingress": [{"hostname": "a.b"}]}, {}])),
    )]);
    let fields = vec![Field::required("spec", spec)];
    with_status(target("Ingress", "ingresses", "networking.k8s.io", "v1", fields), status)
}

fn network_policy() -> Target {
    let peer = any(json!([
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
        {"podSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {}}
    ]));
    // Of this kind alone an empty list in place of none is a new generation.
    let some = |item: &Shape| {
        let lists = (0..4).map(|seed| {
            let mut random = Random::new(seed, 0);
            let count = 1 + random.below(2);
            (0..count).map(|_| item.value(&mut random, Taste::WHOLE)).collect()
        });
        Shape::OneOf("array", lists.collect())
    };
    let port = any(json!([{"port": 80}, {"port": "http", "protocol": "UDP"}, {}]));
    let rule = |direction: &'static str| {
        some(&object(vec![
            Field::required(direction, some(&peer)),
            Field::new("ports", some(&port)),
        ]))
    };
    let spec = object(vec![
        Field::required("podSelector", any(json!([{}, {"matchLabels": {"app": "x"}}]))),
        Field::new("ingress", rule("from")),
        Field::new("egress", rule("to")),
        Field::new("policyTypes", Shape::fixed(json!(["Ingress"]))),
    ]);
    target(
        "NetworkPolicy",
        "networkpolicies",
        "networking.k8s.io",
        "v1",
        vec![Field::required("spec", spec)],
    )
}

fn autoscaler() -> Target {
    let reference = || {
        let fixed = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        Field::required("scaleTargetRef", Shape::fixed(fixed))
    };
    let metric = any(json!([
        {"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}},
        {"type": "Resource", "resource": {"name": "memory",
            "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
    ]));
    let spec = vec![
        reference(),
        Field::new("minReplicas", Shape::numbers(&[1, 2])),
        Field::required("maxReplicas", Shape::numbers(&[3, 4])),
        Field::new("metrics", Shape::List(Box::new(metric))),
    ];
    target(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "autoscaling",
        "v2",
        vec![Field::required("spec", object(spec))],
    )
}

fn cron_job() -> Target {
    let job = object(vec![Field::required(
        "spec",
        object(vec![
            Field::new("backoffLimit", Shape::numbers(&[0, 6])),
            Field::new("completions", Shape::numbers(&[1, 2])),
            Field::required("template", object(vec![Field::required("spec", job_pod())])),
        ]),
    )]);
    let spec = object(vec![
        Field::required("schedule", Shape::words(&["* * * * *", "@daily"])),
        Field::required("jobTemplate", job),
        Field::new("suspend", any(json!([true, false]))),
        Field::new("concurrencyPolicy", Shape::words(&["Allow", "Forbid"])),
        Field::new("timeZone", Shape::words(&["Etc/UTC"])),
    ]);
    let status = object(vec![Field::new(
        "active",
        Shape::List(Box::new(any(json!([{"kind": "Job", "name": "j"}])))),
    )]);
    let fields = vec![Field::required("spec", spec)];
    with_status(target("CronJob", "cronjobs", "batch", "v1", fields), status)
}

fn job_pod() -> Shape {
    let Shape::Object(mut fields, ownership) = pod_spec() else { return pod_spec() };
    fields.push(Field::required("restartPolicy", Shape::words(&["Never", "OnFailure"])));
    Shape::Object(fields, ownership)
}

fn node() -> Target {
    let taint = (
        json!({"key": "a", "effect": "NoSchedule"}),
        json!({"key": "b", "value": "v", "effect": "NoExecute"}),
        // What a real server puts on every new node.
        json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}),
    );
    let spec = object(vec![
        Field::new("unschedulable", any(json!([true, false]))),
        Field::required("taints", any(json!([[taint.0, taint.2], [taint.1, taint.2]]))),
        Field::required("providerID", Shape::words(&["p://1"])),
    ]);
    let address = vec![
        Field::required("type", Shape::words(&["InternalIP", "Hostname"])),
        Field::required("address", Shape::words(&["1.2.3.4", "h"])),
    ];
    let status = object(vec![
        Field::new("capacity", any(json!([{"cpu": "4"}, {"cpu": "4", "memory": "1Gi"}]))),
        Field::required("allocatable", any(json!([{"cpu": "3"}, {"cpu": "2"}]))),
        Field::new("addresses", Shape::ListMap(vec!["type"], address)),
        Field::new(
            "conditions",
            conditions(&["Ready", "DiskPressure"], &["lastHeartbeatTime", "lastTransitionTime"]),
        ),
    ]);
    let fields = vec![Field::new("spec", spec)];
    let mut target = with_status(target("Node", "nodes", "", "v1", fields), status);
    target.namespaced = false;
    target
}

fn webhooks() -> Target {
    let rules = json!([{
        "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"],
        "operations": ["CREATE"]
    }]);
    let webhook = vec![
        Field::required("name", Shape::words(&["a.example.com", "b.example.com"])),
        Field::required("admissionReviewVersions", Shape::fixed(json!(["v1"]))),
        Field::required("sideEffects", Shape::words(&["None"])),
        Field::required(
            "clientConfig",
            any(json!([
                {"url": "https://example.com/x"},
                {"service": {"namespace": "default", "name": "s"}}
            ])),
        ),
        Field::required("rules", Shape::fixed(rules)),
        Field::new("failurePolicy", Shape::words(&["Ignore"])),
        Field::new("timeoutSeconds", Shape::numbers(&[1, 5])),
        Field::new("matchPolicy", Shape::words(&["Exact"])),
        Field::new(
            "objectSelector",
            Shape::Object(vec![Field::new("matchLabels", Shape::fixed(json!({"a": "b"})))], Atomic),
        ),
    ];
    let mut target = target(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "admissionregistration.k8s.io",
        "v1",
        vec![Field::new("webhooks", Shape::ListMap(vec!["name"], webhook).filled())],
    );
    target.namespaced = false;
    target
}
