//! The permissions of requesters, the ActionPolicies of a cluster, and the labels of the namespace that they may ask
//! for, read from the API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::olm::action::ActionRequester;
use plimsoll_api::{ACTION_POLICY, ApiKind};
use plimsoll_operators::actions::lifecycle::DirectPermissions;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;
use crate::write::Writer;

/// The permissions and policies that a decision about an Action is based on.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    /// The permissions with which the requester needs no Action.
    pub(super) by_hand: DirectPermissions,
    /// All policies of the cluster.
    pub(super) policies: Arc<Vec<NamedPolicy>>,
    /// The labels of the namespace of the Action; empty if no policy asks for labels.
    pub(super) labels: BTreeMap<String, String>,
}

/// The policies as they were listed last. Many who ask at the same time share one list.
#[derive(Debug, Default)]
pub(super) struct ListedPolicies(Mutex<Option<(Instant, Arc<Vec<NamedPolicy>>)>>);

impl ListedPolicies {
    /// Returns the policies from a list that was requested after this call.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn list(&self, client: &Client) -> Result<Arc<Vec<NamedPolicy>>, kube::Error> {
        let asked_at = Instant::now();
        let mut listed = self.0.lock().await;
        if let Some((began, policies)) = &*listed
            && *began > asked_at
        {
            return Ok(Arc::clone(policies));
        }
        let began = Instant::now();
        let policies = Arc::new(policies(client).await?);
        *listed = Some((began, Arc::clone(&policies)));
        Ok(policies)
    }
}

impl Access {
    /// Reads the permissions of the requester of an Action, all policies, and the labels of its namespace if a
    /// policy asks for some.
    ///
    /// The policies and labels are read for each decision: a denial is final, and a watch may deliver them later
    /// than an Action that was created after them.
    ///
    /// # Errors
    ///
    /// When a request to the API server fails.
    pub(super) async fn ask(
        client: &Client,
        writer: &Writer,
        listed: &ListedPolicies,
        action: &ActionObject,
    ) -> Result<Self, kube::Error> {
        let by_hand = async {
            match &action.spec.requester {
                Some(requester) => by_hand(writer, requester).await,
                None => Ok(DirectPermissions::default()),
            }
        };
        let (by_hand, policies) = tokio::try_join!(by_hand, listed.list(client))?;
        let observed = Self::observed(client, policies, action).await?;
        Ok(Self { by_hand, ..observed })
    }

    /// Returns what policies need to decide on an Action of a user who may do nothing by hand.
    ///
    /// # Errors
    ///
    /// When a request to the API server fails.
    pub(super) async fn observed(
        client: &Client,
        policies: Arc<Vec<NamedPolicy>>,
        action: &ActionObject,
    ) -> Result<Self, kube::Error> {
        let labels = match policies.iter().any(|it| it.spec.namespace_selector.is_some()) {
            true => namespace_labels(client, &action.namespace).await?,
            false => BTreeMap::new(),
        };
        Ok(Self { by_hand: DirectPermissions::default(), policies, labels })
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

/// Returns the labels of a namespace; empty if it does not exist any more.
async fn namespace_labels(
    client: &Client,
    name: &str,
) -> Result<BTreeMap<String, String>, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_metadata_opt(name).await?;
    Ok(namespace.and_then(|it| it.metadata.labels).unwrap_or_default())
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

#[cfg(test)]
mod tests {
    //! How often policies are listed for many requests.

    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_a_list_that_was_requested_after_they_asked() {
        let lists = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lists);
        let service = tower::service_fn(move |_: Request<Body>| {
            let counted = Arc::clone(&counted);
            async move {
                counted.fetch_add(1, Ordering::SeqCst);
                // The time is that of the runtime, which has none to wait for.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let list = r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#;
                Ok::<_, Infallible>(Response::new(Body::from(list.as_bytes().to_vec())))
            }
        });
        let client = Client::new(service, "default");
        let listed = ListedPolicies::default();
        let found = join_all((0..100).map(|_| listed.list(&client))).await;
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        // The first one had begun when the others asked.
        assert_eq!(lists.load(Ordering::SeqCst), 2);
        assert!(listed.list(&client).await.is_ok());
        assert_eq!(lists.load(Ordering::SeqCst), 3);
    }
}
