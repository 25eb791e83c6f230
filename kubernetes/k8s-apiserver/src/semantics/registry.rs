//! The served resources: the built-in ones, and those of CustomResourceDefinitions.
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_schema::{builtin, versions};

mod conversion;
pub(crate) mod custom;
pub(crate) mod resource;

pub(crate) use conversion::ConversionWebhook;
pub(crate) use resource::{
    ApiResource, CustomVersion, PrinterColumn, ResourceOrigin, ScalePaths, Scope, Subresource,
};

use crate::storage::StorageId;

/// The API group of roles and role bindings.
pub(crate) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A group, a version and a plural name.
type ResourceName = (String, String, String);

/// All resources that are served.
#[derive(Debug)]
pub(crate) struct Registry {
    built_in: Vec<Arc<ApiResource>>,
    /// Custom resources by the name of their CustomResourceDefinition.
    custom: BTreeMap<String, Vec<Arc<ApiResource>>>,
    /// Digests of the specs that the custom resources were built from, by the same name.
    sources: BTreeMap<String, u64>,
    by_name: BTreeMap<ResourceName, Arc<ApiResource>>,
    /// The storage versions of definitions with a conversion webhook, by the same name.
    storage_form: BTreeMap<String, Arc<ApiResource>>,
    /// The version of each schema id of custom resources, former schemas included.
    schema_ids: BTreeMap<u64, String>,
    /// The storage version that was in force with each schema id: that of the objects with the id.
    storage_versions: BTreeMap<u64, String>,
    last_schema_id: u64,
}

impl Registry {
    /// A registry of the built-in resources, in the versions that a server enables by default.
    pub(crate) fn new() -> Self {
        let built_in = built_in().to_vec();
        let by_name =
            built_in.iter().map(|resource| (name_of(resource), Arc::clone(resource))).collect();
        Self {
            built_in,
            custom: BTreeMap::new(),
            sources: BTreeMap::new(),
            by_name,
            storage_form: BTreeMap::new(),
            schema_ids: BTreeMap::new(),
            storage_versions: BTreeMap::new(),
            last_schema_id: 0,
        }
    }

    /// Finds a resource by its name in URLs.
    pub(crate) fn find(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<ApiResource>> {
        self.by_name.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Whether exactly this form of a resource is served now.
    pub(crate) fn is_served(&self, resource: &Arc<ApiResource>) -> bool {
        self.find(&resource.group, &resource.version, &resource.plural)
            .is_some_and(|served| Arc::ptr_eq(served, resource))
    }

    /// Finds a resource by the kind of its objects.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<ApiResource>> {
        self.all().find(|resource| resource.kind == kind && resource.api_version() == api_version)
    }

    /// Whether a built-in resource has this name.
    pub(crate) fn is_built_in(&self, group: &str, plural: &str) -> bool {
        self.built_in.iter().any(|resource| resource.group == group && resource.plural == plural)
    }

    /// Finds any version in which the objects of a storage are served.
    pub(crate) fn find_storage(&self, storage: &StorageId) -> Option<&Arc<ApiResource>> {
        self.all().find(|resource| resource.storage == *storage)
    }

    /// All resources, built-in ones first, in discovery order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ApiResource>> {
        self.built_in.iter().chain(self.custom.values().flatten())
    }

    /// The resources that a definition adds.
    pub(crate) fn custom_of(&self, definition: &str) -> &[Arc<ApiResource>] {
        self.custom.get(definition).map_or(&[], Vec::as_slice)
    }

    /// Serves the resources of a definition, in place of those that it had before.
    pub(crate) fn serve(
        &mut self,
        definition: &str,
        source: &str,
        resources: Vec<Arc<ApiResource>>,
    ) {
        self.withdraw(definition);
        self.sources.insert(definition.to_owned(), digest(source));
        for resource in &resources {
            self.record_schema(resource);
            self.by_name.insert(name_of(resource), Arc::clone(resource));
        }
        self.custom.insert(definition.to_owned(), resources);
    }

    /// Stops serving the resources of a definition.
    pub(crate) fn withdraw(&mut self, definition: &str) {
        self.sources.remove(definition);
        self.storage_form.remove(definition);
        for resource in self.custom.remove(definition).unwrap_or_default() {
            self.by_name.remove(&name_of(&resource));
        }
    }

    /// Returns an id for the schema of a custom resource, which no schema had before.
    pub(crate) fn next_schema_id(&mut self) -> u64 {
        self.last_schema_id += 1;
        self.last_schema_id
    }

    /// Whether any custom resource is converted by a webhook.
    pub(crate) fn has_conversion_webhooks(&self) -> bool {
        !self.storage_form.is_empty()
    }

    /// The storage version of a custom resource with a conversion webhook; none for others.
    pub(crate) fn storage_form(&self, resource: &ApiResource) -> Option<Arc<ApiResource>> {
        if self.storage_form.is_empty() {
            return None;
        }
        self.storage_form.get(&format!("{}.{}", resource.plural, resource.group)).cloned()
    }

    /// The version that an object of a custom resource is stored in, by its schema id.
    pub(crate) fn version_of<'a>(&'a self, resource: &'a ApiResource, schema_id: u64) -> &'a str {
        self.schema_ids.get(&schema_id).map_or(&resource.version, |version| version)
    }

    /// Sets the storage version of a definition, if it has a conversion webhook.
    pub(crate) fn set_storage_form(&mut self, definition: &str, resource: &Arc<ApiResource>) {
        self.record_schema(resource);
        if resource.custom().is_some_and(|custom| custom.conversion.is_some()) {
            self.storage_form.insert(definition.to_owned(), Arc::clone(resource));
        }
    }

    /// Whether an object of a custom resource, by its schema id, is stored in an earlier storage
    /// version; not if the id is of no schema, as after a snapshot.
    pub(crate) fn is_stored_in_earlier_version(
        &self,
        resource: &ApiResource,
        schema_id: u64,
    ) -> bool {
        let present = resource.custom().map(|custom| &custom.storage_version);
        self.storage_versions.get(&schema_id).is_some_and(|stored| Some(stored) != present)
    }

    fn record_schema(&mut self, resource: &ApiResource) {
        self.schema_ids.insert(resource.schema_id, resource.version.clone());
        if let Some(custom) = resource.custom() {
            self.storage_versions.insert(resource.schema_id, custom.storage_version.clone());
        }
    }

    /// Whether the resources of a definition were built from this spec.
    pub(crate) fn is_served_from(&self, definition: &str, source: &str) -> bool {
        self.sources.get(definition) == Some(&digest(source))
    }
}

/// The built-in resources, which all clusters share.
fn built_in() -> &'static [Arc<ApiResource>] {
    static BUILT_IN: OnceLock<Vec<Arc<ApiResource>>> = OnceLock::new();
    BUILT_IN.get_or_init(|| {
        builtin::resources()
            .iter()
            .filter(|resource| versions::is_stable(&resource.version))
            .map(|resource| Arc::new(ApiResource::built_in(resource)))
            .collect()
    })
}

fn name_of(resource: &ApiResource) -> ResourceName {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}

/// A digest of a spec, to tell whether it changed (FNV-1a).
fn digest(source: &str) -> u64 {
    source.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
