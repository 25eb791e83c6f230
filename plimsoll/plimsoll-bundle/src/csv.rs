//! What installing needs of a ClusterServiceVersion.
//!
//! Upstream: github.com/operator-framework/api/pkg/operators/v1alpha1/clusterserviceversion_types.go: ClusterServiceVersionSpec

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::OnceLock;

use k8s_schema::builtin;
use plimsoll_content::bundle::BundleManifest;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::yaml::{self, Lines};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

/// Fields of `spec` that are text. Others that installing does not need are not looked at.
const TEXTS: &[&str] =
    &["displayName", "description", "version", "maturity", "minKubeVersion", "replaces"];

/// Fields of an admission webhook that are copied from a description.
const ADMISSION_FIELDS: &[&str] = &[
    "rules",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "reinvocationPolicy",
];

/// Reads a ClusterServiceVersion; what cannot be read becomes a defect and is left out.
pub(crate) fn read(
    manifest: &BundleManifest<'_>,
    value: &Value,
    defects: &mut Vec<Diagnostic>,
) -> ClusterServiceVersion {
    let mut value = value.clone();
    drop_nulls(&mut value);
    let source = CsvSource::of(manifest);
    let mut reader = CsvReader { source: &source, defects };
    let metadata = &value["metadata"];
    let spec = &value["spec"];
    for field in TEXTS {
        reader.text(&spec[field], &format!("spec.{field}"));
    }
    let strategy = &spec["install"]["spec"];
    let deployments = reader.items(&strategy["deployments"], "spec.install.spec.deployments");
    let deployments = deployments
        .into_iter()
        .filter_map(|(field, item)| reader.deployment(item, &field))
        .collect();
    ClusterServiceVersion {
        name: reader.text(&metadata["name"], "metadata.name").unwrap_or_default(),
        annotations: reader.texts(&metadata["annotations"], "metadata.annotations"),
        install_modes: reader.install_modes(&spec["installModes"]),
        deployments,
        permissions: reader.permissions(&strategy["permissions"], "spec.install.spec.permissions"),
        cluster_permissions: reader
            .permissions(&strategy["clusterPermissions"], "spec.install.spec.clusterPermissions"),
        webhooks: reader.webhooks(&spec["webhookdefinitions"]),
        owned_definitions: reader.owned_definitions(&spec["customresourcedefinitions"]["owned"]),
        owned_api_services: reader.api_services(&spec["apiservicedefinitions"]["owned"]),
        source: source.clone(),
    }
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

/// Reads fields and reports those of another type. An absent field is null here.
struct CsvReader<'r> {
    source: &'r CsvSource,
    defects: &'r mut Vec<Diagnostic>,
}

impl CsvReader<'_> {
    fn report(&mut self, field: &str, message: impl Into<String>) {
        self.defects.push(self.source.defect(field, DefectCode::BundleFile, message));
    }

    fn wrong_type(&mut self, field: &str, wanted: &str, value: &Value) {
        let hint = if wanted == "text" && !value.is_object() && !value.is_array() {
            ": put it in quotes"
        } else {
            ""
        };
        let found = shortened(value);
        self.report(field, format!("{field} is not {wanted} but {found}{hint}"));
    }

    fn text(&mut self, value: &Value, field: &str) -> Option<String> {
        match value {
            Value::String(text) => return Some(text.clone()),
            Value::Null => {}
            other => self.wrong_type(field, "text", other),
        }
        None
    }

    fn integer(&mut self, value: &Value, field: &str) -> Option<i64> {
        match value {
            Value::Null => None,
            other => {
                let number = other.as_i64().filter(|number| i32::try_from(*number).is_ok());
                if number.is_none() {
                    self.wrong_type(field, "an integer", other);
                }
                number
            }
        }
    }

    fn items<'v>(&mut self, value: &'v Value, field: &str) -> Vec<(String, &'v Value)> {
        match value {
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                return numbered.map(|(index, item)| (format!("{field}[{index}]"), item)).collect();
            }
            Value::Null => {}
            other => self.wrong_type(field, "a list", other),
        }
        Vec::new()
    }

    fn text_list(&mut self, value: &Value, field: &str) -> Option<Vec<String>> {
        if value.is_null() {
            return None;
        }
        let items = self.items(value, field);
        Some(items.into_iter().filter_map(|(field, item)| self.text(item, &field)).collect())
    }

    fn texts(&mut self, value: &Value, field: &str) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    if let Some(text) = self.text(value, &format!("{field}.{key}")) {
                        texts.insert(key.clone(), text);
                    }
                }
            }
            Value::Null => {}
            other => self.wrong_type(field, "a mapping", other),
        }
        texts
    }

    fn install_modes(&mut self, value: &Value) -> BTreeSet<InstallMode> {
        let mut modes = BTreeSet::new();
        for (field, item) in self.items(value, "spec.installModes") {
            let kind = self.text(&item["type"], &format!("{field}.type")).unwrap_or_default();
            match &item["supported"] {
                Value::Bool(true) => {
                    modes.extend(InstallMode::ALL.into_iter().find(|mode| mode.as_str() == kind));
                }
                Value::Bool(false) | Value::Null => {}
                other => self.wrong_type(&format!("{field}.supported"), "true or false", other),
            }
        }
        modes
    }

    fn deployment(&mut self, item: &Value, field: &str) -> Option<StrategyDeployment> {
        let name = self.text(&item["name"], &format!("{field}.name")).unwrap_or_default();
        let labels = self.texts(&item["label"], &format!("{field}.label"));
        let mut object = json!({ "spec": item.get("spec").unwrap_or(&json!({})) });
        let schema = builtin::schema("apps", "v1", "Deployment")?;
        if let Err(error) = k8s_schema::go_round_trip(&schema, &mut object) {
            self.report(field, format!("deployment `{name}`: {error}"));
            return None;
        }
        let labels = labels.into_iter().map(|(key, text)| (key, text.into())).collect();
        Some(StrategyDeployment { name, labels, spec: object["spec"].take() })
    }

    fn permissions(&mut self, value: &Value, field: &str) -> Vec<StrategyPermission> {
        let mut permissions = Vec::new();
        for (field, item) in self.items(value, field) {
            let account =
                self.text(&item["serviceAccountName"], &format!("{field}.serviceAccountName"));
            let rules = item.get("rules").map(|rules| {
                let rules = self.items(rules, &format!("{field}.rules"));
                rules.into_iter().filter_map(|(field, rule)| self.rule(rule, &field)).collect()
            });
            let service_account = account.unwrap_or_default();
            permissions.push(StrategyPermission { service_account, rules });
        }
        permissions
    }

    fn rule(&mut self, rule: &Value, field: &str) -> Option<PolicyRule> {
        match PolicyRule::deserialize(rule) {
            Ok(rule) => Some(rule),
            Err(error) => {
                self.report(field, format!("{field} is not a rule of a role: {error}"));
                None
            }
        }
    }

    fn webhooks(&mut self, value: &Value) -> Vec<WebhookDescription> {
        let items = self.items(value, "spec.webhookdefinitions");
        items.into_iter().map(|(field, item)| self.webhook(item, &field)).collect()
    }

    fn webhook(&mut self, item: &Value, field: &str) -> WebhookDescription {
        let of = |name: &str| (&item[name], format!("{field}.{name}"));
        let text = |reader: &mut Self, name: &str| {
            let (value, field) = of(name);
            reader.text(value, &field)
        };
        let kind = text(self, "type").unwrap_or_default();
        let kind = [WebhookKind::Validating, WebhookKind::Mutating, WebhookKind::Conversion]
            .into_iter()
            .find(|known| known.as_str() == kind)
            .unwrap_or(WebhookKind::Unknown(kind));
        let (port, port_field) = of("containerPort");
        let (versions, versions_field) = of("admissionReviewVersions");
        let (definitions, definitions_field) = of("conversionCRDs");
        let mut admission = Map::new();
        for name in ADMISSION_FIELDS {
            if let Some(value) = item.get(*name) {
                admission.insert((*name).to_owned(), value.clone());
            }
        }
        // A configuration that both kinds of webhooks fit tells whether the fields do.
        let mut object = json!({ "webhooks": [admission] });
        let schema =
            builtin::schema("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration");
        let checked = schema.map(|schema| k8s_schema::go_round_trip(&schema, &mut object));
        if let Some(Err(error)) = checked {
            self.report(field, format!("{field}: {error}"));
        }
        WebhookDescription {
            kind,
            generate_name: text(self, "generateName").unwrap_or_default(),
            deployment: text(self, "deploymentName").unwrap_or_default(),
            container_port: self.integer(port, &port_field),
            target_port: item.get("targetPort").filter(|port| **port != 0).cloned(),
            path: text(self, "webhookPath"),
            review_versions: self.text_list(versions, &versions_field),
            conversion_definitions: self
                .text_list(definitions, &definitions_field)
                .unwrap_or_default(),
            admission,
        }
    }

    fn owned_definitions(&mut self, value: &Value) -> Vec<String> {
        let items = self.items(value, "spec.customresourcedefinitions.owned");
        let name =
            |(field, item): (String, &Value)| self.text(&item["name"], &format!("{field}.name"));
        items.into_iter().filter_map(name).collect()
    }

    fn api_services(&mut self, value: &Value) -> Vec<OwnedApiService> {
        let mut services = Vec::new();
        for (field, item) in self.items(value, "spec.apiservicedefinitions.owned") {
            let mut text =
                |name: &str| self.text(&item[name], &format!("{field}.{name}")).unwrap_or_default();
            let (group, version) = (text("group"), text("version"));
            let deployment = text("deploymentName");
            let container_port =
                self.integer(&item["containerPort"], &format!("{field}.containerPort"));
            services.push(OwnedApiService { group, version, deployment, container_port });
        }
        services
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
