//! The permissions of requesters and the ActionPolicies of a cluster, read from the API server.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::olm::action::ActionRequester;
use plimsoll_api::{ACTION_POLICY, ApiKind};
use plimsoll_operators::actions::lifecycle::DirectPermissions;
use plimsoll_operators::actions::policy::NamedPolicy;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;
use crate::write::Writer;

/// The permissions and policies that a decision about an Action is based on.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    /// The permissions with which the requester needs no Action.
    pub(super) by_hand: DirectPermissions,
    /// All policies of the cluster.
    pub(super) policies: Vec<NamedPolicy>,
}

impl Access {
    /// Reads the permissions of a requester and all policies.
    ///
    /// The policies are listed for each decision: a denial is final, and a watch may deliver a
    /// policy later than an Action that was created after it.
    ///
    /// # Errors
    ///
    /// When a request to the API server fails.
    pub(super) async fn ask(
        client: &Client,
        writer: &Writer,
        requester: Option<&ActionRequester>,
    ) -> Result<Self, kube::Error> {
        let by_hand = async {
            match requester {
                Some(requester) => by_hand(writer, requester).await,
                None => Ok(DirectPermissions::default()),
            }
        };
        let (by_hand, policies) = tokio::try_join!(by_hand, policies(client))?;
        Ok(Self { by_hand, policies })
    }
}

async fn by_hand(
    writer: &Writer,
    requester: &ActionRequester,
) -> Result<DirectPermissions, kube::Error> {
    let ActionRequester { username, groups } = requester;
    let [create, patch, delete, list, release] = DirectPermissions::CHECKS
        .map(|(kind, verb)| writer.is_allowed(username, groups, attributes(kind, verb)));
    let (create, patch, delete, list, release) =
        tokio::try_join!(create, patch, delete, list, release)?;
    Ok(DirectPermissions::of([create, patch, delete, list, release]))
}

/// Returns the permission for a verb on all objects of a kind.
pub(super) fn attributes(kind: ApiKind, verb: &str) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(kind.group.to_owned()),
        resource: Some(kind.plural.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    }
}

async fn policies(client: &Client) -> Result<Vec<NamedPolicy>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(ACTION_POLICY));
    let listed = api.list(&ListParams::default()).await?;
    let read = listed.items.into_iter().filter_map(|it| named(&it.into_value()));
    Ok(read.map(|(name, spec)| NamedPolicy { name, spec }).collect())
}

/// Returns the name and the spec of an object; `None` if the object cannot be read.
pub(super) fn named<T: DeserializeOwned>(object: &Value) -> Option<(String, T)> {
    let name = object["metadata"]["name"].as_str()?.to_owned();
    match T::deserialize(&object["spec"]) {
        Ok(spec) => Some((name, spec)),
        Err(error) => {
            tracing::warn!(name, %error, "an object cannot be read");
            None
        }
    }
}
