//! List: selection and pages.
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::convert;
use crate::registry::ApiResource;
use crate::request::parameters::{Parameters, VersionMatch};
use crate::request::selector::{FieldSelector, LabelSelector, field_text};
use crate::status::{ApiError, Cause, Result, StatusReason};
use crate::store::{ObjectKey, Store, Stored};

/// Which objects a list, a watch or a delete of many is about.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// Only those of a namespace.
    pub(crate) namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

/// A list as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// Which objects.
    pub(crate) selection: Selection,
    limit: usize,
    /// State to list, and the key to go on after.
    continued: Option<(u64, ObjectKey)>,
    exact: Option<u64>,
    not_older_than: u64,
}

/// The objects of a list, and where the rest is.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Revision of the state that was listed.
    pub(crate) revision: u64,
    /// The objects.
    pub(crate) items: Vec<Arc<Stored>>,
    /// Token for the next page, and how many objects are left.
    pub(crate) rest: Option<(String, Option<usize>)>,
}

impl Selection {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// When a selector is malformed or looks at a field that it may not look at.
    pub(crate) fn read(
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &Parameters,
    ) -> Result<Self> {
        let fields = FieldSelector::parse(&parameters.field_selector)?;
        if let Some(custom) = resource.custom() {
            for path in fields.paths() {
                let known = matches!(path, "metadata.name" | "metadata.namespace")
                    || custom.selectable_fields.iter().any(|field| field == path);
                if !known {
                    return Err(ApiError::bad_request(format!(
                        "field label not supported: {path}"
                    )));
                }
            }
        } else if let Some(path) = fields.paths().find(|path| !is_selectable(resource, path)) {
            return Err(ApiError::bad_request(format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )));
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: LabelSelector::parse(&parameters.label_selector)?,
            fields,
        })
    }

    /// Only the object of one name.
    pub(crate) fn of_name(mut self, name: &str) -> Result<Self> {
        self.fields = FieldSelector::parse(&format!("metadata.name={name}"))?;
        Ok(self)
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, resource: &ApiResource, stored: &Stored) -> bool {
        if let Some(namespace) = &self.namespace
            && !stored.key.is_in(namespace)
        {
            return false;
        }
        if !self.labels.is_empty() && !self.labels.matches(|key| stored.label(key)) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let decoded = (!self.fields.is_of_keys()).then(|| convert::read(resource, stored));
        self.fields.matches(|path| match path {
            "metadata.name" => stored.key.name.to_string(),
            "metadata.namespace" => stored.key.namespace.to_string(),
            _ => decoded
                .as_ref()
                .map_or_else(String::new, |object| field_value(resource, object, path)),
        })
    }

    /// Whether it selects everything in its namespace.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Fields of built-in kinds that selectors may use besides name and namespace.
const SELECTABLE: [(&str, &[&str]); 12] = [
    (
        "Pod",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "reason",
            "reportingComponent",
            "reportingController",
            "source",
            "type",
        ],
    ),
    ("Secret", &["type"]),
    ("Namespace", &["status.phase", "name"]),
    ("Node", &["spec.unschedulable"]),
    ("Service", &["spec.clusterIP", "spec.type"]),
    ("ReplicaSet", &["status.replicas"]),
    ("ReplicationController", &["status.replicas"]),
    ("Job", &["status.successful"]),
    ("CertificateSigningRequest", &["spec.signerName"]),
    ("ClusterTrustBundle", &["spec.signerName"]),
    ("PodCertificateRequest", &["spec.signerName", "spec.podName", "spec.nodeName"]),
];

fn is_selectable(resource: &ApiResource, path: &str) -> bool {
    matches!(path, "metadata.name" | "metadata.namespace")
        || SELECTABLE.iter().any(|(kind, paths)| *kind == resource.kind && paths.contains(&path))
}

fn field_value(resource: &ApiResource, object: &Value, path: &str) -> String {
    let text = match (resource.kind.as_str(), path) {
        ("Event", "source") => field_text(object, "source.component"),
        ("Namespace", "name") => field_text(object, "metadata.name"),
        ("Event", _) if resource.group.is_empty() => {
            field_text(object, &path.replace("regarding.", "involvedObject."))
        }
        ("Event", _) => field_text(object, &path.replace("involvedObject.", "regarding.")),
        _ => field_text(object, path),
    };
    // Numbers and booleans that are left out read as their zero.
    match (text.as_str(), path) {
        ("", "status.replicas" | "status.successful") => "0".to_owned(),
        ("", "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => text,
    }
}

/// Reads a resource version of a request; none and `0` are no requirement.
///
/// # Errors
/// When it is not a number.
pub(crate) fn read_revision(text: &str) -> Result<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        ApiError::new(
            StatusReason::Unknown,
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ),
        )
    })
}

impl Query {
    /// Reads a list request.
    ///
    /// # Errors
    /// When its parameters make no sense.
    pub(crate) fn read(
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &Parameters,
    ) -> Result<Self> {
        let revision = read_revision(&parameters.resource_version)?;
        let continued = if parameters.continue_token.is_empty() {
            None
        } else {
            Some(read_token(&parameters.continue_token)?)
        };
        let exact = match parameters.resource_version_match {
            Some(VersionMatch::Exact) => Some(revision),
            Some(VersionMatch::NotOlderThan) | None => None,
        };
        Ok(Self {
            selection: Selection::read(resource, namespace, parameters)?,
            limit: parameters.limit,
            continued,
            exact,
            not_older_than: revision,
        })
    }

    /// Runs the list.
    ///
    /// # Errors
    /// When the state asked for is no longer known, or not yet.
    pub(crate) fn run(&self, cluster: &Cluster, resource: &ApiResource) -> Result<Listing> {
        let store = &cluster.store;
        if self.exact.unwrap_or(self.not_older_than) > store.revision() {
            return Err(too_new(self.not_older_than, store));
        }
        let past = match (&self.continued, self.exact) {
            (Some((revision, _)), _) => Some(*revision),
            (None, exact) => exact,
        };
        let namespace = self.selection.namespace.as_deref();
        let after = self.continued.as_ref().map(|(_, key)| key);
        match past.filter(|revision| *revision < store.revision()) {
            None => {
                let objects = store.list_after(&resource.storage, namespace, after);
                Ok(self.page(resource, store.revision(), objects))
            }
            Some(revision) => {
                let objects = store
                    .list_at(&resource.storage, namespace, revision)
                    .map_err(|_| self.expired())?;
                let rest =
                    objects.iter().skip_while(|stored| after.is_some_and(|key| stored.key <= *key));
                Ok(self.page(resource, revision, rest))
            }
        }
    }

    fn expired(&self) -> ApiError {
        ApiError::new(
            StatusReason::Expired,
            if self.continued.is_some() {
                "The provided continue parameter is too old to display a consistent list result. \
                 You must start a new list without the continue parameter."
            } else {
                "The resourceVersion for the provided list is too old."
            },
        )
    }

    fn page<'a>(
        &self,
        resource: &ApiResource,
        revision: u64,
        mut objects: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Listing {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let items: Vec<Arc<Stored>> = objects
            .by_ref()
            .filter(|stored| self.selection.matches(resource, stored))
            .take(limit)
            .cloned()
            .collect();
        let is_full = items.len() == limit;
        let rest = items.last().filter(|_| is_full).and_then(|last| {
            // Only without selectors is it cheap to say how many are left.
            let left = if self.selection.is_everything() {
                Some(objects.count()).filter(|left| *left > 0).map(Some)
            } else {
                objects.any(|stored| self.selection.matches(resource, stored)).then_some(None)
            };
            left.map(|left| (write_token(revision, &last.key), left))
        });
        Listing { revision, items, rest }
    }
}

fn too_new(asked: u64, store: &Store) -> ApiError {
    let mut error = ApiError::new(
        StatusReason::Timeout,
        format!("Timeout: Too large resource version: {asked}, current: {}", store.revision()),
    )
    .with_causes([Cause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    }]);
    error.details.get_or_insert_default().retry_after_seconds = 1;
    error
}

fn write_token(revision: u64, key: &ObjectKey) -> String {
    let token = json!({
        "v": "meta.k8s.io/v1",
        "rv": revision,
        "start": format!("{}/{}\0", key.namespace, key.name),
    });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(text: &str) -> Result<(u64, ObjectKey)> {
    let invalid = || ApiError::bad_request("invalid continue token: continue key is not valid");
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| invalid())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    let (namespace, name) = token["start"]
        .as_str()
        .and_then(|start| start.trim_end_matches('\0').split_once('/'))
        .ok_or_else(invalid)?;
    let revision = token["rv"].as_u64().ok_or_else(invalid)?;
    Ok((revision, ObjectKey::new(namespace, name)))
}
