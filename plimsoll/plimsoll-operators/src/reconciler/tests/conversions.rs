//! Deletions that keep definitions whose objects a service of the Operator converts.

use super::*;

fn observed(group: &str, kind: &str, namespace: &str, name: &str) -> OperatorEvent {
    let object = ObservedObject {
        key: ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        operator: "bar".to_owned(),
        uid: name.to_owned(),
        owners: BTreeSet::new(),
        mark: Mark::new(1, Trace::Ours(1)),
        health: None,
        terminating: None,
        whole: None,
    };
    OperatorEvent::Watched(GroupKind::new(group, kind), WatchedChange::Present(Box::new(object)))
}

/// Returns a definition, the service that converts its objects, and a ConfigMap.
pub(super) fn objects() -> Vec<Value> {
    let service = json!({ "namespace": "bar", "name": "bar" });
    let webhook = json!({ "clientConfig": { "service": service } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kettles.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Kettle", "plural": "kettles" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
            "conversion": { "strategy": "Webhook", "webhook": webhook },
        },
    });
    let object = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": service });
    vec![definition, object("Service"), object("ConfigMap")]
}

#[test]
fn a_definition_that_is_kept_loses_its_conversion_webhook_before_the_service_goes() {
    let mut course = Course::begin();
    let content =
        RevisionContent { objects: objects(), ..content("bar", BundleReference::default()) };
    let draft = RevisionDraft::read(content).expect("the objects are valid");
    for (name, revision) in draft.numbered("bar", "1", 1, Some(&KEY)).1 {
        course.shown(OperatorKind::Revision, &name, Some(revision));
    }
    let metadata = json!({
        "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
        "resourceVersion": "9", "deletionTimestamp": "1970-01-01T00:00:00Z",
    });
    let spec = json!({ "deletion": { "crds": "Orphan" } });
    let object = json!({ "metadata": metadata, "spec": spec, "status": { "revision": 1 } });
    course.shown(OperatorKind::Operator, "bar", Some(object));
    let definition = "kettles.example.com";
    course.handle(observed("apiextensions.k8s.io", "CustomResourceDefinition", "", definition));
    course.handle(observed("", "ConfigMap", "bar", "bar"));
    for _ in 0..3 {
        course.answer();
    }
    let listed = OperatorEvent::OperandWatched(definition.to_owned(), WatchedChange::Listed);
    let removes = |effects: &[String]| effects.iter().any(|it| it.starts_with("remove service"));
    let deletes = |effects: &[String]| effects.iter().any(|it| it.starts_with("delete configmap"));
    let effects = course.handle(listed);
    assert!(removes(&effects) && !deletes(&effects), "{effects:?}");
    let removed = |result| OperatorEvent::ConversionRemoved {
        operator: "bar".to_owned(),
        uid: definition.to_owned(),
        result,
    };
    let effects = course.handle(removed(Err("denied".to_owned())));
    assert!(!removes(&effects) && !deletes(&effects), "{effects:?}");
    course.seconds += 10;
    let again = course.reconciler.handle_timeout(course.moment());
    let again: Vec<String> = again.iter().map(text).collect();
    assert!(removes(&again) && !deletes(&again), "{again:?}");
    let mut effects = course.handle(removed(Ok(())));
    effects.extend(course.answer());
    assert!(!removes(&effects) && deletes(&effects), "{effects:?}");
}
