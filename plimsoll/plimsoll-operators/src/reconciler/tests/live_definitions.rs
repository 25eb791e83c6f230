//! Definitions that the cluster has before an Operator is installed: kept by an earlier deletion, or taken over.

use super::conversions::objects;
use super::*;

const DEFINITION: &str = "customresourcedefinition.apiextensions.k8s.io \"kettles.example.com\"";

/// Returns a namespace, and the objects of a definition with two versions that a service converts.
fn converted() -> Vec<Value> {
    let mut objects = objects();
    let version = json!({ "name": "v2", "served": true, "storage": false });
    objects[0]["spec"]["versions"].as_array_mut().expect("versions").push(version);
    let metadata = json!({ "name": "bar" });
    objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    objects
}

/// Returns the definition as an earlier version had it, without a conversion webhook and `v2`.
fn earlier() -> Value {
    let mut definition = objects().swap_remove(0);
    definition["spec"]["conversion"] = json!({ "strategy": "None" });
    definition
}

/// Answers a request for a bundle, or to inspect objects of a cluster with these definitions.
fn found(effect: OperatorEffect, live: &[Value]) -> OperatorEvent {
    match effect {
        OperatorEffect::ReadBundle { operator, ticket, bundle, .. } => {
            let content = RevisionContent { objects: converted(), ..content(&operator, bundle) };
            OperatorEvent::BundleRead { operator, ticket, content: Ok(Box::new(content)) }
        }
        OperatorEffect::InspectObjects { operator, ticket, .. } => {
            let findings = Ok(Findings { definitions: live.to_vec(), ..Findings::default() });
            OperatorEvent::ObjectsInspected { operator, ticket, findings }
        }
        other => unreachable!("it is answered otherwise: {other:?}"),
    }
}

/// Answers all requests for a while. Returns the effects as texts.
fn play(course: &mut Course, live: &[Value]) -> Vec<String> {
    let is_found = |it: &OperatorEffect| {
        matches!(it, OperatorEffect::ReadBundle { .. } | OperatorEffect::InspectObjects { .. })
    };
    let mut texts: Vec<String> = course.unanswered.iter().map(text).collect();
    for _ in 0..20 {
        let effects = std::mem::take(&mut course.unanswered).into_iter();
        let (asked, others): (Vec<_>, Vec<_>) = effects.partition(is_found);
        course.unanswered = others;
        texts.extend(course.answer());
        for effect in asked {
            texts.extend(course.handle(found(effect, live)));
        }
    }
    texts
}

/// Checks whether the definition is applied before the service that converts its objects.
fn check(texts: &[String], is_first: bool) {
    let applied = |what: &str| texts.iter().position(|it| *it == format!("apply {what}"));
    let (definition, service) = (applied(DEFINITION), applied("service \"bar/bar\""));
    assert!(definition.is_some(), "{texts:?}");
    assert_eq!(service.is_none_or(|it| definition < Some(it)), is_first, "{texts:?}");
}

#[test]
fn a_definition_that_no_revision_has_waits_for_its_conversion_too() {
    for (live, is_first) in [(vec![earlier()], false), (Vec::new(), true)] {
        let mut course = Course::begin();
        course.operator("bar", "1", "1.2.5", true);
        check(&play(&mut course, &live), is_first);
    }
}

#[test]
fn a_process_that_takes_over_looks_at_the_definitions_first() {
    let content =
        RevisionContent { objects: converted(), ..content("bar", BundleReference::default()) };
    let draft = RevisionDraft::read(content).expect("the objects are valid");
    let revisions = draft.numbered("bar", "1", 1, Some(&KEY)).1;
    for (live, is_first) in [(vec![earlier()], false), (Vec::new(), true)] {
        let mut course = Course::begin();
        for (name, revision) in &revisions {
            course.shown(OperatorKind::Revision, name, Some(revision.clone()));
        }
        let metadata = json!({
            "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
            "resourceVersion": "9",
        });
        let entry = json!({
            "state": "Partial", "bundle": "", "version": "", "revision": 1,
            "startedTime": "1970-01-01T00:00:00Z", "completionTime": null,
        });
        let (spec, status) = (json!({ "version": "1.2.5" }), json!({ "history": [entry] }));
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        course.shown(OperatorKind::Operator, "bar", Some(object));
        let texts = play(&mut course, &live);
        assert!(texts.contains(&"inspect 4 objects".to_owned()), "{texts:?}");
        assert!(!texts.iter().any(|it| it.starts_with("read bar")), "{texts:?}");
        check(&texts, is_first);
    }
}
