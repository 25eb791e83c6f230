//! Reads ClusterOperators and what is related to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::{StreamExt, stream};
use kube::api::{ListParams, LogParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Request};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client, ResourceExt};
use plimsoll_api::config::ObjectReference;
use plimsoll_api::{ApiKind, CLUSTER_OPERATOR, CLUSTER_VERSION, RELEASE_PROGRESS};
use plimsoll_plan::apply::sensitive;
use plimsoll_plan::health::gate;
use serde::Deserialize;
use serde_json::{Value, json};

use super::InspectTarget;
use super::archive::Archive;

/// Lists under way at a time.
const CONCURRENCY: usize = 8;
/// Most bytes of a log: what a kubelet keeps of a container's run by default.
const LOG_SIZE_MAX: i64 = 10 << 20;

/// What there is to gather.
pub(super) struct Gathering {
    client: Client,
    operators: Vec<DynamicObject>,
    /// Namespaces that were named.
    namespaces: Vec<String>,
    /// How many seconds of logs; all of them if none.
    since_seconds: Option<i64>,
    /// What the server serves and can list, by group and resource.
    served: BTreeMap<(String, String), (ApiResource, Scope)>,
}

/// What was gathered.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) operators: usize,
    /// The paths of the files; each is written once, however many operators name its objects.
    pub(super) written: BTreeSet<String>,
    /// What is missing, or should be said in another way.
    pub(super) findings: Vec<String>,
}

/// A list to be read: of one namespace or of all, of one name or of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ListRequest {
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Container {
    namespace: String,
    pod: String,
    name: String,
}

/// The containers of a pod that have run, and whether each has been restarted.
fn containers(pod: &Value) -> Vec<(Container, bool)> {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let statuses = ["initContainerStatuses", "containerStatuses"].into_iter();
    let statuses = statuses.filter_map(|field| pod["status"][field].as_array()).flatten();
    let have_run =
        statuses.filter(|status| !status["containerID"].as_str().unwrap_or("").is_empty());
    have_run
        .map(|status| {
            let name = status["name"].as_str().unwrap_or_default().to_owned();
            let container = Container { namespace: text("namespace"), pod: text("name"), name };
            (container, status["restartCount"].as_u64().unwrap_or_default() > 0)
        })
        .collect()
}

impl Gathering {
    /// Reads the ClusterOperators that are named, or all if nothing is.
    pub(super) async fn of(
        client: Client,
        targets: &[InspectTarget],
        since: Option<Duration>,
    ) -> Result<Self, anyhow::Error> {
        let api = api_of(&client, CLUSTER_OPERATOR);
        let core = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &core);
        let (mut operators, mut namespaces) = (Vec::new(), Vec::new());
        for target in targets {
            match target {
                InspectTarget::ClusterOperator(name) => {
                    let found = api.get_opt(name).await;
                    let context = || format!("failed to read ClusterOperator {name:?}");
                    let found = found.with_context(context)?;
                    let Some(found) = found else { bail!("there is no ClusterOperator {name:?}") };
                    operators.push(found);
                }
                InspectTarget::Namespace(name) => {
                    let found = all.get_opt(name).await;
                    let found =
                        found.with_context(|| format!("failed to read namespace {name:?}"))?;
                    if found.is_none() {
                        bail!("there is no namespace {name:?}");
                    }
                    namespaces.push(name.clone());
                }
            }
        }
        if targets.is_empty() {
            operators = api
                .list(&ListParams::default())
                .await
                .context("failed to list ClusterOperators")?
                .items;
        }
        let discovery = Discovery::new(client.clone())
            .run()
            .await
            .context("failed to list what the API server serves")?;
        let mut served = BTreeMap::new();
        for group in discovery.groups() {
            // The preferred version first; some resources are served in another one only.
            let preferred = group.recommended_resources();
            let others = group.versions().flat_map(|version| group.versioned_resources(version));
            for (resource, capabilities) in preferred.into_iter().chain(others) {
                if capabilities.supports_operation(verbs::LIST) {
                    let key = (resource.group.clone(), resource.plural.clone());
                    served.entry(key).or_insert((resource, capabilities.scope));
                }
            }
        }
        let since_seconds = since.map(|since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        Ok(Self { client, operators, namespaces, since_seconds, served })
    }

    /// Writes everything.
    pub(super) async fn write(&self, archive: &mut Archive) -> Result<Summary, anyhow::Error> {
        let mut summary = Summary { operators: self.operators.len(), ..Summary::default() };
        for kind in [CLUSTER_VERSION, RELEASE_PROGRESS] {
            let listed = api_of(&self.client, kind).list(&ListParams::default()).await;
            for object in listed.map(|list| list.items).unwrap_or_default() {
                let path = cluster_path(kind.group, kind.plural, &object.name_any());
                summary.add(archive, &path, &yaml(&shown(&object, kind.plural))?)?;
            }
        }
        let mut requests = BTreeSet::new();
        for operator in &self.operators {
            let value = shown(operator, CLUSTER_OPERATOR.plural);
            summary.findings.extend(gate::style(&value).iter().map(ToString::to_string));
            let name = operator.name_any();
            let path = cluster_path(CLUSTER_OPERATOR.group, CLUSTER_OPERATOR.plural, &name);
            summary.add(archive, &path, &yaml(&value)?)?;
            for reference in related(&value) {
                match self.requests(&reference) {
                    Some(more) => requests.extend(more),
                    None => summary.findings.push(format!(
                        "clusteroperator {name}: relatedObjects: the API server does not serve {}",
                        resource_name(&reference.group, &reference.resource)
                    )),
                }
            }
        }
        for name in &self.namespaces {
            let reference = ObjectReference {
                resource: "namespaces".to_owned(),
                name: name.clone(),
                ..ObjectReference::default()
            };
            requests.extend(self.requests(&reference).into_iter().flatten());
        }
        let mut pods = BTreeMap::new();
        let mut answers = stream::iter(requests.into_iter().map(|request| async move {
            let listed = self.list(&request).await;
            (request, listed)
        }))
        .buffered(CONCURRENCY);
        while let Some((request, listed)) = answers.next().await {
            let name = resource_name(&request.group, &request.resource);
            let objects = match listed {
                Ok(objects) => objects,
                Err(error) => {
                    summary.findings.push(format!("{name} could not be read: {error}"));
                    continue;
                }
            };
            if objects.is_empty() && !request.name.is_empty() {
                let name = &request.name;
                summary.findings.push(format!(
                    "{} {name:?} is a related object and does not exist",
                    resource_name(&request.group, &request.resource)
                ));
            }
            if request.group.is_empty() && request.resource == "pods" {
                pods.extend(objects.iter().flat_map(containers));
            }
            for (path, content) in files(&request, &objects) {
                summary.add(archive, &path, &yaml(&content)?)?;
            }
        }
        self.write_logs(&pods, archive, &mut summary).await?;
        Ok(summary)
    }

    /// Writes the logs of containers, those of their runs before among them.
    async fn write_logs(
        &self,
        containers: &BTreeMap<Container, bool>,
        archive: &mut Archive,
        summary: &mut Summary,
    ) -> Result<(), anyhow::Error> {
        let wanted = containers.iter().flat_map(|(container, restarted)| {
            let previous = restarted.then_some((container, true));
            [(container, false)].into_iter().chain(previous)
        });
        let mut logs = stream::iter(wanted.map(|(container, previous)| async move {
            (container, previous, self.log(container, previous).await)
        }))
        .buffered(CONCURRENCY);
        while let Some((container, previous, log)) = logs.next().await {
            let Container { namespace, pod, name } = container;
            match log {
                Ok(log) => {
                    let run = if previous { "previous" } else { "current" };
                    let path =
                        format!("namespaces/{namespace}/pods/{pod}/{name}/{name}/logs/{run}.log");
                    summary.add(archive, &path, &log)?;
                }
                Err(error) => summary.findings.push(format!(
                    "the log of container {name} of pod {namespace}/{pod} could not be read: {error}"
                )),
            }
        }
        Ok(())
    }

    async fn log(&self, container: &Container, previous: bool) -> Result<String, kube::Error> {
        let request = log_request(container, previous, self.since_seconds);
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }

    /// What has to be read for a related object: of a namespace all that is in it.
    fn requests(&self, reference: &ObjectReference) -> Option<Vec<ListRequest>> {
        let key = (reference.group.clone(), reference.resource.clone());
        let (_, scope) = self.served.get(&key)?;
        let itself = ListRequest {
            group: key.0.clone(),
            resource: key.1.clone(),
            namespace: match scope {
                Scope::Namespaced => reference.namespace.clone(),
                Scope::Cluster => String::new(),
            },
            name: reference.name.clone(),
        };
        let is_namespace = key.0.is_empty() && key.1 == "namespaces";
        if !is_namespace || reference.name.is_empty() {
            return Some(vec![itself]);
        }
        let inside = self.served.iter().filter(|(_, (_, scope))| *scope == Scope::Namespaced);
        let inside = inside.map(|((group, resource), _)| ListRequest {
            group: group.clone(),
            resource: resource.clone(),
            namespace: reference.name.clone(),
            name: String::new(),
        });
        Some(std::iter::once(itself).chain(inside).collect())
    }

    async fn list(&self, request: &ListRequest) -> Result<Vec<Value>, kube::Error> {
        let key = (request.group.clone(), request.resource.clone());
        let Some((resource, _)) = self.served.get(&key) else { return Ok(Vec::new()) };
        let client = self.client.clone();
        let api: Api<DynamicObject> = match request.namespace.as_str() {
            "" => Api::all_with(client, resource),
            namespace => Api::namespaced_with(client, namespace, resource),
        };
        let mut parameters = ListParams::default();
        if !request.name.is_empty() {
            parameters = parameters.fields(&format!("metadata.name={}", request.name));
        }
        let list = api.list(&parameters).await?;
        let typed = |object: &DynamicObject| {
            let mut value = shown(object, &resource.plural);
            value["apiVersion"] = resource.api_version.clone().into();
            value["kind"] = resource.kind.clone().into();
            value
        };
        Ok(list.items.iter().map(typed).collect())
    }
}

/// The request for the log of a container, or of its run before; of the last seconds, or all of it.
fn log_request(
    container: &Container,
    previous: bool,
    since_seconds: Option<i64>,
) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
    let pods = Request::new(format!("/api/v1/namespaces/{}/pods", container.namespace));
    let parameters = LogParams {
        container: Some(container.name.clone()),
        limit_bytes: Some(LOG_SIZE_MAX),
        previous,
        since_seconds,
        timestamps: true,
        ..LogParams::default()
    };
    pods.logs(&container.pod, &parameters)
}

impl Summary {
    fn add(
        &mut self,
        archive: &mut Archive,
        path: &str,
        content: &str,
    ) -> Result<(), anyhow::Error> {
        if self.written.insert(path.to_owned()) {
            let written = archive.add(path, content.as_bytes());
            written.with_context(|| format!("failed to write {path}"))?;
        }
        Ok(())
    }
}

fn api_of(client: &Client, kind: ApiKind) -> Api<DynamicObject> {
    let version = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&version, kind.plural);
    Api::all_with(client.clone(), &resource)
}

fn related(operator: &Value) -> Vec<ObjectReference> {
    Vec::deserialize(&operator["status"]["relatedObjects"]).unwrap_or_default()
}

fn resource_name(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn cluster_path(group: &str, resource: &str, name: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    format!("cluster-scoped-resources/{group}/{resource}/{}.yaml", file_name(name))
}

/// Names such as `system:node` are no good on every file system.
fn file_name(name: &str) -> String {
    name.replace([':', '/'], "-")
}

/// The files of a list: of a namespace one for each resource, of the cluster one for each object.
fn files(request: &ListRequest, objects: &[Value]) -> Vec<(String, Value)> {
    let group = if request.group.is_empty() { "core" } else { &request.group };
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if objects.is_empty() {
        return Vec::new();
    }
    if request.group.is_empty() && request.resource == "namespaces" {
        let path = |name: &str| format!("namespaces/{name}/{name}.yaml");
        return objects.iter().map(|it| (path(&name(it)), it.clone())).collect();
    }
    let mut of_namespace: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut files = Vec::new();
    for object in objects {
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => {
                of_namespace.entry(namespace.to_owned()).or_default().push(object.clone());
            }
            None => {
                let path = cluster_path(&request.group, &request.resource, &name(object));
                files.push((path, object.clone()));
            }
        }
    }
    for (namespace, items) in of_namespace {
        let resource = &request.resource;
        let path = match request.name.as_str() {
            "" => format!("namespaces/{namespace}/{group}/{resource}.yaml"),
            name => format!("namespaces/{namespace}/{group}/{resource}/{}.yaml", file_name(name)),
        };
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        files.push((path, list));
    }
    files
}

/// An object as it is written: without what is secret, and without who owns which field.
fn shown(object: &DynamicObject, resource: &str) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if resource == "secrets" || sensitive::is_annotated(&value) {
        sensitive::hide(&mut value);
    }
    value
}

fn yaml(value: &Value) -> Result<String, anyhow::Error> {
    serde_saphyr::to_string(value).context("an object cannot be written as YAML")
}

#[cfg(test)]
mod tests {
    //! Where the objects of a list are written.

    use serde_json::json;

    use super::{Container, ListRequest, containers, files, log_request};

    #[test]
    fn containers_have_logs_once_they_have_run() {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "pier"},
            "status": {
                "initContainerStatuses": [{"name": "first", "containerID": "x", "restartCount": 0}],
                "containerStatuses": [
                    {"name": "main", "containerID": "y", "restartCount": 2},
                    {"name": "waiting", "restartCount": 0},
                ],
            },
        });
        let container = |name: &str| Container {
            namespace: "pier".to_owned(),
            pod: "a".to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(containers(&pod), [(container("first"), false), (container("main"), true)]);
    }

    #[test]
    fn logs_are_requested_of_a_time_and_a_run() {
        let container = Container {
            namespace: "pier".to_owned(),
            pod: "a".to_owned(),
            name: "main".to_owned(),
        };
        let check = |previous: bool, since: Option<i64>, expected: &str| {
            let request = log_request(&container, previous, since).unwrap();
            let uri = format!(
                "/api/v1/namespaces/pier/pods/a/log?&container=main&limitBytes=10485760{expected}"
            );
            assert_eq!(request.uri().to_string(), uri);
        };
        check(false, None, "&timestamps=true");
        check(true, None, "&previous=true&timestamps=true");
        check(false, Some(7200), "&sinceSeconds=7200&timestamps=true");
    }

    fn check(resource: (&str, &str), name: &str, objects: &[(&str, &str)], expected: &[&str]) {
        let request = ListRequest {
            group: resource.0.to_owned(),
            resource: resource.1.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        let object = |(namespace, name): &(&str, &str)| match *namespace {
            "" => json!({"metadata": {"name": name}}),
            namespace => json!({"metadata": {"name": name, "namespace": namespace}}),
        };
        let objects: Vec<_> = objects.iter().map(object).collect();
        let paths: Vec<String> =
            files(&request, &objects).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn files_lie_where_readers_of_must_gather_look_for_them() {
        check(("", "namespaces"), "pier", &[("", "pier")], &["namespaces/pier/pier.yaml"]);
        check(
            ("apps", "deployments"),
            "",
            &[("pier", "a"), ("pier", "b"), ("quay", "c")],
            &["namespaces/pier/apps/deployments.yaml", "namespaces/quay/apps/deployments.yaml"],
        );
        check(
            ("", "configmaps"),
            "a",
            &[("pier", "a")],
            &["namespaces/pier/core/configmaps/a.yaml"],
        );
        check(
            ("rbac.authorization.k8s.io", "clusterroles"),
            "",
            &[("", "system:a")],
            &["cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/system-a.yaml"],
        );
        check(("", "configmaps"), "a", &[], &[]);
    }
}
