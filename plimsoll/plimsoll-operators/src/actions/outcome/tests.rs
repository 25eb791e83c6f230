//! What statuses say of plans.

use plimsoll_api::olm::action::{
    ActionSpec, ChangeOperation, ChangeState, FailureDetails, PlannedChange,
};

use serde_json::{Value, json};

use super::{complete, dependencies, of_packages, satisfied, summary};
use crate::actions::tests::at;
use ChangeOperation::{Await, Create, Delete, EnableCapability, Update, UpdateRelease};
use ChangeState::{Completed, Failed, Planned, Writing, Written};

fn change(operator: &str, operation: ChangeOperation, state: ChangeState) -> PlannedChange {
    PlannedChange {
        operator: operator.into(),
        operation,
        state,
        version: "1.2.5".into(),
        ..PlannedChange::default()
    }
}

fn of_capability(operation: ChangeOperation, state: ChangeState) -> PlannedChange {
    PlannedChange { capability: "Build".into(), ..change("", operation, state) }
}

#[test]
fn a_summary_counts_changes_and_names_those_of_the_release() {
    let check = |plan: &[PlannedChange], expected: &str| assert_eq!(summary(plan), expected);
    check(&[], "");
    let all = [
        change("d", Await, Planned),
        change("c", Delete, Planned),
        change("b", Update, Completed),
        change("a", Create, Planned),
        change("foo", Create, Failed),
    ];
    check(&all, "2 to create, 1 to update, 1 to delete, 1 to await");
    check(&[change("", UpdateRelease, Planned)], "update to 1.2.5");
    let capabilities = [of_capability(EnableCapability, Planned), of_capability(Await, Planned)];
    check(&capabilities, "enable Build, 1 to await");
}

#[test]
fn dependencies_are_those_that_the_plan_creates() {
    let change = |operator: &str, operation, state, dependency, message: &str| PlannedChange {
        dependency,
        reason: "RollingOut".into(),
        message: message.into(),
        ..change(operator, operation, state)
    };
    let installed = "bar@1.2.5 was successfully installed";
    let plan = [
        change("bar", Create, Completed, true, installed),
        change("baz", Create, Written, true, "Preparing v1.2.5"),
        change("qux", Await, Completed, true, "qux@1.2.5 was successfully installed"),
        change("foo", Create, Completed, false, "foo@1.2.5 was successfully installed"),
    ];
    let listed = dependencies(&plan);
    let texts: Vec<[&str; 4]> =
        listed.iter().map(|it| [&*it.package, &*it.version, &*it.reason, &*it.message]).collect();
    let expected = [
        ["bar", "1.2.5", "DependencyCreated", installed],
        ["baz", "1.2.5", "RollingOut", "Preparing v1.2.5"],
    ];
    assert_eq!(texts, expected);
    let created = satisfied(&plan, &[], 1, at("2026-01-01T00:00:00Z"));
    let messages: Vec<&str> = created.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, [installed]);
}

#[test]
fn conditions_of_dependencies_keep_their_times() {
    let plan = |names: &[&str]| -> Vec<PlannedChange> {
        let created =
            |it: &&str| PlannedChange { dependency: true, ..change(it, Create, Completed) };
        names.iter().map(created).collect()
    };
    let (first, second) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:01:00Z"));
    let before = satisfied(&plan(&["bar"]), &[], 1, first);
    let after = satisfied(&plan(&["baz", "bar"]), &before, 1, second);
    let times = after.iter().map(|it| (it.message.as_str(), it.last_transition_time));
    let expected = [
        ("baz@1.2.5 was successfully installed", second),
        ("bar@1.2.5 was successfully installed", first),
    ];
    assert_eq!(times.collect::<Vec<_>>(), expected);
}

#[test]
fn an_action_ends_with_what_became_of_its_package() {
    let plan = [
        PlannedChange { message: "bar is there".into(), ..change("bar", Create, Completed) },
        PlannedChange { message: "foo is there".into(), ..change("foo", Create, Completed) },
        PlannedChange { message: "rolling out".into(), ..change("baz", Create, Written) },
        PlannedChange { message: "released".into(), ..change("", UpdateRelease, Completed) },
    ];
    let check = |package: &str, expected: Option<&str>| {
        let spec = ActionSpec { package: package.into(), ..ActionSpec::default() };
        assert_eq!(of_packages(&spec, &plan).as_deref(), expected, "{package}");
    };
    check("foo", Some("foo is there"));
    check("baz", None);
    check("qux", None);
    check("", None);
}

#[test]
fn an_action_about_several_packages_ends_with_all_of_them() {
    let done = |operator: &str, operation: ChangeOperation| PlannedChange {
        message: format!("{operator} is done"),
        ..change(operator, operation, Completed)
    };
    let check = |plan: &[PlannedChange], parameters: Value, expected: &str| {
        let parameters = Some(parameters);
        let spec = ActionSpec { package: "foo".into(), parameters, ..ActionSpec::default() };
        assert_eq!(of_packages(&spec, plan).as_deref(), Some(expected));
    };
    let installed = [done("bar", Create), done("foo", Create), done("baz", Update)];
    check(&installed, json!({}), "foo is done");
    let both = "foo@1.2.5 and baz@1.2.5 were successfully installed";
    check(&installed, json!({ "packages": ["baz@^1", "qux"] }), both);
    check(&installed, json!({ "ranges": ["baz@^1"] }), both);
    let all = "bar@1.2.5, foo@1.2.5 and baz@1.2.5 were successfully installed";
    check(&installed, json!({ "packages": ["bar", "baz"] }), all);
    // Those that go with it are not named in the request.
    let deleted = [done("foo", Delete), done("bar", Delete), done("baz", Delete)];
    check(&deleted, json!({ "cascade": true }), "foo, bar and baz were deleted");
    check(&deleted[..1], json!({ "cascade": true }), "foo is done");
}

#[test]
fn each_change_is_done_left_or_unknown() {
    let check = |change: PlannedChange, done: &str, left: &str, unknown: &str| {
        let mut failure = FailureDetails { done: vec!["before".into()], ..Default::default() };
        complete(&mut failure, &[change]);
        let found = [failure.done, failure.left, failure.unknown].map(|it| it.join("\n"));
        assert_eq!(found, [done, left, unknown]);
    };
    check(change("foo", Create, Completed), "create foo v1.2.5", "", "");
    check(
        change("foo", Create, Written),
        "create foo v1.2.5 (requested, not installed yet)",
        "",
        "",
    );
    check(
        change("foo", Update, Written),
        "update foo to v1.2.5 (requested, not installed yet)",
        "",
        "",
    );
    check(change("foo", Delete, Written), "delete foo (requested, not gone yet)", "", "");
    check(change("foo", Update, Planned), "", "update foo to v1.2.5", "");
    check(change("foo", Delete, Writing), "", "", "delete foo");
    check(change("foo", Await, Failed), "", "", "");
    check(change("foo", Create, Failed), "create foo v1.2.5 (requested, and failed)", "", "");
    let unwritten = PlannedChange { unwritten: true, ..change("foo", Create, Failed) };
    check(unwritten, "", "create foo v1.2.5", "");
    // What is contradicted by the cluster was written and is not there, for an unknown reason.
    let contradicted =
        |change: PlannedChange| PlannedChange { reason: "OutcomeUnknown".into(), ..change };
    check(contradicted(change("foo", Create, Failed)), "", "", "create foo v1.2.5");
    check(contradicted(change("foo", Delete, Failed)), "", "", "delete foo");
    let release = contradicted(change("", UpdateRelease, Failed));
    check(release, "", "", "update the release to 1.2.5");
    // A change that was given up because of another one that is unknown was not written.
    let unwritten = PlannedChange { unwritten: true, ..change("foo", Create, Failed) };
    check(contradicted(unwritten), "", "create foo v1.2.5", "");
    let taken_back = "update the release to 1.2.5 (requested, and taken back)";
    check(change("", UpdateRelease, Failed), "", taken_back, "");
    let enabled = "enable capability Build (requested, not enabled yet)";
    check(of_capability(EnableCapability, Written), enabled, "", "");
    let same = |requested: &str| PlannedChange {
        version_before: "1.2.5".into(),
        requested_before: "1.2.5".into(),
        requested: requested.into(),
        ..change("foo", Update, Planned)
    };
    check(same("^1"), "", "request ^1 of foo", "");
    check(same(""), "", "request any version of foo", "");
    check(same("1.2.5"), "", "change what is requested of foo", "");
}
