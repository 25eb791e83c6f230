"""What users of the Python client ordinarily do; prints what came of it, the same on any server.

Usage: flow.py KUBECONFIG
"""

import os
import sys
import tempfile
import threading
import uuid

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from poll import PATIENCE, until

NAMESPACE = "python"


def refused(call):
    """The status of a call that is refused."""
    try:
        call()
    except ApiException as error:
        return error.status, error.reason
    return "not refused"


def namespaces(core):
    body = client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE))
    print("namespace", core.create_namespace(body).status.phase)
    print("again", refused(lambda: core.create_namespace(body)))


def config_maps(core):
    metadata = client.V1ObjectMeta(name="a", labels={"app": "x"})
    made = core.create_namespaced_config_map(
        NAMESPACE, client.V1ConfigMap(metadata=metadata, data={"k": "1"})
    )
    print("created", made.metadata.name, made.data)
    patched = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"l": "2", "k": None}})
    print("patched", patched.data)
    patched.data = {"m": "3"}
    print("replaced", core.replace_namespaced_config_map("a", NAMESPACE, patched).data)
    made.data = {"late": "x"}
    print("late", refused(lambda: core.replace_namespaced_config_map("a", NAMESPACE, made)))
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app in (x, y)")
    print("listed", [item.metadata.name for item in listed.items])
    print("missing", refused(lambda: core.read_namespaced_config_map("none", NAMESPACE)))
    core.delete_namespaced_config_map("a", NAMESPACE)
    print("deleted", refused(lambda: core.read_namespaced_config_map("a", NAMESPACE)))


def watches(core):
    version = core.list_namespaced_secret(NAMESPACE).metadata.resource_version
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
    core.create_namespaced_secret(NAMESPACE, secret)
    core.patch_namespaced_secret("s", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    core.delete_namespaced_secret("s", NAMESPACE)
    stream = watch.Watch().stream(
        core.list_namespaced_secret, NAMESPACE, resource_version=version, timeout_seconds=PATIENCE
    )
    for event in stream:
        found = event["object"]
        print("event", event["type"], found.metadata.name, found.data, found.metadata.labels)
        if event["type"] == "DELETED":
            break


def pages(core):
    for name in ("p-1", "p-2", "p-3"):
        core.create_namespaced_secret(
            NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name=name))
        )
    token = None
    while True:
        page = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=token)
        left = page.metadata.remaining_item_count
        print("page", [item.metadata.name for item in page.items], left)
        token = page.metadata._continue
        if not token:
            break
    core.delete_collection_namespaced_secret(NAMESPACE)
    print("after", core.list_namespaced_secret(NAMESPACE).items)


YAML = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
"""


def from_yaml(api):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "web.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(YAML)
        made = utils.create_from_yaml(api, path, namespace=NAMESPACE)
        print("from yaml", [one[0].kind for one in made])
    apps = client.AppsV1Api(api)
    print("strategy", apps.read_namespaced_deployment("web", NAMESPACE).spec.strategy.type)
    scale = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
    print("scale", scale.spec.replicas)
    container = {"name": "web", "image": "registry.example/web:2"}
    changed = apps.patch_namespaced_deployment(
        "web", NAMESPACE, {"spec": {"template": {"spec": {"containers": [container]}}}}
    )
    template = changed.spec.template.spec
    print("image", [(one.name, one.image) for one in template.containers])
    apps.patch_namespaced_deployment_status("web", NAMESPACE, {"status": {"replicas": 5}})
    print("status", apps.read_namespaced_deployment_status("web", NAMESPACE).status.replicas)
    gone = apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")
    print("deleted", gone["status"] if isinstance(gone, dict) else gone.status)


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "snakes.python.example.com"},
    "spec": {
        "group": "python.example.com",
        "scope": "Namespaced",
        "names": {"plural": "snakes", "singular": "snake", "kind": "Snake"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "length": {"type": "integer", "minimum": 1},
                                    "colour": {"type": "string", "default": "green"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def snake(name, length):
    return {
        "apiVersion": "python.example.com/v1",
        "kind": "Snake",
        "metadata": {"name": name},
        "spec": {"length": length},
    }


def custom_objects(api):
    definitions = client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(DEFINITION)

    def established():
        read = definitions.read_custom_resource_definition("snakes.python.example.com")
        conditions = read.status.conditions or []
        return any(one.type == "Established" and one.status == "True" for one in conditions)

    until("the definition", established)
    custom = client.CustomObjectsApi(api)
    where = ("python.example.com", "v1", NAMESPACE, "snakes")
    until("the kind", lambda: refused(lambda: custom.list_namespaced_custom_object(*where)) == "not refused")
    print("snake", custom.create_namespaced_custom_object(*where, snake("a", 3))["spec"])
    print("short", refused(lambda: custom.create_namespaced_custom_object(*where, snake("b", 0))))
    change = {"status": {"asleep": True}}
    print("status", custom.patch_namespaced_custom_object_status(*where, "a", change)["status"])
    found = custom.list_namespaced_custom_object(*where)["items"]
    print("snakes", [one["metadata"]["name"] for one in found])
    print("gone", custom.delete_namespaced_custom_object(*where, "a")["status"])


def dynamic_client(api):
    dyn = dynamic.DynamicClient(api)
    maps = dyn.resources.get(api_version="v1", kind="ConfigMap")
    applied = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied"},
        "data": {"k": "1"},
    }
    for manager in ("one", "two"):
        made = dyn.server_side_apply(
            maps, applied, namespace=NAMESPACE, field_manager=manager, force_conflicts=True
        )
    print("managers", sorted(entry.manager for entry in made.metadata.managedFields))
    applied["data"]["k"] = "2"
    print(
        "conflict",
        refused(
            lambda: dyn.server_side_apply(
                maps, applied, namespace=NAMESPACE, field_manager="three"
            )
        ),
    )
    snakes = dyn.resources.get(api_version="python.example.com/v1", kind="Snake")
    version = snakes.get(namespace=NAMESPACE).metadata.resourceVersion
    made = snakes.create(body=snake("dynamic", 2), namespace=NAMESPACE)
    print("dynamic", made.kind, made.spec.to_dict())
    seen = []
    for event in snakes.watch(
        namespace=NAMESPACE, resource_version=version, timeout=PATIENCE
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
        snakes.delete(name="dynamic", namespace=NAMESPACE)
    print("watched", seen)
    print("names", sorted(maps.verbs))


def leader_election(api):
    led = threading.Event()
    lock = ConfigMapLock("leader", NAMESPACE, f"leader-{uuid.uuid4()}")
    election = electionconfig.Config(
        lock,
        lease_duration=6,
        renew_deadline=4,
        retry_period=1,
        onstarted_leading=led.set,
        onstopped_leading=lambda: None,
    )
    threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True).start()
    print("leads", led.wait(PATIENCE))
    found, _ = lock.get("leader", NAMESPACE)
    print("recorded", found)


def reviews(api):
    access = client.AuthorizationV1Api(api)
    attributes = client.V1ResourceAttributes(namespace=NAMESPACE, verb="get", resource="pods")
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    body = client.V1SelfSubjectAccessReview(spec=spec)
    print("may", access.create_self_subject_access_review(body).status.allowed)


def main():
    config.load_kube_config(sys.argv[1])
    api = client.ApiClient()
    core = client.CoreV1Api(api)
    namespaces(core)
    config_maps(core)
    watches(core)
    pages(core)
    from_yaml(api)
    custom_objects(api)
    dynamic_client(api)
    leader_election(api)
    reviews(api)
    print("version", client.VersionApi(api).get_code().major)
    print("groups", "apps" in [group.name for group in client.ApisApi(api).get_api_versions().groups])
    core.delete_namespace(NAMESPACE)
    until("the end", lambda: refused(lambda: core.read_namespace(NAMESPACE)) != "not refused")
    print("end")


main()
