//! The one module that writes to a cluster.
//!
//! Everything is applied server-side under one field manager with forced ownership: fields that a
//! manifest drops are removed, fields of other managers stay, but for those of programs that applied the
//! object before ([`takeover`]), and defaults that are in the way ([`unions`]).

mod failures;
mod guarded;
mod own_objects;
mod replacement;
mod steps;
mod storage;
mod takeover;
mod unions;

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Client};
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use plimsoll_plan::progress::{Mark, Scope};
use serde::Serialize;

pub(crate) use self::failures::{chain, missing_namespace, outcome};
pub(crate) use self::steps::TriedObject;
use self::storage::Migrations;
use crate::observe::mark;
use crate::resources::Served;

/// A client that writes to a cluster.
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    /// Whether a Deployment whose selector changes is deleted and created again.
    replaces_workloads: bool,
    /// Whether it executes the plan of a release.
    is_of_release: bool,
    /// Whether objects may belong to Operators, which a release does not take over.
    has_operators: bool,
    /// The storage migrations that have begun.
    migrations: Migrations,
}

impl Writer {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            replaces_workloads: false,
            is_of_release: false,
            has_operators: false,
            migrations: Migrations::default(),
        }
    }

    /// Returns a writer that executes the plan of a release.
    pub(crate) fn of_release(self) -> Self {
        Self { is_of_release: true, ..self }
    }

    /// Returns a writer for a cluster that may have Operators.
    pub(crate) fn beside_operators(self, has_operators: bool) -> Self {
        Self { has_operators, ..self }
    }

    /// Returns a writer that deletes and creates a Deployment whose selector changes: no API server
    /// changes the selector of one that exists.
    pub(crate) fn replacing_workloads(self) -> Self {
        Self { replaces_workloads: true, ..self }
    }

    /// Returns the API of a served resource, in a namespace if it is namespaced.
    fn api(&self, served: &Served, namespace: &str) -> Api<DynamicObject> {
        let client = self.client.clone();
        match served.scope {
            Scope::Namespaced => Api::namespaced_with(client, namespace, &served.resource),
            Scope::Cluster => Api::all_with(client, &served.resource),
        }
    }

    /// Returns the API of a resource in a namespace, or of a cluster-scoped one if that is empty.
    fn api_in(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }
}

async fn apply<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    name: &str,
    object: &T,
) -> Result<Mark, kube::Error> {
    send(api, name, object).await.map(|applied| mark(&applied.metadata))
}

/// Applies an object. The response has the metadata alone.
async fn send<T: Serialize + Debug + ?Sized>(
    api: &Api<DynamicObject>,
    name: &str,
    object: &T,
) -> Result<PartialObjectMeta<DynamicObject>, kube::Error> {
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch_metadata(name, &parameters, &Patch::Apply(object)).await
}

/// Deletes the object with a uid in the background; returns false if it is gone or another one has its name.
/// The API server responds to another uid as it does to a concurrent write, which is an error.
async fn delete_uid(api: Api<DynamicObject>, name: &str, uid: &str) -> Result<bool, kube::Error> {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    let parameters =
        DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api.delete(name, &parameters).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let found = api.get_metadata_opt(name).await?;
            let is_there = found.is_some_and(|it| it.metadata.uid.as_deref() == Some(uid));
            if is_there { Err(kube::Error::Api(status)) } else { Ok(false) }
        }
        Err(error) => Err(error),
    }
}

/// Returns the parameters of a patch that is not an apply.
fn field_manager() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Returns the parameters of a creation.
fn create_parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// Ignores that the object of a write is gone.
fn unless_missing<T>(written: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match written {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}
