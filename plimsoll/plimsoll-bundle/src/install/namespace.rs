//! The namespace that an operator is installed into, as its bundle wants it.

use std::collections::BTreeMap;

use k8s_cel::names;
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Diagnostic;
use serde::Deserialize;
use serde_json::{Value, json};

use super::map;
use crate::bundle::{Bundle, BundleContent};
use crate::csv::{ClusterServiceVersion, NAMESPACE_TEMPLATE as TEMPLATE};

/// Annotation of a ClusterServiceVersion: whether its namespace is monitored with the platform.
const MONITORED: &str = "operatorframework.io/cluster-monitoring";
/// Label of a namespace that is.
const MONITORED_LABEL: &str = "openshift.io/cluster-monitoring";
/// A label that the API server sets.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What a bundle says of its namespace.
#[derive(Debug, Default)]
pub(super) struct NamespaceTemplate {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct WrittenNamespace {
    kind: String,
    metadata: WrittenMetadata,
}

#[derive(Debug, Deserialize)]
struct WrittenMetadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl NamespaceTemplate {
    /// What the annotations of a bundle's ClusterServiceVersion say.
    pub(super) fn of(bundle: &Bundle) -> Result<Self, Vec<Diagnostic>> {
        let BundleContent::Registry(content) = &bundle.content else { return Ok(Self::default()) };
        let csv = &content.csv;
        let mut template = Self::default();
        if let Some(text) = csv.annotations.get(TEMPLATE).filter(|text| !text.is_empty()) {
            let written: WrittenNamespace = serde_json::from_str(text)
                .map_err(|error| vec![defect(csv, &format!("is not a Namespace: {error}"))])?;
            if written.kind != "Namespace" {
                return Err(vec![defect(csv, &format!("is a {}, no Namespace", written.kind))]);
            }
            let metadata = written.metadata;
            template.labels = metadata.labels.unwrap_or_default();
            template.annotations = metadata.annotations.unwrap_or_default();
            template.labels.remove(NAME_LABEL);
        }
        if csv.annotations.get(MONITORED).is_some_and(|value| value == "true") {
            template.labels.insert(MONITORED_LABEL.to_owned(), "true".to_owned());
        }
        let defects = template.problems().map(|problem| defect(csv, &problem)).collect::<Vec<_>>();
        if defects.is_empty() { Ok(template) } else { Err(defects) }
    }

    fn problems(&self) -> impl Iterator<Item = String> {
        let keys = self.labels.keys().chain(self.annotations.keys());
        let keys = keys.flat_map(|key| {
            let reserved = key
                .starts_with(super::permitted::RESERVED)
                .then(|| "it is set by the controller".to_owned());
            reserved.into_iter().chain(names::qualified(key)).map(move |it| (key, it))
        });
        let values = self.labels.iter().flat_map(|(key, value)| {
            names::label_value(value).into_iter().map(move |it| (key, it))
        });
        keys.chain(values).map(|(key, problem)| format!("has `{key}`: {problem}"))
    }

    /// The namespace; `written` is the one that the bundle brings, if it does.
    pub(super) fn object(self, name: &str, written: Option<Value>) -> Value {
        let mut object = written.unwrap_or_else(
            || json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
        );
        for (field, given) in [("labels", self.labels), ("annotations", self.annotations)] {
            if !given.is_empty() {
                let entries = map(&mut object["metadata"][field]);
                entries.extend(given.into_iter().map(|(key, value)| (key, value.into())));
            }
        }
        object
    }
}

fn defect(csv: &ClusterServiceVersion, problem: &str) -> Diagnostic {
    let field = format!("metadata.annotations.{TEMPLATE}");
    let message = format!("the annotation {TEMPLATE} {problem}");
    csv.defect(&field, DefectCode::BundleAnnotation, message)
}
