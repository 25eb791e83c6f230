//! Tests of updates as tables: the Operators, the request, and the plan.

use std::fmt::Write as _;

use plimsoll_api::olm::OperatorSpec;
use semver::Version;

use super::*;
use crate::manifest::ChangeSetEdit;
use crate::planner::tests::wrong_dependencies;
use crate::tests::{FIXTURE, catalogs, inputs, operators};

/// Packages in addition to those of the fixture.
const OTHERS: &str = "
    main 0 fiz/stable
      2.9.2 provides Fiz
      2.9.6 <2.9.2, provides Fiz
      3.0.1 <2.9.6, provides Fiz
    main 0 buz/stable
      0.2.4 provides Buz";

const PINNED: &str = "
    foo: version 1.2.2; at 1.2.2
    bar: version 1.2.5; at 1.2.5; dependency
    fiz: version 2.9.2; at 2.9.2
    buz: version 0.2.4; at 0.2.4";

/// Parses a request: `latest`, `together`, names, ranges such as `foo@~1.2`, `locked NAME`, `follow NAME`, and `unknown
/// NAME` for a package that may be a misspelt `foo`.
fn request(text: &str) -> UpdateRequest {
    let mut request = UpdateRequest::default();
    for word in text.split(';').map(str::trim).filter(|it| !it.is_empty()) {
        if let Some(name) = word.strip_prefix('+') {
            request.names.insert(name.to_owned());
            continue;
        }
        if let Some(name) = word.strip_prefix("locked ") {
            request.locked.insert(name.to_owned());
            continue;
        }
        if let Some(name) = word.strip_prefix("unknown ") {
            let sentence = format!("no catalog has package `{name}`, did you mean `foo`?");
            request.unknown.insert(name.to_owned(), sentence);
            continue;
        }
        if let Some(name) = word.strip_prefix("follow ") {
            request.follow.insert(name.to_owned());
            continue;
        }
        match word.split_once('@') {
            Some((name, range)) => {
                request.ranges.insert(name.to_owned(), range.to_owned());
            }
            None if word == "latest" => request.latest = true,
            None if word == "together" => request.together = true,
            None => drop(request.names.insert(word.to_owned())),
        }
    }
    request
}

fn shown(version: &OperatorVersion) -> String {
    let installed = version.installed.as_ref().map_or("-".to_owned(), Version::to_string);
    format!("{} @{installed}", version.requested)
}

fn rendered(planned: &Result<UpdatePlan, UpdateError>) -> String {
    let plan = match planned {
        Ok(plan) => plan,
        Err(UpdateError::UnknownOperator { name }) => return format!("unknown {name}"),
        Err(UpdateError::NotOffered { name, block }) => {
            return format!("not offered {name}: {} {}", block.reason, block.message);
        }
        Err(UpdateError::Blocked { name, block }) => {
            return format!("blocked {name}: {} {}", block.reason, block.message);
        }
        Err(UpdateError::Unsatisfiable(explanation)) => return explanation.text(),
        Err(UpdateError::LimitExceeded) => return "limit exceeded".to_owned(),
    };
    let mut text = String::new();
    for it in &plan.operators {
        let after = shown(&it.after);
        let line = match &it.before {
            None => format!("{}: new {after}", it.name),
            Some(before) if shown(before) != after => {
                format!("{}: {} -> {after}", it.name, shown(before))
            }
            Some(_) => format!("{}: {after}", it.name),
        };
        let flags = [(it.orphaned, " orphaned"), (it.leaves_change_set, " leaves its set")];
        let flags: String = flags.iter().filter(|it| it.0).map(|it| it.1).collect();
        let _ = writeln!(text, "{line}{flags}");
        for by in &it.required_by {
            let _ = writeln!(text, "  {} {} needs {}", by.operator, by.version, by.requirement);
        }
        if let Some(why) = &it.held_back {
            let _ = writeln!(text, "  held back: {why}");
        }
    }
    for line in plan.notes.iter().chain(&plan.unsatisfied) {
        let _ = writeln!(text, "{line}");
    }
    let written: Vec<&str> = plan.written().iter().map(|it| it.name.as_str()).collect();
    let _ = writeln!(text, "writes {}", written.join(" "));
    let members = plan.change_set.as_deref().and_then(|it| it.rsplit_once('/'));
    if let Some((_, members)) = members {
        let _ = writeln!(text, "set of {members}");
    }
    text
}

/// Returns the Operators that a plan requests.
fn updated(
    operators: &BTreeMap<String, RequestedOperator>,
    plan: &UpdatePlan,
) -> BTreeMap<String, RequestedOperator> {
    let updates = plan.operators.iter().map(|it| {
        let present = operators.get(&it.name).cloned();
        let new = || RequestedOperator::new(OperatorSpec::default(), true);
        let mut operator = present.unwrap_or_else(new);
        operator.spec.version.clone_from(&it.after.requested);
        if it.is_written() {
            match &it.change_set {
                ChangeSetEdit::Keep => {}
                edit => operator.change_set = edit.value().map(str::to_owned),
            }
        }
        (it.name.clone(), operator)
    });
    updates.collect()
}

#[track_caller]
fn check(catalog: &str, present: &str, requested: &str, expected: &str) {
    let of = catalogs(&format!("{catalog}{OTHERS}"));
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let planned = plan_update(inputs, &of, &request(requested));
    if let Ok(plan) = &planned {
        let before = wrong_dependencies(&of, &operators, &operators);
        let after = wrong_dependencies(&of, &operators, &updated(&operators, plan));
        let new: Vec<_> = after.difference(&before).collect();
        assert!(new.is_empty(), "{requested} of {present}: {new:?}");
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    let planned: String = rendered(&planned);
    let planned: Vec<&str> = planned.lines().map(str::trim).collect();
    assert_eq!(planned.join("\n"), expected.join("\n"), "{requested} of {present}");
}

#[test]
fn what_is_pinned_moves_only_when_that_is_requested() {
    let stays = "bar: 1.2.5 @1.2.5
                 buz: 0.2.4 @0.2.4
                 fiz: 2.9.2 @2.9.2
                 foo: 1.2.2 @1.2.2
                 writes ";
    check(FIXTURE, PINNED, "", stays);
    check(
        FIXTURE,
        PINNED,
        "latest; together",
        "bar: 1.2.5 @1.2.5 orphaned
         baz: new 1.5.6 @1.5.6
         foo 2.0.1 needs baz >=1.5.0
         buz: 0.2.4 @0.2.4
         fiz: 2.9.2 @2.9.2 -> 3.0.1 @3.0.1
         foo: 1.2.2 @1.2.2 -> 2.0.1 @2.0.1
         writes baz fiz foo
         set of 3",
    );
    check(
        FIXTURE,
        PINNED,
        "foo@~1.2",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         buz: 0.2.4 @0.2.4
         fiz: 2.9.2 @2.9.2
         foo: 1.2.2 @1.2.2 -> 1.2.9 @1.2.9
         writes bar foo",
    );
    check(
        FIXTURE,
        PINNED,
        "foo@~1.2; fiz@<3.0.0",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         buz: 0.2.4 @0.2.4
         fiz: 2.9.2 @2.9.2 -> 2.9.6 @2.9.6
         foo: 1.2.2 @1.2.2 -> 1.2.9 @1.2.9
         writes bar fiz foo",
    );
}

#[test]
fn named_operators_move_though_pinned_and_others_do_not() {
    check(
        FIXTURE,
        PINNED,
        "+fiz",
        "bar: 1.2.5 @1.2.5
         buz: 0.2.4 @0.2.4
         fiz: 2.9.2 @2.9.2 -> 3.0.1 @3.0.1
         foo: 1.2.2 @1.2.2
         writes fiz",
    );
    check(
        FIXTURE,
        PINNED,
        "+fiz; foo@~1.2; latest",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         buz: 0.2.4 @0.2.4
         fiz: 2.9.2 @2.9.2 -> 3.0.1 @3.0.1
         foo: 1.2.2 @1.2.2 -> 1.2.9 @1.2.9
         writes bar fiz foo",
    );
    check(FIXTURE, PINNED, "+fi", "unknown fi");
}

#[test]
fn a_pin_does_not_move_for_what_it_depends_on() {
    let catalog = FIXTURE.replace("requires bar >=1.2.7", "requires bar >=1.2.3 !=1.2.7");
    let of = catalogs(&catalog);
    let present = "foo: version 1.2.9; at 1.2.9
                   bar: version >=1.2.5, <1.2.7; at 1.2.5; dependency";
    let operators = operators(&of, present);
    for requested in ["bar", "bar@~1.2"] {
        let plan = plan_update(inputs(&operators), &of, &request(requested)).expect("a plan");
        assert!(plan.is_empty(), "{requested}: {plan:?}");
        let bar = plan.operators.iter().find(|it| it.name == "bar").expect("an Operator");
        let why = bar.held_back.as_deref().expect("a reason");
        assert!(why.contains("foo 1.2.9 requires bar in"), "{requested}: {why}");
    }
    let refused = plan_update(inputs(&operators), &of, &request("bar@1.2.7"));
    let Err(UpdateError::Unsatisfiable(explanation)) = refused else { panic!("{refused:?}") };
    let text = explanation.text();
    assert!(text.contains("is installed and pinned, and foo is not named"), "{text}");
    assert!(text.contains("name foo, too, so that it may move"), "{text}");
    // It is not moved either for what it requires itself.
    check(
        FIXTURE,
        "foo: version 1.2.5; at 1.2.5
         bar: version ~1.2.0, <1.2.3; at 1.2.1",
        "",
        "bar: ~1.2.0, <1.2.3 @1.2.1
         held back: v1.2.7 is outside the range \"~1.2.0, <1.2.3\"
         foo: 1.2.5 @1.2.5
         foo stays unsatisfied: foo depends on bar >=1.2.3 but bar v1.2.1 is installed; \
         foo is pinned, and `kubectl operator update foo` may help
         writes ",
    );
}

/// Two groups, in each of which a pinned Operator does not accept what an update of another one requires.
const TWO_PINS: &str = "
    main 0 x/stable
      1.0.0 provides X
      1.1.0 <1.0.0, provides X, requires b >=1.1.0
    main 0 b/stable
      1.0.0 provides B
      1.1.0 <1.0.0, provides B
    main 0 a/stable
      1.0.0 provides A, requires b <1.1.0
      1.1.0 <1.0.0, provides A
    main 0 w/stable
      1.0.0 provides W
      1.1.0 <1.0.0, provides W, requires z >=1.1.0
    main 0 z/stable
      1.0.0 provides Z
      1.1.0 <1.0.0, provides Z
    main 0 c/stable
      1.0.0 provides C, requires z <1.1.0
      1.1.0 <1.0.0, provides C";

/// Checks which Operators a plan moves, of pinned ones of version 1.0.0. Returns the plan.
#[track_caller]
fn check_moves(catalog: &str, names: &str, requested: &str, expected: &str) -> UpdatePlan {
    let of = catalogs(catalog);
    let present = names.split(' ').map(|it| format!("{it}: version 1.0.0; at 1.0.0\n"));
    let operators = operators(&of, &present.collect::<String>());
    let plan = plan_update(inputs(&operators), &of, &request(requested)).expect("a plan");
    let moved = plan.operators.iter().filter(|it| {
        let before = it.before.as_ref().and_then(|it| it.installed.as_ref());
        before != it.after.installed.as_ref()
    });
    let moved = moved.map(|it| format!("{} {}", it.name, it.after.installed.as_ref().unwrap()));
    assert_eq!(moved.collect::<Vec<_>>().join(", "), expected, "{requested}");
    plan
}

#[test]
fn only_pins_move_that_a_request_cannot_do_without() {
    let all = "x b a w z c";
    let plan = check_moves(TWO_PINS, all, "w", "");
    let w = plan.operators.iter().find(|it| it.name == "w").expect("an Operator");
    let why = w.held_back.as_deref().expect("a reason");
    assert!(why.contains("c 1.0.0 is kept: c is pinned and not named"), "{why}");
    let moved = "a 1.1.0, b 1.1.0, x 1.1.0";
    check_moves(TWO_PINS, all, "x@1.1.0", moved);
    check_moves(TWO_PINS, all, "x@1.1.0; w", moved);
    let both = "a 1.1.0, b 1.1.0, c 1.1.0, w 1.1.0, x 1.1.0, z 1.1.0";
    check_moves(TWO_PINS, all, "x@1.1.0; w@1.1.0", both);
    // What a pin requires of what is named is no reason to keep it if that is still satisfied.
    let harmless = TWO_PINS.replace("requires b <1.1.0", "requires b <1.1.0, requires x >=1.0.0");
    check_moves(&harmless, all, "x@1.1.0", moved);
    // What a move would bring, and what requires that move for itself, are no reason for it.
    check_moves(
        "main 0 d/stable
          1.0.0 provides D
          1.1.0 <1.0.0, provides D
        main 0 a/stable
          1.0.0 provides A, requires d <1.1.0
          1.1.0 <1.0.0, provides A, requires e >=1.0.0
        main 0 e/stable
          1.0.0 provides E, requires a >=1.1.0",
        "d a",
        "d",
        "",
    );
}

#[test]
fn a_version_is_not_planned_that_another_range_breaks() {
    let catalog = "
        main 0 a/stable
          1.0.0 provides A
          1.1.0 <1.0.0, provides A, requires b 1.0.0
        main 0 b/stable
          1.0.0 provides B
          1.1.0 <1.0.0, provides B";
    let range = ">=1.0.0, <2.0.0";
    let present = format!("a: version 1.0.0; at 1.0.0\nb: version {range}; at 1.0.0");
    let why = format!(
        "a v1.1.0 depends on b 1.0.0, but b v1.1.0 would be installed: spec.version of b is {range:?}"
    );
    check(
        catalog,
        &present,
        "a",
        &format!(
            "a: 1.0.0 @1.0.0
             held back: v1.1.0 is not reached: {why}
             b: {range} @1.0.0 -> {range} @1.1.0
             writes "
        ),
    );
    check(catalog, &present, "a@1.1.0", &format!("blocked a: UpgradeBlocked {why}"));
    // Of a range that is requested, less is written.
    let plan = plan_update(
        inputs(&operators(&catalogs(catalog), &present)),
        &catalogs(catalog),
        &request("a@1.1.0; b@>=1.0.0, <2.0.0"),
    );
    let plan = plan.expect("a plan");
    let after: Vec<String> = plan.operators.iter().map(|it| shown(&it.after)).collect();
    assert_eq!(after, ["1.1.0 @1.1.0", "1.0.0 @1.0.0"]);
}

#[test]
fn a_pin_that_waits_is_taken_back() {
    // There is no 1.2.9.
    for pinned in ["1.2.7", "1.2.9"] {
        let waits = format!("bar: version {pinned}; at 1.2.5");
        let taken_back = format!("bar: {pinned} @1.2.5 -> 1.2.5 @1.2.5\nwrites bar");
        for requested in ["bar@1.2.5", "bar@<1.2.7"] {
            check(FIXTURE, &waits, requested, &taken_back);
        }
    }
    // What the range has, too, may go on.
    check(
        FIXTURE,
        "bar: version 1.2.7; at 1.2.5",
        "bar@~1.2",
        "bar: 1.2.7 @1.2.5 -> 1.2.7 @1.2.7\nwrites ",
    );
    check(
        FIXTURE,
        "foo: version 1.2.9; at 1.2.5; set update-1/2
         bar: version 1.2.7; at 1.2.5; set update-1/2",
        "bar@1.2.5",
        "bar: 1.2.7 @1.2.5 -> 1.2.5 @1.2.5 leaves its set
         foo: 1.2.9 @1.2.5 leaves its set
         writes bar foo",
    );
    check(
        FIXTURE,
        "bar: version 1.2.7; at 1.2.5; paused",
        "bar@1.2.5",
        "blocked bar: Paused bar is paused: `kubectl operator resume bar` ends that",
    );
}

#[test]
fn what_is_pinned_follows_a_range_only_if_that_is_requested() {
    let present = "bar: version 1.2.7; at 1.2.7";
    check(
        FIXTURE,
        present,
        "bar@~1.2",
        "bar: 1.2.7 @1.2.7
         bar stays pinned to 1.2.7: `--version-range` has it follow ~1.2
         writes ",
    );
    let follows = "bar: 1.2.7 @1.2.7 -> ~1.2 @1.2.7\nwrites bar";
    check(FIXTURE, present, "bar@~1.2; follow bar", follows);
    let follows = "bar: 1.2.5 @1.2.5 -> ~1.2 @1.2.7\nwrites bar";
    check(FIXTURE, "bar: version 1.2.5; at 1.2.5", "bar@~1.2; follow bar", follows);
}

#[test]
fn ranges_are_followed_and_kept() {
    check(
        FIXTURE,
        "foo: version ~1.2; at 1.2.5
         bar: version >=1.2.5, <1.3; at 1.2.5; dependency",
        "",
        "bar: >=1.2.5, <1.3 @1.2.5 -> >=1.2.7, <1.3.0 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         foo: ~1.2 @1.2.5 -> ~1.2 @1.2.9
         held back: v2.0.1 is outside the range \"~1.2\"
         writes bar",
    );
    check(
        FIXTURE,
        "foo: version ~1.2; at 1.2.9
         bar: version >=1.2.5, <1.3; at 1.2.7; dependency",
        "",
        "bar: >=1.2.5, <1.3 @1.2.7
         foo: ~1.2 @1.2.9
         held back: v2.0.1 is outside the range \"~1.2\"
         writes ",
    );
    check(
        FIXTURE,
        "foo: version ^1.2; at 1.2.5
         bar: version >=1.2.5, <1.2.6; at 1.2.5; dependency",
        "",
        "bar: >=1.2.5, <1.2.6 @1.2.5 -> >=1.2.7, <1.3.0 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         foo: ^1.2 @1.2.5 -> ^1.2 @1.2.9
         held back: v2.0.1 is outside the range \"^1.2\"
         writes bar",
    );
    // A range that a user wrote is respected.
    check(
        FIXTURE,
        "foo: version ~1.2; at 1.2.3
         bar: version ~1.2.5, <1.2.6; at 1.2.5",
        "",
        "bar: ~1.2.5, <1.2.6 @1.2.5
         held back: v1.2.7 is outside the range \"~1.2.5, <1.2.6\"
         foo: ~1.2 @1.2.3 -> ~1.2 @1.2.5
         held back: bar 1.2.5 is kept; foo 1.2.9 requires bar in `>=1.2.7`, candidates: bar 1.2.7; \
         only one version of bar can be installed: bar 1.2.5 and 1.2.7 conflict
         writes ",
    );
    check(
        FIXTURE,
        "foo: version ~1.2; at 1.2.9
         bar: version 1.2.7; at 1.2.7; dependency",
        "foo@^2",
        "bar: 1.2.7 @1.2.7 orphaned
         baz: new >=1.5.6, <1.6.0 @1.5.6
         foo 2.0.1 needs baz >=1.5.0
         foo: ~1.2 @1.2.9 -> ^2 @2.0.1
         writes baz foo",
    );
}

#[test]
fn the_newest_version_of_a_dependency_is_not_one_of_its_range() {
    let catalog = "main 0 top/stable
      1.0.0 provides Top, requires base >=1.0.0
    main 0 base/stable
      1.0.0 provides Base
      1.0.1 <1.0.0, provides Base
      2.0.0 <1.0.1, provides Base";
    let present = "top: version 1.0.0; at 1.0.0
                   base: version >=1.0.0, <1.1.0; at 1.0.0; dependency";
    let newest = "base: >=1.0.0, <1.1.0 @1.0.0 -> >=2.0.0, <2.1.0 @2.0.0
                  top: 1.0.0 @1.0.0
                  writes base";
    for requested in ["latest", "base"] {
        check(catalog, present, requested, newest);
    }
}

#[test]
fn a_requested_range_of_a_dependency_has_what_dependants_accept() {
    // bar 1.2.1 is in the range, and foo does not accept it.
    check(
        FIXTURE,
        "foo: version 1.2.5; at 1.2.5
         bar: version >=1.2.5, <1.2.6; at 1.2.5; dependency",
        "bar@~1.2",
        "bar: >=1.2.5, <1.2.6 @1.2.5 -> >=1.2.7, <1.3.0 @1.2.7
         foo: 1.2.5 @1.2.5
         bar has >=1.2.7, <1.3.0 instead of ~1.2: foo depends on bar >=1.2.3
         writes bar",
    );
    // What a user wrote is written so.
    check(
        FIXTURE,
        "foo: version 1.2.5; at 1.2.5
         bar: version >=1.2.5, <1.2.6; at 1.2.5",
        "bar@~1.2",
        "bar: >=1.2.5, <1.2.6 @1.2.5 -> ~1.2 @1.2.7
         foo: 1.2.5 @1.2.5
         writes bar",
    );
    // Neither a dependency nor what a user wrote gets later versions that foo does not accept.
    let other = FIXTURE.replace("requires bar >=1.2.7", "requires bar >=1.2.3 !=1.2.7");
    let limited = "bar has >=1.2.5, <1.2.7 instead of ~1.2: foo depends on bar >=1.2.3 !=1.2.7";
    for (present, is_written) in [
        ("bar: version >=1.2.5, <1.2.7; at 1.2.5; dependency", false),
        ("bar: version >=1.2.5, <1.2.7; at 1.2.5; user", false),
        ("bar: version >=1.2.5, <1.2.6; at 1.2.5; user", true),
    ] {
        let of = catalogs(&other);
        let operators = operators(&of, &format!("foo: version 1.2.9; at 1.2.9\n{present}"));
        let plan = plan_update(inputs(&operators), &of, &request("bar@~1.2")).expect("a plan");
        assert_eq!(plan.notes, [limited], "{present}");
        let written: Vec<&str> =
            plan.written().iter().map(|it| it.after.requested.as_str()).collect();
        let expected: &[&str] = if is_written { &[">=1.2.5, <1.2.7"] } else { &[] };
        assert_eq!(written, expected, "{present}");
    }
}

#[test]
fn what_cannot_be_had_is_said() {
    check(FIXTURE, PINNED, "fo@~1.2", "unknown fo");
    check(
        FIXTURE,
        PINNED,
        "foo@~7",
        "not offered foo: NoMatchingVersion no version of foo matches ~7; there is v2.0.1, v1.2.9, v1.2.5, \
         v1.2.3, v1.2.2",
    );
    check(
        FIXTURE,
        "foo: version 1.2.5; at 1.2.5
         bar: version ~1.2.5, <1.2.6; at 1.2.5",
        "foo@1.2.9",
        "no solution found:
         `bar` with version `~1.2.5, <1.2.6` is requested, candidates: bar 1.2.5
         `foo` with version `1.2.9` is requested, candidates: foo 1.2.9
         foo 1.2.9 requires bar in `>=1.2.7`, candidates: bar 1.2.7
         only one version of bar can be installed: bar 1.2.5 and 1.2.7 conflict
         so `bar` with version `~1.2.5, <1.2.6` and `foo` with version `1.2.9` cannot be updated together

         help: each of these changes makes it solvable:
         request another version of bar, such as 1.2.7
         request another version of foo
         drop the request for bar",
    );
    for at in ["; at 2.0.1", ""] {
        check(
            FIXTURE,
            &format!("foo: version 2.0.1{at}\nbaz: version 1.5.6; at 1.5.6"),
            "foo@~1.2",
            "blocked foo: NoUpgradePath no update leads from v2.0.1 to ~1.2; the channel has v2.0.1, v1.2.9, \
             v1.2.5, v1.2.3, v1.2.2. Set spec.upgradePolicy to Semver or Any to update without the \
             channel's graph",
        );
    }
    // An Operator that is not upgradeable does not block updates of others.
    check(
        FIXTURE,
        "fiz: version 2.9.2; at 2.9.2; blocked the cask leaks
         bar: version 1.2.5; at 1.2.5",
        "latest",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         fiz: 2.9.2 @2.9.2 -> 2.9.6 @2.9.6
         held back: v3.0.1 is not reached: fiz v3.0.1 waits: fiz is not upgradeable: \
         the cask leaks
         writes bar fiz",
    );
}

#[test]
fn what_is_installed_is_available() {
    check(
        "main 0 foo/stable
          1.1.0 provides Foo
          1.1.2 <1.1.0, provides Foo, requires bar >1.1.0
        main 0 bar/stable
          1.1.0 provides Bar
        main 0 bar/edge
          1.1.0 provides Bar
          1.2.0 <1.1.0, provides Bar",
        "foo: version ~1.1; at 1.1.0
         bar: version 1.1.0; at 1.1.0",
        "",
        "bar: 1.1.0 @1.1.0
         foo: ~1.1 @1.1.0
         held back: foo 1.1.2 requires bar in `>1.1.0`, but no version of bar matches `>1.1.0`; available: \
         1.1.0 (installed)
         writes ",
    );
}

#[test]
fn what_no_plan_may_change_is_said() {
    let paused = "bar: version 1.2.5; at 1.2.5; paused";
    let why = "bar is paused: `kubectl operator resume bar` ends that";
    check(FIXTURE, paused, "bar@1.2.7", &format!("blocked bar: Paused {why}"));
    let stays = |why: &str| format!("bar: 1.2.5 @1.2.5\n{why}writes ");
    check(FIXTURE, paused, "bar", &stays(&format!("held back: {why}\n")));
    check(FIXTURE, paused, "bar@1.2.5", &stays(""));
    check(FIXTURE, paused, "latest", &stays(&format!("held back: {why}\n")));
    let kept = "bar: version 1.2.5; at 1.2.5; revision 3";
    let why = "held back: bar is kept at revision 3: remove spec.revision first\n";
    check(FIXTURE, kept, "bar@1.2.5", &stays(why));
    // What was returned to a revision is held there, whatever is requested.
    let kept = "bar: version 1.2.7; at 1.2.5; revision 3\nbaz: version ~1.2; at 1.2.4";
    let why = "bar is kept at revision 3: remove spec.revision first";
    let stays = format!(
        "bar: 1.2.7 @1.2.5\nheld back: {why}\nbaz: ~1.2 @1.2.4\n\
         held back: v1.5.6 is outside the range \"~1.2\"\nwrites "
    );
    check(FIXTURE, kept, "", &stays);
    let of = catalogs(FIXTURE);
    assert_eq!(kept_at_revisions(&operators(&of, kept)), [why]);
}

#[test]
fn what_is_in_a_change_set_that_cannot_be_read_stays() {
    let why =
        "the annotation olm.io/change-set is \"u\"; it must be ID/MEMBERS, such as upgrade-42/2";
    let stays = |foo: &str, bar: &str| {
        format!("bar: 1.2.7 {bar}\nheld back: {why}\nfoo: 1.2.9 {foo}\nheld back: {why}\nwrites ")
    };
    let operators = |foo: &str, bar: &str| {
        format!("foo: version 1.2.9; set u{foo}\nbar: version 1.2.7; set u{bar}")
    };
    // Neither is installed.
    check(FIXTURE, &operators("", ""), "latest", &stays("@-", "@-"));
    let there = operators("; at 1.2.9", "; at 1.2.7");
    for requested in ["latest", "latest; together", "foo; bar"] {
        check(FIXTURE, &there, requested, &stays("@1.2.9", "@1.2.7"));
    }
    check(FIXTURE, &there, "foo@2", &format!("blocked foo: InvalidChangeSet {why}"));
}

#[test]
fn what_is_in_a_change_set_that_lacks_members_is_not_updated() {
    let present = "foo: version 1.2.5; set x/3\nbar: version 1.2.5; set x/3";
    for (requested, name) in [("latest", "bar"), ("foo@1.2.9", "foo")] {
        let why = "change set x has 2 of its 3 Operators: bar, foo; apply the others, or remove the annotation \
                   olm.io/change-set if they are gone";
        check(FIXTURE, present, requested, &format!("blocked {name}: ChangeSetIncomplete {why}"));
    }
}

#[test]
fn what_no_catalog_offers_is_said() {
    let gone = "gone: version 1.0.0; at 1.0.0";
    let why = "no catalog has a package gone; v1.0.0 stays installed";
    let stays = format!("gone: 1.0.0 @1.0.0\nheld back: {why}\nwrites ");
    for requested in ["gone", "latest", "latest; together"] {
        check(FIXTURE, gone, requested, &stays);
    }
    check(FIXTURE, &gone.replace("1.0.0;", "~1;"), "", &stays.replacen("1.0.0", "~1", 1));
    let paused = "gone: 1.0.0 @1.0.0\nheld back: gone is paused: `kubectl operator resume gone` ends that\nwrites ";
    check(FIXTURE, &format!("{gone}; paused"), "latest", paused);
    let pinned = "gone stays pinned to 1.0.0: `--version-range` has it follow ~1";
    check(FIXTURE, gone, "gone@~1", &format!("gone: 1.0.0 @1.0.0\n{pinned}\nwrites "));
    check(FIXTURE, gone, "gone@2", &format!("not offered gone: PackageNotFound {why}"));
    for requested in ["lost", "lost@~1", "lost@1.0.0"] {
        let why = "not offered lost: PackageNotFound no catalog has a package lost";
        check(FIXTURE, "lost: version 1.0.0", requested, why);
    }
    check(
        FIXTURE,
        "foo: version 1.2.9; repository nowhere",
        "foo",
        "not offered foo: CatalogNotFound there is no catalog nowhere; catalogs: main",
    );
    let slow = "foo: version 1.2.9; at 1.2.9; channel slow
                bar: version 1.2.7; at 1.2.7; repository nowhere";
    for (requested, of_bar) in [
        (
            "latest",
            "held back: there is no catalog nowhere; catalogs: main; v1.2.7 stays installed\n",
        ),
        ("foo", ""),
    ] {
        check(
            FIXTURE,
            slow,
            requested,
            &format!(
                "bar: 1.2.7 @1.2.7
                 {of_bar}foo: 1.2.9 @1.2.9
                 held back: foo has no channel slow; its channels are stable; v1.2.9 stays installed
                 writes "
            ),
        );
    }
    check(
        FIXTURE,
        "lost: version 1.0.0; paused",
        "lost",
        "lost: 1.0.0 @-
         held back: lost is paused: `kubectl operator resume lost` ends that
         writes ",
    );
}

#[test]
fn what_comes_to_no_bundle_is_said() {
    for (present, requested, stays) in [
        ("fo: version ~1", "latest", "fo: ~1 @-\nheld back: no catalog has a package fo"),
        (
            "fo: version ~1",
            "unknown fo",
            "fo: ~1 @-\nheld back: no catalog has package `fo`, did you mean `foo`?",
        ),
        (
            "fo: version ~1; at 1.0.0",
            "unknown fo",
            "fo: ~1 @1.0.0
             held back: no catalog has package `fo`, did you mean `foo`? v1.0.0 stays installed",
        ),
        (
            "foo: version ~7",
            "",
            "foo: ~7 @-
             held back: no version of foo matches ~7; there is v2.0.1, v1.2.9, v1.2.5, v1.2.3, v1.2.2",
        ),
        (
            "foo: version 1.2.9; channel slow",
            "latest",
            "foo: 1.2.9 @-\nheld back: foo has no channel slow; its channels are stable",
        ),
    ] {
        check(FIXTURE, present, requested, &format!("{stays}\nwrites "));
    }
    check(
        FIXTURE,
        "foo: version 1.2.9; at 1.2.9; channel stabel\nbar: version 1.2.7; at 1.2.7",
        "latest",
        "bar: 1.2.7 @1.2.7
         foo: 1.2.9 @1.2.9
         held back: foo has no channel stabel, did you mean `stable`? v1.2.9 stays installed
         writes ",
    );
    // Of what is not requested, nothing is said.
    check(
        FIXTURE,
        "fo: version 1.0.0\nbar: version 1.2.5; at 1.2.5",
        "bar",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         fo: 1.0.0 @-
         writes bar",
    );
}

#[test]
fn what_is_only_expected_is_planned_as_it_will_be_installed() {
    let catalog = "main 0 nob/stable
      1.0.0 provides Nob
      1.1.0 <1.0.0, provides Nob
      2.0.0 <1.1.0, provides Nob, requires nowhere >=1.0.0";
    let why = "held back: nob 2.0.0 requires nowhere in `>=1.0.0`, but no catalog has a package `nowhere`";
    let narrower = "nob has >=1.1.0, <1.2.0 instead of >=1.1.0: another version of the range would not be as \
                    planned\n";
    for (at, locked, written, note) in [
        ("; at 1.0.0", "", ">=1.1.0", ""),
        ("; at 1.0.0", ";locked nob", ">=1.1.0, <1.2.0", narrower),
        ("", "", ">=1.1.0, <1.2.0", narrower),
    ] {
        check(
            catalog,
            &format!("nob: version >=1.0.0, <1.1.0{at}"),
            &format!("nob@>=1.1.0{locked}"),
            &format!(
                "nob: >=1.0.0, <1.1.0 @1.0.0 -> {written} @1.1.0
                 {why}
                 {note}writes nob"
            ),
        );
    }
}

#[test]
fn what_waits_to_be_installed_keeps_its_range() {
    let waits = "foo: version ~1.2; install Enforce";
    check(
        FIXTURE,
        waits,
        "",
        "bar: new >=1.2.7, <1.3.0 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         foo: ~1.2 @- -> ~1.2 @1.2.9
         writes bar",
    );
    check(
        FIXTURE,
        waits,
        "foo@~1.2",
        "bar: new >=1.2.7, <1.3.0 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         foo: ~1.2 @- -> ~1.2 @1.2.9
         writes bar",
    );
    let alone = "main 0 foo/stable
      1.2.2 provides Foo, requires bar >=1.2.3";
    check(
        alone,
        waits,
        "foo@~1.2",
        "no solution found:
         `foo` with version `~1.2` is requested, candidates: foo 1.2.2
         foo 1.2.2 requires bar in `>=1.2.3`, but no catalog has a package `bar`
         so `foo` with version `~1.2` cannot be installed

         help: this change makes it solvable:
         add a catalog that has bar in `>=1.2.3`",
    );
}

#[test]
fn what_is_missing_is_installed() {
    let alone = "foo: version 1.2.9; at 1.2.9";
    let repaired = "bar: new 1.2.7 @1.2.7
                    foo 1.2.9 needs bar >=1.2.7
                    foo: 1.2.9 @1.2.9
                    writes bar";
    check(FIXTURE, alone, "", repaired);
    check(FIXTURE, alone, "foo@1.2.9", repaired);
    check(
        FIXTURE,
        "foo: version 1.2.9; at 1.2.9
         bar: version 1.2.1; at 1.2.1
         fiz: version 2.9.2; at 2.9.2",
        "",
        "bar: 1.2.1 @1.2.1 -> 1.2.7 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         fiz: 2.9.2 @2.9.2
         foo: 1.2.9 @1.2.9
         writes bar",
    );
    // What nothing satisfies does not keep the rest from being repaired.
    let catalog = format!(
        "{FIXTURE}
        main 0 lost/stable
          1.0.0 provides Lost, requires nowhere >=1.0.0"
    );
    check(
        &catalog,
        "foo: version 1.2.9; at 1.2.9
         lost: version 1.0.0; at 1.0.0",
        "",
        "bar: new 1.2.7 @1.2.7
         foo 1.2.9 needs bar >=1.2.7
         foo: 1.2.9 @1.2.9
         lost: 1.0.0 @1.0.0
         lost stays unsatisfied: lost depends on nowhere >=1.0.0 but nowhere is not installed
         writes bar",
    );
    let of = catalogs(FIXTURE);
    for (present, is_idle) in [(alone, false), ("bar: version 1.2.7; at 1.2.7", true)] {
        let operators = operators(&of, present);
        let inputs = inputs(&operators);
        assert_eq!(request("").is_idle(inputs, &of), is_idle, "{present}");
    }
}

#[test]
fn what_lost_its_dependants_is_an_orphan_unless_a_user_installed_it_by_name() {
    let present = |bar: &str| PINNED.replace("at 1.2.5; dependency", &format!("at 1.2.5{bar}"));
    for (bar, is_orphan) in [("", true), ("; dependency", true), ("; user", false)] {
        let bar_line = match is_orphan {
            true => "bar: 1.2.5 @1.2.5 orphaned",
            false => "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7",
        };
        let written = if is_orphan { "baz fiz foo" } else { "bar baz fiz foo" };
        check(
            FIXTURE,
            &present(bar),
            "latest",
            &format!(
                "{bar_line}
                 baz: new 1.5.6 @1.5.6
                 foo 2.0.1 needs baz >=1.5.0
                 buz: 0.2.4 @0.2.4
                 fiz: 2.9.2 @2.9.2 -> 3.0.1 @3.0.1
                 foo: 1.2.2 @1.2.2 -> 2.0.1 @2.0.1
                 writes {written}"
            ),
        );
    }
    // What is named moves.
    check(
        FIXTURE,
        "bar: version 1.2.5; at 1.2.5
         fiz: version 2.9.2; at 2.9.2",
        "bar",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7
         fiz: 2.9.2 @2.9.2
         writes bar",
    );
}

#[test]
fn a_version_that_no_way_leads_to_is_passed_over() {
    // The only path to 2.0.1 is through 1.2.9, which requires another bar.
    let catalog = |bar: &str| {
        format!(
            "main 0 foo/stable
              1.2.5 provides Foo, requires bar >=1.2.3
              1.2.9 <1.2.5, provides Foo, requires bar >=1.2.7
              2.0.1 <1.2.9, provides Foo
              3.0.0 <2.0.1, provides Foo, kubernetes 1.99.0
              4.0.0 <3.0.0, provides Foo
            main 0 bar/stable
              1.2.5 provides Bar
              1.2.7 <1.2.5, provides Bar{bar}"
        )
    };
    let present = "foo: version 1.2.5; at 1.2.5
                   bar: version 1.2.5; at 1.2.5; dependency";
    check(
        &catalog(", kubernetes 1.99.0"),
        present,
        "foo",
        "bar: 1.2.5 @1.2.5
         foo: 1.2.5 @1.2.5
         held back: v2.0.1 is not reached: on the way to v2.0.1, foo v1.2.9 depends on bar >=1.2.7: no \
         single plan satisfies that
         writes ",
    );
    // What is on the way is moved, too, although nothing requires it in the end.
    check(
        &catalog(""),
        present,
        "latest",
        "bar: 1.2.5 @1.2.5 -> 1.2.7 @1.2.7 orphaned
         foo: 1.2.5 @1.2.5 -> 2.0.1 @2.0.1
         held back: no update leads from v1.2.5 to v4.0.0; spec.upgradePolicy says which may
         writes bar foo",
    );
}

/// A step of top does not fit the newest version of base, which the newest version of top fits.
const STEP: &str = "
    main 0 top/stable
      1.0.0 provides Top
      2.0.0 <1.0.0, provides Top, requires base <2.1.0
      2.1.0 <2.0.0, provides Top, requires base >=1.0.0
    main 0 base/stable
      1.0.0 provides Base
      2.0.0 <1.0.0, provides Base
      2.1.0 <2.0.0, provides Base
    main 0 other/stable
      1.0.0 provides Other, requires base >=2.1.0";

#[test]
fn dependencies_get_versions_that_the_steps_on_the_way_accept() {
    let present = "top: version 1.0.0; at 1.0.0";
    for requested in ["latest", "top", "top@2.1.0", "top@^2.1"] {
        check(
            STEP,
            present,
            requested,
            "base: new 2.0.0 @2.0.0
             top 2.1.0 needs base >=1.0.0
             top: 1.0.0 @1.0.0 -> 2.1.0 @2.1.0
             writes base top",
        );
    }
    // What is written has no others, which would be installed before the step.
    let patch = STEP.replace("2.1.0 <2.0.0, provides Base", "2.0.1 <2.0.0, provides Base");
    check(
        &patch.replace("base <2.1.0", "base <2.0.1"),
        &format!("{present}\nfiz: version ~3; at 3.0.1"),
        "top",
        "base: new 2.0.0 @2.0.0
         top 2.1.0 needs base >=1.0.0
         fiz: ~3 @3.0.1
         top: 1.0.0 @1.0.0 -> 2.1.0 @2.1.0
         writes base top",
    );
    // Two requirements, of a step and of the end, have one version in common.
    for requested in ["latest", "top"] {
        check(
            "main 0 top/stable
              1.0.0 provides Top
              1.1.0 <1.0.0, provides Top, requires base <2.0.0
              2.0.0 <1.1.0, provides Top
              2.1.0 <2.0.0, provides Top, requires base 1.0.0 || 2.0.0, requires core <2.0.0
            main 0 base/stable
              1.0.0 provides Base
              1.1.0 <1.0.0, provides Base
              2.0.0 <1.1.0, provides Base, requires core <2.0.0
            main 0 core/stable
              1.0.0 provides Core
              2.0.0 <1.0.0, provides Core",
            present,
            requested,
            "base: new 1.0.0 @1.0.0
             top 2.1.0 needs base 1.0.0 || 2.0.0
             core: new 1.0.0 @1.0.0
             top 2.1.0 needs core <2.0.0
             top: 1.0.0 @1.0.0 -> 2.1.0 @2.1.0
             writes base core top",
        );
    }
}

#[test]
fn what_only_a_step_on_the_way_requires_is_installed() {
    for requested in ["top", "top@2.0.0"] {
        check(
            "main 0 top/stable
              1.0.0 provides Top
              1.1.0 <1.0.0, provides Top, requires base <2.0.0
              1.2.0 <1.1.0, provides Top, requires base <2.0.0, requires core >=1.1.0 <2.1.0
              2.0.0 <1.2.0, provides Top, requires base 1.0.0 || 2.0.0
            main 0 base/stable
              1.0.0 provides Base
              1.1.0 <1.0.0, provides Base
              2.0.0 <1.1.0, provides Base
            main 0 core/stable
              1.0.0 provides Core
              2.0.0 <1.0.0, provides Core
              2.1.0 <2.0.0, provides Core",
            "top: version 1.0.0; at 1.0.0",
            requested,
            "base: new 1.0.0 @1.0.0
             top 2.0.0 needs base 1.0.0 || 2.0.0
             core: new 2.0.0 @2.0.0 orphaned
             top: 1.0.0 @1.0.0 -> 2.0.0 @2.0.0
             writes base core top",
        );
    }
}

#[test]
fn a_step_that_no_plan_makes_possible_is_said() {
    let present = "top: version 1.0.0; at 1.0.0
                   other: version 1.0.0; at 1.0.0
                   base: version 2.1.0; at 2.1.0";
    let why =
        "on the way to v2.1.0, top v2.0.0 depends on base <2.1.0: no single plan satisfies that";
    check(STEP, present, "top@2.1.0", &format!("blocked top: UpgradeBlocked {why}"));
    check(
        STEP,
        present,
        "top",
        &format!(
            "base: 2.1.0 @2.1.0
             other: 1.0.0 @1.0.0
             top: 1.0.0 @1.0.0
             held back: v2.1.0 is not reached: {why}
             writes "
        ),
    );
}

#[test]
fn an_update_goes_on_to_where_another_one_after_it_would_lead() {
    // Updates of another catalog begin where those of the first one end.
    let catalog = |weight: i64| {
        format!(
            "other {weight} duo/stable
              1.0.0 provides Duo
              1.1.0 <1.0.0, provides Duo
              2.0.0 <1.1.0, provides Duo
            main 0 duo/stable
              1.0.0 provides Duo
              1.1.0 <1.0.0, provides Duo"
        )
    };
    for weight in [-1, 0, 1] {
        check(
            &catalog(weight),
            "duo: version 1.0.0; at 1.0.0",
            "latest",
            "duo: 1.0.0 @1.0.0 -> 2.0.0 @2.0.0
             writes duo",
        );
    }
    // The way to 1.0.3 does not fit the newest version of what it requires.
    check(
        "main 0 left/stable
          1.0.1 provides Left
          1.0.2 <1.0.1, provides Left, requires right >=1.2.2 !=2.2.3
          1.0.3 <1.0.2, provides Left, requires right >=1.2.2
        main 0 right/stable
          1.2.2 provides Right, requires left >=1.0.1
          2.2.3 <1.2.2, provides Right, requires left <1.0.2 || >1.0.2",
        "left: version 1.0.1; at 1.0.1",
        "left@~1.0",
        "left: 1.0.1 @1.0.1 -> 1.0.3 @1.0.3
         right: new 1.2.2 @1.2.2
         left 1.0.3 needs right >=1.2.2
         writes right left",
    );
}

#[test]
fn updates_of_the_catalog_of_what_is_installed_come_first() {
    check(
        "heavy 1 duo/stable
          1.0.0 provides Duo
          1.2.0 <1.0.0, provides Duo
        main 0 duo/stable
          1.0.0 provides Duo
          1.1.0 <1.0.0, provides Duo",
        "duo: version 1.0.0; at 1.0.0; from heavy/stable",
        "latest",
        "duo: 1.0.0 @1.0.0 -> 1.2.0 @1.2.0
         writes duo",
    );
}

#[test]
fn what_waits_for_each_other_moves_together() {
    let catalog = "
        main 0 left/stable
          1.0.0 provides Left, requires right >=1.0.0 <2.0.0
          2.0.0 <1.0.0, provides Left, requires right >=2.0.0
        main 0 right/stable
          1.0.0 provides Right, requires left >=1.0.0 <2.0.0
          2.0.0 <1.0.0, provides Right, requires left >=2.0.0";
    check(
        catalog,
        "left: version 1.0.0; at 1.0.0
         right: version 1.0.0; at 1.0.0",
        "latest",
        "left: 1.0.0 @1.0.0 -> 2.0.0 @2.0.0
         right 2.0.0 needs left >=2.0.0
         right: 1.0.0 @1.0.0 -> 2.0.0 @2.0.0
         left 2.0.0 needs right >=2.0.0
         writes left right
         set of 2",
    );
    // A change set of which a part was written is written as a whole.
    check(
        catalog,
        "left: version 1.0.0; at 1.0.0
         right: version 2.0.0; at 1.0.0; set update-1/2",
        "latest",
        "left: 1.0.0 @1.0.0 -> 2.0.0 @2.0.0
         right 2.0.0 needs left >=2.0.0
         right: 2.0.0 @1.0.0 -> 2.0.0 @2.0.0
         left 2.0.0 needs right >=2.0.0
         writes left right
         set of 2",
    );
    check(
        FIXTURE,
        "fiz: version 2.9.2; at 2.9.2; set old/2
         bar: version 1.2.7; at 1.2.7; set old/2",
        "latest",
        "bar: 1.2.7 @1.2.7 leaves its set
         fiz: 2.9.2 @2.9.2 -> 3.0.1 @3.0.1 leaves its set
         writes bar fiz",
    );
}

#[test]
fn the_change_set_of_an_update_that_was_killed_ends_once_it_is_carried_out() {
    let members = |at: &str, set: &str| {
        format!(
            "fiz: version 3.0.1; at {at}; set {set}
             bar: version 1.2.7; at 1.2.7; set {set}"
        )
    };
    let leaves = "bar: 1.2.7 @1.2.7 leaves its set
                  fiz: 3.0.1 @3.0.1 leaves its set
                  writes bar fiz";
    check(FIXTURE, &members("3.0.1", "update-1/2"), "together", leaves);
    // Without a cluster, it is not known what became of it.
    let stays = "bar: 1.2.7 @1.2.7
                 fiz: 3.0.1 @3.0.1
                 writes ";
    check(FIXTURE, &members("3.0.1", "update-1/2"), "", stays);
    check(FIXTURE, &members("3.0.1", "mine/2"), "together", stays);
    let waits = "bar: 1.2.7 @1.2.7
                 fiz: 3.0.1 @2.9.2 -> 3.0.1 @3.0.1
                 writes ";
    check(FIXTURE, &members("2.9.2", "update-1/2"), "together", waits);
    let of = catalogs(&format!("{FIXTURE}{OTHERS}"));
    for (set, is_idle) in [("update-1/2", false), ("mine/2", true)] {
        let operators = operators(&of, &members("2.9.2", set));
        let inputs = inputs(&operators);
        assert_eq!(request("together").is_idle(inputs, &of), is_idle, "{set}");
        assert!(request("").is_idle(inputs, &of));
    }
}

#[test]
fn the_newest_version_is_planned_however_many_steps_lead_to_it() {
    let mut catalog = "main 0 long/stable\n  1.0.0\n".to_owned();
    for at in 1..260 {
        let _ = writeln!(catalog, "  1.0.{at} <1.0.{}", at - 1);
    }
    let planned = "long: 1.0.0 @1.0.0 -> 1.0.259 @1.0.259\nwrites long";
    check(&catalog, "long: version 1.0.0; at 1.0.0", "latest", planned);
}

#[test]
fn a_version_that_was_requested_before_is_awaited_until_it_is_installed() {
    let of = catalogs(FIXTURE);
    let awaited = |present: &str, words: &str| {
        let operators = operators(&of, present);
        let inputs = inputs(&operators);
        let plan = plan_update(inputs, &of, &request(words)).expect("a plan");
        let awaited = plan.operators.iter().filter(|it| it.is_awaited());
        awaited.map(|it| it.name.clone()).collect::<Vec<_>>().join(" ")
    };
    // The first time it is written.
    assert_eq!(awaited("bar: version 1.2.5; at 1.2.5", "bar@1.2.7"), "");
    assert_eq!(awaited("bar: version 1.2.7; at 1.2.5", "bar@1.2.7"), "bar");
    assert_eq!(awaited("bar: version 1.2.7; at 1.2.7", "bar@1.2.7"), "");
    // What follows a range comes by itself.
    assert_eq!(awaited("bar: version ~1.2; at 1.2.5", ""), "");
}
