//! Requested versions that several updates lead to.

use crate::decide::tests::check;

const CATALOG: &str = "
    main 0 foo/stable
      1.0.0
      1.1.0 <1.0.0, requires bar >=1.0.0
      1.2.0 <1.1.0
      2.0.0 <1.2.0, requires baz >=1.0.0
      3.0.0 <2.0.0, kubernetes 1.31.0
    main 0 bar/stable
      1.0.0
    main 0 baz/stable
      1.0.0";

#[test]
fn an_operator_does_not_move_part_of_the_way() {
    let cases = [
        // Nothing is in the way.
        ("foo: version 2.0.0; at 1.0.0\nbar: at 1.0.0\nbaz: at 1.0.0", "upgrade main/stable 1.1.0"),
        ("foo: version 2.0.0; at 1.2.0\nbaz: at 1.0.0", "upgrade main/stable 2.0.0"),
        // The requested version is blocked: it is the one that the message speaks of.
        (
            "foo: version 2.0.0; at 1.0.0\nbar: at 1.0.0",
            "blocked UpgradeBlocked: foo v2.0.0 waits: foo depends on baz >=1.0.0 but baz is not \
             installed",
        ),
        (
            "foo: version 3.0.0; at 1.0.0\nbar: at 1.0.0\nbaz: at 1.0.0",
            "blocked ClusterIncompatible: foo 3.0.0 requires Kubernetes 1.31.0 or later; the cluster \
             runs 1.30.0",
        ),
        // A step is blocked.
        (
            "foo: version 2.0.0; at 1.0.0\nbaz: at 1.0.0",
            "blocked UpgradeBlocked: on the way to version 2.0.0, foo v1.1.0 waits: foo depends on \
             bar >=1.0.0 but bar is not installed",
        ),
        (
            "foo: version 2.0.0; at 1.0.0; upgrade Warn",
            "upgrade main/stable 1.1.0
           accepted: foo depends on bar >=1.0.0 but bar is not installed
           foo depends on bar >=1.0.0 but bar is not installed",
        ),
    ];
    for (requested, expected) in cases {
        let others = [("bar", requested.contains("bar:")), ("baz", requested.contains("baz:"))];
        let others: String = others
            .iter()
            .filter(|(_, is)| *is)
            .map(|(name, _)| format!("{name}: keep\n"))
            .collect();
        check(CATALOG, requested, &format!("{others}foo: {expected}"));
    }
}

#[test]
fn of_several_ways_one_that_is_not_blocked_is_taken() {
    let catalog = "
        main 0 foo/stable
          1.0.0
          1.1.0 <1.0.0
          1.2.0 <1.1.0, ~>=1.0.0 <1.2.0, requires bar >=1.0.0
          2.0.0 <1.2.0, ~>=1.1.0 <2.0.0";
    check(
        catalog,
        "foo: version 2.0.0; at 1.0.0",
        "foo: upgrade main/stable 1.1.0\n  held back \
         UpgradeBlocked: on the way to version 2.0.0, foo v1.2.0 waits: foo depends on bar >=1.0.0 \
         but bar is not installed",
    );
}
