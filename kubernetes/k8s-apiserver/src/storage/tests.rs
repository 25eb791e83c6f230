//! The store by itself.
use serde_json::json;

use super::*;

fn put(store: &mut Store, namespace: &str, name: &str, data: &str) -> u64 {
    let storage = StorageId::new("", "configmaps");
    let value = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}/{name}")},
        "data": {"a": data},
    });
    store.put(&storage, &ObjectKey::new(namespace, name), value, 0).revision
}

fn names(objects: &[Arc<Stored>]) -> Vec<String> {
    objects.iter().map(|stored| format!("{}/{}", stored.key.namespace, stored.key.name)).collect()
}

#[test]
fn lists_are_ordered_and_stay_in_their_namespace() {
    let mut store = Store::default();
    for (namespace, name) in [("b", "y"), ("a", "x"), ("a", "w"), ("aa", "v")] {
        put(&mut store, namespace, name, "");
    }
    let storage = StorageId::new("", "configmaps");
    let all: Vec<_> = store.list(&storage, None).cloned().collect();
    assert_eq!(names(&all), ["a/w", "a/x", "aa/v", "b/y"]);
    let one: Vec<_> = store.list(&storage, Some("a")).cloned().collect();
    assert_eq!(names(&one), ["a/w", "a/x"]);
}

#[test]
fn the_past_can_be_listed_while_the_log_reaches_back() {
    let mut store = Store::default();
    let storage = StorageId::new("", "configmaps");
    put(&mut store, "a", "x", "1");
    let then = put(&mut store, "a", "y", "1");
    put(&mut store, "a", "x", "2");
    put(&mut store, "a", "z", "1");
    store.remove(&storage, &ObjectKey::new("a", "y"));
    let list = |after: Option<&ObjectKey>| -> Vec<_> {
        store.list_at(&storage, Some("a"), then, after).unwrap().cloned().collect()
    };
    let past = list(None);
    assert_eq!(names(&past), ["a/x", "a/y"]);
    assert_eq!(names(&list(Some(&ObjectKey::new("a", "x")))), ["a/y"]);
    let find = |name| store.find_at(&storage, &ObjectKey::new("a", name), then).unwrap();
    assert!(find("y").is_some() && find("z").is_none());
    assert_eq!(past[0].decode()["data"]["a"], "1");
    assert_eq!(store.events_after(&storage, then).unwrap().events.len(), 3);
}

#[test]
fn a_log_that_is_full_forgets_its_beginning() {
    let mut store = Store::default();
    let storage = StorageId::new("", "configmaps");
    for round in 0..5_000 {
        put(&mut store, "a", "x", &round.to_string());
    }
    assert!(matches!(store.events_after(&storage, 1), Err(HistoryError::Compacted { .. })));
    assert!(store.events_after(&storage, 4_999).is_ok());
}

#[test]
fn a_compaction_forgets_what_was_and_nothing_that_is() {
    let mut store = Store::default();
    let storage = StorageId::new("", "configmaps");
    let first = put(&mut store, "a", "x", "1");
    let second = put(&mut store, "a", "x", "2");
    put(&mut store, "a", "x", "3");
    store.compact(second);
    assert!(
        matches!(store.events_after(&storage, first), Err(HistoryError::Compacted { oldest }) if oldest == second)
    );
    assert!(store.list_at(&storage, None, first, None).is_err());
    assert!(store.find_at(&storage, &ObjectKey::new("a", "x"), first).is_err());
    assert_eq!(store.events_after(&storage, second).unwrap().events.len(), 1);
    assert_eq!(store.count_in(&storage, Some("a")), 1);
    // A resource that comes later has no more history than the others.
    let other = StorageId::new("", "secrets");
    drop(store.subscribe(&other));
    assert!(matches!(store.events_after(&other, first), Err(HistoryError::Compacted { .. })));
    assert_eq!(store.oldest(&other), second);
}

#[test]
fn objects_are_counted_by_namespace() {
    let mut store = Store::default();
    let storage = StorageId::new("", "configmaps");
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")] {
        put(&mut store, namespace, name, "");
    }
    store.remove(&storage, &ObjectKey::new("b", "x"));
    let counts = [None, Some("a"), Some("b")].map(|space| store.count_in(&storage, space));
    assert_eq!(counts, [2, 2, 0]);
}

#[test]
fn removal_is_an_event_with_its_own_revision() {
    let mut store = Store::default();
    let storage = StorageId::new("", "configmaps");
    let written = put(&mut store, "a", "x", "1");
    let removed = store.remove(&storage, &ObjectKey::new("a", "x")).unwrap();
    assert_eq!(removed.revision, written + 1);
    assert_eq!(removed.decode()["metadata"]["resourceVersion"], (written + 1).to_string());
    assert!(store.find_uid("a/x").is_none());
}
