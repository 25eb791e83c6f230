//! Changes of objects, and the Actions that they make.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::action::{
    EventActionSpec, EventActionStatus, EventSourceKind, EventType, RateLimit,
};
use serde_json::{Value, json};

use super::{EventDecision, EventObject, Observations, selector_problem};
use crate::actions::tests::at;
use crate::actions::triggers::ObjectContent;

/// Returns the contents of objects for one event.
fn of(event: EventType, contents: &[(&str, &str)]) -> BTreeMap<String, ObjectContent> {
    let content = |content: &str| ObjectContent {
        events: [(event, content.to_owned())].into(),
        ..ObjectContent::default()
    };
    contents.iter().map(|(name, it)| ((*name).to_owned(), content(it))).collect()
}

/// Returns the content of the catalog `community`.
fn catalog(digest: &str) -> BTreeMap<String, ObjectContent> {
    of(EventType::ContentChanged, &[("community", digest)])
}

/// Decides at a second, with the objects that were read.
fn decide(
    spec: &EventActionSpec,
    status: &EventActionStatus,
    contents: Result<&BTreeMap<String, ObjectContent>, String>,
    objects: &[(&str, Value)],
    second: i64,
) -> EventDecision {
    let now = at("2026-01-01T00:00:00Z") + jiff::SignedDuration::from_secs(second);
    let objects = objects.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
    let observations = Observations { contents, objects: &objects };
    let namespace = "tea";
    EventObject { namespace, name: "refresh", uid: "9e5b", spec, status }.decide(
        &observations,
        &[],
        now,
    )
}

/// Returns the reason and the count of what was skipped.
fn skipped(status: &EventActionStatus) -> Vec<(&str, u32)> {
    status.skipped.iter().map(|it| (it.reason.as_str(), it.count)).collect()
}

#[test]
fn a_selector_that_no_object_can_have_is_named() {
    let check = |key: &str, value: &str, expected: Option<&str>| {
        let selector = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let found = selector_problem(&selector);
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        if let Some((found, expected)) = found.zip(expected) {
            let begin = "spec.trigger.object.selector is invalid: ";
            assert!(found.starts_with(&format!("{begin}{expected}: ")), "{found}");
        }
    };
    check("tier", "web", None);
    check("example.com/tier", "", None);
    check("tier", "a b", Some("`tier: a b`"));
    check("tier!", "web", Some("`tier!: web`"));
    // API servers would read two labels.
    check("tier,other", "web", Some("`tier,other: web`"));
    assert_eq!(selector_problem(&BTreeMap::new()), None);
}

#[test]
fn a_change_makes_one_action_however_often_it_is_shown() {
    let spec = EventActionSpec::default();
    let second = std::cell::Cell::new(0);
    // Long after any change before.
    let decide = |status: &EventActionStatus, digest: &str| {
        second.set(second.get() + 3600);
        decide(&spec, status, Ok(&catalog(digest)), &[], second.get())
    };
    let first = decide(&EventActionStatus::default(), "sha256:a");
    assert_eq!(first.status.pending, "", "what was there before is no change");
    assert_eq!(decide(&first.status, "sha256:a").status, first.status);
    let changed = decide(&first.status, "sha256:b");
    let pending = changed.status.pending.as_str();
    assert_eq!((changed.make, pending.is_empty()), (None, false), "it is recorded first");
    let made = decide(&changed.status, "sha256:c");
    assert_eq!(made.make.as_deref(), Some(pending), "whatever else changes meanwhile");
    assert_eq!(
        (made.status.pending.as_str(), &made.status.observed[0].content[..]),
        ("", "sha256:b")
    );
    let message = "no quota".to_owned();
    let refused = EventActionStatus { message, ..changed.status.clone() };
    assert_eq!(decide(&refused, "sha256:c"), made, "it is made although it was refused before");
    assert_eq!(decide(&made.status, "sha256:b").status, made.status);
    let back = decide(&made.status, "sha256:a").status;
    let forth = decide(&decide(&back, "sha256:a").status, "sha256:b").status;
    assert!(!back.pending.is_empty());
    assert_ne!(forth.pending, back.pending);
    assert_ne!(forth.pending, pending, "the same content, but another change");
}

#[test]
fn what_changes_while_it_is_suspended_or_at_the_first_look_makes_no_action() {
    let spec = EventActionSpec::default();
    let none = EventActionStatus::default();
    let first = decide(&spec, &none, Ok(&catalog("a")), &[], 0).status;
    let other = EventActionSpec { suspend: true, ..spec.clone() };
    let suspended = decide(&other, &first, Ok(&catalog("c")), &[], 10).status;
    assert_eq!((suspended.pending.as_str(), &suspended.observed[0].content[..]), ("", "c"));
    let mut others = spec.clone();
    others.trigger.names = vec!["community".to_owned()];
    let anew = decide(&others, &first, Ok(&catalog("d")), &[], 20).status;
    assert_eq!(anew.pending, "", "another trigger is no change of objects");
    let mut filtered = spec;
    filtered.trigger.filter = "true".to_owned();
    let objects = [("community", json!({}))];
    let status = decide(&filtered, &first, Ok(&catalog("d")), &objects, 20).status;
    assert!(!status.pending.is_empty(), "another filter is no other trigger");
}

#[test]
fn changes_one_right_after_the_other_make_one_action_after_a_pause() {
    let spec = EventActionSpec::default();
    let decide = |status: &EventActionStatus, digest: &str, second: i64| {
        decide(&spec, status, Ok(&catalog(digest)), &[], second)
    };
    let first = decide(&EventActionStatus::default(), "a", 0);
    let changed = decide(&first.status, "b", 10);
    let made = decide(&changed.status, "b", 10);
    assert!(made.make.is_some());
    let due = at("2026-01-01T00:00:15Z");
    for (digest, second) in [("c", 11), ("d", 14)] {
        let early = decide(&made.status, digest, second);
        assert_eq!((early.wake_at, &early.status), (Some(due), &made.status), "{digest}");
    }
    let late = decide(&made.status, "d", 15);
    assert_eq!((late.wake_at, late.status.pending.is_empty()), (None, false));
    assert_eq!(late.status.last_event_time, Some(due));
    // What is as it was does not wait for anything, nor does a change after the clock was set back.
    assert_eq!(decide(&made.status, "b", 11).wake_at, None);
    assert!(!decide(&made.status, "c", 9).status.pending.is_empty());
}

#[test]
fn objects_that_cannot_be_read_are_unchanged() {
    let none = EventActionStatus::default();
    let many = |count| -> BTreeMap<String, ObjectContent> {
        let content = || ObjectContent::of_catalog("1");
        (0..count).map(|it| (format!("object-{it}"), content())).collect()
    };
    let spec = EventActionSpec::default();
    let first = decide(&spec, &none, Ok(&many(500)), &[], 0);
    assert_eq!((first.status.observed.len(), first.status.message.as_str()), (500, ""));
    let forbidden = decide(&spec, &first.status, Err("not yours".to_owned()), &[], 10);
    let said = (forbidden.status.pending.as_str(), forbidden.status.message.as_str());
    assert_eq!(said, ("", "not yours"));
    assert_eq!(forbidden.status.observed, first.status.observed);
    assert_eq!(decide(&spec, &forbidden.status, Ok(&many(500)), &[], 20).status, first.status);
    let crowded = decide(&spec, &first.status, Ok(&many(501)), &[], 20);
    let message = "501 objects are selected, of at most 500: select fewer of them";
    assert_eq!((crowded.make, crowded.status.message.as_str()), (None, message));
    let mut named = spec.clone();
    named.trigger.names = vec!["object-500".to_owned()];
    assert_eq!(decide(&named, &none, Ok(&many(501)), &[], 20).status.message, "");
}

#[test]
fn only_the_events_that_are_named_make_actions() {
    let kind = EventSourceKind::Operator;
    let (installed, unsatisfied) = (EventType::Installed, EventType::Unsatisfied);
    for (events, event, is_made) in [
        (&[][..], installed, true),
        (&[], unsatisfied, false),
        (&[unsatisfied], installed, false),
        (&[unsatisfied], unsatisfied, true),
        (&[installed, unsatisfied], unsatisfied, true),
    ] {
        let mut spec = EventActionSpec::default();
        (spec.trigger.kind, spec.trigger.events) = (kind, events.to_vec());
        let none = EventActionStatus::default();
        let first = decide(&spec, &none, Ok(&of(event, &[("foo", "")])), &[], 0).status;
        assert_eq!(first.observed, []);
        let changed = of(event, &[("foo", "new")]);
        let status = decide(&spec, &first, Ok(&changed), &[], 10).status;
        assert_eq!(!status.pending.is_empty(), is_made, "{events:?} {event:?}");
        // It is over, and happens once more.
        let made = decide(&spec, &status, Ok(&changed), &[], 20).status;
        let over = decide(&spec, &made, Ok(&of(event, &[("foo", "")])), &[], 30).status;
        assert_eq!((over.pending.as_str(), over.observed.len()), ("", 0));
        let again = decide(&spec, &over, Ok(&changed), &[], 40).status;
        assert_eq!(!again.pending.is_empty(), is_made, "{events:?} {event:?}");
        // What is not known is as it was.
        let unknown = BTreeMap::from([("foo".to_owned(), ObjectContent::default())]);
        assert_eq!(decide(&spec, &made, Ok(&unknown), &[], 30).status, made);
    }
    let mut wrong = EventActionSpec::default();
    wrong.trigger.events = vec![installed];
    let status = decide(&wrong, &Default::default(), Ok(&catalog("a")), &[], 0).status;
    let message = "spec.trigger.events: Installed is no event of the kind; it has ContentChanged";
    assert_eq!((status.message.as_str(), status.trigger), (message, None));
}

#[test]
fn changes_for_which_the_filter_is_false_are_recorded_and_make_no_action() {
    let mut spec = EventActionSpec::default();
    spec.trigger.filter = "object.spec.track == new".to_owned();
    let two = |digest: &str| of(EventType::ContentChanged, &[("a", digest), ("b", digest)]);
    let first = decide(&spec, &Default::default(), Ok(&two("1")), &[], 0).status;
    let contents = two("2");
    let now = at("2026-01-01T00:00:10Z");
    let needed = |status: &EventActionStatus, contents: &BTreeMap<String, ObjectContent>| {
        let (namespace, name, uid, spec) = ("tea", "refresh", "9e5b", &spec);
        EventObject { namespace, name, uid, spec, status }.needed(&Ok(contents), now)
    };
    assert_eq!(needed(&first, &contents), ["a", "b"]);
    assert!(needed(&first, &two("1")).is_empty());
    let object = |track: &str| json!({ "spec": { "track": track } });
    for (tracks, expected, left) in [
        (&[("a", object("1")), ("b", object("3"))][..], false, &[][..]),
        (&[("a", object("2")), ("b", object("3"))], true, &[]),
        (&[("a", json!({})), ("b", object("2"))], true, &[("FilterFailed", 1)]),
        (&[("a", json!({})), ("b", json!({}))], false, &[("FilterFailed", 2)]),
    ] {
        let decision = decide(&spec, &first, Ok(&contents), tracks, 10);
        assert_eq!(!decision.status.pending.is_empty(), expected, "{tracks:?}");
        assert_eq!(skipped(&decision.status), left);
        assert!(decision.status.observed.iter().all(|it| it.content == "2"));
        assert!(needed(&decision.status, &contents).is_empty());
    }
    let failed = decide(&spec, &first, Ok(&contents), &[("a", json!({})), ("b", object("1"))], 10);
    let message = &failed.status.skipped[0].message;
    assert!(message.starts_with("ContentChanged of a: no such key: spec"), "{message}");
    // One that is gone meanwhile is judged when it is known again.
    let half = decide(&spec, &first, Ok(&contents), &[("a", object("1"))], 10).status;
    let observed: Vec<&str> = half.observed.iter().map(|it| it.content.as_str()).collect();
    assert_eq!(observed, ["2", "1"]);
    assert_eq!(decide(&spec, &first, Ok(&contents), &[], 10).status, first);
}

#[test]
fn nothing_is_observed_with_a_filter_that_does_not_compile() {
    let spec = EventActionSpec::default();
    let first = decide(&spec, &Default::default(), Ok(&catalog("1")), &[], 0).status;
    let mut broken = spec.clone();
    broken.trigger.filter = "nothing == 1".to_owned();
    let decision = decide(&broken, &first, Ok(&catalog("2")), &[], 10);
    let message = "spec.trigger.filter does not compile: ERROR: ";
    assert!(decision.status.message.starts_with(message), "{}", decision.status.message);
    let EventActionStatus { observed, .. } = &decision.status;
    assert_eq!(observed, &first.observed);
    let mended = decide(&spec, &decision.status, Ok(&catalog("2")), &[], 20).status;
    assert!(!mended.pending.is_empty(), "what changed meanwhile counts");
}

#[test]
fn a_change_that_its_own_actions_led_to_makes_none() {
    let mut spec = EventActionSpec::default();
    spec.trigger.kind = EventSourceKind::Operator;
    let contents = |operators: &[(&str, &str)]| -> BTreeMap<String, ObjectContent> {
        let content = |chain: &str| ObjectContent {
            events: [(EventType::Installed, "2.0.0".to_owned())].into(),
            chain: chain.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        };
        operators.iter().map(|(name, chain)| ((*name).to_owned(), content(chain))).collect()
    };
    let first = decide(&spec, &Default::default(), Ok(&BTreeMap::new()), &[], 0).status;
    let check = |operators: &[(&str, &str)], chain: &[&str], count: u32, message: &str| {
        let status = decide(&spec, &first, Ok(&contents(operators)), &[], 10).status;
        assert_eq!(status.pending_chain, chain, "{operators:?}");
        assert_eq!(status.pending.is_empty(), chain.is_empty(), "{operators:?}");
        assert_eq!(status.observed.len(), operators.len(), "it is observed whatever it makes");
        let expected: Vec<_> =
            [("EventActionCircle", count)].into_iter().filter(|it| it.1 > 0).collect();
        assert_eq!(skipped(&status), expected, "{operators:?}");
        let found = status.skipped.first().map_or("", |it| it.message.as_str());
        assert!(found.starts_with(message), "{found}");
        // The Action that is made ends the chain that is pending.
        let made = decide(&spec, &status, Ok(&contents(operators)), &[], 20).status;
        assert!(made.pending_chain.is_empty());
    };
    check(&[("foo", "")], &["tea/refresh"], 0, "");
    check(&[("foo", "tea/other")], &["tea/other", "tea/refresh"], 0, "");
    check(&[("foo", "milk/refresh")], &["milk/refresh", "tea/refresh"], 0, "");
    let own = "Installed of foo: tea/refresh -> tea/refresh; choose events, names or a filter";
    check(&[("foo", "tea/refresh")], &[], 1, own);
    let longer = "Installed of foo: tea/refresh -> tea/other -> tea/refresh; choose";
    check(&[("foo", "milk/x,tea/refresh,tea/other")], &[], 1, longer);
    // Of changes that come together, those that close no circle make the Action.
    let both = &[("bar", "milk/x"), ("baz", "milk/y"), ("foo", "tea/refresh")];
    check(both, &["milk/x", "milk/y", "tea/refresh"], 1, own);
    check(&[("bar", "tea/refresh"), ("foo", "tea/refresh")], &[], 2, own);
    let long: Vec<String> = (0..16).map(|it| format!("n/{it}")).collect();
    check(&[("foo", &long.join(","))], &[], 1, "Installed of foo: n/0 -> n/1");
}

#[test]
fn updates_that_become_available_are_the_work_of_no_action() {
    let mut spec = EventActionSpec::default();
    spec.trigger.kind = EventSourceKind::ClusterVersion;
    spec.trigger.events = vec![EventType::UpdateAvailable, EventType::Updated];
    let contents = |event: EventType, content: &str| -> BTreeMap<String, ObjectContent> {
        let events = [(event, content.to_owned())].into();
        let content = ObjectContent { events, chain: vec!["tea/refresh".to_owned()] };
        [("version".to_owned(), content)].into()
    };
    let first = decide(&spec, &Default::default(), Ok(&BTreeMap::new()), &[], 0).status;
    let check = |event: EventType, expected: bool| {
        let status = decide(&spec, &first, Ok(&contents(event, "1.1.0")), &[], 10).status;
        assert_eq!(!status.pending.is_empty(), expected, "{event:?}");
        assert_eq!(status.skipped.is_empty(), expected, "{event:?}");
    };
    check(EventType::UpdateAvailable, true);
    check(EventType::Updated, false);
}

#[test]
fn all_that_changes_is_read_though_some_change_again_and_again() {
    let mut spec = EventActionSpec::default();
    spec.trigger.kind = EventSourceKind::Object;
    spec.trigger.filter = "false".to_owned();
    let contents = |content: &str| -> BTreeMap<String, ObjectContent> {
        let content = ObjectContent::of_object("u", None, content);
        (0..40).map(|at| (format!("object-{at:02}"), content.clone())).collect()
    };
    let first = decide(&spec, &Default::default(), Ok(&contents("1")), &[], 0).status;
    let mut read = BTreeSet::new();
    for second in 1..=40_i64 {
        let now = at("2026-01-01T00:00:00Z") + jiff::SignedDuration::from_secs(second * 5);
        let object =
            EventObject { namespace: "tea", name: "e", uid: "u", spec: &spec, status: &first };
        let names = object.needed(&Ok(&contents("2")), now);
        assert_eq!(names.len(), 16);
        read.extend(names);
    }
    assert_eq!(read.len(), 40);
}

#[test]
fn changes_beyond_the_limit_are_counted_and_make_no_action() {
    let rate_limit = Some(RateLimit { count: 2, period: "10m".to_owned() });
    let spec = EventActionSpec { rate_limit, ..EventActionSpec::default() };
    let mut status = decide(&spec, &Default::default(), Ok(&catalog("0")), &[], 0).status;
    let mut limited = 0;
    for (second, is_made) in [
        (60, true),
        (120, true),
        (180, false),
        (240, false),
        (700, true),
        (701, false),
        (730, true),
    ] {
        let contents = catalog(&second.to_string());
        status = decide(&spec, &status, Ok(&contents), &[], second).status;
        let is_early = status.observed[0].content != second.to_string();
        assert_eq!(!status.pending.is_empty(), is_made, "{second}");
        assert_eq!(status.pending_chain.is_empty(), !is_made, "{second}");
        limited += u32::from(!is_made && !is_early);
        let expected: Vec<_> =
            [("RateLimited", limited)].into_iter().filter(|it| it.1 > 0).collect();
        assert_eq!(skipped(&status), expected, "{second}");
        status = decide(&spec, &status, Ok(&contents), &[], second).status;
        assert!(status.recent_times.len() <= 2, "{:?}", status.recent_times);
    }
    let [missed] = status.skipped.as_slice() else { panic!("{:?}", status.skipped) };
    assert_eq!((missed.count, missed.first_time), (2, at("2026-01-01T00:03:00Z")));
    assert_eq!(missed.last_time, at("2026-01-01T00:04:00Z"));
    let message = "ContentChanged of community: the limit of 2 in 10m is reached: allow more in \
                   spec.rateLimit, or request the Action by hand";
    assert_eq!(missed.message, message);
    let without = EventActionSpec::default();
    let status = decide(&without, &status, Ok(&catalog("1")), &[], 740).status;
    assert_eq!((status.pending.is_empty(), status.recent_times.len()), (false, 0));
}
