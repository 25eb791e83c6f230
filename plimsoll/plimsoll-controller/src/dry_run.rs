//! Dry runs of what a plan would change in a cluster: each step is executed as a dry run of the API server,
//! with the very request that would apply it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use futures::{FutureExt, StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::olm::CollisionProtection;
use plimsoll_api::{
    CLUSTER_VERSION, CLUSTER_VERSION_NAME, GroupKind, ObjectKey, RELEASE_PROGRESS, classes, crd,
    policies,
};
use plimsoll_operators::reconciler::{Claim, claim};
use plimsoll_plan::apply::prepare;
use plimsoll_plan::forecast::{DryRunOutcome, ObservedObject};
use plimsoll_plan::plan::{Action, Plan, Step};
use plimsoll_plan::progress::{Scope, StepBlocker, StepOutcome, Trace, Transience, TryError};
use serde_json::Value;

use crate::actions::admission::Registered;
use crate::error::Error;
use crate::found::found_object;
use crate::observe::trace;
use crate::ownership::{self, operator_of};
use crate::resources::{Resources, Served};
use crate::webhook::Reviewer;
use crate::webhook::capabilities::CapabilityReviewer;
use crate::write::{TriedObject, Writer, missing_namespace, outcome};

/// Requests at the same time: as many as the plan itself makes while updating.
const REQUESTS_MAX: usize = 16;
/// Objects that are listed at a time.
const PAGE: u32 = 500;

/// The result of a dry run.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// One entry for each step of the plan.
    pub observed_objects: Vec<ObservedObject>,
    /// All objects of the cluster that a release applied through us.
    pub ours: BTreeSet<ObjectKey>,
    /// The kinds that are cluster-scoped.
    pub cluster_kinds: BTreeSet<GroupKind>,
}

/// Executes every step of a plan on a cluster as a dry run, and lists the objects that are ours.
///
/// # Errors
///
/// When the API server does not answer, or rejects discovery or a read. A step that it rejects is
/// part of the result.
pub async fn dry_run(client: &Client, plan: &Plan) -> Result<DryRun, Error> {
    let resources =
        Resources::discover(client).await.map_err(|source| Error::Discover { source })?;
    let observed_objects = try_steps(client, &resources, plan, &TriedFor::Release).await?;
    let ours = ours(client, &resources).await?.into_keys().collect();
    Ok(DryRun { observed_objects, ours, cluster_kinds: cluster_kinds(&resources) })
}

/// The owner that a plan is tried for.
pub(crate) enum TriedFor<'o> {
    /// The release.
    Release,
    /// An Operator.
    Operator {
        /// Its name.
        name: &'o str,
        /// What it does with objects that exist.
        protection: CollisionProtection,
    },
}

impl TriedFor<'_> {
    /// Returns whether a step concerns an object that exists. An Operator deletes nothing but its own.
    fn concerns(&self, step: &Step, live: &DynamicObject) -> bool {
        match self {
            Self::Operator { name, .. } if step.action == Action::Delete => {
                operator_of(&live.metadata) == *name
            }
            Self::Release | Self::Operator { .. } => true,
        }
    }

    /// Returns the result for a step whose object is another owner's; `None` if it may be tried.
    async fn objection(
        &self,
        client: &Client,
        step: &Step,
        live: &DynamicObject,
    ) -> Result<Option<DryRunOutcome>, kube::Error> {
        match self {
            Self::Release => {
                let holder = ownership::holder(client, step, &live.metadata).await?;
                let refusal = holder.map(|operator| ownership::refusal(step, &operator));
                Ok(refusal.map(DryRunOutcome::Refused))
            }
            Self::Operator { .. } if step.action == Action::Delete => Ok(None),
            Self::Operator { name, protection } => {
                let found = found_object(step.manifest.key.clone(), &live.metadata);
                Ok(match claim(name, &found, *protection) {
                    Claim::Applied => None,
                    Claim::LeftAlone => Some(DryRunOutcome::NotTried),
                    Claim::Blocked(block) => Some(DryRunOutcome::Refused(TryError {
                        reason: block.reason,
                        cause: block.message,
                        transience: Transience::Lasting,
                        retry_after: None,
                    })),
                })
            }
        }
    }

    /// Returns the certificates that the controller would set in the object of a step: those that it set
    /// before. `None` if the manifest has its own, or the object does not exist.
    fn ca_bundle(&self, step: &Step, live: Option<&DynamicObject>) -> Option<String> {
        match self {
            Self::Release => None,
            Self::Operator { .. } => {
                let live = value(live?.clone());
                prepare::ca_bundle(&live)
                    .filter(|_| prepare::ca_bundle(&step.manifest.object()).is_none())
            }
        }
    }
}

/// Executes every step of a plan on a cluster as a dry run.
pub(crate) async fn try_steps(
    client: &Client,
    resources: &Resources,
    plan: &Plan,
    owner: &TriedFor<'_>,
) -> Result<Vec<ObservedObject>, Error> {
    let writer = match owner {
        TriedFor::Release => Writer::new(client.clone()).of_release(),
        TriedFor::Operator { .. } => Writer::new(client.clone()).replacing_workloads(),
    };
    futures::stream::iter(&plan.steps)
        .map(|step| sight(client, &writer, resources, step, owner))
        .buffered(REQUESTS_MAX)
        .try_collect()
        .await
}

/// The kinds that have no namespace.
pub(crate) fn cluster_kinds(resources: &Resources) -> BTreeSet<GroupKind> {
    let kinds = resources.iter().filter(|(_, served)| served.scope == Scope::Cluster);
    kinds.map(|(kind, _)| GroupKind::new(&kind.group, &kind.kind)).collect()
}

async fn sight(
    client: &Client,
    writer: &Writer,
    resources: &Resources,
    step: &Step,
    owner: &TriedFor<'_>,
) -> Result<ObservedObject, Error> {
    let Some(served) = resources.get(&step.kind()) else {
        let answer = DryRunOutcome::Blocked(StepBlocker::KindNotServed(step.kind()));
        return Ok(ObservedObject { before: None, answer });
    };
    if let Some(error) = missing_namespace(step, served) {
        let answer = DryRunOutcome::Refused(error);
        return Ok(ObservedObject { before: None, answer });
    }
    let key = &step.manifest.key;
    let failed = |source| Error::DryRun { object: key.to_string(), source };
    let before = api(client, served, &key.namespace).get(&key.name).await;
    let before = found(before).map_err(failed)?.filter(|live| owner.concerns(step, live));
    if let Some(before) = &before
        && let Some(answer) = owner.objection(client, step, before).await.map_err(failed)?
    {
        return Ok(ObservedObject { before: Some(value(before.clone())), answer });
    }
    let ca_bundle = owner.ca_bundle(step, before.as_ref());
    let tried = match writer.try_out(step, served, ca_bundle.as_deref()).await {
        Ok(Some(TriedObject { object, replaced_for })) if !replaced_for.is_empty() => {
            let answer = DryRunOutcome::Replaces { fields: replaced_for, with: value(object) };
            return Ok(ObservedObject { before: before.map(value), answer });
        }
        Ok(Some(TriedObject { object, .. })) => {
            writer.try_takeover(step, served, before.as_ref(), object).await.map(Some)
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let answer = match tried {
        Ok(Some(object)) => DryRunOutcome::Would(value(object)),
        Ok(None) => DryRunOutcome::NotTried,
        Err(error @ kube::Error::Api(_)) => match outcome(step, &error) {
            StepOutcome::Blocked(blocker) => DryRunOutcome::Blocked(blocker),
            StepOutcome::Failed(error) => DryRunOutcome::Refused(error),
            StepOutcome::Applied(_) | StepOutcome::Continued(_) | StepOutcome::Deleted(_) => {
                DryRunOutcome::NotTried
            }
        },
        Err(error) => return Err(failed(error)),
    };
    Ok(ObservedObject { before: before.map(value), answer })
}

/// The objects of a cluster that were applied for a release, by metadata alone, each with an API version
/// that it is served in. Kinds that cannot be listed have none.
pub(crate) async fn ours(
    client: &Client,
    resources: &Resources,
) -> Result<BTreeMap<ObjectKey, String>, Error> {
    let ours = |key: ObjectKey, served: &Served, metadata: &ObjectMeta| {
        // What becomes of an Operator's objects is for its revisions to say.
        let is_ours = matches!(trace(metadata), Trace::Ours(_))
            && !is_own(&key)
            && operator_of(metadata).is_empty();
        is_ours.then(|| (key, served.resource.version.clone()))
    };
    Ok(all_objects(client, resources, ours).await?.into_iter().collect())
}

/// Returns what `pick` makes of the metadata of every object of a cluster; kinds that cannot be listed
/// are left out.
pub(crate) async fn all_objects<T: Send>(
    client: &Client,
    resources: &Resources,
    pick: impl Fn(ObjectKey, &Served, &ObjectMeta) -> Option<T> + Sync,
) -> Result<Vec<T>, Error> {
    // One version of each kind is enough: the objects are the same.
    let kinds: BTreeMap<GroupKind, &Served> = resources
        .iter()
        .map(|(kind, served)| (GroupKind::new(&kind.group, &kind.kind), served))
        .collect();
    let pick = &pick;
    let lists: Vec<_> = kinds
        .into_iter()
        .map(|(kind, served)| objects_of(client, kind, served, pick).boxed())
        .collect();
    let found: Vec<Vec<T>> =
        futures::stream::iter(lists).buffered(REQUESTS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn objects_of<T>(
    client: &Client,
    kind: GroupKind,
    served: &Served,
    pick: &(impl Fn(ObjectKey, &Served, &ObjectMeta) -> Option<T> + Sync),
) -> Result<Vec<T>, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &served.resource);
    let mut parameters = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = match api.list_metadata(&parameters).await {
            Ok(page) => page,
            Err(kube::Error::Api(_)) => return Ok(found),
            Err(source) => return Err(Error::DryRun { object: kind.to_string(), source }),
        };
        found.extend(page.items.iter().filter_map(|object| {
            let metadata = &object.metadata;
            let key = ObjectKey {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
            };
            pick(key, served, metadata)
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Returns whether an object is one that the program applies for itself, under the same field manager,
/// rather than for a release or an Operator.
pub(crate) fn is_own(key: &ObjectKey) -> bool {
    static INSTALLED: LazyLock<BTreeSet<ObjectKey>> = LazyLock::new(|| {
        let objects = [
            crd::manifests(),
            crd::operator_manifests(),
            crd::action_manifests(),
            policies::operator_policies(),
            policies::action_policies(),
            policies::requester_policies(),
            classes::built_in(),
        ];
        objects.iter().flatten().map(cluster_scoped_key).collect()
    });
    let is = |group: &str, kind: &str, name: &str| {
        key.group == group && key.kind == kind && key.name == name
    };
    let singletons = [CLUSTER_VERSION, RELEASE_PROGRESS];
    INSTALLED.contains(key)
        || singletons.iter().any(|kind| is(kind.group, kind.kind, CLUSTER_VERSION_NAME))
        || is_of_webhook::<CapabilityReviewer>(&is)
        || is_of_webhook::<Registered>(&is)
}

fn cluster_scoped_key(object: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    ObjectKey {
        group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: text(&object["kind"]),
        namespace: String::new(),
        name: text(&object["metadata"]["name"]),
    }
}

/// Returns whether an object is one that a webhook of ours is made of.
fn is_of_webhook<R: Reviewer>(is: &impl Fn(&str, &str, &str) -> bool) -> bool {
    is("", "Secret", R::SECRET)
        || R::CONFIGURATIONS.iter().any(|(kind, name)| is(kind.group, kind.kind, name))
}

fn api(client: &Client, served: &Served, namespace: &str) -> Api<DynamicObject> {
    match served.scope {
        Scope::Namespaced if !namespace.is_empty() => {
            Api::namespaced_with(client.clone(), namespace, &served.resource)
        }
        Scope::Namespaced | Scope::Cluster => Api::all_with(client.clone(), &served.resource),
    }
}

/// None where there is no object, or where its kind is not even served.
fn found(answer: Result<DynamicObject, kube::Error>) -> Result<Option<DynamicObject>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_applies_for_itself_is_known() {
        let check = |group: &str, kind: &str, name: &str, expected: bool| {
            let (group, kind) = (group.to_owned(), kind.to_owned());
            let key = ObjectKey { group, kind, namespace: String::new(), name: name.to_owned() };
            assert_eq!(is_own(&key), expected, "{key}");
        };
        let (definitions, definition) = ("apiextensions.k8s.io", "CustomResourceDefinition");
        check(definitions, definition, "clusterversions.config.openshift.io", true);
        check(definitions, definition, "operators.olm.io", true);
        check(definitions, definition, "actions.olm.io", true);
        check(definitions, definition, "beacons.lantern.example.com", false);
        let admission = "admissionregistration.k8s.io";
        check(admission, "ValidatingAdmissionPolicy", "operator-protection.plimsoll.io", true);
        check(admission, "ValidatingAdmissionPolicyBinding", "action-requester.plimsoll.io", true);
        check("config.openshift.io", "ClusterVersion", "version", true);
        check("olm.io", "ActionClass", "operator-install", true);
        check("olm.io", "Operator", "lantern", false);
        check("", "Namespace", "lantern", false);
    }
}
