//! Decisions on change sets.

use crate::decide::tests::check;

#[test]
fn a_change_set_moves_as_a_whole_or_not_at_all() {
    let catalog = "
        main 0 a/stable
          1.0.0 requires b <2.0.0
          2.0.0 <1.0.0, requires b >=2.0.0
        main 0 b/stable
          1.0.0 requires a <2.0.0
          2.0.0 <1.0.0, requires a >=2.0.0, requires c >=1.0.0
        main 0 c/stable
          1.0.0";
    let moved = "a: version 2.0.0; at 1.0.0; set x/2
         b: version 2.0.0; at 1.0.0; set x/2";
    // Neither can be updated alone (OL015 of lint).
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0
         b: version 2.0.0; at 1.0.0
         c: at 1.0.0",
        "a: blocked UpgradeBlocked: a v2.0.0 waits: a depends on b >=2.0.0 but b v1.0.0 is \
         installed; b depends on a <2.0.0 but a v2.0.0 would be installed
           b needs a <2.0.0
         b: blocked UpgradeBlocked: b v2.0.0 waits: b depends on a >=2.0.0 but a v1.0.0 is \
         installed; a depends on b <2.0.0 but b v2.0.0 would be installed
           a needs b <2.0.0
         c: keep",
    );
    check(
        catalog,
        &format!("{moved}\nc: at 1.0.0"),
        "a: upgrade main/stable 2.0.0
           a depends on b >=2.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           b depends on a >=2.0.0 but a v1.0.0 is installed
           a needs b <2.0.0
         c: keep",
    );
    check(
        catalog,
        moved,
        "a: blocked ChangeSetBlocked: change set x waits: b: b v2.0.0 waits: b depends on c >=1.0.0 \
         but c is not installed
           b needs a <2.0.0
         b: blocked UpgradeBlocked: b v2.0.0 waits: b depends on c >=1.0.0 but c is not installed
           a needs b <2.0.0",
    );
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0; set x/2",
        "a: blocked ChangeSetIncomplete: change set x has 1 of its 2 Operators: a; apply the others, or \
         remove the annotation olm.io/change-set if they are gone
           a depends on b <2.0.0 but b is not installed",
    );
    check(
        catalog,
        "a: version 2.0.0; at 1.0.0; set x",
        "a: blocked InvalidChangeSet: the annotation olm.io/change-set is \"x\"; it must be \
         ID/MEMBERS, such as upgrade-42/2
           a depends on b <2.0.0 but b is not installed",
    );
}

/// Returns catalogs in which `a` takes two steps, the first of which requires a range of `b`.
fn steps(range: &str) -> String {
    format!(
        "
        main 0 a/stable
          1.0.0 requires b <2.0.0
          1.1.0 <1.0.0, requires b {range}
          2.0.0 <1.1.0, requires b >=2.0.0
        main 0 b/stable
          1.0.0 requires a <2.0.0
          2.0.0 <1.0.0, requires a >=1.1.0"
    )
}

const REQUESTED: &str = "a: version 2.0.0; at 1.0.0; set x/2
         b: version 2.0.0; at 1.0.0; set x/2";

#[test]
fn a_member_of_a_change_set_takes_the_steps_to_what_is_requested() {
    // The step fits the installed bundles: it is made first.
    check(
        &steps("<3.0.0"),
        REQUESTED,
        "a: upgrade main/stable 1.1.0
           b needs a <2.0.0
         b: blocked ChangeSetBlocked: change set x waits: a v1.1.0 comes before v2.0.0
           a needs b <2.0.0",
    );
    check(
        &steps("<3.0.0"),
        &REQUESTED.replacen("at 1.0.0", "at 1.1.0", 1),
        "a: blocked ChangeSetBlocked: change set x waits: b v2.0.0 comes first
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           a needs b <3.0.0",
    );
    check(
        &steps("<3.0.0"),
        &REQUESTED.replacen("at 1.0.0", "at 1.1.0", 1).replace("; at 1.0.0", "; at 2.0.0"),
        "a: upgrade main/stable 2.0.0
           b needs a >=1.1.0
         b: keep
           a needs b <3.0.0",
    );
    // The step fits the bundles that the others move to: it is made with them.
    check(
        &steps(">=2.0.0"),
        REQUESTED,
        "a: upgrade main/stable 1.1.0
           a depends on b >=2.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: upgrade main/stable 2.0.0
           b depends on a >=1.1.0 but a v1.0.0 is installed
           a needs b <2.0.0",
    );
}

#[test]
fn no_member_takes_a_step_if_not_all_reach_their_version() {
    // The step fits neither.
    check(
        &steps(">=4.0.0"),
        REQUESTED,
        "a: blocked UpgradeBlocked: a v1.1.0 waits: a depends on b >=4.0.0 but b v1.0.0 is installed
           b needs a <2.0.0
         b: blocked ChangeSetBlocked: change set x waits: a: a v1.1.0 waits: a depends on b >=4.0.0 \
         but b v1.0.0 is installed
           a needs b <2.0.0",
    );
    // If not all members can reach their version, none makes a step.
    check(
        &steps("<3.0.0"),
        &REQUESTED.replace("b: version 2.0.0", "b: version >=1.0.0, <2.0.0"),
        "a: blocked UpgradeBlocked: a v2.0.0 waits: a depends on b >=2.0.0 but b v1.0.0 is installed; \
         b depends on a <2.0.0 but a v2.0.0 would be installed
           b needs a <2.0.0
         b: keep
           a needs b <2.0.0",
    );
}
