//! A resource in one of its versions.
use std::sync::OnceLock;

use k8s_schema::{Schema, builtin};

use super::conversion::ConversionWebhook;
use crate::status::Subject;
use crate::storage::StorageId;

/// Whether the objects of a resource are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A resource as it is served in one version.
#[derive(Debug)]
pub(crate) struct ApiResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) scope: Scope,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    /// The storage of the objects, which all versions share.
    pub(crate) storage: StorageId,
    /// The id of the schema: objects that were validated against it are stored with the same id.
    pub(crate) schema_id: u64,
    pub(crate) origin: ResourceOrigin,
    pub(super) schema: OnceLock<Schema>,
}

/// A subresource, as discovery lists it.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// Where a resource comes from.
#[derive(Debug)]
pub(crate) enum ResourceOrigin {
    BuiltIn,
    Custom(Box<CustomVersion>),
}

/// The properties that only custom resources have.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// The schema of the objects in this version.
    pub(crate) schema: Schema,
    /// The schema of the storage version.
    pub(crate) stored_schema: Schema,
    /// Whether unknown fields are preserved.
    pub(crate) preserves_unknown_fields: bool,
    /// The storage version of the definition.
    pub(crate) storage_version: String,
    /// The paths of the scale subresource; none if it is not enabled.
    pub(crate) scale: Option<ScalePaths>,
    /// The printer columns after the name.
    pub(crate) columns: Vec<PrinterColumn>,
    /// The fields that field selectors may use, besides the name and namespace.
    pub(crate) selectable_fields: Vec<String>,
    /// The warning for clients of a deprecated version.
    pub(crate) deprecation_warning: Option<String>,
    /// The conversion webhook; none if only the `apiVersion` is exchanged.
    pub(crate) conversion: Option<ConversionWebhook>,
}

/// The paths of a scale subresource.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

/// One entry of `additionalPrinterColumns`.
#[derive(Clone, Debug)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    pub(crate) column_type: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

impl ApiResource {
    /// A built-in resource.
    pub(crate) fn built_in(resource: &builtin::Resource) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            list_kind: format!("{}List", resource.kind),
            plural: resource.plural.clone(),
            singular: resource.singular.clone(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
            scope: if resource.namespaced { Scope::Namespaced } else { Scope::Cluster },
            verbs: resource.verbs.clone(),
            subresources: resource
                .subresources
                .iter()
                .map(|subresource| Subresource {
                    name: subresource.name.clone(),
                    group: subresource.group.clone(),
                    version: subresource.version.clone(),
                    kind: subresource.kind.clone(),
                    verbs: subresource.verbs.clone(),
                })
                .collect(),
            storage: StorageId::new(&resource.group, &resource.plural),
            schema_id: 0,
            origin: ResourceOrigin::BuiltIn,
            schema: OnceLock::new(),
        }
    }

    /// The schema of its objects.
    pub(crate) fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| match &self.origin {
            ResourceOrigin::BuiltIn => builtin::schema(&self.group, &self.version, &self.kind)
                .unwrap_or_else(Schema::untyped),
            ResourceOrigin::Custom(version) => version.schema.clone(),
        })
    }

    /// `GROUP/VERSION`, or the version alone in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource as the subject of error messages.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, noun: &self.plural }
    }

    /// The kind as the subject of error messages.
    pub(crate) fn kind_subject(&self) -> Subject<'_> {
        Subject { group: &self.group, noun: &self.kind }
    }

    /// The properties of a custom resource; none for built-in ones.
    pub(crate) fn custom(&self) -> Option<&CustomVersion> {
        match &self.origin {
            ResourceOrigin::BuiltIn => None,
            ResourceOrigin::Custom(version) => Some(version),
        }
    }

    /// Whether a webhook converts its objects between versions.
    pub(crate) fn is_converted_by_webhook(&self) -> bool {
        self.custom().is_some_and(|custom| custom.conversion.is_some())
    }

    /// Whether it is this built-in kind.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        matches!(self.origin, ResourceOrigin::BuiltIn) && self.group == group && self.kind == kind
    }

    /// Whether it has a subresource.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether its status is written through a subresource.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether a verb is served.
    pub(crate) fn serves(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}
