//! Which ended Actions are deleted, and when.

use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, ActionState, ActionStatus};
use plimsoll_api::{CompactName, NamespacedName};

use super::{EndedAction, History};
use crate::actions::attributes::NamedClass;
use crate::actions::report::ActionObject;
use crate::actions::tests::at;

/// Returns a class `backup` with limits.
fn classes(history_limit: Option<u32>, ttl: &str) -> Vec<NamedClass> {
    let spec = ActionClassSpec {
        history_limit,
        ttl_after_finished: ttl.into(),
        aliases: vec!["backups".into()],
        ..ActionClassSpec::default()
    };
    vec![NamedClass::new("backup", spec)]
}

/// Reads `NAMESPACE/NAME MINUTE [ttl=SECONDS]`: an Action that was created at 00:00 and ended at a
/// minute.
fn ended(line: &str) -> EndedAction {
    let mut words = line.split(' ');
    let (namespace, name) = words.next().unwrap().split_once('/').unwrap();
    let minute = words.next().unwrap();
    let ttl = words.next().map(|it| it.strip_prefix("ttl=").unwrap().parse().unwrap());
    EndedAction {
        name: CompactName::new(namespace, name),
        class: "backup".into(),
        created: at("2026-01-01T00:00:00Z").into(),
        ended: at(&format!("2026-01-01T00:{minute}:00Z")).into(),
        ttl,
        ..EndedAction::default()
    }
}

/// Checks what is deleted at 01:00, and when the next one is.
fn check(classes: &[NamedClass], actions: &[&str], deleted: &[&str], wake_at: Option<&str>) {
    // The order in which they are added does not matter.
    for actions in [actions.to_vec(), actions.iter().rev().copied().collect()] {
        let mut history = History::default();
        for line in actions {
            history.insert(ended(line));
        }
        let outdated = history.outdated(classes, at("2026-01-01T01:00:00Z"));
        let names =
            outdated.delete.iter().map(|it| format!("{}/{}", it.name.namespace(), it.name.name()));
        assert_eq!(names.collect::<Vec<_>>(), deleted);
        assert_eq!(outdated.wake_at, wake_at.map(at));
    }
}

#[test]
fn the_oldest_ones_beyond_the_limit_go() {
    let two = classes(Some(2), "");
    check(&two, &["a/x 03", "a/y 01", "a/z 02"], &["a/y"], None);
    check(&two, &["a/x 03", "a/y 01"], &[], None);
    // At the same time, the name decides.
    check(&two, &["a/x 01", "a/y 01", "a/z 01"], &["a/x"], None);
    // Each namespace has its own.
    check(&two, &["a/x 01", "a/y 02", "b/x 01", "b/y 02"], &[], None);
    check(&classes(Some(0), ""), &["a/x 02", "b/y 01"], &["b/y", "a/x"], None);
    let many: Vec<String> = (0..=100).map(|it| format!("a/n{it:03} 01")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check(&classes(None, ""), &many, &["a/n000"], None);
    // A class that is not there any more keeps as many.
    check(&[], &many, &["a/n000"], None);
}

#[test]
fn what_has_a_time_goes_at_that_time() {
    let kept = classes(None, "");
    check(&kept, &["a/x 00 ttl=3600", "a/y 00 ttl=3601"], &["a/x"], Some("2026-01-01T01:00:01Z"));
    check(&kept, &["a/x 59 ttl=0"], &["a/x"], None);
    let hour = classes(None, "1h");
    check(&hour, &["a/x 00", "a/y 10", "a/z 05"], &["a/x"], Some("2026-01-01T01:05:00Z"));
    // Its own time counts.
    check(&hour, &["a/x 00 ttl=7200", "a/y 30 ttl=60"], &["a/y"], Some("2026-01-01T02:00:00Z"));
    // What goes anyhow does not count for the limit.
    let one = classes(Some(1), "");
    check(&one, &["a/x 01", "a/y 02 ttl=60"], &["a/y"], None);
    check(&one, &["a/w 01 ttl=60", "a/x 02", "a/y 03"], &["a/w", "a/x"], None);
    // The limit counts those that have a time of their own, too.
    let later = Some("2026-01-01T02:02:00Z");
    check(
        &one,
        &["a/w 01", "a/x 02 ttl=7200", "a/y 03", "a/z 04 ttl=7200"],
        &["a/w", "a/x", "a/y"],
        later,
    );
}

#[test]
fn what_is_removed_or_replaced_counts_no_more() {
    let mut history = History::default();
    let id = |name: &str| NamespacedName { namespace: "a".into(), name: name.into() };
    for line in ["a/x 01", "a/y 02 ttl=60", "a/x 03 ttl=60"] {
        history.insert(ended(line));
    }
    assert_eq!(history.iter().count(), 2);
    assert_eq!(history.get(&id("x")), Some(&ended("a/x 03 ttl=60")));
    assert_eq!(history.remove(&id("x")).map(|it| it.ended), Some(ended("a/x 03").ended));
    assert_eq!(history.remove(&id("x")), None);
    let now = at("2026-01-01T01:00:00Z");
    let outdated = history.outdated(&classes(Some(0), ""), now);
    assert_eq!(outdated.delete.iter().map(|it| &it.name).collect::<Vec<_>>(), [&(&id("y")).into()]);
    history.remove(&id("y"));
    assert!(history.actions.is_empty() && history.groups.is_empty());
}

#[test]
fn an_action_is_kept_under_the_name_of_its_class() {
    let spec = ActionSpec {
        action_class: "backups".into(),
        ttl_after_finished: "2h".into(),
        ..ActionSpec::default()
    };
    let mut action = ActionObject { name: "x".into(), spec, ..ActionObject::default() };
    assert_eq!(EndedAction::of(&action, &[]), None);
    action.status = ActionStatus {
        state: ActionState::Failed,
        completion_time: Some(at("2026-01-01T00:00:00Z")),
        ..ActionStatus::default()
    };
    let ended = EndedAction::of(&action, &classes(None, "")).unwrap();
    assert_eq!((&*ended.class, ended.ttl), ("backup", Some(7200)));
    assert_eq!(ended.ended, at("2026-01-01T00:00:00Z").into());
    assert_eq!(&*EndedAction::of(&action, &[]).unwrap().class, "backups");
}
