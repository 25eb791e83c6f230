//! The permissions of requesters, the ActionPolicies of a cluster, and the labels of the namespace that they may ask
//! for, read from the API server.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::olm::action::ActionRequester;
use plimsoll_api::{ACTION_POLICY, ApiKind};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::lifecycle::DirectPermissions;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;
use crate::write::Writer;

/// How long a list of the policies is waited for: shorter than an API server waits for a webhook.
const LIST_TIMEOUT: Duration = Duration::from_secs(4);

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
pub(super) struct ListedPolicies(Mutex<Option<PolicyList>>);

#[derive(Debug)]
struct PolicyList {
    /// When it was last requested, or found to be unchanged.
    asked_at: Instant,
    /// The names and resourceVersions of all policies.
    revisions: Vec<(String, String)>,
    policies: Arc<Vec<NamedPolicy>>,
}

impl ListedPolicies {
    /// Returns the policies from a list that was requested after this call. Their specs are only read if a
    /// resourceVersion has changed.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn list(&self, client: &Client) -> Result<Arc<Vec<NamedPolicy>>, kube::Error> {
        let called_at = Instant::now();
        let mut listed = self.0.lock().await;
        if let Some(list) = listed.as_ref().filter(|it| it.asked_at > called_at) {
            return Ok(Arc::clone(&list.policies));
        }
        let asked_at = Instant::now();
        let read = timeout(LIST_TIMEOUT, PolicyList::read(client, asked_at, listed.take())).await;
        let list = read.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
        let policies = Arc::clone(&list.policies);
        *listed = Some(list);
        Ok(policies)
    }
}

impl PolicyList {
    /// Reads the policies, or no more than their resourceVersions if these are those of `before`.
    async fn read(
        client: &Client,
        asked_at: Instant,
        before: Option<Self>,
    ) -> Result<Self, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(ACTION_POLICY));
        let all = ListParams::default();
        if let Some(before) = before {
            let listed = api.list_metadata(&all).await?;
            if before.revisions == revisions(listed.items.iter().map(|it| &it.metadata)) {
                return Ok(Self { asked_at, ..before });
            }
        }
        let listed = api.list(&all).await?;
        let revisions = revisions(listed.items.iter().map(|it| &it.metadata));
        let read = listed.items.into_iter().filter_map(|it| named(&it.into_value()));
        let policies = Arc::new(read.map(|(name, spec)| NamedPolicy { name, spec }).collect());
        Ok(Self { asked_at, revisions, policies })
    }
}

/// Returns the names and resourceVersions of objects.
fn revisions<'a>(objects: impl Iterator<Item = &'a ObjectMeta>) -> Vec<(String, String)> {
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    objects.map(|it| (text(&it.name), text(&it.resource_version))).collect()
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
        let checks = 0..DirectPermissions::CHECKS.len();
        Self::with_checks(client, writer, listed, action, checks, None).await
    }

    /// Reads the same for an Action of a class without a plan, on which one permission decides. `observed` is what
    /// [`Self::observed`] has read for it.
    ///
    /// # Errors
    ///
    /// When a request to the API server fails.
    pub(super) async fn ask_unplanned(
        client: &Client,
        writer: &Writer,
        listed: &ListedPolicies,
        action: &ActionObject,
        class: &NamedClass,
        observed: Option<Self>,
    ) -> Result<Self, kube::Error> {
        let check = DirectPermissions::check_of(&class.name);
        let checks = check.map_or(0..0, |it| it..it + 1);
        Self::with_checks(client, writer, listed, action, checks, observed).await
    }

    async fn with_checks(
        client: &Client,
        writer: &Writer,
        listed: &ListedPolicies,
        action: &ActionObject,
        checks: Range<usize>,
        observed: Option<Self>,
    ) -> Result<Self, kube::Error> {
        let by_hand = async {
            match &action.spec.requester {
                Some(requester) => by_hand(writer, requester, checks).await,
                None => Ok(DirectPermissions::default()),
            }
        };
        let (by_hand, policies) = tokio::try_join!(by_hand, listed.list(client))?;
        // The labels have been read if a policy asked for them then.
        match observed.filter(|it| has_selector(&it.policies)) {
            Some(Self { labels, .. }) => Ok(Self { by_hand, policies, labels }),
            None => Ok(Self { by_hand, ..Self::observed(client, policies, action).await? }),
        }
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
        let labels = match has_selector(&policies) {
            true => namespace_labels(client, &action.namespace).await?,
            false => BTreeMap::new(),
        };
        Ok(Self { by_hand: DirectPermissions::default(), policies, labels })
    }
}

/// Returns whether a policy asks for the labels of namespaces.
fn has_selector(policies: &[NamedPolicy]) -> bool {
    policies.iter().any(|it| it.spec.namespace_selector.is_some())
}

/// Asks for the permissions of a user; those beside `checks` count as missing.
async fn by_hand(
    writer: &Writer,
    requester: &ActionRequester,
    checks: Range<usize>,
) -> Result<DirectPermissions, kube::Error> {
    let ActionRequester { username, groups } = requester;
    let mut answers = [false; DirectPermissions::CHECKS.len()];
    let asked = checks.clone().map(|at| {
        let (kind, verb) = DirectPermissions::CHECKS[at];
        writer.is_allowed(username, groups, attributes(kind, verb))
    });
    for (at, answer) in checks.zip(try_join_all(asked).await?) {
        answers[at] = answer;
    }
    Ok(DirectPermissions::of(answers))
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

    use futures::future::join_all;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A policy at a revision, as lists have it.
    fn listed(revision: u32, class: &str) -> Value {
        json!({
            "apiVersion": ACTION_POLICY.api_version(), "kind": ACTION_POLICY.kind,
            "metadata": { "name": "dev", "resourceVersion": revision.to_string() },
            "spec": { "subjects": [], "classes": [class], "enforce": {} },
        })
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_a_list_that_was_requested_after_they_asked() {
        let (lists, reads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let stored = Arc::new(Mutex::new(listed(1, "a")));
        let counted = (Arc::clone(&lists), Arc::clone(&reads), Arc::clone(&stored));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (lists, reads, stored) = counted.clone();
            let accepted = request.headers().get("accept").cloned();
            async move {
                lists.fetch_add(1, Ordering::SeqCst);
                // The time is that of the runtime, which has none to wait for.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut item = stored.lock().await.clone();
                let asks_for_metadata = accepted.is_some_and(|it| {
                    it.to_str().is_ok_and(|it| it.contains("PartialObjectMetadataList"))
                });
                match asks_for_metadata {
                    true => drop(item.as_object_mut().map(|it| it.remove("spec"))),
                    false => drop(reads.fetch_add(1, Ordering::SeqCst)),
                }
                let list = json!({ "metadata": { "resourceVersion": "9" }, "items": [item] });
                Ok::<_, Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        let client = Client::new(service, "default");
        let policies = ListedPolicies::default();
        let found = join_all((0..100).map(|_| policies.list(&client))).await;
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        // The first one had begun when the others asked.
        assert_eq!(lists.load(Ordering::SeqCst), 2);
        assert_eq!(reads.load(Ordering::SeqCst), 1, "nothing had changed");
        *stored.lock().await = listed(2, "b");
        let found = policies.list(&client).await.expect("an answer");
        assert_eq!(found[0].spec.classes, ["b"]);
        assert_eq!(lists.load(Ordering::SeqCst), 4);
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_answered_is_an_error() {
        let service = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>()
        });
        let client = Client::new(service, "default");
        assert!(ListedPolicies::default().list(&client).await.is_err());
    }
}
