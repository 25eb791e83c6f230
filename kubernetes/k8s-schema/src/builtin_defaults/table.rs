//! The defaults that depend on nothing.
use serde_json::{Value, json};

/// A value to fill in.
pub(super) enum Default {
    Text(&'static str),
    Number(i64),
    /// A number where zero counts as unset.
    NonZero(i64),
    Truth(bool),
    /// An empty object.
    Empty,
    /// A list of one text.
    OneText(&'static str),
    /// Any other value, as JSON.
    Json(&'static str),
}

impl Default {
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) | Self::NonZero(number) => json!(number),
            Self::Truth(truth) => json!(truth),
            Self::Empty => json!({}),
            Self::OneText(text) => json!([text]),
            Self::Json(text) => serde_json::from_str(text).expect("the table holds JSON"),
        }
    }
}

/// Places and what to fill in there, in order.
pub(super) type Rules = &'static [(&'static str, Default)];

use Default::{Empty, Json, NonZero, Number, OneText, Text, Truth};

/// Below a pod's spec.
pub(super) const POD_SPEC: Rules = &[
    ("dnsPolicy", Text("ClusterFirst")),
    ("restartPolicy", Text("Always")),
    ("securityContext", Empty),
    ("terminationGracePeriodSeconds", Number(30)),
    ("schedulerName", Text("default-scheduler")),
];

/// Below a container.
pub(super) const CONTAINER: Rules = &[
    ("terminationMessagePath", Text("/dev/termination-log")),
    ("terminationMessagePolicy", Text("File")),
    ("ports[].protocol", Text("TCP")),
    ("env[].valueFrom?.fieldRef?.apiVersion", Text("v1")),
    ("lifecycle?.postStart?.httpGet?.path", Text("/")),
    ("lifecycle?.postStart?.httpGet?.scheme", Text("HTTP")),
    ("lifecycle?.preStop?.httpGet?.path", Text("/")),
    ("lifecycle?.preStop?.httpGet?.scheme", Text("HTTP")),
];

/// Below a probe.
pub(super) const PROBE: Rules = &[
    ("timeoutSeconds", NonZero(1)),
    ("periodSeconds", NonZero(10)),
    ("successThreshold", NonZero(1)),
    ("failureThreshold", NonZero(3)),
    ("httpGet?.path", Text("/")),
    ("httpGet?.scheme", Text("HTTP")),
    ("grpc?.service", Text("")),
];

/// Below a volume.
pub(super) const VOLUME: Rules = &[
    ("secret?.defaultMode", Number(0o644)),
    ("configMap?.defaultMode", Number(0o644)),
    ("downwardAPI?.defaultMode", Number(0o644)),
    ("downwardAPI?.items[].fieldRef?.apiVersion", Text("v1")),
    ("projected?.defaultMode", Number(0o644)),
    ("projected?.sources[].serviceAccountToken?.expirationSeconds", Number(3600)),
    ("projected?.sources[].downwardAPI?.items[].fieldRef?.apiVersion", Text("v1")),
    ("hostPath?.type", Text("")),
    ("ephemeral?.volumeClaimTemplate?.spec.volumeMode", Text("Filesystem")),
];

pub(super) const SECRET: Rules = &[("type", Text("Opaque"))];

pub(super) const PERSISTENT_VOLUME: Rules = &[
    ("status.phase", Text("Pending")),
    ("spec.persistentVolumeReclaimPolicy", Text("Retain")),
    ("spec.volumeMode", Text("Filesystem")),
    ("spec.hostPath?.type", Text("")),
];

pub(super) const PERSISTENT_VOLUME_CLAIM: Rules =
    &[("status.phase", Text("Pending")), ("spec.volumeMode", Text("Filesystem"))];

pub(super) const ENDPOINTS: Rules = &[("subsets[].ports[].protocol", Text("TCP"))];

pub(super) const SERVICE: Rules = &[
    ("spec.sessionAffinity", Text("None")),
    ("spec.type", Text("ClusterIP")),
    ("spec.ports[].protocol", Text("TCP")),
];

pub(super) const DEPLOYMENT: Rules = &[
    ("spec.replicas", Number(1)),
    ("spec.strategy.type", Text("RollingUpdate")),
    ("spec.revisionHistoryLimit", Number(10)),
    ("spec.progressDeadlineSeconds", Number(600)),
];

pub(super) const DEPLOYMENT_ROLLING_UPDATE: Rules = &[
    ("spec.strategy.rollingUpdate.maxUnavailable", Text("25%")),
    ("spec.strategy.rollingUpdate.maxSurge", Text("25%")),
];

pub(super) const DAEMON_SET: Rules = &[
    ("spec.updateStrategy.type", Text("RollingUpdate")),
    ("spec.revisionHistoryLimit", Number(10)),
];

pub(super) const DAEMON_SET_ROLLING_UPDATE: Rules = &[
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Number(1)),
    ("spec.updateStrategy.rollingUpdate.maxSurge", Number(0)),
];

pub(super) const STATEFUL_SET: Rules = &[
    ("spec.podManagementPolicy", Text("OrderedReady")),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Text("Retain")),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", Text("Retain")),
    ("spec.replicas", Number(1)),
    ("spec.revisionHistoryLimit", Number(10)),
    ("spec.volumeClaimTemplates[].status.phase", Text("Pending")),
    ("spec.volumeClaimTemplates[].spec.volumeMode", Text("Filesystem")),
];

pub(super) const REPLICA_SET: Rules = &[("spec.replicas", Number(1))];

/// Below a job.
pub(super) const JOB: Rules = &[
    ("spec.parallelism", Number(1)),
    ("spec.completionMode", Text("NonIndexed")),
    ("spec.suspend", Truth(false)),
    ("spec.manualSelector", Truth(false)),
    ("spec.podFailurePolicy?.rules[].onPodConditions[].status", Text("True")),
];

pub(super) const CRON_JOB: Rules = &[
    ("spec.concurrencyPolicy", Text("Allow")),
    ("spec.suspend", Truth(false)),
    ("spec.successfulJobsHistoryLimit", Number(3)),
    ("spec.failedJobsHistoryLimit", Number(1)),
];

pub(super) const NETWORK_POLICY: Rules = &[
    ("spec?.ingress[].ports[].protocol", Text("TCP")),
    ("spec?.egress[].ports[].protocol", Text("TCP")),
];

pub(super) const INGRESS_CLASS: Rules = &[("spec?.parameters?.scope", Text("Cluster"))];

pub(super) const WEBHOOKS: Rules = &[
    ("webhooks[].failurePolicy", Text("Fail")),
    ("webhooks[].matchPolicy", Text("Equivalent")),
    ("webhooks[].namespaceSelector", Empty),
    ("webhooks[].objectSelector", Empty),
    ("webhooks[].timeoutSeconds", Number(10)),
    ("webhooks[].rules[].scope", Text("*")),
    ("webhooks[].clientConfig?.service?.port", Number(443)),
];

pub(super) const MUTATING_WEBHOOKS: Rules = &[("webhooks[].reinvocationPolicy", Text("Never"))];

pub(super) const ADMISSION_POLICY: Rules = &[
    ("spec.failurePolicy", Text("Fail")),
    ("spec.matchConstraints?.matchPolicy", Text("Equivalent")),
    ("spec.matchConstraints?.namespaceSelector", Empty),
    ("spec.matchConstraints?.objectSelector", Empty),
    ("spec.matchConstraints?.resourceRules[].scope", Text("*")),
    ("spec.matchConstraints?.excludeResourceRules[].scope", Text("*")),
];

pub(super) const ADMISSION_POLICY_BINDING: Rules = &[
    ("spec.matchResources?.matchPolicy", Text("Equivalent")),
    ("spec.matchResources?.namespaceSelector", Empty),
    ("spec.matchResources?.objectSelector", Empty),
    ("spec.matchResources?.resourceRules[].scope", Text("*")),
    ("spec.matchResources?.excludeResourceRules[].scope", Text("*")),
];

pub(super) const CUSTOM_RESOURCE_DEFINITION: Rules = &[
    ("spec.conversion.strategy", Text("None")),
    ("spec.conversion.webhook?.clientConfig?.service?.port", Number(443)),
];

pub(super) const API_SERVICE: Rules = &[("spec.service?.port", Number(443))];

pub(super) const PRIORITY_CLASS: Rules = &[("preemptionPolicy", Text("PreemptLowerPriority"))];

pub(super) const FLOW_SCHEMA: Rules = &[("spec.matchingPrecedence", NonZero(1000))];

pub(super) const PRIORITY_LEVEL: Rules = &[
    ("spec.exempt?.nominalConcurrencyShares", Number(0)),
    ("spec.exempt?.lendablePercent", Number(0)),
    ("spec.limited?.nominalConcurrencyShares", Number(30)),
    ("spec.limited?.lendablePercent", Number(0)),
    ("spec.limited?.limitResponse?.queuing?.handSize", NonZero(8)),
    ("spec.limited?.limitResponse?.queuing?.queues", NonZero(64)),
    ("spec.limited?.limitResponse?.queuing?.queueLengthLimit", NonZero(50)),
];

pub(super) const STORAGE_CLASS: Rules =
    &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))];

pub(super) const CSI_DRIVER: Rules = &[
    ("spec.attachRequired", Truth(true)),
    ("spec.podInfoOnMount", Truth(false)),
    ("spec.storageCapacity", Truth(false)),
    ("spec.fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    ("spec.volumeLifecycleModes", OneText("Persistent")),
    ("spec.requiresRepublish", Truth(false)),
    ("spec.seLinuxMount", Truth(false)),
    ("spec.preventPodSchedulingIfMissing", Truth(false)),
];

pub(super) const ENDPOINT_SLICE: Rules =
    &[("ports[].name", Text("")), ("ports[].protocol", Text("TCP"))];

pub(super) const AUTOSCALER: Rules = &[("spec.minReplicas", Number(1))];

pub(super) const AUTOSCALER_V2: Rules = &[(
    "spec.metrics",
    Json(
        r#"[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]"#,
    ),
)];
