//! Tests of the state and the statuses of catalogs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::*;

const START: Moment = Moment {
    time: Timestamp::UNIX_EPOCH,
    steady: Timestamp::UNIX_EPOCH,
    uptime: Uptime::from_start(Duration::ZERO),
};

#[test]
fn a_catalog_that_is_created_again_or_elsewhere_has_to_be_read() {
    let shown = |uid: &str, path: &str| {
        json!({
            "metadata": { "name": "c", "uid": uid },
            "spec": { "source": { "type": "Directory", "path": path } },
        })
    };
    let check = |events: &[Option<Value>], expected: bool| {
        let mut reconciler = OperatorReconciler::default();
        reconciler.catalog_changed("c", Some(&shown("1", "/a")), START);
        assert!(!reconciler.is_catalog_known("c"));
        reconciler.catalog_read("c", 0, Ok(Some(CatalogContent::default())), START);
        for object in events {
            reconciler.catalog_changed("c", object.as_ref(), START);
        }
        assert_eq!(reconciler.is_catalog_known("c"), expected, "{events:?}");
    };
    check(&[], true);
    check(&[Some(shown("1", "/a"))], true);
    check(&[Some(shown("1", "/b"))], false);
    check(&[Some(shown("2", "/a"))], false);
    check(&[None], false);
    check(&[None, Some(shown("2", "/a"))], false);
}

#[test]
fn operators_are_decided_again_unless_their_packages_are_unchanged() {
    let mut reconciler = OperatorReconciler::default();
    let catalog = json!({ "metadata": { "name": "c", "uid": "1" } });
    reconciler.catalog_changed("c", Some(&catalog), START);
    reconciler.catalog_read("c", 0, Ok(Some(CatalogContent::default())), START);
    for name in ["same", "changed"] {
        reconciler.operator_changed(name, Some(&json!({ "metadata": { "uid": name } })), START);
    }
    reconciler.read_catalogs(START);
    // It is created while the catalog is read, and its decision is based on the previous content.
    reconciler.operator_changed("new", Some(&json!({ "metadata": { "uid": "new" } })), START);
    reconciler.output.undecided.clear();
    let unchanged = BTreeSet::from(["same".to_owned()]);
    let content = CatalogContent { unchanged, ..CatalogContent::default() };
    reconciler.catalog_read("c", 0, Ok(Some(content)), START);
    let undecided: Vec<&String> = reconciler.output.undecided.iter().collect();
    assert_eq!(undecided, ["changed", "new"]);
    // The content is unchanged.
    reconciler.output.undecided.clear();
    reconciler.catalog_read("c", 0, Ok(None), START);
    assert_eq!(reconciler.output.undecided, BTreeSet::new());
}

#[test]
fn a_catalog_is_read_again_whenever_it_becomes_another_one_or_available() {
    let shown = |uid: &str, path: &str, availability: &str| {
        json!({
            "metadata": { "name": "c", "uid": uid },
            "spec": {
                "source": { "type": "Directory", "path": path }, "availability": availability,
            },
        })
    };
    // The ticket and the path of the read that is requested.
    let requested = |reconciler: &mut OperatorReconciler, object: Option<Value>| {
        reconciler.catalog_changed("c", object.as_ref(), START);
        reconciler.read_catalogs(START);
        let effect = std::mem::take(&mut reconciler.output.effects).pop()?;
        let OperatorEffect::ReadCatalog { ticket, source, .. } = effect else { return None };
        Some((ticket, source.path))
    };
    let was_read = || Ok(Some(CatalogContent::default()));
    let changes: [&[Option<Value>]; 4] = [
        &[None, Some(shown("2", "/a", "Available"))],
        &[Some(shown("2", "/a", "Available"))],
        &[Some(shown("1", "/b", "Available"))],
        &[Some(shown("1", "/a", "Unavailable")), Some(shown("1", "/a", "Available"))],
    ];
    for is_answered in [true, false] {
        for events in &changes[..3 + usize::from(is_answered)] {
            let mut reconciler = OperatorReconciler::default();
            let object = Some(shown("1", "/a", "Available"));
            let (first, _) = requested(&mut reconciler, object).expect("it is read");
            if is_answered {
                reconciler.catalog_read("c", first, was_read(), START);
            }
            let mut again = None;
            for object in *events {
                again = requested(&mut reconciler, object.clone());
            }
            let (ticket, path) = again.expect("it is read again");
            let is_moved = path == "/b";
            assert!(ticket > first && (is_moved || path == "/a"), "{events:?}");
            // What was read of the former one is not its content.
            reconciler.catalog_read("c", first, Ok(None), START);
            reconciler.catalog_read("c", ticket, was_read(), START);
            assert!(reconciler.catalogs["c"].is_served(), "{events:?}");
        }
    }
    let mut reconciler = OperatorReconciler::default();
    let object = Some(shown("1", "/a", "Available"));
    let (first, _) = requested(&mut reconciler, object).expect("it is read");
    let moved = requested(&mut reconciler, Some(shown("1", "/b", "Available")));
    assert!(moved.is_some());
    reconciler.catalog_read("c", first, was_read(), START);
    assert!(!reconciler.is_catalog_known("c"), "the content of /a is not that of /b");
}

#[test]
fn a_short_interval_is_lengthened_and_reported() {
    let mut reconciler = OperatorReconciler::default();
    for (interval, seconds, reported) in [
        ("0s", 1, "The content was read; spec.pollInterval is less than 1s, and counts as 1s"),
        ("1s", 1, "The content was read"),
        ("1h", 3600, "The content was read"),
    ] {
        let object = json!({
            "metadata": { "name": "c", "uid": interval }, "spec": { "pollInterval": interval },
        });
        reconciler.catalog_changed("c", Some(&object), START);
        reconciler.catalog_read("c", 0, Ok(Some(CatalogContent::default())), START);
        let catalog = &reconciler.catalogs["c"];
        assert_eq!(catalog.next, Some(START.uptime + Duration::from_secs(seconds)));
        let conditions = catalog.status(START).conditions;
        let found = conditions.iter().find(|it| it.type_ == "Progressing");
        assert_eq!(found.map(|it| it.message.as_str()), Some(reported));
    }
}

#[test]
fn conditions_say_what_is_served_and_how_reading_went() {
    #[track_caller]
    fn check(state: &str, serving: &str, progressing: &str) {
        let mut catalog = TrackedCatalog::default();
        for word in state.split_whitespace() {
            match word {
                "unavailable" => {
                    catalog.spec.availability = CatalogAvailability::Unavailable;
                }
                "read" => {
                    let (packages, bundles) = (2, 3);
                    let content = CatalogContent { packages, bundles, ..CatalogContent::default() };
                    catalog.content = Some(content);
                }
                "reading" => catalog.is_reading = true,
                "failed" => catalog.failure = Some("no such directory".to_owned()),
                other => unreachable!("{other}"),
            }
        }
        let shown = |type_: &str| {
            let conditions = catalog.status(START).conditions;
            let found = conditions.into_iter().find(|it| it.type_ == type_);
            let found = found.expect("it is reported");
            format!("{} {}: {}", found.status.as_str(), found.reason, found.message)
        };
        assert_eq!(shown("Serving"), serving, "{state:?}");
        assert_eq!(shown("Progressing"), progressing, "{state:?}");
    }
    let read = "True AsExpected: 2 packages and 3 bundles are served";
    let being_read = "True RollingOut: The content is being read";
    let failed = "False CatalogUnavailable: The content cannot be read: no such directory";
    let last = format!("{failed}; what was read last is served");
    let waiting = "False CatalogUnavailable: It is being read";
    let missing = "False CatalogUnavailable: No such directory";
    let withdrawn = "False CatalogUnavailable: Its spec.availability is Unavailable";
    let unread =
        "False CatalogUnavailable: The content is not read: spec.availability is Unavailable";
    let done = "False AsExpected: The content was read";
    check("", waiting, being_read);
    check("reading", waiting, being_read);
    check("read", read, done);
    check("read reading", read, done);
    check("failed", missing, failed);
    check("failed reading", missing, being_read);
    check("read failed", read, &last);
    check("read failed reading", read, &last);
    check("unavailable", withdrawn, unread);
    check("unavailable read", withdrawn, done);
    check("unavailable failed", withdrawn, failed);
    check("unavailable read failed", withdrawn, failed);
}

#[test]
fn what_the_process_before_read_is_served_until_it_can_be_read_again() {
    let shown = |observed: i64| {
        json!({
            "metadata": { "name": "c", "uid": "1", "generation": 2 },
            "spec": { "source": { "type": "Directory", "path": "/a" } },
            "status": {
                "observedGeneration": observed,
                "digest": "sha256:1",
                "lastReadTime": "2026-01-01T00:00:00Z",
            },
        })
    };
    let mut reconciler = OperatorReconciler::default();
    reconciler.catalog_changed("c", Some(&shown(1)), START);
    assert_eq!(reconciler.last_catalog_digest("c"), None, "it may be that of another source");
    let mut reconciler = OperatorReconciler::default();
    reconciler.catalog_changed("c", Some(&shown(2)), START);
    assert_eq!(reconciler.last_catalog_digest("c"), Some("sha256:1"));
    let status = |reconciler: &OperatorReconciler| {
        serde_json::to_value(reconciler.catalogs["c"].status(START)).expect("a status")
    };
    assert_eq!(status(&reconciler)["digest"], "sha256:1", "another restart needs it");
    let digest = "sha256:1".to_owned();
    let content = CatalogContent { digest, packages: 3, ..CatalogContent::default() };
    reconciler.restore_catalog("c", content);
    assert_eq!(reconciler.last_catalog_digest("c"), None, "it is there");
    reconciler.catalog_read("c", 0, Err("it is garbage".to_owned()), START);
    let status = status(&reconciler);
    assert_eq!(status["packages"], 3);
    assert_eq!(status["lastReadTime"], "2026-01-01T00:00:00Z");
    assert_eq!(status["conditions"][0]["status"], "True", "{status}");
    assert_eq!(
        status["conditions"][1]["message"],
        "The content cannot be read: it is garbage; what was read last is served"
    );
}
