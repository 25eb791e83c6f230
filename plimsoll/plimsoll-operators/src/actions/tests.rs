//! Decisions on Actions: schedules, attempts, triggers, policies and what Operators report.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{
    ActionPreconditions, ActionRequester, ActionSpec, ActionState, ActionStatus, ChangeOperation,
    ChangeState, ConcurrencyPolicy, CronActionSpec, EventActionSpec, EventActionStatus,
    MaintenanceWindow, PlanExpression, PlannedChange, RetryActionSpec,
};
use plimsoll_content::expressions::Cel;
use plimsoll_content::hash::sha256;
use plimsoll_resolve::{
    Bundle, CatalogName, CatalogPart, Channel, ChannelEntry, Constraint, Package, Requirement,
};
use semver::Version;
use serde_json::{Value, json};

use super::ActionFailure;
use super::attributes::{NamedClass, effective};
use super::execution::{is_untouched, next_write, observe, outcome};
use super::files::{ActionFiles, built_in_classes};
use super::lifecycle::{ActionDecision, ActionObject, DirectPermissions, PlanDecision};
use super::plan::{ActionPlan, digest};
use super::planning;
use super::policy::{PolicyRequest, PolicyVerdict, judge};
use super::preconditions::violations;
use super::release::{self, ObservedRelease};
use super::retry::{Attempt, RetryDecision, decide};
use super::schedule::{Schedule, is_open};
use super::triggers::{MadeAction, cron, event};
use crate::inventory::OperatorInventory;
use crate::loadout::LoadoutFile;
use crate::observed::ObservedOperator;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn schedules_follow_the_local_time() {
    let friday = Schedule::parse("50 16 * * 5", "Europe/Madrid").unwrap();
    // The clocks go back on Sunday, 25 October 2026.
    assert_eq!(friday.after(at("2026-10-20T00:00:00Z")), Some(at("2026-10-23T14:50:00Z")));
    assert_eq!(friday.after(at("2026-10-23T14:50:00Z")), Some(at("2026-10-30T15:50:00Z")));
    let night = Schedule::parse("30 2 * * *", "Europe/Madrid").unwrap();
    // 02:30 occurs twice that night, and counts once.
    let first = night.after(at("2026-10-24T12:00:00Z")).unwrap();
    assert_eq!(first, at("2026-10-25T00:30:00Z"));
    assert_eq!(night.after(first), Some(at("2026-10-26T01:30:00Z")));
    // On 29 March there is no 02:30 at night: the next valid time is used instead.
    let spring = night.after(at("2026-03-28T12:00:00Z")).unwrap();
    assert_eq!(spring, at("2026-03-29T01:00:00Z"));
    let missed = friday.latest(at("2026-10-01T00:00:00Z"), at("2026-10-31T00:00:00Z"));
    assert_eq!(missed, Some(at("2026-10-30T15:50:00Z")));
    assert_eq!(friday.latest(at("2026-10-24T00:00:00Z"), at("2026-10-25T00:00:00Z")), None);
}

#[test]
fn what_is_no_schedule_is_refused() {
    let check = |schedule: &str, zone: &str, expected: &str| {
        let error = Schedule::parse(schedule, zone).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("every day", "", "`every day` is no schedule");
    check("0 0 * * *", "Europe/Nowhere", "`Europe/Nowhere` is no time zone");
    check("TZ=Europe/Madrid 0 0 * * *", "", "write it to timeZone");
}

#[test]
fn windows_are_open_for_their_duration() {
    let window = |duration: &str| MaintenanceWindow {
        schedule: "0 22 * * *".into(),
        time_zone: "Europe/Madrid".into(),
        duration: duration.into(),
    };
    assert_eq!(is_open(&window("4h"), at("2026-07-01T20:00:00Z")), Ok(Ok(())));
    assert_eq!(is_open(&window("4h"), at("2026-07-01T23:59:59Z")), Ok(Ok(())));
    let opens = Some(at("2026-07-02T20:00:00Z"));
    assert_eq!(is_open(&window("4h"), at("2026-07-02T00:00:00Z")), Ok(Err(opens)));
    assert!(is_open(&window(""), at("2026-07-02T00:00:00Z")).is_err());
}

#[test]
fn attempts_follow_each_other_with_growing_delays() {
    let spec = RetryActionSpec { backoff_limit: Some(3), ..RetryActionSpec::default() };
    let start = at("2026-01-01T00:00:00Z");
    let decided = |spec: &RetryActionSpec, recorded: u32, attempts: &[Attempt], now: Timestamp| {
        decide("install", "9e5b9d2c", spec, recorded, attempts, now)
    };
    let mut attempts = Vec::new();
    let mut names = Vec::new();
    let mut delays = Vec::new();
    let mut now = start;
    loop {
        match decided(&spec, 0, &attempts, now) {
            RetryDecision::Attempt(name) => {
                assert_eq!(name.len(), "install-".len() + 5);
                names.push(name);
                let running = Attempt { state: ActionState::Running, ended: None };
                attempts.push(running);
                assert_eq!(decided(&spec, 0, &attempts, now), RetryDecision::Running);
                attempts.pop();
                attempts.push(Attempt { state: ActionState::Failed, ended: Some(now) });
            }
            RetryDecision::Wait(until) => {
                delays.push(until.duration_since(now).as_secs());
                now = until;
            }
            end => {
                assert_eq!(end, RetryDecision::Failed);
                break;
            }
        }
    }
    assert_eq!(attempts.len(), 4, "one more than may fail");
    names.dedup();
    assert_eq!(names.len(), 4);
    assert!(delays.windows(2).all(|it| it[1] >= 2 * it[0]), "{delays:?}");
    assert!((10..12).contains(&delays[0]), "{delays:?}");
    // Deleted attempts count.
    assert_eq!(decided(&spec, 4, &[], now), RetryDecision::Failed);
    let succeeded = [Attempt { state: ActionState::Succeeded, ended: Some(now) }];
    assert_eq!(decided(&spec, 3, &succeeded, now), RetryDecision::Succeeded);
    // Without retries there is one attempt.
    let once = RetryActionSpec { backoff_limit: Some(0), ..RetryActionSpec::default() };
    assert!(matches!(decided(&once, 0, &[], now), RetryDecision::Attempt(_)));
    let failed = [Attempt { state: ActionState::Failed, ended: Some(now) }];
    assert_eq!(decided(&once, 0, &failed, now), RetryDecision::Failed);
}

fn made(name: &str, state: ActionState, minute: u32) -> MadeAction {
    let time = at(&format!("2026-01-01T00:{minute:02}:00Z"));
    let ended = Some(time).filter(|_| state.is_final());
    MadeAction { name: name.into(), state, created: time, ended }
}

#[test]
fn a_schedule_makes_each_action_once() {
    let created = at("2026-01-01T00:00:00Z");
    let hourly = CronActionSpec { schedule: "0 * * * *".into(), ..CronActionSpec::default() };
    let decide = |spec: &CronActionSpec, status: &_, made: &[MadeAction], now: &str| {
        cron("nightly", created, spec, status, made, at(now))
    };
    let early = decide(&hourly, &Default::default(), &[], "2026-01-01T00:30:00Z");
    assert_eq!((early.make, early.wake_at), (None, Some(at("2026-01-01T01:00:00Z"))));
    // Three times passed without a controller: the latest one counts.
    let due = decide(&hourly, &Default::default(), &[], "2026-01-01T03:10:00Z");
    let name = due.make.clone().unwrap();
    assert_eq!(name, format!("nightly-{}", at("2026-01-01T03:00:00Z").as_second() / 60));
    assert_eq!(due.status.last_schedule_time, Some(at("2026-01-01T03:00:00Z")));
    // The decision is the same until it is recorded, and empty afterwards.
    let again = decide(&hourly, &Default::default(), &[], "2026-01-01T03:11:00Z");
    assert_eq!(again.make, Some(name));
    assert_eq!(decide(&hourly, &due.status, &[], "2026-01-01T03:12:00Z").make, None);
    let suspended = CronActionSpec { suspend: true, ..hourly.clone() };
    let nothing = decide(&suspended, &Default::default(), &[], "2026-01-01T03:10:00Z");
    assert_eq!((nothing.make, nothing.wake_at), (None, None));
    let strict = CronActionSpec { starting_deadline_seconds: Some(60), ..hourly.clone() };
    let late = decide(&strict, &Default::default(), &[], "2026-01-01T03:10:00Z");
    assert_eq!((late.make, late.status.last_schedule_time), (None, due.status.last_schedule_time));
    let running = [made("a", ActionState::Running, 1)];
    let forbids =
        CronActionSpec { concurrency_policy: ConcurrencyPolicy::Forbid, ..hourly.clone() };
    assert_eq!(decide(&forbids, &Default::default(), &running, "2026-01-01T03:10:00Z").make, None);
    let replaces =
        CronActionSpec { concurrency_policy: ConcurrencyPolicy::Replace, ..hourly.clone() };
    let replaced = decide(&replaces, &Default::default(), &running, "2026-01-01T03:10:00Z");
    assert!(replaced.make.is_some());
    assert_eq!(replaced.cancel, ["a"]);
    let broken = CronActionSpec { schedule: "never".into(), ..hourly };
    let told = decide(&broken, &Default::default(), &[], "2026-01-01T03:10:00Z").status.message;
    assert!(told.contains("is no schedule"), "{told}");
}

#[test]
fn histories_are_limited_oldest_first() {
    let spec = CronActionSpec {
        schedule: "0 0 1 1 *".into(),
        successful_actions_history_limit: Some(1),
        ..CronActionSpec::default()
    };
    let history = [
        made("new", ActionState::Succeeded, 5),
        made("old", ActionState::Succeeded, 1),
        made("mid", ActionState::Succeeded, 3),
        made("failed", ActionState::Failed, 4),
        made("cancelled", ActionState::Cancelled, 2),
        made("running", ActionState::Running, 0),
    ];
    let created = at("2026-01-01T00:00:00Z");
    let decision = cron("c", created, &spec, &Default::default(), &history, created);
    assert_eq!(decision.delete, ["old", "cancelled", "mid"]);
}

#[test]
fn a_change_makes_one_action_however_often_it_is_shown() {
    let spec = EventActionSpec::default();
    let content = |digest: &str| BTreeMap::from([("community".to_owned(), digest.to_owned())]);
    let now = at("2026-01-01T00:00:00Z");
    let decide = |status: &EventActionStatus, digest: &str| {
        event("refresh", "9e5b", &spec, status, Ok(&content(digest)), &[], now)
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
    assert_eq!(decide(&made.status, "sha256:b").status, made.status);
    let back = decide(&made.status, "sha256:a").status;
    let forth = decide(&decide(&back, "sha256:a").status, "sha256:b").status;
    assert!(!back.pending.is_empty());
    assert_ne!(forth.pending, back.pending);
    assert_ne!(forth.pending, pending, "the same content, but another change");
    let other = EventActionSpec { suspend: true, ..spec.clone() };
    let suspended = event("refresh", "9e5b", &other, &first.status, Ok(&content("c")), &[], now);
    assert_eq!(suspended.status.pending, "");
    assert_eq!(suspended.status.observed[0].content, "c");
    let mut others = spec;
    others.on.names = vec!["community".to_owned()];
    let anew = event("refresh", "9e5b", &others, &first.status, Ok(&content("d")), &[], now);
    assert_eq!(anew.status.pending, "", "what else is looked at is no change");
}

#[test]
fn objects_that_cannot_be_looked_at_are_as_they_were() {
    let now = at("2026-01-01T00:00:00Z");
    let decide = |spec: &EventActionSpec,
                  status: &EventActionStatus,
                  content: Result<_, String>| {
        event("refresh", "9e5b", spec, status, content.as_ref().map_err(String::clone), &[], now)
    };
    let many = |count| -> Result<BTreeMap<String, String>, String> {
        Ok((0..count).map(|it| (format!("object-{it}"), "1".to_owned())).collect())
    };
    let spec = EventActionSpec::default();
    let first = decide(&spec, &EventActionStatus::default(), many(500));
    assert_eq!((first.status.observed.len(), first.status.message.as_str()), (500, ""));
    let forbidden = decide(&spec, &first.status, Err("not yours".to_owned()));
    let said = (forbidden.status.pending.as_str(), forbidden.status.message.as_str());
    assert_eq!(said, ("", "not yours"));
    assert_eq!(forbidden.status.observed, first.status.observed);
    assert_eq!(decide(&spec, &forbidden.status, many(500)).status, first.status);
    let crowded = decide(&spec, &first.status, many(501));
    let message = "501 objects are selected, of at most 500: select fewer of them";
    assert_eq!((crowded.make, crowded.status.message.as_str()), (None, message));
    let mut named = spec.clone();
    named.on.names = vec!["object-500".to_owned()];
    let chosen = decide(&named, &EventActionStatus::default(), many(501));
    assert_eq!(chosen.status.message, "");
}

fn class(name: &str) -> NamedClass {
    NamedClass::find(&built_in_classes(), name).unwrap().clone()
}

#[test]
fn attributes_are_those_of_the_class() {
    let check = |class_name: &str, spec: Value, expected: Result<&str, &str>| {
        let spec: ActionSpec = serde_json::from_value(spec).unwrap();
        match (effective(&spec, &class(class_name), None), expected) {
            (Ok(action), Ok(expected)) => {
                let listed = action.listed();
                let texts =
                    listed.iter().map(|it| format!("{}={} ({})", it.name, it.value, it.set_by));
                assert_eq!(texts.collect::<Vec<_>>().join(", "), expected);
            }
            (Err(failure), Err(expected)) => {
                assert_eq!(failure.reason, Reason::InvalidAction);
                assert!(failure.message.contains(expected), "{}", failure.message);
            }
            (found, _) => panic!("{found:?}"),
        }
    };
    check(
        "operator-installation",
        json!({"package": "foo", "installDependencies": true}),
        Ok("ensureConstraintSatisfiability=true (class operator-install), \
            installDependencies=true (request), package=foo (request)"),
    );
    check("operator-install", json!({}), Err("class operator-install needs spec.package"));
    check("autoremove", json!({"package": "foo"}), Err("has no attribute package: it has dryRun"));
    check(
        "operator-delete",
        json!({"package": "foo", "parameters": {"cascade": "yes"}}),
        Err("spec.parameters.cascade"),
    );
    check(
        "operator-delete",
        json!({"package": "foo", "parameters": {"force": true}}),
        Err("spec.parameters.force: the class has no such one"),
    );
    check("autoremove", json!({"parameters": {"x": 1}}), Err("has no parameters, but x is given"));
}

/// Judges an Action by `alice` of group `dev` in namespace `tea` by the policies in a text.
fn judged(
    policies: &str,
    action: Value,
    plan: Option<&ActionPlan>,
    may_directly: bool,
) -> PolicyVerdict {
    let file = LoadoutFile { path: "policies.yaml".into(), text: policies.into() };
    let files = ActionFiles::read(&[file]).unwrap();
    let spec: ActionSpec = serde_json::from_value(action).unwrap();
    let class = class(&spec.action_class);
    let requester = ActionRequester { username: "alice".into(), groups: vec!["dev".into()] };
    let request = PolicyRequest {
        namespace: "tea",
        requester: &requester,
        spec: &spec,
        class: &class,
        active: 2,
        may_directly: Some(may_directly),
        plan,
        now: at("2026-01-01T00:00:00Z"),
    };
    judge(&request, &files.policies)
}

/// Returns the status of an Action by `alice` of group `dev` after its plan was decided on.
fn decided(
    policies: &str,
    action: Value,
    plan: Result<ActionPlan, ActionFailure>,
    may_directly: bool,
) -> ActionStatus {
    let file = LoadoutFile { path: "policies.yaml".into(), text: policies.into() };
    let policies = ActionFiles::read(&[file]).unwrap().policies;
    let mut spec: ActionSpec = serde_json::from_value(action).unwrap();
    spec.requester = Some(ActionRequester { username: "alice".into(), groups: vec!["dev".into()] });
    let class = class(&spec.action_class);
    let action = ActionObject { namespace: "tea".into(), spec, ..ActionObject::default() };
    let [create, patch, list] = [may_directly; 3];
    let by_hand = DirectPermissions { create, patch, list, ..DirectPermissions::default() };
    let now = at("2026-01-01T00:00:00Z");
    let decision = ActionDecision {
        action: &action,
        class: &class,
        policies: &policies,
        active: 0,
        by_hand,
        now,
    };
    let attributes = decision.admit().unwrap();
    match decision.decide(&attributes, plan, |_| None) {
        PlanDecision::Report(report) => action.reported(*report, now),
        again @ PlanDecision::PlanAgain(_) => panic!("{again:?}"),
    }
}

const POLICIES: &str = r"
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: dev}
spec:
  subjects: [{kind: Group, name: dev}]
  classes: [operator-install, operator-delete]
  enforce:
    attributes:
    - {name: installDependencies, values: ['false'], default: false}
    - {name: ensureConstraintSatisfiability, values: ['true'], default: true}
    - {name: version, range: <2}
    packages: [foo, bar-*]
    preconditions: {noWorkloadRemoval: true}
    maxActive: 3
  warn:
    attributes: [{name: version, required: true}]
---
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: others}
spec:
  subjects: [{kind: ServiceAccount, name: ci, namespace: tea}, {kind: User, name: bob}]
  classes: [autoremove]
  enforce: {}
";

#[test]
fn one_policy_whose_rules_all_hold_is_enough() {
    let check = |action: Value, expected: Result<(), &str>| {
        let verdict = judged(POLICIES, action, None, false);
        match (verdict.granted, expected) {
            (Ok(_), Ok(())) => {}
            (Err(failure), Err(expected)) => {
                assert_eq!(failure.reason, Reason::PolicyDenied);
                assert_eq!(failure.message, expected);
            }
            (found, _) => panic!("{found:?}"),
        }
    };
    let install = |mut more: Value| {
        more["actionClass"] = "operator-install".into();
        more
    };
    check(install(json!({"package": "foo"})), Ok(()));
    check(install(json!({"package": "bar-tender", "version": "1.2.3"})), Ok(()));
    check(
        install(json!({"package": "foo", "installDependencies": true})),
        Err("ActionPolicy dev: attribute installDependencies is true, allowed: false"),
    );
    check(
        install(json!({"package": "baz"})),
        Err("ActionPolicy dev: package baz is not among foo and bar-*"),
    );
    check(
        install(json!({"package": "foo", "version": "2.0.0"})),
        Err("ActionPolicy dev: attribute version is 2.0.0, which is not in range <2"),
    );
    check(
        json!({"actionClass": "autoremove"}),
        Err(
            "no ActionPolicy allows alice an Action of class autoremove in namespace tea, and alice \
             may not do the same by hand",
        ),
    );
}

#[test]
fn policies_look_at_the_whole_plan() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let change = |operator: &str, version: &str| PlannedChange {
        operator: operator.into(),
        operation: ChangeOperation::Create,
        version: version.into(),
        ..PlannedChange::default()
    };
    let plan = |changes| ActionPlan { changes, ..ActionPlan::default() };
    let check = |plan: &ActionPlan, expected: &str| {
        let failure = judged(POLICIES, install.clone(), Some(plan), false).granted.unwrap_err();
        assert_eq!(failure.message, expected);
    };
    let sound = plan(vec![change("bar-tender", "1.0.0"), change("foo", "1.9.0")]);
    assert!(judged(POLICIES, install.clone(), Some(&sound), false).granted.is_ok());
    check(
        &plan(vec![change("secret", "1.0.0"), change("foo", "1.0.0")]),
        "ActionPolicy dev: package secret is not among foo and bar-*",
    );
    check(&plan(vec![change("foo", "2.1.0")]), "ActionPolicy dev: foo v2.1.0 is not in range <2");
}

#[test]
fn a_range_of_a_policy_holds_after_the_action() {
    use ChangeOperation::{Await, Create, Update};
    let change = |operation, before: &str, requested: &str, version: &str| PlannedChange {
        operator: "foo".into(),
        operation,
        requested_before: before.into(),
        requested: requested.into(),
        version: version.into(),
        manifest: (operation == Create).then(|| json!({ "spec": { "version": requested } })),
        ..PlannedChange::default()
    };
    let check = |by_hand: bool, change: PlannedChange, expected: Result<&str, &str>| {
        let spec = json!({"actionClass": "operator-install", "package": "foo", "version": "^1"});
        let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
        let decided = decided(POLICIES, spec, Ok(plan), by_hand);
        let condition = &decided.conditions[0];
        match expected {
            Ok(requested) => {
                assert_eq!(decided.state, ActionState::Running, "{}", condition.message);
                let change = &decided.plan[0];
                assert_eq!(change.requested, requested);
                if let Some(manifest) = &change.manifest {
                    assert_eq!(manifest["spec"]["version"], requested);
                }
            }
            Err(message) => assert_eq!(condition.message, message),
        }
    };
    check(false, change(Create, "", "^1", "1.4.0"), Ok("1.4.0"));
    check(false, change(Create, "", "=1.4.0", "1.4.0"), Ok("=1.4.0"));
    check(false, change(Update, "1.2.0", "^1", "1.4.0"), Ok("1.4.0"));
    // These do not change what is requested.
    check(false, change(Update, "^1", "^1", "1.4.0"), Ok("^1"));
    check(false, change(Await, "^1", "^1", "1.4.0"), Ok("^1"));
    check(true, change(Create, "", "^1", "1.4.0"), Ok("^1"));
    let unknown = "ActionPolicy dev: which version of foo is installed is not known, allowed: <2";
    check(false, change(Create, "", "^1", ""), Err(unknown));
}

const CURATED: &str = r"
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: curated}
spec:
  subjects: [{kind: Group, name: dev}]
  classes: [operator-install]
  enforce: {catalogs: [curated, team-*]}
---
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: named}
spec:
  subjects: [{kind: User, name: alice}]
  classes: [operator-delete]
  enforce:
    attributes: [{name: package, values: [foo]}, {name: parameters.cascade, values: ['false']}]
";

#[test]
fn an_attribute_that_is_left_out_has_none_of_the_allowed_values() {
    let check = |parameters: Value, expected: Result<(), &str>| {
        let delete = json!({
            "actionClass": "operator-delete", "package": "foo", "parameters": parameters,
        });
        let granted = judged(CURATED, delete, None, false).granted;
        assert_eq!(granted.map(|_| ()).map_err(|it| it.message), expected.map_err(str::to_owned));
    };
    check(json!({"cascade": false}), Ok(()));
    let missing = "ActionPolicy named: attribute parameters.cascade is required, allowed: false";
    check(json!({}), Err(missing));
}

#[test]
fn catalogs_of_a_policy_are_those_of_the_whole_plan() {
    use ChangeOperation::{Await, Create, Update};
    let change = |operator: &str, operation, catalog: &str| PlannedChange {
        operator: operator.into(),
        operation,
        requested: "1.0.0".into(),
        version: "1.0.0".into(),
        catalog: catalog.into(),
        manifest: (operation == Create).then(|| json!({ "spec": {} })),
        ..PlannedChange::default()
    };
    let check = |changes: Vec<PlannedChange>, expected: Result<&[&str], &str>| {
        let spec = json!({"actionClass": "operator-install", "package": "foo"});
        let plan = ActionPlan { changes, ..ActionPlan::default() };
        let decided = decided(CURATED, spec, Ok(plan), false);
        match expected {
            Ok(repositories) => {
                let named = decided.plan.iter().map(|it| match &it.manifest {
                    Some(manifest) => manifest["spec"]["repository"].as_str().unwrap(),
                    None => it.repository.as_str(),
                });
                assert_eq!(named.collect::<Vec<_>>(), repositories);
            }
            Err(message) => assert_eq!(decided.conditions[0].message, message),
        }
    };
    let sound = vec![
        change("bar", Create, "team-a"),
        change("baz", Await, "curated"),
        change("foo", Update, "curated"),
    ];
    check(sound, Ok(&["team-a", "", "curated"]));
    let other = "ActionPolicy curated: bar is of catalog community, which is not among curated and \
                 team-*";
    let plan = vec![change("bar", Create, "community"), change("foo", Create, "curated")];
    check(plan, Err(other));
    let unknown = "ActionPolicy curated: which catalog has foo is not known, allowed: curated and \
                   team-*";
    check(vec![change("foo", Create, "")], Err(unknown));
    let named = json!({
        "actionClass": "operator-install", "package": "foo", "repository": "community",
    });
    let denied = judged(CURATED, named, None, false).granted.unwrap_err();
    let message = "ActionPolicy curated: catalog community is not among curated and team-*";
    assert_eq!(denied.message, message);
}

#[test]
fn an_answer_is_in_the_result_and_says_if_it_is_cut_off() {
    let check = |plan: Result<ActionPlan, ActionFailure>, state: ActionState, text: &str| {
        let spec = json!({"actionClass": "resolution", "package": "foo"});
        let decided = decided("", spec, plan, true);
        assert_eq!((decided.state, &decided.result_digest), (state, &sha256([text.as_bytes()])));
        decided
    };
    let failure = ActionFailure::new(Reason::ConstraintsUnmet, "foo requires bar");
    let failed = check(Err(failure), ActionState::Failed, "foo requires bar");
    assert_eq!(failed.result, "foo requires bar");
    let long = "é".repeat(40_000);
    let plan = ActionPlan { result: long.clone(), ..ActionPlan::default() };
    let cut = check(Ok(plan), ActionState::Succeeded, &long);
    assert!(cut.result.len() <= 64 * 1024 && cut.result.len() > 64 * 1024 - 2);
    assert!(cut.result.ends_with("é\n(cut off: it has 80000 bytes)"));
    let failure = ActionFailure::new(Reason::ConstraintsUnmet, long.clone());
    let failed = check(Err(failure), ActionState::Failed, &long);
    assert!(failed.conditions[0].message.len() <= 32 * 1024);
    assert!(failed.conditions[0].message.ends_with("(cut off: it has 80000 bytes)"));
}

/// Returns a catalog with version 1.0.0 of packages, each with the package that it requires.
fn catalog(name: &str, weight: i64, packages: &[(&str, Option<&str>)]) -> CatalogPart {
    let package = |(name, required): &(&str, Option<&str>)| {
        let mut bundle = Bundle::new(format!("{name}.v1.0.0"), Version::new(1, 0, 0));
        let required =
            required.map(|it| Constraint::Package { name: it.into(), range: ">=1.0.0".into() });
        bundle.requires = required.into_iter().map(Requirement::from).collect();
        let entry = ChannelEntry { name: bundle.name.clone(), ..ChannelEntry::default() };
        let channel = Channel { name: "stable".into(), entries: vec![entry], ..Channel::default() };
        Package {
            name: (*name).into(),
            default_channel: Some("stable".into()),
            channels: vec![channel],
            bundles: vec![bundle],
            ..Package::default()
        }
    };
    let name = CatalogName { namespace: String::new(), name: name.into() };
    CatalogPart { name, weight, packages: packages.iter().map(package).collect() }
}

#[test]
fn a_dependency_is_taken_from_the_catalog_that_it_was_planned_from() {
    let catalogs = [
        catalog("community", 0, &[("bar", None)]),
        catalog("curated", 1, &[("bar", None), ("foo", Some("bar"))]),
    ];
    let spec = ActionSpec {
        package: "foo".into(),
        install_dependencies: Some(true),
        ..ActionSpec::default()
    };
    let action = effective(&spec, &class("operator-install"), None).unwrap();
    let inventory = OperatorInventory::default();
    let plan =
        planning::plan(&action, &inventory, None, &BTreeMap::new(), &catalogs, &Cel).unwrap();
    let planned = plan.changes.iter().map(|it| {
        let repository = it.manifest.as_ref().and_then(|it| it["spec"]["repository"].as_str());
        (it.operator.as_str(), it.bundle.as_str(), it.catalog.as_str(), repository)
    });
    let expected =
        [("bar", "bar.v1.0.0", "curated", Some("curated")), ("foo", "foo.v1.0.0", "curated", None)];
    assert_eq!(planned.collect::<Vec<_>>(), expected);
}

#[test]
fn nothing_is_deleted_that_has_workloads() {
    let delete = json!({"actionClass": "operator-delete", "package": "foo"});
    let workload =
        RemainingObjects { kind: "Foo.example.com".into(), namespace: "t1".into(), count: 2 };
    let change = PlannedChange {
        operator: "foo".into(),
        operation: ChangeOperation::Delete,
        workloads: vec![workload],
        ..PlannedChange::default()
    };
    let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
    let failure = judged(POLICIES, delete.clone(), Some(&plan), false).granted.unwrap_err();
    assert_eq!(failure.reason, Reason::WorkloadsRunning);
    assert!(failure.message.contains("2 Foo.example.com in t1 of foo"), "{}", failure.message);
    // A user who may delete it directly is not blocked.
    assert!(judged(POLICIES, delete, Some(&plan), true).granted.is_ok());
}

#[test]
fn a_warning_holds_nothing_up() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let verdict = judged(POLICIES, install, None, false);
    assert!(verdict.granted.is_ok());
    let warnings: Vec<String> = verdict.warnings().collect();
    assert_eq!(warnings, ["ActionPolicy dev: attribute version is required"]);
}

#[test]
fn preconditions_name_what_is_in_the_way() {
    let plan = ActionPlan {
        changes: vec![PlannedChange { operator: "foo".into(), ..PlannedChange::default() }],
        unsatisfied: vec!["bar requires foo <2, but foo v2.0.0 is installed".into()],
        orphans: vec!["baz".into()],
        ..ActionPlan::default()
    };
    let preconditions = ActionPreconditions {
        consistent: true,
        no_orphans: true,
        no_workload_removal: true,
        within_maintenance_window: Some(MaintenanceWindow {
            schedule: "0 22 * * *".into(),
            duration: "1h".into(),
            ..MaintenanceWindow::default()
        }),
        expressions: vec![
            PlanExpression {
                expression: "plan.changes.size() == 1".into(),
                message: String::new(),
            },
            PlanExpression {
                expression: "plan.changes.all(c, c.operator != 'foo')".into(),
                message: "foo stays".into(),
            },
            PlanExpression { expression: "plan.nothing == 1".into(), message: String::new() },
            PlanExpression { expression: "1 +".into(), message: String::new() },
        ],
    };
    let found = violations(&plan, &preconditions, at("2026-01-01T00:00:00Z"));
    let texts: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
    let expected = [
        "consistent: bar requires foo <2",
        "noOrphans: nothing would depend on baz",
        "withinMaintenanceWindow: it is not open, it opens 2026-01-01T22:00:00Z",
        "foo stays",
        "`plan.nothing == 1`: ",
        "`1 +`: ",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (text, expected) in texts.iter().zip(expected) {
        assert!(text.starts_with(expected), "{text}");
    }
}

fn operator(installed: &str, conditions: &[(&str, &str, &str)]) -> ObservedOperator {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(type_, status, reason)| {
            json!({ "type": type_, "status": status, "reason": reason, "message": "told",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        })
        .collect();
    let bundle = (!installed.is_empty()).then(|| json!({ "name": "b", "version": installed }));
    ObservedOperator::read(&json!({
        "metadata": { "uid": "u1", "generation": 1 },
        "spec": { "version": "1.0.0" },
        "status": { "observedGeneration": 1, "bundle": bundle, "conditions": conditions },
    }))
}

#[test]
fn a_plan_is_followed_by_what_operators_report() {
    let change = |operation, state| PlannedChange {
        operator: "foo".into(),
        operation,
        uid: "u1".into(),
        version: "1.0.0".into(),
        state,
        ..PlannedChange::default()
    };
    let check = |operation, there: Option<ObservedOperator>, expected: (ChangeState, Reason)| {
        let mut plan = vec![change(operation, ChangeState::Written)];
        let operators = there.map(|it| ("foo".to_owned(), it)).into_iter().collect();
        observe(&mut plan, &operators, None);
        assert_eq!((plan[0].state, plan[0].reason.as_str()), (expected.0, expected.1.as_str()));
    };
    use ChangeOperation::{Delete, Update};
    let idle = [("Installed", "True", "AsExpected"), ("Progressing", "False", "AsExpected")];
    let done = (ChangeState::Completed, Reason::InstallationSucceeded);
    check(Update, Some(operator("1.0.0", &idle)), done);
    let other = (ChangeState::Written, Reason::AsExpected);
    check(Update, Some(operator("0.9.0", &idle)), other);
    let broken = [("Installed", "False", "UnpackFailed"), ("Progressing", "True", "RollingOut")];
    let failed = (ChangeState::Failed, Reason::UnpackFailed);
    check(Update, Some(operator("", &broken)), failed);
    check(Update, None, (ChangeState::Failed, Reason::Deleting));
    check(Delete, None, (ChangeState::Completed, Reason::OperatorDeleted));
    // A watch shows the deletion later than the response to the request.
    let unseen = (ChangeState::Written, Reason::Deleting);
    check(Delete, Some(operator("1.0.0", &idle)), unseen);
    let recreated = ObservedOperator { uid: "u2".into(), ..operator("1.0.0", &idle) };
    check(Delete, Some(recreated), (ChangeState::Completed, Reason::OperatorDeleted));
}

/// Returns a ClusterVersion at release 1.0.0 with two updates, one capability enabled and one known.
fn cluster_version(changed: &[(&str, Value)]) -> ObservedRelease {
    let mut object = json!({
        "metadata": { "uid": "u1", "generation": 2 },
        "spec": { "clusterID": "c" },
        "status": {
            "observedGeneration": 2,
            "desired": { "version": "1.0.0", "image": "a" },
            "versionHash": "",
            "history": [{
                "state": "Completed", "version": "1.0.0", "image": "a", "verified": false,
                "startedTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z",
            }],
            "availableUpdates": [
                { "version": "1.9.0", "image": "b" }, { "version": "1.10.0", "image": "c" },
            ],
            "conditionalUpdates": [{
                "release": { "version": "1.11.0", "image": "d" }, "risks": [],
                "conditions": [{
                    "type": "Recommended", "status": "False", "reason": "Slow", "message": "it is slow",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            }],
            "capabilities": {
                "enabledCapabilities": ["Build"], "knownCapabilities": ["Build", "Console"],
            },
            "conditions": [],
        },
    });
    for (pointer, value) in changed {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    ObservedRelease::read(&object)
}

fn history(state: &str, version: &str) -> Value {
    json!([{
        "state": state, "version": version, "image": "b", "verified": false,
        "startedTime": "2026-01-02T00:00:00Z", "completionTime": null,
    }])
}

#[test]
fn the_release_is_planned_by_what_its_cluster_version_reports() {
    let check = |spec: Value, changed: &[(&str, Value)], expected: &str| {
        let spec: ActionSpec = serde_json::from_value(spec).unwrap();
        let classes = built_in_classes();
        let class = NamedClass::find(&classes, &spec.action_class).unwrap();
        let action = effective(&spec, class, None).unwrap();
        let there = cluster_version(changed);
        let release = Some(&there).filter(|_| spec.deadline.is_empty());
        let planned = match spec.action_class.as_str() {
            "release-update" => release::update(&action, release),
            _ => release::enable(&action, release),
        };
        let text = match planned {
            Ok(plan) => {
                let changes = plan.changes.iter().map(|it| {
                    let PlannedChange { operation, requested_before, requested, .. } = it;
                    format!("{operation:?} {} {requested_before}>{requested}", it.subject())
                });
                changes.chain(plan.explanation.clone()).collect::<Vec<_>>().join("; ")
            }
            Err(failure) => format!("{}: {}", failure.reason, failure.message),
        };
        assert_eq!(text, expected);
    };
    let update = |version: &str| json!({ "actionClass": "release-update", "version": version });
    // The newest recommended one, by semantic versions.
    let newest = "UpdateRelease release >1.10.0; the release is updated from 1.0.0 to 1.10.0";
    check(json!({ "actionClass": "release-update" }), &[], newest);
    let older = "UpdateRelease release 1.0.0>1.9.0; the release is updated from 1.0.0 to 1.9.0";
    let requested = ("/spec/desiredUpdate", json!({ "version": "1.0.0" }));
    check(update("1.9.0"), &[requested], older);
    check(update("1.0.0"), &[], "the cluster is at release 1.0.0");
    let none = ("/status/availableUpdates", Value::Null);
    let nothing = "no update of release 1.0.0 is recommended";
    check(json!({ "actionClass": "release-update" }), std::slice::from_ref(&none), nothing);
    let risky = "VersionNotFound: release 1.11.0 is not recommended for this cluster: it is slow";
    check(update("1.11.0"), &[], risky);
    let unknown = "VersionNotFound: release 2.0.0 is not among the available updates; these are: \
                   1.9.0 and 1.10.0";
    check(update("2.0.0"), &[], unknown);
    let unknown = "VersionNotFound: release 2.0.0 is not among the available updates; none is";
    check(update("2.0.0"), &[none], unknown);
    let busy = ("/status/history", history("Partial", "1.9.0"));
    let other = "UpdateInProgress: the cluster is being updated to 1.9.0: wait until it is";
    check(update("1.10.0"), std::slice::from_ref(&busy), other);
    let same = "Await release >1.9.0; the update to 1.9.0 is in progress";
    check(update("1.9.0"), &[busy], same);
    let absent =
        "InvalidAction: class release-update is about the ClusterVersion, and there is none";
    check(json!({ "actionClass": "release-update", "deadline": "1h" }), &[], absent);

    let enable = |names: &[&str]| json!({ "actionClass": "capability-enable", "parameters": { "capabilities": names } });
    let one = "EnableCapability Console >; capability Build is enabled";
    check(enable(&["Build", "Console"]), &[], one);
    let requested = json!({ "additionalEnabledCapabilities": ["Console"] });
    check(enable(&["Console"]), &[("/spec/capabilities", requested)], "Await Console >");
    let unknown = "InvalidAction: this release has no capability Storage; it has Build and Console";
    check(enable(&["Console", "Storage"]), &[], unknown);
}

#[test]
fn a_plan_of_the_release_is_followed_by_what_its_cluster_version_reports() {
    use ChangeState::{Completed, Failed, Written};
    let check = |capability: &str, changed: &[(&str, Value)], expected: (ChangeState, &str)| {
        let mut plan = vec![PlannedChange {
            operation: ChangeOperation::UpdateRelease,
            uid: "u1".into(),
            requested: "1.9.0".into(),
            version: "1.9.0".into(),
            capability: capability.into(),
            state: Written,
            ..PlannedChange::default()
        }];
        observe(&mut plan, &BTreeMap::new(), Some(&cluster_version(changed)));
        assert_eq!((plan[0].state, plan[0].reason.as_str()), expected, "{}", plan[0].message);
    };
    let condition = |type_: &str, status: &str, reason: &str| {
        let conditions = json!([{
            "type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        ("/status/conditions", conditions)
    };
    let requested = || ("/spec/desiredUpdate", json!({ "version": "1.9.0" }));
    // A watch shows the request later than the response to it.
    check("", &[], (Written, ""));
    let progressing = condition("Progressing", "True", "ClusterOperatorUpdating");
    let busy = ("/status/history", history("Partial", "1.9.0"));
    check("", &[requested(), busy, progressing], (Written, "ClusterOperatorUpdating"));
    let done = ("/status/history", history("Completed", "1.9.0"));
    check("", &[requested(), done], (Completed, "UpdateCompleted"));
    let refused = || condition("ReleaseAccepted", "False", "RetrievePayload");
    check("", &[requested(), refused()], (Failed, "RetrievePayload"));
    // The condition is about an earlier request.
    let earlier = ("/status/observedGeneration", json!(1));
    check("", &[requested(), refused(), earlier], (Written, ""));
    let other = ("/spec/desiredUpdate", json!({ "version": "1.10.0" }));
    check("", &[other], (Failed, "PlanChanged"));
    check("", &[("/metadata/uid", json!("u2"))], (Failed, "Deleting"));

    check("Console", &[], (Written, ""));
    let enabled = || ("/status/capabilities/enabledCapabilities", json!(["Build", "Console"]));
    check("Console", &[enabled()], (Completed, "CapabilityEnabled"));
    let progressing = condition("Progressing", "True", "WorkloadProgressing");
    check("Console", &[enabled(), progressing], (Written, "WorkloadProgressing"));
}

#[test]
fn an_action_ends_when_all_of_its_plan_has() {
    let change = |operation, state| PlannedChange { operation, state, ..PlannedChange::default() };
    let start = at("2026-01-01T00:00:00Z");
    let spec = ActionSpec { deadline: "10m".into(), ..ActionSpec::default() };
    let status = |states: &[ChangeState]| ActionStatus {
        plan: states.iter().map(|it| change(ChangeOperation::Create, *it)).collect(),
        start_time: Some(start),
        ..ActionStatus::default()
    };
    use ChangeState::{Completed, Failed, Planned, Written};
    let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let open = status(&[Completed, Written, Planned]);
    assert_eq!(next_write(&open), Some(2));
    assert_eq!(outcome(&spec, &open, after(1)), None);
    let late = outcome(&spec, &open, after(10)).unwrap().unwrap_err();
    assert_eq!(late.reason, Reason::DeadlineExceeded);
    assert_eq!(outcome(&spec, &status(&[Completed, Completed]), after(1)), Some(Ok(())));
    // Written changes end first, and no other change starts.
    let failing = status(&[Failed, Written, Planned]);
    assert_eq!((next_write(&failing), outcome(&spec, &failing, after(1))), (None, None));
    assert!(outcome(&spec, &status(&[Failed, Completed, Planned]), after(1)).unwrap().is_err());
    assert!(is_untouched(&status(&[Planned, Planned])));
    assert!(!is_untouched(&open));
}

#[test]
fn the_digest_of_a_plan_tells_plans_apart_and_not_their_progress() {
    let change = PlannedChange { operator: "foo".into(), ..PlannedChange::default() };
    let written =
        PlannedChange { state: ChangeState::Written, message: "m".into(), ..change.clone() };
    let other = PlannedChange { requested: "2.0.0".into(), ..change.clone() };
    let digest = |change: &PlannedChange| digest(std::slice::from_ref(change));
    assert_eq!(digest(&change), digest(&written));
    assert_ne!(digest(&change), digest(&other));
    let swapped = PlannedChange { image: "foo@sha256:b".into(), ..change.clone() };
    assert_ne!(digest(&change), digest(&swapped));
}

#[test]
fn files_are_read_with_all_that_is_wrong() {
    let file = |text: &str| LoadoutFile { path: "a.yaml".into(), text: text.into() };
    let good = file(
        "apiVersion: olm.io/v1\nkind: RetryAction\nmetadata: {name: r}\n\
                     spec: {template: {actionClass: autoremove}}\n",
    );
    let read = ActionFiles::read(&[good]).unwrap();
    assert_eq!(
        (read.actions[0].kind.as_str(), read.actions[0].name.as_str()),
        ("RetryAction", "r")
    );
    let bad = file(
        "apiVersion: olm.io/v1\nkind: Action\nmetadata: {name: r}\n\
                    spec: {actionClass: autoremove, packages: foo, dryRun: maybe}\n---\na: [\n",
    );
    let errors = ActionFiles::read(&[bad]).unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("a.yaml:1: spec.dryRun"), "{errors:?}");
    assert!(errors[1].contains("spec.packages: unknown field"), "{errors:?}");
}
