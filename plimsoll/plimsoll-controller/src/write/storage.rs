//! Storage migration: the objects of a definition are rewritten, so that the API server stores them in its
//! storage version; then the other versions are dropped from `status.storedVersions`.
//!
//! One execution lists the objects, each of the next ones rewrites some of them, so that it can be held in
//! between. What is left is kept in memory: another process begins anew. That does no harm, since the API
//! server does not write an object again that is stored as it should be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use kube::api::{ListParams, Patch};
use kube::core::{ApiResource, DynamicObject, Status};
use plimsoll_api::Reason;
use plimsoll_plan::plan::Step;
use plimsoll_plan::progress::{StepOutcome, Transience, TryError};
use serde_json::{Value, json};

use super::{Writer, field_manager};
use crate::observe::mark;
use crate::resources::{Served, defined_resource};

/// The maximum number of objects that an execution rewrites.
const OBJECTS_MAX: usize = 100;
/// The maximum number of objects that a request lists.
const PAGE_SIZE: u32 = 500;
/// The maximum number of objects that a message names.
const NAMED_MAX: usize = 3;

impl Writer {
    /// Executes a part of the migration of the objects of a definition. Nothing but the definition is read if
    /// `status.storedVersions` only has the storage version.
    pub(super) async fn migrate(
        &self,
        step: &Step,
        served: &Served,
    ) -> Result<StepOutcome, kube::Error> {
        let definition = self.api(served, "").get(&step.manifest.key.name).await?;
        let is_going = definition.metadata.deletion_timestamp.is_some();
        let stored = migrated_to(&definition.data).filter(|_| !is_going);
        // Of a kind that is served in no version, no object can be written.
        let resource = defined_resource(&definition.data, |version| version["storage"] != true);
        let uid = definition.uid().unwrap_or_default();
        let (Some(stored), Some(resource)) = (stored, resource) else {
            self.migrations.end(&uid);
            return Ok(StepOutcome::Applied(mark(&definition.metadata)));
        };
        let generation = definition.metadata.generation.unwrap_or_default();
        self.migrations.begin(&uid, generation);
        match self.rewrite_objects(&uid, &resource).await {
            Ok(Some(Part { done, total })) => {
                let ApiResource { plural, group, .. } = &resource;
                return Ok(StepOutcome::Continued(format!(
                    "{done} of {total} objects of {plural}.{group} are rewritten in version {stored}"
                )));
            }
            Ok(None) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Ok(not_served(&resource));
            }
            Err(error) => return Err(error),
        }
        if let Some(refused) = self.migrations.retry_refused(&uid) {
            let total = self.migrations.part(&uid).map_or(refused.len(), |part| part.total);
            return Ok(StepOutcome::Failed(refusal(stored, &refused, total)));
        }
        let revision = definition.resource_version().unwrap_or_default();
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": revision },
            "status": { "storedVersions": [stored] },
        }));
        let name = &step.manifest.key.name;
        let patched = self.api(served, "").patch_status(name, &field_manager(), &patch).await?;
        self.migrations.end(&uid);
        tracing::info!(definition = %name, version = %stored, "all objects are stored in one version");
        Ok(StepOutcome::Applied(mark(&patched.metadata)))
    }

    /// Returns the definition as a migration leaves it; `None` if there is none.
    pub(super) async fn try_migration(
        &self,
        step: &Step,
        served: &Served,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        let Some(mut live) = self.api(served, "").get_opt(&step.manifest.key.name).await? else {
            return Ok(None);
        };
        let definition = step.manifest.definition.as_ref();
        let stored = definition.and_then(|it| it.versions.iter().find(|it| it.storage));
        if let Some(stored) = stored {
            live.data["status"]["storedVersions"] = json!([stored.name]);
        }
        Ok(Some(live))
    }

    /// Lists the objects that a migration is to rewrite, or rewrites some of them. Returns how far it has come;
    /// `None` if none is left.
    async fn rewrite_objects(
        &self,
        uid: &str,
        resource: &ApiResource,
    ) -> Result<Option<Part>, kube::Error> {
        if self.list_objects(uid, resource).await? {
            return Ok(self.migrations.part(uid));
        }
        for _ in 0..OBJECTS_MAX {
            let Some(object) = self.migrations.next_object(uid) else { break };
            let refused = self.rewrite(&object, resource).await?;
            self.migrations.rewritten(uid, refused);
        }
        Ok(self.migrations.part(uid))
    }

    /// Lists the objects that a migration is to rewrite; returns false if they were listed before.
    async fn list_objects(&self, uid: &str, resource: &ApiResource) -> Result<bool, kube::Error> {
        let api = self.api_in("", resource);
        let mut is_begun = false;
        while let Some(parameters) = self.migrations.next_page(uid) {
            is_begun = true;
            let page = match api.list_metadata(&parameters).await {
                Ok(page) => page,
                Err(error) => {
                    if matches!(&error, kube::Error::Api(status) if status.code == 410) {
                        // The list has expired; it begins anew.
                        self.migrations.end(uid);
                    }
                    return Err(error);
                }
            };
            let objects = page.items.iter().map(|it| ListedObject {
                namespace: it.namespace().unwrap_or_default(),
                name: it.name_any(),
            });
            let token = page.metadata.continue_.filter(|token| !token.is_empty());
            self.migrations.listed(uid, objects.collect(), token.as_deref());
        }
        Ok(is_begun)
    }

    /// Has the API server write an object as it is; returns why it refuses that, if it does. What another client
    /// has written or deleted meanwhile needs no write.
    async fn rewrite(
        &self,
        object: &ListedObject,
        resource: &ApiResource,
    ) -> Result<Option<String>, kube::Error> {
        let api = self.api_in(&object.namespace, resource);
        let nothing = Patch::Merge(json!({}));
        match api.patch_metadata(&object.name, &field_manager(), &nothing).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 409 || is_gone(&status) => Ok(None),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                Ok(Some(status.message.clone()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns whether an object is gone, and not its whole kind.
fn is_gone(status: &Status) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// Returns the storage version of a definition if objects may be stored in other ones; `None` if not.
fn migrated_to(definition: &Value) -> Option<&str> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|it| it["storage"] == true)?["name"].as_str()?;
    let noted = definition["status"]["storedVersions"].as_array()?;
    noted.iter().any(|it| *it != stored).then_some(stored)
}

fn not_served(resource: &ApiResource) -> StepOutcome {
    let ApiResource { group, version, kind, .. } = resource;
    StepOutcome::Failed(TryError {
        reason: Reason::UpdatePayloadResourceTypeMissing,
        cause: format!("{group}/{version}, Kind={kind} is not served"),
        transience: Transience::Transient,
        retry_after: None,
    })
}

/// Returns why a migration cannot end: some of all objects are refused.
fn refusal(stored: &str, refused: &[RefusedObject], total: usize) -> TryError {
    let named = refused.iter().take(NAMED_MAX).map(|it| {
        let ListedObject { namespace, name } = &it.object;
        let separator = if namespace.is_empty() { "" } else { "/" };
        format!("{namespace}{separator}{name}: {}", it.message)
    });
    let named = named.collect::<Vec<String>>().join("; ");
    TryError {
        reason: Reason::UpdatePayloadResourceInvalid,
        cause: format!(
            "{} of {total} objects cannot be written in version {stored}; change or delete them: {named}",
            refused.len()
        ),
        transience: Transience::Lasting,
        retry_after: None,
    }
}

/// How far a migration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    done: usize,
    total: usize,
}

/// An object that is to be rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedObject {
    /// The namespace; empty if the object is cluster-scoped.
    namespace: String,
    name: String,
}

/// An object that the API server refuses to write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusedObject {
    object: ListedObject,
    /// Why it is refused.
    message: String,
}

/// A migration that has begun.
#[derive(Debug)]
struct Migration {
    /// The generation of the definition: another one may store objects in another version.
    generation: i64,
    /// The page to list next; `None` if all objects are listed.
    next_page: Option<ListParams>,
    /// The number of objects listed.
    total: usize,
    /// The objects that are still to be rewritten.
    left: Vec<ListedObject>,
    refused: Vec<RefusedObject>,
}

/// The migrations that have begun, by the uids of their definitions.
#[derive(Debug, Clone, Default)]
pub(super) struct Migrations(Arc<Mutex<BTreeMap<String, Migration>>>);

impl Migrations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Migration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a migration unless it has begun for this generation of the definition.
    fn begin(&self, uid: &str, generation: i64) {
        let mut migrations = self.lock();
        if migrations.get(uid).is_none_or(|it| it.generation != generation) {
            let migration = Migration {
                generation,
                next_page: Some(ListParams::default().limit(PAGE_SIZE)),
                total: 0,
                left: Vec::new(),
                refused: Vec::new(),
            };
            migrations.insert(uid.to_owned(), migration);
        }
    }

    fn end(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Returns the page to list next; `None` if all objects are listed.
    fn next_page(&self, uid: &str) -> Option<ListParams> {
        self.lock().get(uid)?.next_page.clone()
    }

    /// Notes the objects of a page; `token` is that of the next one.
    fn listed(&self, uid: &str, objects: Vec<ListedObject>, token: Option<&str>) {
        if let Some(migration) = self.lock().get_mut(uid) {
            migration.total += objects.len();
            migration.left.extend(objects);
            let page = |token| ListParams::default().limit(PAGE_SIZE).continue_token(token);
            migration.next_page = token.map(page);
        }
    }

    /// Returns the object to rewrite next; `None` if none is left.
    fn next_object(&self, uid: &str) -> Option<ListedObject> {
        self.lock().get(uid)?.left.last().cloned()
    }

    /// Notes that the last object was rewritten, or why it was refused.
    fn rewritten(&self, uid: &str, refused: Option<String>) {
        if let Some(migration) = self.lock().get_mut(uid) {
            let object = migration.left.pop();
            let refused = object.zip(refused);
            let refused = refused.map(|(object, message)| RefusedObject { object, message });
            migration.refused.extend(refused);
        }
    }

    /// Returns how far a migration has come; `None` if no object is left.
    fn part(&self, uid: &str) -> Option<Part> {
        let migrations = self.lock();
        let Migration { total, left, .. } = migrations.get(uid)?;
        (!left.is_empty()).then(|| Part { done: total - left.len(), total: *total })
    }

    /// Returns the objects that were refused, which are to be rewritten again; `None` if there are none.
    fn retry_refused(&self, uid: &str) -> Option<Vec<RefusedObject>> {
        let mut migrations = self.lock();
        let migration = migrations.get_mut(uid)?;
        let refused = std::mem::take(&mut migration.refused);
        migration.left.extend(refused.iter().map(|it| it.object.clone()));
        (!refused.is_empty()).then_some(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_migrated_if_other_versions_are_noted() {
        let check = |noted: &[&str], expected: Option<&str>| {
            let versions = json!([{ "name": "v1alpha1" }, { "name": "v1", "storage": true }]);
            let definition =
                json!({ "spec": { "versions": versions }, "status": { "storedVersions": noted } });
            assert_eq!(migrated_to(&definition), expected, "{noted:?}");
        };
        check(&["v1"], None);
        check(&[], None);
        check(&["v1alpha1", "v1"], Some("v1"));
        check(&["v1alpha1"], Some("v1"));
    }

    fn object(name: &str) -> ListedObject {
        ListedObject { namespace: "bar".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn what_is_refused_is_tried_again_and_nothing_else() {
        let migrations = Migrations::default();
        migrations.begin("1", 1);
        assert!(migrations.next_page("1").is_some_and(|it| it.continue_token.is_none()));
        migrations.listed("1", vec![object("a")], Some("token"));
        let token = migrations.next_page("1").and_then(|it| it.continue_token);
        assert_eq!(token.as_deref(), Some("token"));
        migrations.listed("1", vec![object("b")], None);
        migrations.begin("1", 1);
        assert!(migrations.next_page("1").is_none());
        assert_eq!(migrations.part("1"), Some(Part { done: 0, total: 2 }));
        assert_eq!(migrations.next_object("1"), Some(object("b")));
        migrations.rewritten("1", Some("no good".to_owned()));
        assert_eq!(migrations.part("1"), Some(Part { done: 1, total: 2 }));
        migrations.rewritten("1", None);
        assert_eq!((migrations.part("1"), migrations.next_object("1")), (None, None));
        let refused = migrations.retry_refused("1").expect("one was refused");
        assert_eq!(
            refusal("v1", &refused, 2).cause,
            "1 of 2 objects cannot be written in version v1; change or delete them: bar/b: no good"
        );
        assert_eq!(migrations.next_object("1"), Some(object("b")));
        migrations.rewritten("1", None);
        assert_eq!(migrations.retry_refused("1"), None);
        // A definition that has changed may store objects in another version.
        migrations.begin("1", 2);
        assert!(migrations.next_page("1").is_some());
    }
}
