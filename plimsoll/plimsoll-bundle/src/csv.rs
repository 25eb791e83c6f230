//! What installing needs of a ClusterServiceVersion.
//!
//! Upstream: github.com/operator-framework/api/pkg/operators/v1alpha1/clusterserviceversion_types.go: ClusterServiceVersionSpec

mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::OnceLock;

use plimsoll_content::bundle::BundleManifest;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::yaml::{self, Lines};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use self::reader::read;

/// The annotation that carries properties of a bundle.
pub(crate) const PROPERTIES_ANNOTATION: &str = "olm.properties";

/// The annotation that suggests a namespace.
const NAMESPACE: &str = "operatorframework.io/suggested-namespace";
/// The annotation that suggests one as a whole: a Namespace as JSON.
pub(crate) const NAMESPACE_TEMPLATE: &str = "operatorframework.io/suggested-namespace-template";

/// How an operator is deployed.
#[derive(Debug, Clone)]
pub struct ClusterServiceVersion {
    /// Its name, which begins the names of roles.
    pub name: String,
    /// Its annotations, which pods get.
    pub annotations: BTreeMap<String, String>,
    /// How it may be installed.
    pub install_modes: BTreeSet<InstallMode>,
    /// The deployments of the install strategy.
    pub deployments: Vec<StrategyDeployment>,
    /// What service accounts may do in the namespaces that the operator watches.
    pub permissions: Vec<StrategyPermission>,
    /// What service accounts may do everywhere.
    pub cluster_permissions: Vec<StrategyPermission>,
    /// Webhooks of admission and conversion.
    pub webhooks: Vec<WebhookDescription>,
    /// The names of the CustomResourceDefinitions that it owns.
    pub owned_definitions: Vec<String>,
    /// The API services that it owns.
    pub owned_api_services: Vec<OwnedApiService>,
    /// Where it stands.
    pub(crate) source: CsvSource,
}

impl ClusterServiceVersion {
    /// The namespace that it suggests, by name or by a template.
    pub(crate) fn suggested_namespace(&self) -> Option<String> {
        let annotation = |name: &str| self.annotations.get(name).filter(|text| !text.is_empty());
        annotation(NAMESPACE).cloned().or_else(|| {
            let template: Value = serde_json::from_str(annotation(NAMESPACE_TEMPLATE)?).ok()?;
            let name = template["metadata"]["name"].as_str()?;
            (!name.is_empty()).then(|| name.to_owned())
        })
    }

    /// A defect of a field, such as `spec.webhookdefinitions[0]`.
    pub(crate) fn defect(
        &self,
        field: &str,
        code: DefectCode,
        message: impl Into<String>,
    ) -> Diagnostic {
        self.source.defect(field, code, message)
    }

    /// The field of the numbered webhook.
    pub(crate) fn webhook_field(index: usize) -> String {
        format!("spec.webhookdefinitions[{index}]")
    }

    /// The field of the numbered deployment.
    pub(crate) fn deployment_field(index: usize) -> String {
        format!("spec.install.spec.deployments[{index}]")
    }
}

/// Where a ClusterServiceVersion was read from. Lines are looked up when something is wrong.
#[derive(Debug, Clone)]
pub(crate) struct CsvSource {
    file: String,
    text: String,
    first_line: usize,
    lines: OnceLock<Option<Lines>>,
}

impl CsvSource {
    fn of(manifest: &BundleManifest<'_>) -> Self {
        Self {
            file: manifest.file.path.clone(),
            text: String::from_utf8_lossy(&manifest.file.bytes).into_owned(),
            first_line: manifest.first_line,
            lines: OnceLock::new(),
        }
    }

    fn defect(&self, field: &str, code: DefectCode, message: impl Into<String>) -> Diagnostic {
        code.diagnostic(&self.file, message).at_line(self.line(field))
    }

    fn line(&self, field: &str) -> usize {
        let lines = self.lines.get_or_init(|| {
            // Of the documents of the file, the last that begins before or where this one does.
            let begins_before = |lines: &Lines| lines.of("") <= self.first_line;
            yaml::lines(&self.text).into_iter().rev().find(begins_before)
        });
        lines.as_ref().map_or(self.first_line, |lines| lines.of(field))
    }
}

/// Which namespaces an operator can watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallMode {
    /// All of them.
    AllNamespaces,
    /// Several.
    MultiNamespace,
    /// The one that it runs in.
    OwnNamespace,
    /// One that it does not run in.
    SingleNamespace,
}

impl InstallMode {
    const ALL: [Self; 4] =
        [Self::AllNamespaces, Self::MultiNamespace, Self::OwnNamespace, Self::SingleNamespace];

    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllNamespaces => "AllNamespaces",
            Self::MultiNamespace => "MultiNamespace",
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
        }
    }
}

impl fmt::Display for InstallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A deployment of the install strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyDeployment {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Map<String, Value>,
    /// Its `spec`, in the form that Go gives it.
    pub spec: Value,
}

/// What a service account may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StrategyPermission {
    /// The service account; empty for the one called `default`.
    #[serde(rename = "serviceAccountName")]
    pub service_account: String,
    /// The rules; absent if the field is.
    pub rules: Option<Vec<PolicyRule>>,
}

/// A rule of a role. The order of the fields is that of Go, which names of roles depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// What may be done; absent if the field is.
    pub verbs: Option<Vec<String>>,
    /// The groups of the resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources.
    #[serde(default, rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// What a webhook is called for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookKind {
    /// To refuse requests.
    Validating,
    /// To change them.
    Mutating,
    /// To convert custom resources.
    Conversion,
    /// A type that no API server calls.
    Unknown(String),
}

impl WebhookKind {
    /// How it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Validating => "ValidatingAdmissionWebhook",
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Conversion => "ConversionWebhook",
            Self::Unknown(text) => text,
        }
    }
}

/// A webhook that a deployment serves.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookDescription {
    /// What it is called for.
    pub kind: WebhookKind,
    /// Its name, as written.
    pub generate_name: String,
    /// The deployment that serves it.
    pub deployment: String,
    /// The port of the service; absent or 0 for 443.
    pub container_port: Option<i64>,
    /// The port of the pods, a number or a name; absent for that of the service.
    pub target_port: Option<Value>,
    /// The path that is called; absent if the field is.
    pub path: Option<String>,
    /// The review versions that it understands; absent if the field is.
    pub review_versions: Option<Vec<String>>,
    /// The definitions whose objects it converts.
    pub conversion_definitions: Vec<String>,
    /// What an admission webhook has beside these, as it is written there.
    pub admission: Map<String, Value>,
}

impl WebhookDescription {
    /// The name that objects get.
    pub fn name(&self) -> &str {
        self.generate_name.strip_suffix('-').unwrap_or(&self.generate_name)
    }
}

/// An API that an operator serves itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedApiService {
    /// The group of the API.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The deployment that serves it.
    pub deployment: String,
    /// The port of the pods; absent for 443.
    pub container_port: Option<i64>,
}

/// A null is an absent field in Go.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|_, value| !value.is_null());
            entries.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A value as a message repeats it.
pub(crate) fn shortened(value: &Value) -> String {
    const LENGTH_MAX: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LENGTH_MAX {
        return text;
    }
    let mut text: String = text.chars().take(LENGTH_MAX).collect();
    text.push('…');
    text
}
