//! Tests of installations as tables: the catalogs, the Operators, the command line, and the plan.

use plimsoll_api::olm::OperatorSpec;

use super::*;
use crate::loadout::converge;
use crate::planner::tests::wrong_dependencies;
use crate::tests::{FIXTURE, catalogs, inputs, operators};

/// Packages in addition to those of the fixture.
const OTHERS: &str = "
    main 0 fiz/stable
      2.9.2 provides Fiz
      2.9.6 <2.9.2, provides Fiz
    main 0 fiz/candidate
      2.9.6 provides Fiz
      3.0.1 <2.9.6, provides Fiz
    main 0 buz/stable
      0.2.4 provides Buz
    main 0 caller/stable
      1.0.0 provides Caller, requires Baz";

/// Returns the fixture in which foo 1.2.9 requires another range of bar.
fn requiring(range: &str) -> String {
    FIXTURE.replace("requires bar >=1.2.7", &format!("requires bar {range}")) + OTHERS
}

/// Parses a command line: packages and options.
fn request(line: &str) -> InstallRequest {
    let mut request = InstallRequest::default();
    for word in line.split(' ').filter(|it| !it.is_empty()) {
        match word.strip_prefix("--").and_then(|it| it.split_once('=')) {
            Some(("range", it)) => request.version_range = Some(it.to_owned()),
            Some(("channel", it)) => request.channel = Some(it.to_owned()),
            Some(("repository", it)) => request.repository = Some(it.to_owned()),
            Some(("use", it)) => request.providers.push(it.to_owned()),
            Some(("exclude", it)) => request.exclude.push(it.to_owned()),
            Some(("prefer", it)) => request.prefer_repository = Some(it.to_owned()),
            Some((option, _)) => panic!("{option}"),
            None => request.packages.push(word.parse().expect("a package")),
        }
    }
    request
}

/// Returns the Operators after a plan is written.
fn written(
    operators: &BTreeMap<String, RequestedOperator>,
    plan: &InstallPlan,
    request: &InstallRequest,
) -> BTreeMap<String, RequestedOperator> {
    let mut operators = operators.clone();
    for manifest in plan.manifests(request) {
        let new = || RequestedOperator::new(OperatorSpec::default(), manifest.is_dependency);
        let operator = operators.entry(manifest.name.clone()).or_insert_with(new);
        operator.spec.version.clone_from(&manifest.version);
        operator.is_dependency &= !manifest.becomes_requested;
        operator.spec.channel = manifest.channel.unwrap_or(operator.spec.channel.clone());
        operator.spec.repository = manifest.repository.unwrap_or(operator.spec.repository.clone());
        if manifest.change_set != ChangeSetEdit::Keep {
            operator.change_set = manifest.change_set.value().map(str::to_owned);
        }
    }
    operators
}

/// Checks the plan of a command line: the lines of its text but the edges, then what is written of each Operator.
/// A second time there is nothing to do, and the controller arrives at what was planned.
#[track_caller]
fn check(catalog: &str, present: &str, line: &str, expected: &str) {
    let of = catalogs(catalog);
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let request = request(line);
    let text = match plan_install(inputs, &of, &request) {
        Ok(plan) => {
            let after = written(&operators, &plan, &request);
            let wrong = wrong_dependencies(&of, &operators, &after);
            assert!(wrong.is_empty(), "{line} of {present}: {wrong:?}");
            let inputs = OperatorInputs { operators: &after, ..inputs };
            let converged = converge(inputs, &of);
            for it in &plan.operators {
                let there = converged.operators[&it.name].installed.as_ref().expect("a bundle");
                assert_eq!(there.bundle.version, it.version, "{line}: {}", it.name);
                assert_eq!(there.reference.catalog, it.catalog, "{line}: {}", it.name);
            }
            let again = plan_install(inputs, &of, &request).expect("a plan");
            assert_eq!(again.operators, [], "{line} of {present}, a second time");
            let lines = plan.overrides.iter().chain(&plan.notes).cloned();
            let operators = plan.operators.iter().map(|it| {
                let fields = [("channel", &it.channel), ("repository", &it.repository)];
                let fields = fields
                    .iter()
                    .filter_map(|(name, it)| Some(format!(" {name} {}", it.as_deref()?)));
                format!("{} {} @{}{}", it.name, it.range, it.version, fields.collect::<String>())
            });
            let sets: BTreeSet<&str> = plan
                .operators
                .iter()
                .filter_map(|it| it.change_set.value())
                .chain(plan.change_set.as_deref())
                .collect();
            let members = sets.into_iter().filter_map(|it| it.rsplit_once('/'));
            let sets = members.map(|(_, members)| format!("set of {members}"));
            lines.chain(operators).chain(sets).collect::<Vec<_>>().join("\n")
        }
        Err(InstallError::Invalid(error)) => format!("invalid: {error}"),
        Err(InstallError::Blocked { name, block }) => format!("blocked {name}: {}", block.message),
        Err(InstallError::Unsatisfiable(conflict)) => conflict.text(),
        Err(InstallError::LimitExceeded) => "limit exceeded".to_owned(),
    };
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(text.trim_end(), expected.join("\n"), "{line} of {present}");
}

/// Checks the text of a plan.
#[track_caller]
fn check_text(catalog: &str, present: &str, line: &str, expected: &str) {
    let of = catalogs(catalog);
    let operators = operators(&of, present);
    let plan = plan_install(inputs(&operators), &of, &request(line)).expect("a plan");
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(plan.text().trim_end(), expected.join("\n"), "{line} of {present}");
}

#[test]
fn what_is_there_is_shown_as_an_update_shows_it() {
    let new = "* foo v1.2.9 depends on bar >= v1.2.7
        Generate Operator resources for:
        - foo@v1.2.9
        - bar@v1.2.7";
    check_text(FIXTURE, "", "foo@1.2.9", new);
    let present = "foo: version 1.2.2; at 1.2.2\nbar: version 1.2.5; at 1.2.5";
    let updated = "* foo v2.0.1 depends on baz >= v1.5.0
        Generate Operator resources for:
        - foo@v1.2.2 -> foo@v2.0.1
        - baz@v1.5.6
        bar@v1.2.5 -> bar@v1.2.5 (orphaned)";
    check_text(FIXTURE, present, "foo@2.0.1", updated);
    // A channel and a catalog that are written are shown.
    let fiz = "fiz: version 2.9.2; at 2.9.2";
    for (option, shown) in
        [("channel=stable", "channel stable"), ("repository=main", "repository main")]
    {
        let updated = format!(
            "Generate Operator resources for:
             - fiz@v2.9.2 -> fiz@v2.9.2 ({shown})"
        );
        check_text(&requiring(">=1.2.7"), fiz, &format!("fiz --{option}"), &updated);
    }
    // What a person asked for by name is no orphan.
    let kept = "foo: version 1.2.2; at 1.2.2\nbar: version 1.2.5; at 1.2.5; user";
    let (updated, _) = updated.rsplit_once('\n').expect("lines");
    check_text(FIXTURE, kept, "foo@2.0.1", updated);
    // An Operator that depends on what moves has to move, too.
    let libraries = "
        main 0 lib/stable
          1.0.0 provides Lib
          2.0.0 <1.0.0, provides Lib
        main 0 app/stable
          1.0.0 provides App, requires lib <2.0.0
          2.0.0 <1.0.0, provides App, requires lib >=2.0.0
        main 0 tool/stable
          1.0.0 provides Tool, requires lib >=2.0.0";
    check_text(
        libraries,
        "app: version 1.0.0; at 1.0.0\nlib: version 1.0.0; at 1.0.0; dependency",
        "tool",
        "* tool v1.0.0 depends on lib >= v2.0.0
         * app v2.0.0 depends on lib >= v2.0.0
         * app cannot stay at v1.0.0: it depends on lib < v2.0.0
         Generate Operator resources for:
         - tool@v1.0.0
         - lib@v1.0.0 -> lib@v2.0.0
         - app@v1.0.0 -> app@v2.0.0",
    );
}

#[test]
fn the_meaning_of_a_range_is_said_once() {
    let found = meanings(["~1.2", ">=1", "^2", "~1.2"].into_iter());
    assert_eq!(found, ["~1.2 is >= v1.2.0 < v1.3.0", "^2 is >= v2.0.0 < v3.0.0"]);
}

#[test]
fn what_is_there_and_will_do_stays() {
    let all = requiring(">=1.2.7");
    let present = "foo: version 1.2.9; at 1.2.9
                   bar: version 1.2.7; at 1.2.7; dependency
                   buz: version 0.2.4; at 0.2.4";
    for line in ["buz", "foo", "foo buz", "foo@1.2.9"] {
        check(&all, present, line, "");
    }
    // A range is followed from then on, and the controller leads to its newest version.
    check(&all, present, "foo@~1.2", "foo ~1.2 @1.2.9");
    check(&all, "bar: version 1.2.5; at 1.2.5", "bar --range=~1.2", "bar ~1.2 @1.2.7");
    // What its newest version requires is not moved for it.
    check(
        &all,
        "foo: version 1.2.5; at 1.2.5\nbar: version 1.2.5; at 1.2.5",
        "foo@~1.2",
        "foo ~1.2 @1.2.5",
    );
    let ranged = "foo: version ~1.2, <1.2.9; at 1.2.5
                  bar: version ~1.2; at 1.2.7";
    check(&all, ranged, "foo", "");
    // Another range is written, whatever the catalogs have in it today, and what it needs is installed.
    for (present, ranges) in [
        ("~1.2", ["<1.2.8", ">=1", "<2"]),
        (">=1.2.7, <1.3.0", ["~1.2", ">=1.2.5", "<2"]),
        ("1.2.7", ["~1.2", ">=1.2.7", "<2"]),
    ] {
        let present = format!("bar: version {present}; at 1.2.7");
        for range in ranges {
            check(&all, &present, &format!("bar@{range}"), &format!("bar {range} @1.2.7"));
        }
    }
    check(&all, ranged, "foo@~1.2", "foo ~1.2 @1.2.9");
    check(
        &all,
        "foo: version 1.2.5; at 1.2.5\nbar: version 1.2.5; at 1.2.5",
        "foo@1.2.9",
        "foo 1.2.9 @1.2.9\nbar 1.2.7 @1.2.7",
    );
    check(
        &all,
        "foo: version 1.2.5; at 1.2.5; deleting",
        "foo",
        "blocked foo: foo is being deleted: wait until it is gone",
    );
    for (held, why) in [
        ("paused", "foo is paused: `kubectl operator resume foo` ends that"),
        ("revision 3", "foo is kept at revision 3: remove spec.revision first"),
    ] {
        let present = format!(
            "foo: version 1.2.5; at 1.2.5; {held}
             bar: version 1.2.7; at 1.2.7"
        );
        let note = if held == "paused" { "" } else { why };
        for line in ["foo", "foo@1.2.5", "foo@~1.2"] {
            check(&all, &present, line, note);
        }
        check(&all, &present, "foo@1.2.9", &format!("blocked foo: {why}"));
        let waits = present.replace("version 1.2.5", "version 1.2.9");
        check(&all, &waits, "foo@1.2.5", &format!("blocked foo: {why}"));
        let channel = format!("blocked fiz: {}", why.replace("foo", "fiz"));
        let present = format!("fiz: version 2.9.6; at 2.9.6; {held}");
        check(&all, &present, "fiz --channel=candidate", &channel);
    }
}

#[test]
fn a_version_that_waits_is_taken_back() {
    let all = requiring(">=1.2.7");
    // There is no 1.2.9.
    for pinned in ["1.2.7", "1.2.9"] {
        let waits = format!("bar: version {pinned}; at 1.2.5");
        check(&all, &waits, "bar@1.2.5", "bar 1.2.5 @1.2.5");
        check(&all, &waits, "bar --range=<1.2.7", "bar <1.2.7 @1.2.5");
    }
    // What the range has, too, may go on.
    check(&all, "bar: version 1.2.7; at 1.2.5", "bar@~1.2", "bar ~1.2 @1.2.7");
    // So is a range that leads beyond what is requested.
    for range in ["2.9.2", "<2.9.6"] {
        let kept = format!("fiz {range} @2.9.2");
        check(&all, "fiz: version <3; at 2.9.2", &format!("fiz@{range}"), &kept);
    }
}

#[test]
fn a_pin_does_not_move_for_what_it_depends_on() {
    let (other, exact) = (requiring(">=1.2.3 !=1.2.7"), requiring("1.2.5"));
    let of_range = "foo: version 1.2.9; at 1.2.9
                    bar: version >=1.2.5, <1.2.7; at 1.2.5; user";
    let pinned = "foo: version 1.2.9; at 1.2.9
                  bar: version 1.2.5; at 1.2.5; user";
    check(
        &other,
        of_range,
        "bar@~1.2",
        "bar has >=1.2.5, <1.2.7 instead of ~1.2: foo depends on bar >=1.2.3 !=1.2.7",
    );
    let limited = "bar has 1.2.5 instead of ~1.2: foo depends on bar 1.2.5";
    check(&exact, pinned, "bar@~1.2", limited);
    for (catalog, present) in [(&other, of_range), (&exact, pinned)] {
        let of = catalogs(catalog);
        let operators = operators(&of, present);
        let refused = plan_install(inputs(&operators), &of, &request("bar@1.2.7"));
        let Err(InstallError::Unsatisfiable(conflict)) = refused else { panic!("{refused:?}") };
        let text = conflict.text();
        assert!(text.contains("is installed and pinned, and foo is not named"), "{text}");
        assert!(text.contains("name foo, too, so that it may move"), "{text}");
    }
    // What is named moves, and so does a dependency.
    let moved = "bar 1.2.7 @1.2.7\nfoo 2.0.1 @2.0.1\nbaz >=1.5.6, <1.6.0 @1.5.6";
    check(&exact, pinned, "bar@1.2.7 foo@2.0.1", moved);
    check(
        &exact,
        &pinned.replace("at 1.2.9", "at 1.2.9; dependency"),
        "bar@1.2.7",
        "bar 1.2.7 @1.2.7\nbaz >=1.5.6, <1.6.0 @1.5.6\nfoo 2.0.1 @2.0.1",
    );
    // What is named leaves its range for what is named, too.
    check(
        &requiring(">=1.2.7"),
        "bar: version ~1.2.0, <1.2.6; at 1.2.5; user",
        "foo@1.2.9 bar@~1.2",
        "foo 1.2.9 @1.2.9\nbar ~1.2 @1.2.7",
    );
}

#[test]
fn only_pins_move_that_an_installation_cannot_do_without() {
    let of = catalogs(
        "main 0 x/stable
          1.0.0 provides X, requires b >=1.1.0
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
          1.1.0 <1.0.0, provides C",
    );
    let present = ["b", "a", "z", "c"].map(|it| format!("{it}: version 1.0.0; at 1.0.0; user\n"));
    let operators = operators(&of, &present.concat());
    let plan = plan_install(inputs(&operators), &of, &request("x w")).expect("a plan");
    let planned = plan.operators.iter().map(|it| format!("{} {}", it.name, it.version));
    let planned: BTreeSet<String> = planned.collect();
    assert_eq!(
        planned.into_iter().collect::<Vec<_>>(),
        ["a 1.1.0", "b 1.1.0", "w 1.0.0", "x 1.0.0"]
    );
}

#[test]
fn a_dependency_that_is_asked_for_is_kept_for_itself() {
    let (all, other) = (requiring(">=1.2.7"), requiring(">=1.2.3 !=1.2.7"));
    let present = "foo: version 1.2.9; at 1.2.9
                   bar: version >=1.2.7, <1.3.0; at 1.2.7; dependency";
    let kept = "bar is kept for itself: it was installed as a dependency";
    for line in ["bar", "bar foo"] {
        check(&all, present, line, &format!("{kept}\nbar >=1.2.7, <1.3.0 @1.2.7"));
    }
    for range in ["1.2.7", "~1.2", "<2"] {
        let written = format!("{kept}\nbar {range} @1.2.7");
        check(&all, present, &format!("bar@{range}"), &written);
    }
    check(
        &other,
        "foo: version 1.2.9; at 1.2.9
         bar: version >=1.2.5, <1.2.7; at 1.2.5; dependency",
        "bar@~1.2",
        &format!(
            "bar has >=1.2.5, <1.2.7 instead of ~1.2: foo depends on bar >=1.2.3 !=1.2.7
             {kept}
             bar >=1.2.5, <1.2.7 @1.2.5"
        ),
    );
    // A file that declares it as a dependency says something else.
    let of = catalogs(&all);
    let operators = operators(&of, present);
    let mut request = request("bar");
    let declared = serde_json::json!({
        "metadata": { "labels": { "olm.io/installed-as": "dependency" } },
        "spec": { "version": ">=1.2.7, <1.3.0" },
    });
    request.declared.insert("bar".to_owned(), declared);
    let plan = plan_install(inputs(&operators), &of, &request).expect("a plan");
    assert_eq!(plan.operators, []);
}

#[test]
fn what_is_written_leads_to_what_is_planned() {
    for exact in ["1.2.5", "=1.2.5", "1.2.5 || 1.2.1", ">=1.2.3 <1.2.6"] {
        check(&requiring(exact), "", "foo@1.2.9", "foo 1.2.9 @1.2.9\nbar 1.2.5 @1.2.5");
        check(
            &requiring(exact),
            "",
            "foo bar --range=~1.2",
            &format!(
                "bar has 1.2.5 instead of ~1.2: foo depends on bar {exact}\nfoo ~1.2 @1.2.9\nbar 1.2.5 @1.2.5"
            ),
        );
    }
    check(
        &requiring(">=1.2.3 !=1.2.7"),
        "",
        "foo bar --range=~1.2",
        "bar has >=1.2.5, <1.2.7 instead of ~1.2: foo depends on bar >=1.2.3 !=1.2.7
         foo ~1.2 @1.2.9
         bar >=1.2.5, <1.2.7 @1.2.5",
    );
    // Of what a dependant lacks, only a version that it accepts is installed.
    check(
        &requiring("1.2.5"),
        "foo: version 1.2.9; at 1.2.9",
        "bar@~1.2",
        "bar has 1.2.5 instead of ~1.2: foo depends on bar 1.2.5\nbar 1.2.5 @1.2.5",
    );
}

#[test]
fn overrides_are_in_what_is_written_or_are_said_to_have_no_effect() {
    let all = requiring(">=1.2.7");
    check(
        &all,
        "",
        "foo@~1.2 --exclude=bar/bar.v1.2.7",
        "bar.v1.2.7 is excluded
         foo has >=1.2.5, <1.2.9 instead of ~1.2: another version of the range would not be as planned
         foo >=1.2.5, <1.2.9 @1.2.5
         bar 1.2.5 @1.2.5",
    );
    check(
        &all,
        "",
        "bar@~1.2 --exclude=bar/bar.v1.2.7",
        "bar.v1.2.7 is excluded
         bar has >=1.2.5, <1.2.7 instead of ~1.2: another version of the range would not be as planned
         bar >=1.2.5, <1.2.7 @1.2.5",
    );
    check(&all, "", "buz --exclude=bar", "--exclude bar has no effect\nbuz 0.2.4 @0.2.4");
    check(
        &all,
        "",
        "buz --use=example.com/v1/Baz=baz",
        "--use example.com/v1/Baz=baz has no effect\nbuz 0.2.4 @0.2.4",
    );
    let both = format!(
        "{all}
        other 0 buz/stable
          0.2.4 provides Buz
        other 0 bar/stable
          1.2.7 provides Bar"
    );
    let tied = "repository main: other catalogs have it, too";
    check(&both, "", "buz", &format!("buz has {tied}\nbuz 0.2.4 @0.2.4 repository main"));
    check(&both, "", "buz --repository=other", "buz 0.2.4 @0.2.4 repository other");
    check(
        &both,
        "",
        "foo@1.2.9 --prefer=other",
        "catalog other is preferred
         bar has repository other: other catalogs have it, too
         foo 1.2.9 @1.2.9
         bar >=1.2.7, <1.3.0 @1.2.7 repository other",
    );
    check(
        &all,
        "",
        "buz --prefer=same",
        "--prefer-repository same has no effect\nbuz 0.2.4 @0.2.4",
    );
}

#[test]
fn a_channel_is_written_to_what_exists() {
    let all = requiring(">=1.2.7");
    let fiz = "fiz: version 2.9.2; at 2.9.2";
    // One that would be used without it is written, too.
    let line = "fiz@>=2.9.2 --channel=stable";
    check(&all, fiz, line, "fiz >=2.9.2 @2.9.6 channel stable");
    check(&all, fiz, "fiz --channel=stable", "fiz 2.9.2 @2.9.2 channel stable");
    check(&all, fiz, "fiz --repository=main", "fiz 2.9.2 @2.9.2 repository main");
    check(&all, "fiz: version 2.9.2", "fiz --channel=stable", "fiz 2.9.2 @2.9.2 channel stable");
    check(&all, "fiz: version 2.9.2; at 2.9.2; paused", "fiz --channel=stable", "");
    check(
        &all,
        "fiz: version 2.9.6; at 2.9.6",
        "fiz@3 --channel=candidate",
        "fiz 3 @3.0.1 channel candidate",
    );
    // One of the spec that does not exist is said.
    check(
        &all,
        "fiz: version 2.9.6; at 2.9.6; channel nope",
        "fiz",
        "fiz has no channel nope; its channels are candidate, stable; v2.9.6 stays installed",
    );
    // The channel that it has need not be named again.
    check(&all, "fiz: version ~3.0; channel candidate", "fiz", "");
    check(&all, "fiz: version 2.9.6; channel candidate", "fiz@~3.0", "fiz ~3.0 @3.0.1");
    check(
        &all,
        "fiz: version 2.9.6; at 2.9.6; from main/candidate",
        "fiz@3.0.1",
        "fiz 3.0.1 @3.0.1",
    );
}

#[test]
fn what_no_update_leads_to_is_refused() {
    // The same is said of what files declare, of which nothing is installed.
    for at in ["; at 2.0.1", ""] {
        check(
            &requiring(">=1.2.7"),
            &format!("foo: version 2.0.1{at}\nbaz: version 1.5.6{}", at.replace("2.0.1", "1.5.6")),
            "foo@1.2.9",
            "blocked foo: no update leads from v2.0.1 to 1.2.9; the channel has v2.0.1, v1.2.9, v1.2.5, \
             v1.2.3, v1.2.2. Set spec.upgradePolicy to Semver or Any to update without the channel's graph",
        );
        check(
            "main 0 nob/stable
              1.0.0 provides Nob
              1.1.0 <1.0.0, provides Nob, kubernetes 1.31.0
              2.0.0 <1.1.0, provides Nob",
            &format!("nob: version 1.0.0{}", at.replace("2.0.1", "1.0.0")),
            "nob@2.0.0",
            "blocked nob: nob 1.1.0 requires Kubernetes 1.31.0 or later; the cluster runs 1.30.0",
        );
    }
}

#[test]
fn a_channel_that_a_file_declares_has_to_exist() {
    let of = catalogs(&requiring(">=1.2.7"));
    let operators = operators(&of, "fiz: version 2.9.6; at 2.9.6");
    let inputs = inputs(&operators);
    for field in ["channel", "repository"] {
        let mut request = request("fiz");
        let declared = serde_json::json!({ "spec": { (field): "nope" } });
        request.declared.insert("fiz".to_owned(), declared);
        let refused = plan_install(inputs, &of, &request).expect_err("nothing is called so");
        assert!(matches!(refused, InstallError::Invalid(_)), "{field}: {refused:?}");
    }
}

#[test]
fn what_only_moves_together_is_one_change_set() {
    let all = "
        main 0 left/stable
          1.0.0 provides Left, requires right <2.0.0
          2.0.0 <1.0.0, provides Left, requires right >=2.0.0
        main 0 right/stable
          1.0.0 provides Right, requires left <2.0.0
          2.0.0 <1.0.0, provides Right, requires left >=2.0.0
        main 0 top/stable
          1.0.0 provides Top, requires left >=2.0.0, requires right >=2.0.0
        main 0 lib/stable
          1.0.0 provides Lib
          2.0.0 <1.0.0, provides Lib
        main 0 app/stable
          1.0.0 provides App, requires lib <2.0.0
          2.0.0 <1.0.0, provides App, requires lib >=2.0.0
        main 0 tool/stable
          1.0.0 provides Tool, requires lib >=2.0.0
        main 0 stuck/stable
          1.0.0 provides Stuck, requires lib <2.0.0";
    let both = "left: version 1.0.0; at 1.0.0\nright: version 1.0.0; at 1.0.0";
    check(all, both, "left@2", "left 2 @2.0.0\nright 2.0.0 @2.0.0\nset of 2");
    check(all, both, "left@2 right@2", "left 2 @2.0.0\nright 2 @2.0.0\nset of 2");
    // What nothing connects with it is no member.
    let others = format!(
        "{all}{OTHERS}
        main 0 up/stable
          1.0.0 provides Up, requires down <2.0.0
          2.0.0 <1.0.0, provides Up, requires down >=2.0.0
        main 0 down/stable
          1.0.0 provides Down, requires up <2.0.0
          2.0.0 <1.0.0, provides Down, requires up >=2.0.0"
    );
    let moved = "left 2 @2.0.0\nbuz 0.2.4 @0.2.4\nright 2.0.0 @2.0.0\nset of 2";
    check(&others, both, "left@2 buz@0.2.4", moved);
    let four = format!("{both}\nup: version 1.0.0; at 1.0.0\ndown: version 1.0.0; at 1.0.0");
    let moved =
        "left 2 @2.0.0\nup 2 @2.0.0\nright 2.0.0 @2.0.0\ndown 2.0.0 @2.0.0\nset of 2\nset of 2";
    check(&others, &four, "left@2 up@2", moved);
    // A change set of which a part was written is written as a whole.
    let begun = "left: version 1.0.0; at 1.0.0\nright: version 2.0.0; at 1.0.0; set update-1/2";
    check(all, begun, "left@2", "left 2 @2.0.0\nright 2.0.0 @2.0.0\nset of 2");
    let moved = "left 2.0.0 @2.0.0\nright 2.0.0 @2.0.0\nset of 3";
    check(all, both, "top", &format!("top 1.0.0 @1.0.0\n{moved}"));
    let app = "app: version 1.0.0; at 1.0.0\nlib: version 1.0.0; at 1.0.0; dependency";
    let moved = "tool 1.0.0 @1.0.0\nlib 2.0.0 @2.0.0\napp 2.0.0 @2.0.0\nset of 3";
    check(all, app, "tool", moved);
    // One that cannot move with the others is in the way of all of them.
    let of = catalogs(all);
    let operators = operators(&of, &format!("{app}\nstuck: version 1.0.0; at 1.0.0"));
    let inputs = inputs(&operators);
    let refused = plan_install(inputs, &of, &request("tool")).expect_err("a conflict");
    assert!(matches!(refused, InstallError::Unsatisfiable(_)), "{refused:?}");
    // What changes leaves the change set of an earlier plan, and so does the rest of that.
    let set = "fiz: version 2.9.2; at 2.9.2; set update-1/2
               buz: version 0.2.4; at 0.2.4; set update-1/2";
    check(&requiring(">=1.2.7"), set, "fiz@2.9.6", "fiz 2.9.6 @2.9.6\nbuz 0.2.4 @0.2.4");
}

/// Checks what is forced in spite of a conflict: what stays, what is written, and what is said about it.
#[track_caller]
fn check_forced(present: &str, line: &str, expected: &str) {
    let of = catalogs(
        "
        main 0 lib/stable
          1.0.0 provides Lib
          1.0.1 <1.0.0, provides Lib
          2.0.0 <1.0.1, provides Lib
        main 0 app/stable
          1.0.0 provides App, requires lib <2.0.0
        main 0 tool/stable
          1.0.0 provides Tool, requires lib >=2.0.0
        main 0 rival/stable
          1.0.0 provides App",
    );
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let refused = plan_install(inputs, &of, &request(line)).expect_err("a conflict");
    let InstallError::Unsatisfiable(conflict) = refused else { panic!("{line}: {refused:?}") };
    let plan = conflict.overridden().expect("a plan");
    let written = plan.operators.iter().map(|it| format!("{} {}", it.name, it.range));
    let lines = conflict.held.iter().chain(&plan.notes).cloned().chain(written);
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected.join("\n"), "{line} of {present}");
    for line in &conflict.held {
        assert!(conflict.text().contains(&format!("* {line}\n")), "{}", conflict.text());
    }
}

#[test]
fn what_is_forced_leaves_alone_what_will_do_or_cannot_move() {
    let unsatisfied =
        "app will be unsatisfied: app depends on lib <2.0.0 but lib v2.0.0 is installed
                       app 1.0.0";
    for (field, why) in [
        (
            "",
            "no update leads from v2.0.0 to 1.0.1; the channel has v2.0.0, v1.0.1, v1.0.0. Set \
             spec.upgradePolicy to Semver or Any to update without the channel's graph",
        ),
        ("; policy Any", "a lower version has to be named: `lib@1.0.1`"),
        ("; paused", "lib is paused: `kubectl operator resume lib` ends that"),
        ("; undeclared", "it is of the cluster, and not declared here"),
    ] {
        let present = format!("lib: version 2.0.0; at 2.0.0{field}");
        check_forced(&present, "app", &format!("lib stays at v2.0.0: {why}\n{unsatisfied}"));
    }
    // What will do keeps its version.
    check_forced(
        "lib: version ~1.0; at 1.0.0; paused\nrival: version 1.0.0; at 1.0.0",
        "app",
        "app v1.0.0 provides App.example.com, which belongs to Operator rival: delete one of the two
         app 1.0.0",
    );
    // Another Operator may still be in the way of what can move.
    check_forced(
        "app: version 1.0.0; at 1.0.0\nlib: version 1.0.1; at 1.0.1",
        "tool",
        "tool will be unsatisfied: tool depends on lib >=2.0.0 but lib v1.0.1 is installed
         lib v2.0.0 waits: app depends on lib <2.0.0 but lib v2.0.0 would be installed
         tool 1.0.0
         lib 2.0.0",
    );
}

#[test]
fn what_is_not_installed_yet_is_planned_as_it_will_be() {
    let all = "
        main 0 nob/stable
          1.0.0 provides Nob
          1.1.0 <1.0.0, provides Nob
          2.0.0 <1.1.0, provides Nob, requires nowhere >=1.0.0
        main 0 nob/slow
          1.0.0 provides Nob";
    // An update waits for what is missing, an installation does not.
    check(all, "nob: version >=1.0.0, <1.1.0; at 1.0.0", "nob@>=1.1.0", "nob >=1.1.0 @1.1.0");
    check(
        all,
        "nob: version >=1.0.0, <1.1.0",
        "nob@>=1.1.0",
        "nob has >=1.1.0, <1.2.0 instead of >=1.1.0: another version of the range would not be as planned
         nob >=1.1.0, <1.2.0 @1.1.0",
    );
    check(all, "nob: version <2", "nob --channel=slow", "nob <2 @1.0.0 channel slow");
    check(
        all,
        "nob: version ^1.1",
        "nob --channel=slow",
        "invalid: no version of nob matches ^1.1; there is v1.0.0",
    );
}

#[test]
fn what_is_missing_is_installed() {
    let all = requiring(">=1.2.7");
    let bar = "bar 1.2.7 @1.2.7";
    check(&all, "foo: version 1.2.9; at 1.2.9", "foo", bar);
    check(&all, "foo: version 1.2.9; at 1.2.9", "foo@1.2.9", "bar >=1.2.7, <1.3.0 @1.2.7");
    check(&all, "foo: version ~1.2; install Enforce", "foo", bar);
    check(&all, "foo: version ~1.2; at 1.2.5\nbar: version 1.2.1; at 1.2.1", "foo", bar);
    // What is not concerned is left alone.
    check(&all, "foo: version 1.2.9; at 1.2.9", "buz", "buz 0.2.4 @0.2.4");
    let lost = format!(
        "{all}
        main 0 lost/stable
          1.0.0 provides Lost, requires nowhere >=1.0.0"
    );
    check(
        &lost,
        "lost: version 1.0.0; at 1.0.0",
        "lost buz",
        "lost stays unsatisfied: lost depends on nowhere >=1.0.0 but nowhere is not installed
         buz 0.2.4 @0.2.4",
    );
}

#[test]
fn what_the_files_do_not_declare_counts_and_is_not_changed() {
    let all = requiring("1.2.5");
    check(
        &all,
        "bar: version 1.2.5; at 1.2.5; undeclared",
        "foo@1.2.9",
        "bar of the cluster is not declared here\nfoo 1.2.9 @1.2.9",
    );
    check(
        &all,
        "foo: version 1.2.9; at 1.2.9; undeclared",
        "bar@~1.2",
        "bar has 1.2.5 instead of ~1.2: foo depends on bar 1.2.5\nbar 1.2.5 @1.2.5",
    );
}

#[test]
fn a_step_on_the_way_is_made_possible() {
    let catalog = |top: &str, base: &str| {
        format!(
            "main 0 {top}/stable
              1.0.0 provides Top
              2.0.0 <1.0.0, provides Top, requires {base} <2.1.0
              2.1.0 <2.0.0, provides Top, requires {base} >=1.0.0
            main 0 {base}/stable
              1.0.0 provides Base
              2.0.0 <1.0.0, provides Base
              2.1.0 <2.0.0, provides Base"
        )
    };
    check(
        &catalog("top", "base"),
        "top: version 1.0.0; at 1.0.0",
        "top@2.1.0",
        "top 2.1.0 @2.1.0\nbase >=2.0.0, <2.1.0 @2.0.0",
    );
    // A range has less in it than is wanted, whichever of the two is first.
    for (top, base) in [("top", "base"), ("base", "top")] {
        let of = catalogs(&catalog(top, base));
        let operators = operators(&of, &format!("{top}: version 1.0.0; at 1.0.0"));
        let request = request(&format!("{top}@2.1.0 {base}@>=1.0.0"));
        let plan = plan_install(inputs(&operators), &of, &request).expect("a plan");
        let mut written: Vec<String> = plan.operators.iter().map(|it| it.range.clone()).collect();
        written.sort();
        assert_eq!(written, ["2.1.0", ">=2.0.0, <2.1.0"]);
        let note = format!(
            "{base} has >=2.0.0, <2.1.0 instead of >=1.0.0: {top} depends on {base} <2.1.0"
        );
        assert_eq!(plan.notes, [note]);
    }
}

#[test]
fn a_request_for_what_does_not_exist_is_refused() {
    let all = requiring(">=1.2.7");
    for (line, message) in [
        ("foo foo", "foo is named twice: name it once"),
        ("foo@1.2.3 foo@1.2.5", "foo is named twice, with 1.2.3 and 1.2.5: name it once"),
        ("foo@~7", "no version of foo matches ~7; there is v2.0.1, v1.2.9, v1.2.5, v1.2.3, v1.2.2"),
        ("foo --channel=beta", "foo has no channel beta; its channels are stable"),
        ("foo --channel=stabel", "foo has no channel stabel, did you mean `stable`?"),
        ("foo --repository=nope", "there is no catalog nope; catalogs: main"),
        (
            "foo --exclude=ba",
            "cannot exclude `ba`: no catalog has package `ba`, did you mean `bar`?",
        ),
        (
            "foo --exclude=bar/bar.v1.2.8",
            "cannot exclude `bar/bar.v1.2.8`: bar has no bundle `bar.v1.2.8`, did you mean `bar.v1.2.1`?",
        ),
        ("foo --use=bar", "`bar` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE"),
        (
            "foo --use=example.com/v1/Bax=bar",
            "cannot use `example.com/v1/Bax=bar`: nothing provides or requires `example.com/v1/Bax`, did you \
             mean `example.com/v1/Bar`?",
        ),
        (
            "foo --use=bar=foz",
            "cannot use `bar=foz`: no catalog has package `foz`, did you mean `foo`?",
        ),
        (
            "foo --use=baa=foo",
            "cannot use `baa=foo`: no catalog has package `baa`, did you mean `bar`?",
        ),
    ] {
        check(&all, "", line, &format!("invalid: {message}"));
    }
}

#[test]
fn what_is_in_a_change_set_that_cannot_be_read_is_not_installed() {
    let why = "blocked foo: the annotation olm.io/change-set is \"u\"; it must be ID/MEMBERS, such as \
               upgrade-42/2";
    let all = requiring(">=1.2.7");
    for (at, line) in [("", "foo"), ("", "foo@1.2.9"), ("; at 1.2.9", "foo@2.0.1")] {
        check(&all, &format!("foo: version 1.2.9; set u{at}"), line, why);
    }
}

#[test]
fn what_is_in_a_change_set_that_lacks_members_is_not_installed() {
    let why = "blocked foo: change set x has 2 of its 3 Operators: bar, foo; apply the others, or remove the \
               annotation olm.io/change-set if they are gone";
    let present = "foo: version 1.2.5; set x/3\nbar: version 1.2.5; set x/3";
    check(&requiring(">=1.2.7"), present, "foo@1.2.9", why);
}

#[test]
fn a_change_set_is_not_held_up_by_a_version_of_a_range_that_cannot_move() {
    let catalog = "main 0 left/stable
      1.0.0 provides Left, requires right >=1.0.0 <2.0.0
      2.0.0 <1.0.0, provides Left, requires right >=2.0.0
      2.1.0 <2.0.0, ~>=1.0.0 <2.1.0, provides Left, requires nowhere >=1.0.0
    main 0 right/stable
      1.0.0 provides Right, requires left >=1.0.0 <2.0.0
      2.0.0 <1.0.0, provides Right, requires left >=2.0.0";
    check(
        catalog,
        "left: version 1.0.0; at 1.0.0
         right: version 1.0.0; at 1.0.0",
        "left@^2",
        "left has >=2.0.0, <2.1.0 instead of ^2: another version of the range would not be as planned
         left >=2.0.0, <2.1.0 @2.0.0
         right 2.0.0 @2.0.0
         set of 2",
    );
}
