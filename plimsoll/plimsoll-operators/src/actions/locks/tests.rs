//! The order of Actions that touch the same objects.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::action::{
    ActionClassSpec, ActionState, ActionStatus, ChangeOperation, ChangeState, PlannedChange,
};
use plimsoll_api::{ConditionStatus, Reason};

use super::{Footprint, Locks, created, is_waited_for, next_end};
use crate::actions::attributes::NamedClass;
use crate::actions::report::{ActionObject, Report};
use crate::actions::tests::at;
use crate::observed::ObservedOperator;

/// Reads a plan: `+bar` writes an Operator, `?bar` waits for it, `+foo:bar` writes foo, which relies on bar; `+` and
/// `?` alone do it with the ClusterVersion.
fn plan(text: &str) -> Vec<PlannedChange> {
    let change = |word: &str| {
        let (operation, name) = word.split_at(1);
        let (operator, relied_on) = name.split_once(':').unwrap_or((name, ""));
        PlannedChange {
            operator: operator.into(),
            operation: match operation {
                "+" => ChangeOperation::Update,
                _ => ChangeOperation::Await,
            },
            relies_on: relied_on.split(',').filter(|it| !it.is_empty()).map(Into::into).collect(),
            ..PlannedChange::default()
        }
    };
    text.split_whitespace().map(change).collect()
}

fn action(name: &str, second: usize, state: ActionState, text: &str) -> ActionObject {
    ActionObject {
        namespace: "tea".into(),
        name: name.into(),
        uid: name.into(),
        created: at(&format!("2026-01-01T00:00:{second:02}Z")),
        status: ActionStatus { state, plan: plan(text), ..ActionStatus::default() },
        ..ActionObject::default()
    }
}

#[test]
fn an_action_waits_for_those_before_it_that_touch_the_same() {
    use ActionState::{Pending, Running, Succeeded, WaitingForApproval};
    let check = |other: (usize, ActionState, &str), own: &str, expected: Option<&str>| {
        let (second, state, text) = other;
        let other = action("other", second, state, text);
        let waiting = action("own", 5, Pending, own);
        let locks = Locks::of([&waiting, &other]);
        let found = locks.waits_for(&waiting, &Footprint::of(&waiting.status.plan));
        let expected = expected.map(|it| format!("Action tea/other, which {it}"));
        assert_eq!(found, expected, "{text} before {own}");
    };
    check((1, Pending, "+bar"), "+foo", None);
    check((1, Pending, "+bar"), "+bar", Some("changes bar"));
    check((9, Pending, "+bar"), "+bar", None);
    check((9, Running, "+bar"), "+bar", Some("changes bar"));
    check((1, WaitingForApproval, "+bar"), "+bar", None);
    check((1, Succeeded, "+bar"), "+bar", None);
    // Of two that were created in the same second, the names decide.
    check((5, Pending, "+bar"), "+bar", Some("changes bar"));
    // Who relies on an Operator excludes who writes it, and not who relies on it too.
    check((1, Running, "+foo:bar"), "+bar", Some("relies on bar"));
    check((1, Running, "?bar"), "+bar", Some("relies on bar"));
    check((1, Running, "+bar"), "+foo:bar", Some("changes bar"));
    check((1, Running, "+bar"), "?bar", Some("changes bar"));
    check((1, Running, "+foo:bar"), "+baz:bar", None);
    check((1, Running, "?bar"), "?bar", None);
    // The ClusterVersion is no Operator.
    check((1, Running, "+"), "+bar", None);
    check((1, Running, "+"), "+", Some("changes release"));
    check((1, Running, "?"), "+", Some("relies on release"));
    check((1, Running, "+"), "?", Some("changes release"));
    check((1, Running, "?"), "?", None);
}

#[test]
fn an_action_of_another_controller_is_waited_for_while_its_class_is_there_until_its_deadline() {
    use ActionState::{Pending, Running};
    let backup = ActionClassSpec { controller: "example.com/backups".into(), ..Default::default() };
    let classes = [NamedClass::new("backup", backup)];
    let now = at("2026-01-01T02:00:00Z");
    let check = |class: &str, state: ActionState, started: &str, expected: bool| {
        let mut action = action("other", 0, state, "+bar");
        action.spec.action_class = class.into();
        action.spec.deadline = "90m".into();
        action.status.start_time = Some(started).filter(|it| !it.is_empty()).map(at);
        let found = is_waited_for(&action, &classes, now);
        assert_eq!(found, expected, "{class} {state:?} {started:?}");
        let is_foreign = class != "operator-install";
        let ends = at("2026-01-01T02:15:00Z");
        let next = next_end([&action], &classes, now);
        assert_eq!(next, Some(ends).filter(|_| found && is_foreign), "{class} {started:?}");
    };
    let in_time = "2026-01-01T00:45:00Z";
    check("backup", Running, in_time, true);
    check("backup", Running, "2026-01-01T00:30:00Z", false);
    // Without a start, and with one that no clock has shown yet, its creation counts.
    check("backup", Running, "", false);
    check("backup", Running, "2099-01-01T00:00:00Z", false);
    check("backup", Pending, in_time, false);
    check("gone", Running, in_time, false);
    // Those of this program are, whether or not their class is there.
    check("operator-install", Running, "2026-01-01T00:30:00Z", true);
    check("operator-install", Pending, "", true);
}

#[test]
fn a_cancelled_or_deleted_one_holds_nothing_before_it_begins() {
    let check = |is_cancelled: bool, is_deleting: bool, state: ActionState, waits: bool| {
        let mut other = action("other", 1, state, "+bar");
        other.spec.cancelled = is_cancelled;
        other.is_deleting = is_deleting;
        let waiting = action("own", 5, ActionState::Pending, "+bar");
        let footprint = Footprint::of(&waiting.status.plan);
        assert_eq!(Locks::of([&other]).waits_for(&waiting, &footprint).is_some(), waits);
    };
    check(false, false, ActionState::Pending, true);
    check(true, false, ActionState::Pending, false);
    check(false, true, ActionState::Pending, false);
    check(true, false, ActionState::Running, true);
    check(false, true, ActionState::Running, true);
}

#[test]
fn an_action_that_is_executed_holds_everything_while_its_plan_cannot_be_read() {
    let check = |state: ActionState, unread: &[&str], own: &str, expected: Option<&str>| {
        let other = action("other", 1, state, "+bar");
        let waiting = action("own", 5, ActionState::Pending, own);
        let unread = unread.iter().copied().collect();
        let locks = Locks::of([&waiting, &other]).with_unread(unread);
        let found = locks.waits_for(&waiting, &Footprint::of(&waiting.status.plan));
        assert_eq!(found.as_deref(), expected, "{state:?} {own}");
        let ended = action("ended", 0, ActionState::Succeeded, own);
        let is_due = locks.waiting_for(&ended).iter().any(|it| it.uid == "own");
        assert_eq!(is_due, expected.is_none(), "{state:?} {own}");
    };
    let unread = Some("Action tea/other, whose plan cannot be read");
    check(ActionState::Running, &["other"], "+foo", unread);
    check(ActionState::Running, &["other"], "+", unread);
    check(ActionState::Running, &["own"], "+foo", None);
    check(ActionState::Pending, &["other"], "+foo", None);
    check(ActionState::Pending, &["other"], "+bar", Some("Action tea/other, which changes bar"));
}

#[test]
fn the_end_of_an_action_wakes_those_alone_that_can_start_or_name_it() {
    let check = |waiting: &[(&str, &str, &str)], expected: &[&str]| {
        let ended = action("ended", 0, ActionState::Succeeded, "+foo +bar");
        let mut all = vec![ended.clone(), action("running", 9, ActionState::Running, "+baz")];
        for (second, (name, text, names)) in waiting.iter().enumerate() {
            let it = action(name, second + 1, ActionState::Pending, text);
            let message = format!("waits for Action tea/{names}, which changes bar");
            let report = Report::pending(it.status.clone(), Reason::WaitingForAction, message);
            let status = it.reported(report, at("2026-01-01T00:00:00Z"));
            assert_eq!(status.conditions[0].status, ConditionStatus::Unknown);
            all.push(ActionObject { status, ..it });
        }
        let locks = Locks::of(&all);
        let due: Vec<&str> =
            locks.waiting_for(&ended).into_iter().map(|it| it.name.as_str()).collect();
        assert_eq!(due, expected);
    };
    check(&[("a", "+bar", "ended"), ("b", "+bar", "a"), ("c", "+qux", "x")], &["a"]);
    check(&[("a", "+bar", "ended"), ("b", "+foo", "ended")], &["a", "b"]);
    check(&[("a", "+bar", "ended"), ("b", "+bar", "ended")], &["a", "b"]);
    // It waits for one that is executed still.
    check(&[("a", "+bar +baz", "running")], &[]);
    check(&[("a", "+bar +baz", "ended")], &["a"]);
    // It shares nothing with the one that it names, whose plan could not be read.
    check(&[("a", "+qux", "ended"), ("b", "+quux", "a")], &["a"]);
    check(&[("a", "?bar", "ended"), ("b", "?bar", "ended")], &["a", "b"]);
}

/// Runs Actions to their end, of those that are executed first the one that `pick` selects; an Action is inspected
/// at the beginning, and when it becomes due.
fn run(mut all: Vec<ActionObject>, pick: usize) -> Vec<ActionObject> {
    let mut due: BTreeSet<usize> = (0..all.len()).collect();
    let mut ended = Vec::new();
    loop {
        while let Some(at) = due.pop_first() {
            if all[at].status.state != ActionState::Pending {
                continue;
            }
            let footprint = Footprint::of(&all[at].status.plan);
            if Locks::of(&all).waits_for(&all[at], &footprint).is_none() {
                all[at].status.state = ActionState::Running;
            }
        }
        let is_running = |it: &usize| all[*it].status.state == ActionState::Running;
        let running: Vec<usize> = (0..all.len()).filter(is_running).collect();
        for (at, first) in running.iter().enumerate() {
            for second in &running[at + 1..] {
                let shared = Footprint::of(&all[*first].status.plan);
                assert!(shared.shared(&all[*second].status.plan).is_none(), "{all:?}");
            }
        }
        let Some(at) = running.get(pick % running.len().max(1)).copied() else { return ended };
        all[at].status.state = ActionState::Succeeded;
        ended.push(all[at].clone());
        let freed: Vec<&str> =
            Locks::of(&all).waiting_for(&all[at]).into_iter().map(|it| it.uid.as_str()).collect();
        due.extend((0..all.len()).filter(|it| freed.contains(&all[*it].uid.as_str())));
    }
}

#[test]
fn all_actions_end_and_none_runs_beside_one_that_touches_the_same() {
    const PLANS: [&str; 8] = ["+a", "+b", "+a +b", "?a", "+b:a", "+a:b", "+", "?"];
    const COUNT: usize = 4;
    for case in 0..PLANS.len().pow(4) {
        let kinds = (0..COUNT).map(|it| case / PLANS.len().pow(u32::try_from(it).unwrap()));
        let all = kinds.enumerate().map(|(at, kind)| {
            // The names are not in the order of creation.
            let name = format!("n{}", COUNT - at);
            action(&name, at / 2, ActionState::Pending, PLANS[kind % PLANS.len()])
        });
        let all: Vec<ActionObject> = all.collect();
        for pick in 0..2 {
            let ended = run(all.clone(), pick);
            assert_eq!(ended.len(), COUNT, "{all:?}");
            for (at, later) in ended.iter().enumerate() {
                let overtaken = ended[..at].iter().find(|earlier| {
                    let shared = Footprint::of(&earlier.status.plan);
                    earlier.order() > later.order() && shared.shared(&later.status.plan).is_some()
                });
                assert!(overtaken.is_none(), "{overtaken:?} went before {later:?}");
            }
        }
    }
}

#[test]
fn operators_are_counted_where_they_were_requested() {
    let operator = |namespace: Option<&str>| ObservedOperator {
        created_in: namespace.map(Into::into),
        ..ObservedOperator::default()
    };
    let operators = BTreeMap::from([
        ("own".to_owned(), operator(Some("tea"))),
        ("other".to_owned(), operator(Some("coffee"))),
        ("by-hand".to_owned(), operator(None)),
    ]);
    let creating = |name: &str, state: ActionState, at: ChangeState, creates: &str| {
        let mut action = action(name, 1, state, &format!("+{creates}"));
        action.status.plan[0].operation = ChangeOperation::Create;
        action.status.plan[0].state = at;
        action
    };
    let mut foreign = creating("a", ActionState::Running, ChangeState::Planned, "foreign");
    foreign.namespace = "coffee".into();
    let actions = [
        creating("b", ActionState::Running, ChangeState::Planned, "planned"),
        creating("c", ActionState::Running, ChangeState::Writing, "own"),
        creating("d", ActionState::Running, ChangeState::Failed, "failed"),
        creating("e", ActionState::Pending, ChangeState::Planned, "waiting"),
        action("f", 1, ActionState::Running, "+updated"),
        foreign,
    ];
    let found = created("tea", &operators, &actions);
    assert_eq!(found, BTreeSet::from(["own".to_owned(), "planned".to_owned()]));
}
