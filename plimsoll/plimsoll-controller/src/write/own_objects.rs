//! The objects of this program itself: definitions, revisions, Actions, certificates, Leases and Events.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};
use plimsoll_api::ACTION;
use plimsoll_api::olm::SIGNATURE_ANNOTATION;
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Writer, apply, create_parameters, delete_uid, field_manager, unless_missing};
use crate::resources::api_resource;

/// The field manager of the built-in provider of certificates.
const CERTIFICATE_MANAGER: &str = "plimsoll-certificates";

impl Writer {
    /// Applies a cluster-scoped object, such as a CustomResourceDefinition.
    pub(crate) async fn apply_own(
        &self,
        resource: &ApiResource,
        name: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        self.apply_own_in("", resource, name, object).await
    }

    /// Applies an object in a namespace.
    pub(crate) async fn apply_own_in(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        apply(&self.api_in(namespace, resource), name, object).await.map(|_| ())
    }

    /// Applies an object in a namespace as a field manager of its own; a conflict if another manager has set one
    /// of its fields to another value.
    pub(crate) async fn apply_as(
        &self,
        manager: &str,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let parameters = PatchParams::apply(manager);
        let api = self.api_in(namespace, resource);
        api.patch_metadata(name, &parameters, &Patch::Apply(object)).await.map(|_| ())
    }

    /// Creates a cluster-scoped object. If it exists, only the fields that it lacks are set.
    ///
    /// It is applied, since a kube-apiserver lets an ordinary creation of a custom resource wait for two
    /// seconds while its definition is new.
    pub(crate) async fn create_own(
        &self,
        resource: &ApiResource,
        object: Value,
    ) -> Result<(), kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let api = self.api_in("", resource);
        match api.patch_metadata(name, &parameters, &Patch::Apply(&object)).await {
            // Another client created it first, with other values.
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Creates an object in a namespace, or a cluster-scoped one if the namespace is empty; returns false
    /// if an object of that name exists.
    pub(crate) async fn create_new(
        &self,
        namespace: &str,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<bool, kube::Error> {
        let object = DynamicObject::deserialize(object).map_err(kube::Error::SerdeError)?;
        match self.api_in(namespace, resource).create(&create_parameters(), &object).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates an OperatorRevision, which never changes. One that exists is the same if it belongs to the
    /// same Operator and has the same signature.
    ///
    /// # Errors
    ///
    /// When another one of that name exists, such as one of an Operator that was deleted.
    pub(crate) async fn create_revision(
        &self,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let object = DynamicObject::deserialize(object).map_err(kube::Error::SerdeError)?;
        let api = self.api_in("", resource);
        match api.create(&create_parameters(), &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let there = api.get(&object.name_any()).await?;
                let signature =
                    |it: &DynamicObject| it.annotations().get(SIGNATURE_ANNOTATION).cloned();
                let is_same = there.owner_references() == object.owner_references()
                    && signature(&there) == signature(&object);
                if is_same { Ok(()) } else { Err(kube::Error::Api(status)) }
            }
            other => other.map(|_| ()),
        }
    }

    /// Deletes a cluster-scoped object, unless it is gone.
    pub(crate) async fn delete_own(
        &self,
        resource: &ApiResource,
        name: &str,
    ) -> Result<(), kube::Error> {
        unless_missing(self.api_in("", resource).delete(name, &DeleteParams::default()).await)
    }

    /// Deletes the object with a uid; returns false if it is gone or another one has its name.
    pub(crate) async fn delete_uid(
        &self,
        namespace: &str,
        resource: &ApiResource,
        name: &str,
        uid: &str,
    ) -> Result<bool, kube::Error> {
        delete_uid(self.api_in(namespace, resource), name, uid).await
    }

    /// Cancels an Action, unless it is gone.
    pub(crate) async fn cancel_action(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(), kube::Error> {
        let patch = Patch::Merge(json!({ "spec": { "cancelled": true } }));
        let api = self.api_in(namespace, &api_resource(ACTION));
        unless_missing(api.patch_metadata(name, &field_manager(), &patch).await)
    }

    /// Fills the Secret of a serving certificate, and creates it if it is missing. Its data has a field
    /// manager of its own, so that it stays when another client applies the rest of the Secret.
    pub(crate) async fn fill_secret(
        &self,
        namespace: &str,
        name: &str,
        secret: &Secret,
    ) -> Result<(), kube::Error> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let parameters = PatchParams::apply(CERTIFICATE_MANAGER).force();
        api.patch_metadata(name, &parameters, &Patch::Apply(secret)).await.map(|_| ())
    }

    /// Replaces a cluster-scoped object that trusts other certificates now; a conflict if it changed
    /// since it was read.
    pub(crate) async fn replace_trusting(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let field_manager = Some(CERTIFICATE_MANAGER.to_owned());
        let parameters = PostParams { field_manager, ..PostParams::default() };
        let api = self.api_in("", resource);
        api.replace(&object.name_any(), &parameters, object).await.map(|_| ())
    }

    /// Returns whether a user may use a verb on all objects of a kind. The review is not stored.
    pub(crate) async fn is_allowed(
        &self,
        user: &str,
        groups: &[String],
        request: ResourceAttributes,
    ) -> Result<bool, kube::Error> {
        let spec = SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            groups: Some(groups.to_vec()),
            resource_attributes: Some(request),
            ..SubjectAccessReviewSpec::default()
        };
        self.reviewed(spec).await
    }

    /// Returns whether a user may use a verb on the path of a URL. The review is not stored.
    pub(crate) async fn may_request(
        &self,
        user: UserInfo,
        path: &str,
        verb: &str,
    ) -> Result<bool, kube::Error> {
        let UserInfo { username, groups, uid, extra } = user;
        let (path, verb) = (Some(path.to_owned()), Some(verb.to_owned()));
        let spec = SubjectAccessReviewSpec {
            user: username,
            groups,
            uid,
            extra,
            non_resource_attributes: Some(NonResourceAttributes { path, verb }),
            ..SubjectAccessReviewSpec::default()
        };
        self.reviewed(spec).await
    }

    async fn reviewed(&self, spec: SubjectAccessReviewSpec) -> Result<bool, kube::Error> {
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|it| it.allowed))
    }

    /// Returns the user that a token belongs to; `None` if it is not valid. The review is not stored.
    pub(crate) async fn authenticated(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.filter(|it| it.authenticated == Some(true));
        Ok(status.and_then(|it| it.user))
    }

    /// Creates or replaces a Lease; a conflict if another client has changed it.
    pub(crate) async fn write_lease(
        &self,
        namespace: &str,
        lease: &Lease,
    ) -> Result<Lease, kube::Error> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        match lease.metadata.resource_version {
            Some(_) => api.replace(name, &PostParams::default(), lease).await,
            None => api.create(&PostParams::default(), lease).await,
        }
    }

    /// Creates an Event. Its name has the time, so that none of that name exists.
    pub(crate) async fn create_event(&self, event: &Event) -> Result<(), kube::Error> {
        self.events(event).create(&create_parameters(), event).await.map(|_| ())
    }

    /// Updates the count of an Event; creates the Event if it has expired.
    pub(crate) async fn count_event(&self, event: &Event) -> Result<(), kube::Error> {
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({ "series": event.series }));
        match self.events(event).patch(name, &field_manager(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => self.create_event(event).await,
            result => result.map(|_| ()),
        }
    }

    fn events(&self, event: &Event) -> Api<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}
