//! The reader of a ClusterServiceVersion: what cannot be read becomes a defect and is left out.

use std::collections::{BTreeMap, BTreeSet};

use k8s_schema::builtin;
use plimsoll_content::bundle::BundleManifest;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{
    ClusterServiceVersion, CsvSource, InstallMode, OwnedApiService, PolicyRule, StrategyDeployment,
    StrategyPermission, WebhookDescription, WebhookKind, drop_nulls, shortened,
};

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
