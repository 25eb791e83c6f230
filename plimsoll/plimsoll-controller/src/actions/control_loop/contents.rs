//! The contents of the objects that EventActions observe, as far as their requesters may watch them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use kube::core::DynamicObject;
use plimsoll_api::olm::action::{ActionRequester, EventSourceKind, SelectedObjects};
use plimsoll_api::{CATALOG, OPERATOR};
use plimsoll_operators::actions::triggers::ObjectContent;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_plan::progress::Scope;
use serde_json::Value;

use super::ControlLoop;
use crate::actions::access::attributes;
use crate::actions::generators::ActionGenerator;
use crate::actions::selection::Selection;
use crate::clock::run_beside;
use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;

/// The contents of objects by name, or the reason why they are not known.
pub(super) type Contents<'a> = Result<Cow<'a, BTreeMap<String, ObjectContent>>, String>;

/// The same of objects that a watch has shown.
type SelectedContents<'a> = Result<&'a BTreeMap<String, ObjectContent>, String>;

/// Returns contents without a copy.
pub(super) fn borrowed<'a>(contents: &'a Contents<'_>) -> SelectedContents<'a> {
    contents.as_ref().map(|it| &**it).map_err(String::clone)
}

impl ControlLoop {
    /// Returns the contents of the objects that an EventAction observes, or a message if its requester may not watch
    /// them; `None` if they are not known yet, or it is no EventAction.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn contents(
        &self,
        generator: &ActionGenerator,
    ) -> Result<Option<Contents<'_>>, kube::Error> {
        let Some(kind) = generator.source() else { return Ok(None) };
        if let Some(selection) = &generator.selection {
            let selected = self.selected(generator, selection).await?;
            return Ok(selected.map(|it| it.map(Cow::Borrowed)));
        }
        if let Some(denied) = self.denied(generator).await? {
            return Ok(Some(Err(denied)));
        }
        let contents = match kind {
            EventSourceKind::Catalog => {
                self.listed.contains(CATALOG.kind).then_some(Cow::Borrowed(&self.catalogs))
            }
            EventSourceKind::Operator if generator.looks_for_updates() => {
                self.operators_with_updates().await.map(Cow::Owned)
            }
            EventSourceKind::Operator => {
                let operators = self.operators.iter();
                let content =
                    operators.map(|(name, it)| (name.clone(), ObjectContent::of_operator(it)));
                self.listed.contains(OPERATOR.kind).then(|| Cow::Owned(content.collect()))
            }
            EventSourceKind::ClusterVersion => self.cluster_version.as_ref().map(Cow::Borrowed),
            EventSourceKind::Object => None,
        };
        Ok(contents.map(Ok))
    }

    /// Returns the contents of all Operators with their available updates; `None` if these are not known yet.
    async fn operators_with_updates(&self) -> Option<BTreeMap<String, ObjectContent>> {
        if !self.listed.contains(OPERATOR.kind) {
            return None;
        }
        let (inventory, operators) = (self.inventory.ask().await?, self.operators.clone());
        let found = run_beside(&*self.clock, move || {
            let mut updates = inventory.updates(&operators);
            let content = |(name, it): (&String, &ObservedOperator)| {
                let versions = updates.remove(name).unwrap_or_default();
                (name.clone(), ObjectContent::of_operator(it).with_updates(it.version(), &versions))
            };
            operators.iter().map(content).collect()
        });
        found.await.ok()
    }

    /// Returns the objects that the filter of an EventAction is evaluated for, by name, as the API server has them
    /// now. Those that are gone are left out.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn read_needed(
        &self,
        generator: &ActionGenerator,
        contents: Option<&Contents<'_>>,
    ) -> Result<BTreeMap<String, Value>, kube::Error> {
        let Some(contents) = contents else { return Ok(BTreeMap::new()) };
        let mut objects = BTreeMap::new();
        for name in generator.needed(&borrowed(contents), self.clock.now()) {
            objects.extend(self.read_observed(generator, &name).await?.map(|it| (name, it)));
        }
        Ok(objects)
    }

    /// Returns an object that an EventAction observes; `None` if there is none. To list it takes no other permission
    /// than to watch it.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn read_observed(
        &self,
        generator: &ActionGenerator,
        name: &str,
    ) -> Result<Option<Value>, kube::Error> {
        let resource = match (&generator.selection, generator.followed()) {
            (Some(selection), _) => {
                let served = self.selections.get(selection).and_then(|it| it.served());
                let Some(served) = served else { return Ok(None) };
                let namespace = (served.scope == Scope::Namespaced).then_some(&selection.namespace);
                (served.resource.clone(), namespace)
            }
            (None, Some(kind)) => (api_resource(kind), None),
            (None, None) => return Ok(None),
        };
        let (resource, namespace) = resource;
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = api.list(&named).await?.items.into_iter().next();
        Ok(found.map(|it| {
            let mut value = it.into_value();
            // Lists may leave out what is the same of all their objects.
            value["apiVersion"] = resource.api_version.into();
            value["kind"] = resource.kind.into();
            value
        }))
    }

    /// Returns the contents of the objects that an EventAction selects, or a message if its requester may not watch
    /// them; `None` if they have not been listed yet.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn selected(
        &self,
        generator: &ActionGenerator,
        selection: &Selection,
    ) -> Result<Option<SelectedContents<'_>>, kube::Error> {
        let Some(watched) = self.selections.get(selection) else { return Ok(None) };
        let (Some(content), Some(access)) =
            (watched.content(), watched.access(&selection.namespace))
        else {
            return Ok(watched.content());
        };
        let Some(ActionRequester { username, groups }) = generator.requester() else {
            return Ok(None);
        };
        let is_allowed = self.writer.is_allowed(username, groups, access).await?;
        let SelectedObjects { api_version, kind, .. } = &selection.objects;
        let denied = || format!("{username} may not watch {kind} of {api_version}");
        Ok(Some(if is_allowed { content } else { Err(denied()) }))
    }

    /// Returns a message if an EventAction observes all objects of a kind, which its requester may
    /// not watch: its status names them.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn denied(&self, generator: &ActionGenerator) -> Result<Option<String>, kube::Error> {
        let (Some(kind), Some(requester)) = (generator.followed(), generator.requester()) else {
            return Ok(None);
        };
        let ActionRequester { username, groups } = requester;
        let is_allowed =
            self.writer.is_allowed(username, groups, attributes(kind, "watch")).await?;
        Ok((!is_allowed).then(|| format!("{username} may not watch {}", kind.plural)))
    }
}
