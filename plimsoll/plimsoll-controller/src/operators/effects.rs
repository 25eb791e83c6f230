//! Effects of the [`OperatorReconciler`](plimsoll_operators::reconciler::OperatorReconciler), carried
//! out: each request runs beside the loop, and its response is an event.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use plimsoll_api::olm::CatalogSource;
use plimsoll_api::{CATALOG, GroupKind, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_content::catalog::CatalogIndex;
use plimsoll_operators::deletion::LiveObject;
use plimsoll_operators::deletion::definition::DefinitionTimes;
use plimsoll_operators::reconciler::{
    Findings, OperatorEffect, OperatorEvent, OperatorKind, WatchedChange, WrittenPart,
};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::StepOutcome;
use plimsoll_plan::reconciler::watches::WatchScope;
use plimsoll_source::catalog::Bytes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::control_loop::{CatalogAnswer, ControlLoop, KindsAnswer};
use super::inspect::Cluster;
use super::unserved::unserved_kinds;
use super::{catalogs, inspect, revisions, watches};
use crate::bundle_content;
use crate::certificates;
use crate::clock::run_beside;
use crate::host::StepExecution;
use crate::ownership;
use crate::resources::{Served, api_resource, defined_resource, definitions};
use crate::spans;
use crate::write::{Writer, chain};

impl ControlLoop {
    pub(super) fn carry_out_one(&mut self, effect: OperatorEffect) {
        match effect {
            OperatorEffect::ReadCatalog { name, ticket, source } => {
                self.read_catalog(name, ticket, source);
            }
            OperatorEffect::ReadBundle { .. } => self.read_bundle(effect),
            OperatorEffect::InspectObjects { .. } => self.inspect_objects(effect),
            OperatorEffect::WriteRevision { operator, ticket, revisions } => {
                let writer = self.host.writer.clone();
                self.host.spawn(async move {
                    let result = create_revisions(&writer, revisions).await;
                    OperatorEvent::RevisionWritten { operator, ticket, result }
                });
            }
            OperatorEffect::ReleaseRevision { name, uid } => {
                let writer = self.host.writer.clone();
                self.host.watch(async move { revisions::release(&writer, &name, &uid).await });
            }
            OperatorEffect::DeleteRevision { name, uid } => {
                let writer = self.host.writer.clone();
                self.host.watch(async move {
                    let deleted = revisions::delete(&writer, &name, &uid).await;
                    if let Err(error) = deleted {
                        tracing::debug!(%error, name, "could not delete an old revision");
                    }
                });
            }
            OperatorEffect::SetFinalizer { operator, before, is_added } => {
                let writer = self.host.writer.clone();
                self.host.spawn(async move {
                    let written = writer.set_operator_finalizer(&operator, &before, is_added).await;
                    answer_write(OperatorKind::Operator, operator, WrittenPart::Finalizer, &written)
                });
            }
            OperatorEffect::WriteStatus { .. } => self.write_status(effect),
            OperatorEffect::Execute { .. } => self.execute(effect),
            OperatorEffect::Watch(kind, scope) => self.watch(&kind, scope),
            OperatorEffect::WatchOperands(definition) => self.watch_operands(definition),
            OperatorEffect::UnwatchOperands(definition) => {
                if let Some(watch) = self.operands.remove(&definition) {
                    watch.abort();
                }
            }
            OperatorEffect::Delete { operator, object } => self.request_deletion(operator, object),
            OperatorEffect::RemoveConversion { .. } => self.remove_conversion(effect),
            OperatorEffect::ReadNamespace { operator, namespace } => {
                let client = self.host.client.clone();
                self.host.spawn(async move {
                    let objects = inspect::namespace_content(client, &namespace).await;
                    OperatorEvent::NamespaceRead { operator, namespace, objects }
                });
            }
            OperatorEffect::FindKinds { operator } => self.find_kinds(operator),
            OperatorEffect::ReadDefinition { operator } => self.read_definition(operator),
            OperatorEffect::ReadRelease { operator } => self.read_release(operator),
            OperatorEffect::Emit { operator, uid, draft } => {
                self.recorder.emit_about(OPERATOR, &operator, &uid, draft);
            }
        }
    }

    fn inspect_objects(&mut self, effect: OperatorEffect) {
        let OperatorEffect::InspectObjects {
            operator,
            ticket,
            objects,
            definitions,
            safety,
            kinds,
        } = effect
        else {
            return;
        };
        let mut cluster = self.cluster();
        let served = self.reconciler.served_catalogs();
        let catalogs: Vec<Arc<CatalogIndex<Bytes>>> =
            served.filter_map(|(name, _)| Some(self.catalogs.get(name)?.index())).collect();
        self.host.spawn(async move {
            let unserved = unserved_kinds(&mut cluster, &kinds, &catalogs).await;
            let findings = match unserved {
                Ok(unserved) => {
                    let found = inspect::inspect_objects(cluster, objects, definitions, safety);
                    found.await.map(|found| Findings { unserved, ..found })
                }
                Err(error) => Err(error),
            };
            OperatorEvent::ObjectsInspected { operator, ticket, findings }
        });
    }

    fn find_kinds(&mut self, operator: String) {
        let client = self.host.client.clone();
        self.searches.spawn(async move {
            let found = inspect::kinds_of_operator(client, &operator).await;
            KindsAnswer { operator, found }
        });
    }

    fn read_release(&mut self, operator: String) {
        let client = self.host.client.clone();
        self.host.spawn(async move {
            let objects = ownership::objects_of_release(&client).await;
            let objects = objects
                .map_err(|error| format!("failed to list ReleaseProgresses: {}", chain(&error)));
            OperatorEvent::ReleaseRead { operator, objects }
        });
    }

    fn write_status(&mut self, effect: OperatorEffect) {
        let OperatorEffect::WriteStatus { kind, name, status, resource_version } = effect else {
            return;
        };
        let writer = self.host.writer.clone();
        let resource = api_resource(match kind {
            OperatorKind::Catalog => CATALOG,
            OperatorKind::Operator | OperatorKind::Revision => OPERATOR,
        });
        self.host.spawn(async move {
            let written = writer.write_status(&resource, &name, &status, &resource_version).await;
            answer_write(kind, name, WrittenPart::Status, &written.map(|_| ()))
        });
    }

    fn read_catalog(&mut self, name: String, ticket: u64, source: CatalogSource) {
        let is_known = self.reconciler.is_catalog_known(&name);
        let before = self.catalogs.get(&name).filter(|_| is_known).cloned();
        let last = self.reconciler.last_catalog_digest(&name).map(str::to_owned);
        let names: BTreeSet<String> = self.reconciler.operator_names().cloned().collect();
        let (reading, clock) = (self.reading.clone(), Arc::clone(&self.clock));
        self.refreshes.spawn(async move {
            let answer = run_beside(&*clock, move || {
                let restored = last.and_then(|it| catalogs::restore(&source, &it, &reading));
                let before = before.as_ref().or(restored.as_ref().map(|it| &it.read));
                let refreshed = catalogs::refresh(&source, before, &names, &reading);
                (restored, refreshed)
            });
            let (restored, refreshed) =
                answer.await.unwrap_or_else(|error| (None, Err(error.to_string())));
            CatalogAnswer { name, ticket, restored, refreshed }
        });
    }

    fn read_bundle(&mut self, effect: OperatorEffect) {
        let OperatorEffect::ReadBundle { operator, ticket, bundle, source, spec } = effect else {
            return;
        };
        let read = self.catalogs.get(&bundle.catalog);
        let properties = catalogs::properties(read, &operator, &bundle.name);
        let properties = properties.unwrap_or_default();
        let (name, reads) = (operator.clone(), Arc::clone(&self.reads));
        let (clock, roots) = (Arc::clone(&self.clock), self.reading.roots.clone());
        self.host.spawn(async move {
            // The objects of many bundles at the same time would take much memory.
            let _permit = reads.acquire().await;
            let content = run_beside(&*clock, move || {
                bundle_content::read(&name, &bundle, &source, &roots, &spec, properties)
                    .map(Box::new)
            });
            let content = content.await.unwrap_or_else(|error| Err(error.to_string()));
            OperatorEvent::BundleRead { operator, ticket, content }
        });
    }

    fn execute(&mut self, effect: OperatorEffect) {
        let OperatorEffect::Execute { operator, run, plan, step, fills_related_objects } = effect
        else {
            return;
        };
        let span = spans::operator_step(&plan, step, &operator);
        let certificates = self.certificates.clone();
        let carry_out = move |writer: Writer, execution: StepExecution, served: Served| async move {
            let work = execution.step();
            let outcome = match certificates.provide(&execution.plan.steps, work).await {
                Ok(bundle) => writer.execute_trusting(work, &served, bundle.as_deref()).await,
                Err(error) => certificates::outcome(work, &error),
            };
            if fills_related_objects && matches!(outcome, StepOutcome::Applied(_)) {
                writer.fast_fill(work, &served).await;
            }
            outcome
        };
        let ended = move |outcome| OperatorEvent::Executed { operator, run, step, outcome };
        self.host.execute(StepExecution { plan, index: step, span }, carry_out, ended);
    }

    fn watch(&mut self, kind: &GroupVersionKind, scope: WatchScope) {
        let group_kind = GroupKind::new(&kind.group, &kind.kind);
        if let Some(widened) = self.watches.get(&group_kind) {
            widened.cancel();
            return;
        }
        let Some(served) = self.host.resources.get(kind) else { return };
        let (client, resource) = (self.host.client.clone(), served.resource.clone());
        let (relay, widened) = (self.host.relay(), CancellationToken::new());
        self.watches.insert(group_kind, widened.clone());
        self.host.watch(watches::objects(client, resource, scope, relay, widened));
    }

    /// Watches the objects of the kind that a definition defines. A kind that is not served has no
    /// objects.
    fn watch_operands(&mut self, definition: String) {
        let is_it = |served: &Served| {
            let ApiResource { plural, group, .. } = &served.resource;
            format!("{plural}.{group}") == definition
        };
        let (client, relay) = (self.host.client.clone(), self.host.relay());
        let known = self.host.resources.iter().map(|(_, served)| served).find(|it| is_it(it));
        let known = known.map(|it| it.resource.clone());
        let name = definition.clone();
        let watch = self.host.watch(async move {
            let resource = match known {
                Some(resource) => Some(resource),
                None => definition_resource(&client, &name).await,
            };
            match resource {
                Some(resource) => watches::operands(client, name, resource, relay).await,
                None => {
                    let change = WatchedChange::Listed;
                    let _ = relay.sender.send(OperatorEvent::OperandWatched(name, change)).await;
                }
            }
        });
        self.operands.insert(definition, watch);
    }

    fn request_deletion(&mut self, operator: String, object: LiveObject) {
        let LiveObject { key, uid, .. } = object;
        let Some(served) = self.served(&key) else {
            let result = Err(format!("{key}: its kind is not served"));
            let event = OperatorEvent::DeletionAnswered { operator, uid, result };
            self.host.spawn(async move { event });
            return;
        };
        let writer = self.host.writer.clone();
        self.host.spawn(async move {
            let deleted = writer.delete_object(&key, &served, &uid).await;
            let result = deleted.map_err(|error| format!("{key}: {}", chain(&error)));
            OperatorEvent::DeletionAnswered { operator, uid, result }
        });
    }

    fn read_definition(&mut self, operator: String) {
        let client = self.host.client.clone();
        self.host.spawn(async move {
            let definition = inspect::operator_definition(client).await;
            if let Ok(Some(DefinitionTimes { deleted: Some(deleted), .. })) = &definition {
                tracing::warn!(operator, %deleted, "the definition of Operators is being deleted");
            }
            OperatorEvent::DefinitionRead { operator, definition }
        });
    }

    fn remove_conversion(&mut self, effect: OperatorEffect) {
        let OperatorEffect::RemoveConversion { operator, definition, service } = effect else {
            return;
        };
        let LiveObject { key, uid, .. } = definition;
        let writer = self.host.writer.clone();
        self.host.spawn(async move {
            let removed = writer.remove_conversion(&key.name, &uid, &service).await;
            let result = removed.map_err(|error| format!("{key}: {}", chain(&error)));
            OperatorEvent::ConversionRemoved { operator, uid, result }
        });
    }

    fn cluster(&self) -> Cluster {
        Cluster {
            client: self.host.client.clone(),
            clock: Arc::clone(&self.clock),
            resources: self.host.resources.clone(),
        }
    }

    /// Returns a served version of a kind; `None` if no version is served.
    fn served(&self, key: &ObjectKey) -> Option<Served> {
        let is_it = |kind: &GroupVersionKind| kind.group == key.group && kind.kind == key.kind;
        let mut found = self.host.resources.iter().filter(|(kind, _)| is_it(kind));
        found.next().map(|(_, served)| served.clone())
    }
}

/// Creates the OperatorRevisions of a revision, each with its name.
///
/// # Errors
///
/// The first that could not be created, and why.
async fn create_revisions(writer: &Writer, revisions: Vec<(String, Value)>) -> Result<(), String> {
    let resource = api_resource(OPERATOR_REVISION);
    for (name, object) in revisions {
        let created = writer.create_revision(&resource, &object).await;
        created.map_err(|error| {
            format!("OperatorRevision {name} could not be written: {}", chain(&error))
        })?;
    }
    Ok(())
}

/// Returns the event for the result of writing an Operator or a Catalog.
fn answer_write(
    kind: OperatorKind,
    name: String,
    what: WrittenPart,
    written: &Result<(), kube::Error>,
) -> OperatorEvent {
    if let Err(error) = written {
        tracing::debug!(%error, name, ?what, "could not write; trying again");
    }
    let is_written = written.is_ok();
    OperatorEvent::Written { kind, name, what, is_written }
}

/// Returns the resource of a definition, in the stored version if it is served; `None` if there is no
/// such definition or it serves no version.
async fn definition_resource(client: &Client, name: &str) -> Option<ApiResource> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let definition = api.get_opt(name).await.ok().flatten()?;
    defined_resource(&definition.data, |it| it["storage"] != true)
}
