//! Which objects are deleted with their Operator.

use super::*;

/// Returns an Operator `bar` that is being deleted, with a status.
fn deleted(status: &Value) -> Value {
    let metadata = json!({
        "name": "bar", "uid": "1", "generation": 1, "finalizers": [DELETION_FINALIZER],
        "resourceVersion": "9", "deletionTimestamp": "1970-01-01T00:00:00Z",
    });
    json!({ "metadata": metadata, "spec": { "version": "1.2.5" }, "status": status })
}

fn config_map(name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "bar".to_owned(),
        name: name.to_owned(),
    }
}

/// Returns the change that shows a ConfigMap with the label of `bar`.
fn shown(name: &str, trace: Trace) -> OperatorEvent {
    let object = ObservedObject {
        key: config_map(name),
        operator: "bar".to_owned(),
        uid: name.to_owned(),
        owners: BTreeSet::new(),
        mark: Mark::new(1, trace),
        health: None,
        terminating: None,
        whole: None,
    };
    OperatorEvent::Watched(
        GroupKind::new("", "ConfigMap"),
        WatchedChange::Present(Box::new(object)),
    )
}

/// Installs `bar`, which has a ConfigMap of its name, and shows ConfigMaps with its label.
fn installed(objects: &[(&str, Trace)]) -> Course {
    let mut course = Course::begin();
    course.operator("bar", "1", "1.2.5", true);
    while !course.unanswered.is_empty() {
        course.answer();
    }
    for (name, trace) in objects {
        course.handle(shown(name, *trace));
    }
    course
}

/// Deletes `bar`, and returns the effects until nothing is left to answer; the release contains some
/// objects.
fn removed(course: &mut Course, of_release: &[&str]) -> Vec<String> {
    let status = course.shown["bar"]["status"].clone();
    let mut texts = course.shown(OperatorKind::Operator, "bar", Some(deleted(&status)));
    while !course.unanswered.is_empty() {
        let is_read = |it: &OperatorEffect| matches!(it, OperatorEffect::ReadRelease { .. });
        if course.unanswered.iter().any(is_read) {
            course.unanswered.retain(|it| !is_read(it));
            let objects = Ok(of_release.iter().map(|it| config_map(it).to_string()).collect());
            let operator = "bar".to_owned();
            texts.extend(course.handle(OperatorEvent::ReleaseRead { operator, objects }));
        }
        texts.extend(course.answer());
    }
    texts
}

fn is_deleted(texts: &[String], name: &str) -> bool {
    texts.contains(&format!("delete {}", config_map(name)))
}

#[test]
fn objects_of_revisions_that_are_gone_are_deleted_with_their_operator() {
    let mut course = Course::begin();
    course.shown(OperatorKind::Operator, "bar", Some(deleted(&Value::Null)));
    let asked = course.handle(definition::read("bar", Ok(None)));
    assert!(asked.contains(&"find the kinds of bar".to_owned()), "{asked:?}");
    let found = |kinds| OperatorEvent::KindsFound { operator: "bar".to_owned(), kinds };
    course.unanswered.clear();
    course.handle(found(Err("denied".to_owned())));
    course.seconds += 10;
    let again = course.reconciler.handle_timeout(course.moment());
    assert!(again.iter().any(|it| matches!(it, OperatorEffect::FindKinds { .. })), "{again:?}");
    // The process did not know one of the kinds.
    let kinds = [("", "ConfigMap"), ("example.com", "Thing")].map(|(group, kind)| {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        (GroupVersionKind { group, version: "v1".to_owned(), kind }, Scope::Namespaced)
    });
    let watches = course.handle(found(Ok(BTreeMap::from(kinds))));
    for watch in ["watch ConfigMap", "watch Thing"] {
        assert!(watches.contains(&watch.to_owned()), "{watches:?}");
    }
    course.handle(shown("bar", Trace::Ours(1)));
    // Another client added the label.
    course.handle(shown("other", Trace::Foreign));
    let mut deleted = Vec::new();
    while !course.unanswered.is_empty() {
        deleted.extend(course.answer());
    }
    assert!(is_deleted(&deleted, "bar"), "{deleted:?}");
    assert!(!is_deleted(&deleted, "other"), "{deleted:?}");
}

#[test]
fn what_no_revision_records_is_not_deleted_with_an_operator() {
    let ours = Trace::Ours(1);
    let mut course = installed(&[("bar", ours), ("other", ours), ("labelled", Trace::Foreign)]);
    let texts = removed(&mut course, &[]);
    assert!(is_deleted(&texts, "bar"), "{texts:?}");
    assert!(!is_deleted(&texts, "other"), "{texts:?}");
    assert!(!is_deleted(&texts, "labelled"), "{texts:?}");
}

#[test]
fn what_the_release_contains_is_not_deleted_with_an_operator() {
    let mut course = installed(&[("bar", Trace::Ours(1))]);
    let texts = removed(&mut course, &["bar"]);
    assert!(texts.contains(&"read the release for bar".to_owned()), "{texts:?}");
    assert!(!is_deleted(&texts, "bar"), "{texts:?}");
    assert!(texts.contains(&"remove the finalizer of bar".to_owned()), "{texts:?}");
}

#[test]
fn nothing_is_deleted_while_the_objects_of_the_release_are_not_known() {
    let mut course = installed(&[("bar", Trace::Ours(1))]);
    let status = course.shown["bar"]["status"].clone();
    course.shown(OperatorKind::Operator, "bar", Some(deleted(&status)));
    course.unanswered.clear();
    course.handle(definition::read("bar", Ok(None)));
    let answer = |objects| OperatorEvent::ReleaseRead { operator: "bar".to_owned(), objects };
    let texts = course.handle(answer(Err("denied".to_owned())));
    assert!(!is_deleted(&texts, "bar"), "{texts:?}");
    course.seconds += 10;
    let again = course.reconciler.handle_timeout(course.moment());
    let is_read = |it: &OperatorEffect| matches!(it, OperatorEffect::ReadRelease { .. });
    assert!(again.iter().any(is_read), "{again:?}");
    let texts = course.handle(answer(Ok(BTreeSet::new())));
    assert!(is_deleted(&texts, "bar"), "{texts:?}");
    // Before it is requested again, a release that was accepted meanwhile counts.
    course.seconds += 10;
    let again = course.reconciler.handle_timeout(course.moment());
    assert!(again.iter().any(is_read), "{again:?}");
    let texts = course.handle(answer(Ok(BTreeSet::from([config_map("bar").to_string()]))));
    assert!(!is_deleted(&texts, "bar"), "{texts:?}");
}

/// Returns the OperatorRevision of `bar` with a number, which has some objects beside those of the bundle.
fn revision(number: u32, version: &str, others: Vec<Value>) -> (String, Value) {
    let (name, version) = (format!("bar.v{version}"), version.to_owned());
    let bundle = BundleReference { name, version, ..BundleReference::default() };
    let mut content = content("bar", bundle);
    content.objects.extend(others);
    let draft = RevisionDraft::read(content).expect("the objects are valid");
    let (_, mut revisions) = draft.numbered("bar", "1", number, Some(&KEY));
    revisions.remove(0)
}

#[test]
fn what_the_new_version_lacks_is_deleted_but_for_volumes() {
    let mut course = Course::begin();
    let kinds = ["ConfigMap", "PersistentVolumeClaim"];
    let metadata = json!({ "name": "old", "namespace": "bar" });
    let old = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
    let others = kinds.map(old).to_vec();
    for (name, object) in [revision(1, "1.2.4", others), revision(2, "1.2.5", Vec::new())] {
        course.shown(OperatorKind::Revision, &name, Some(object));
    }
    let time = "1970-01-01T00:00:00Z";
    let status = json!({
        "revision": 2,
        "history": [{
            "state": "Completed", "bundle": "bar.v1.2.5", "version": "1.2.5", "revision": 2,
            "startedTime": time, "completionTime": time,
        }],
    });
    let mut operator = deleted(&status);
    operator["metadata"].as_object_mut().expect("a map").remove("deletionTimestamp");
    let mut texts = course.shown(OperatorKind::Operator, "bar", Some(operator));
    for kind in kinds {
        let object = ObservedObject {
            key: ObjectKey { kind: kind.to_owned(), ..config_map("old") },
            operator: "bar".to_owned(),
            uid: kind.to_owned(),
            owners: BTreeSet::new(),
            mark: Mark::new(1, Trace::Ours(1)),
            health: None,
            terminating: None,
            whole: None,
        };
        let change = WatchedChange::Present(Box::new(object));
        texts.extend(course.handle(OperatorEvent::Watched(GroupKind::new("", kind), change)));
    }
    while !course.unanswered.is_empty() {
        texts.extend(course.answer());
    }
    assert!(is_deleted(&texts, "old"), "{texts:?}");
    let claims = texts.iter().filter(|it| it.starts_with("delete persistentvolumeclaim"));
    assert_eq!(claims.count(), 0, "{texts:?}");
}

/// Shows OperatorRevisions of `bar` from a number to another one, of which the first alone has a ConfigMap `old`.
/// Returns the status of an Operator with the last one, which its history names alone.
fn revisions_shown(course: &mut Course, first: u32, last: u32) -> Value {
    let metadata = json!({ "name": "old", "namespace": "bar" });
    let old = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    for number in first..=last {
        let others = if number == first { vec![old.clone()] } else { Vec::new() };
        let (name, object) = revision(number, "1.2.5", others);
        course.shown(OperatorKind::Revision, &name, Some(object));
    }
    let time = "1970-01-01T00:00:00Z";
    json!({
        "revision": last,
        "history": [{
            "state": "Completed", "bundle": "bar.v1.2.5", "version": "1.2.5", "revision": last,
            "startedTime": time, "completionTime": time,
        }],
    })
}

#[test]
fn a_revision_is_kept_until_what_it_alone_records_is_deleted() {
    let mut course = Course::begin();
    let status = revisions_shown(&mut course, 1, 7);
    let mut operator = deleted(&status);
    operator["metadata"].as_object_mut().expect("a map").remove("deletionTimestamp");
    let mut texts = course.shown(OperatorKind::Operator, "bar", Some(operator));
    texts.extend(course.handle(shown("old", Trace::Ours(1))));
    while !course.unanswered.is_empty() {
        texts.extend(course.answer());
    }
    assert!(is_deleted(&texts, "old"), "{texts:?}");
    assert!(!texts.contains(&"delete bar-1".to_owned()), "{texts:?}");
    let gone = WatchedChange::Gone { key: config_map("old"), revision: 2 };
    let mut texts = course.handle(OperatorEvent::Watched(GroupKind::new("", "ConfigMap"), gone));
    course.seconds += 10;
    let effects = course.reconciler.handle_timeout(course.moment());
    texts.extend(effects.iter().map(text));
    course.unanswered.extend(effects);
    while !course.unanswered.is_empty() {
        texts.extend(course.answer());
    }
    let pruned: Vec<&String> = texts.iter().filter(|it| it.starts_with("delete bar-")).collect();
    assert_eq!(pruned, ["delete bar-1", "delete bar-2"], "{texts:?}");
}

#[test]
fn objects_are_searched_if_an_early_revision_is_not_kept() {
    for (first, is_searched) in [(1, false), (2, true)] {
        let mut course = Course::begin();
        let status = revisions_shown(&mut course, first, 5);
        let mut texts = course.shown(OperatorKind::Operator, "bar", Some(deleted(&status)));
        while !course.unanswered.is_empty() {
            texts.extend(course.answer());
        }
        let found = texts.contains(&"find the kinds of bar".to_owned());
        assert_eq!(found, is_searched, "{first}: {texts:?}");
    }
}

#[test]
fn nothing_is_deleted_with_an_operator_whose_dependents_are_orphaned() {
    let mut course = installed(&[("bar", Trace::Ours(1))]);
    let status = course.shown["bar"]["status"].clone();
    let mut operator = deleted(&status);
    operator["metadata"]["finalizers"] = json!([DELETION_FINALIZER, "orphan"]);
    let mut texts = course.shown(OperatorKind::Operator, "bar", Some(operator));
    // The API server has done its part before anything is answered.
    texts.extend(removed(&mut course, &[]));
    assert!(!is_deleted(&texts, "bar"), "{texts:?}");
    assert!(texts.contains(&"remove the finalizer of bar".to_owned()), "{texts:?}");
}
