//! Dependencies that no installed Operator depends on yet.

use super::*;

#[test]
fn what_a_selected_bundle_requires_is_no_orphan() {
    let of = catalogs(FIXTURE);
    let check = |foo: &str, is_orphaned: bool| {
        let requested = operators(&of, &format!("{foo}\nbaz: version 1.5.6; at 1.5.6; dependency"));
        let mut reconciler =
            OperatorReconciler { requested: requested.clone(), ..OperatorReconciler::default() };
        let inputs = inputs(&requested);
        // The decision on the dependant is the later one.
        for name in ["baz", "foo"] {
            let names = BTreeSet::from([name.to_owned()]);
            let decision = crate::decide(inputs, &names, &|names| part(&of, names)).remove(name);
            let operator = TrackedOperator { decision, ..TrackedOperator::default() };
            reconciler.operators.insert(name.to_owned(), operator);
            reconciler.decision_changed(name);
        }
        let decision = reconciler.operators["baz"].decision.as_ref().expect("a decision");
        assert_eq!(decision.is_orphaned, is_orphaned, "{foo}");
    };
    check("foo: version 1.2.3; at 1.2.3", true);
    check("foo: version 2.0.1; at 1.2.3", false);
    check("foo: version 2.0.1", false);
    check("foo: version 2.0.1; at 2.0.1", false);
}
