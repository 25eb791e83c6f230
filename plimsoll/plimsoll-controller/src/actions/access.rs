//! The permissions of requesters, the ActionPolicies of a cluster, and the labels of the namespace that they may ask
//! for, read from the API server.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

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
#[derive(Debug, Clone, Default)]
pub(super) struct ListedPolicies(Arc<Mutex<Option<PolicyList>>>);

#[derive(Debug, Clone)]
struct PolicyList {
    /// When it was last requested, or found to be unchanged.
    asked_at: Instant,
    /// The resourceVersion of the list, which is that of the cluster: nothing has changed while it is the same.
    revision: Option<String>,
    /// The names and resourceVersions of all policies.
    revisions: Arc<Vec<(String, String)>>,
    policies: Arc<Vec<NamedPolicy>>,
}

impl ListedPolicies {
    /// Returns the policies from a list that was requested after this call. All are only listed if something in the
    /// cluster has changed, and their specs if one of them has. A list goes on though its caller does not wait for it
    /// any longer: others do.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub(super) async fn list(&self, client: &Client) -> Result<Arc<Vec<NamedPolicy>>, kube::Error> {
        let (listed, client, called_at) = (Arc::clone(&self.0), client.clone(), Instant::now());
        let shared = tokio::spawn(async move {
            let mut listed = listed.lock().await;
            let list = match listed.take() {
                Some(list) if list.asked_at > called_at => list,
                before => {
                    let asked_at = Instant::now();
                    listed.clone_from(&before);
                    PolicyList::read(&client, asked_at, before).await?
                }
            };
            let policies = Arc::clone(&list.policies);
            *listed = Some(list);
            Ok(policies)
        });
        shared.await.map_err(|panicked| kube::Error::Service(panicked.into()))?
    }
}

impl PolicyList {
    /// Reads the policies, or no more than what shows that they are those of `before`.
    async fn read(
        client: &Client,
        asked_at: Instant,
        before: Option<Self>,
    ) -> Result<Self, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(ACTION_POLICY));
        let all = ListParams::default();
        if let Some(before) = before {
            let first = api.list_metadata(&all.clone().limit(1)).await?;
            if before.revision.is_some() && first.metadata.resource_version == before.revision {
                return Ok(Self { asked_at, ..before });
            }
            let listed = api.list_metadata(&all).await?;
            if *before.revisions == revisions(listed.items.iter().map(|it| &it.metadata)) {
                let revision = listed.metadata.resource_version;
                return Ok(Self { asked_at, revision, ..before });
            }
        }
        let listed = api.list(&all).await?;
        let revision = listed.metadata.resource_version.clone();
        let revisions = Arc::new(revisions(listed.items.iter().map(|it| &it.metadata)));
        let read = listed.items.into_iter().filter_map(|it| named(&it.into_value()));
        let policies = Arc::new(read.map(|(name, spec)| NamedPolicy { name, spec }).collect());
        Ok(Self { asked_at, revision, revisions, policies })
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
        action: &ActionObject,
    ) -> Result<Self, kube::Error> {
        let read = PolicyList::read(client, Instant::now(), None);
        let by_hand = by_hand(writer, action, 0..DirectPermissions::CHECKS.len());
        let (by_hand, PolicyList { policies, .. }) = tokio::try_join!(by_hand, read)?;
        Ok(Self { by_hand, ..Self::observed(client, policies, action).await? })
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
        let by_hand = by_hand(writer, action, check.map_or(0..0, |it| it..it + 1));
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

/// Asks for the permissions of the requester of an Action; those beside `checks` count as missing.
async fn by_hand(
    writer: &Writer,
    action: &ActionObject,
    checks: Range<usize>,
) -> Result<DirectPermissions, kube::Error> {
    let Some(ActionRequester { username, groups }) = &action.spec.requester else {
        return Ok(DirectPermissions::default());
    };
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
    use std::time::Duration;

    use futures::future::join_all;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A list of policies: its revision, and that of the policy `dev`, which is about a class.
    fn policies(listed_at: u32, revision: u32, class: &str) -> Value {
        let policy = json!({
            "apiVersion": ACTION_POLICY.api_version(), "kind": ACTION_POLICY.kind,
            "metadata": { "name": "dev", "resourceVersion": revision.to_string() },
            "spec": { "subjects": [], "classes": [class], "enforce": {} },
        });
        json!({ "metadata": { "resourceVersion": listed_at.to_string() }, "items": [policy] })
    }

    /// Returns what a request is for: `first`, `names`, or `all`.
    fn part(request: &Request<Body>) -> &'static str {
        let accepted = request.headers().get("accept").and_then(|it| it.to_str().ok());
        let is_limited = request.uri().query().is_some_and(|it| it.contains("limit=1"));
        match accepted.is_some_and(|it| it.contains("PartialObjectMetadataList")) {
            true if is_limited => "first",
            true => "names",
            false => "all",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_a_list_that_was_requested_after_they_asked() {
        let (asked, stored) =
            (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(policies(1, 1, "a"))));
        let answered = (Arc::clone(&asked), Arc::clone(&stored));
        let service = tower::service_fn(move |request: Request<Body>| {
            let ((asked, stored), part) = (answered.clone(), part(&request));
            async move {
                asked.lock().await.push(part);
                // The time is that of the runtime, which has none to wait for.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut list = stored.lock().await.clone();
                if part != "all" {
                    list["items"][0].as_object_mut().map(|it| it.remove("spec"));
                }
                Ok::<_, Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        let client = Client::new(service, "default");
        let listed = ListedPolicies::default();
        let found = join_all((0..100).map(|_| listed.list(&client))).await;
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        // The first one had begun when the others asked, and nothing has changed since.
        assert_eq!(std::mem::take(&mut *asked.lock().await), ["all", "first"]);
        let check = async |list: Value, expected: (&str, &[&str])| {
            *stored.lock().await = list;
            let found = listed.list(&client).await.expect("an answer");
            assert_eq!(found[0].spec.classes, [expected.0]);
            assert_eq!(std::mem::take(&mut *asked.lock().await), expected.1);
        };
        check(policies(1, 1, "a"), ("a", &["first"])).await;
        // Another object has changed.
        check(policies(2, 1, "a"), ("a", &["first", "names"])).await;
        check(policies(2, 1, "a"), ("a", &["first"])).await;
        check(policies(3, 3, "b"), ("b", &["first", "names", "all"])).await;
        check(policies(3, 3, "b"), ("b", &["first"])).await;
        // Callers that wait for less time than a list takes find the one that went on.
        for _ in 0..2 {
            let short = Duration::from_millis(400);
            assert!(tokio::time::timeout(short, listed.list(&client)).await.is_err());
        }
        assert!(listed.list(&client).await.is_ok());
        assert_eq!(std::mem::take(&mut *asked.lock().await), ["first", "first"]);
    }
}
