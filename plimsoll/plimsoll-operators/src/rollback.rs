//! Planning of a return to a kept revision, which is judged as the controller judges it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::Bundle;
use plimsoll_resolve::printable::on_one_line;
use semver::Version;

use crate::comparison::{OperatorVersion, orphans};
use crate::decide::decide;
use crate::planner::{ChosenBundle, ChosenBundles, Outcome, hold};
use crate::{OperatorAction, OperatorBlock, OperatorInputs};

/// A plan that returns an Operator to a kept revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackPlan {
    /// The name of the Operator.
    pub name: String,
    /// The number of the revision.
    pub revision: u32,
    /// The installed version; `None` if none is installed.
    pub before: Option<Version>,
    /// The version of the revision.
    pub after: Version,
    /// What keeps the controller from returning to it; `None` if nothing does.
    pub block: Option<OperatorBlock>,
    /// The unmet constraints that the policy of the Operator overrides, as sentences.
    pub accepted_risks: Vec<String>,
    /// The Operators that no Operator depends on afterwards, with their versions, by name.
    pub orphans: BTreeMap<String, OperatorVersion>,
}

impl RollbackPlan {
    /// Plans the return of an Operator to a revision beside the Operators of `inputs`; `bundle` is that of the
    /// revision. Returns `None` if there is no such Operator.
    pub fn new(
        inputs: OperatorInputs<'_>,
        name: &str,
        revision: u32,
        bundle: &Bundle,
    ) -> Option<Self> {
        let there = inputs.operators.get(name)?;
        let mut returning = there.clone();
        returning.spec.revision = None;
        // A return does not wait for the other members of a change set, and needs none that can be read.
        returning.change_set = None;
        let held = hold(name, &returning);
        returning.spec.revision = Some(revision);
        returning.returns_to = Some(bundle.clone());
        let mut operators = inputs.operators.clone();
        operators.insert(name.to_owned(), returning);
        let returned = OperatorInputs { operators: &operators, ..inputs };
        let names = BTreeSet::from([name.to_owned()]);
        let action = match &there.installed {
            Some(_) => decide(returned, &names, &|_| Vec::new()).remove(name).map(|it| it.action),
            // Nothing is known of what it would be compared with.
            None => None,
        };
        let (block, accepted_risks) = match (held, action) {
            (Some(block), _) | (None, Some(OperatorAction::Blocked(block))) => {
                (Some(block), Vec::new())
            }
            (None, Some(OperatorAction::RollBack { accepted_risks, .. })) => (None, accepted_risks),
            (None, _) => (None, Vec::new()),
        };
        let unchanged = ChosenBundles::new();
        let chosen = ChosenBundles::from([(name, ChosenBundle { bundle, catalog: "" })]);
        let before = Outcome::new(inputs, &[], &unchanged);
        let after = Outcome::new(inputs, &[], &chosen);
        Some(Self {
            name: name.to_owned(),
            revision,
            before: there.installed.as_ref().map(|it| it.bundle.version.clone()),
            after: bundle.version.clone(),
            block,
            accepted_risks,
            orphans: orphans(&before, &after, &|it| it == name),
        })
    }

    /// Returns the plan as text for users: both versions, orphans as an update shows them, and risks.
    pub fn text(&self) -> String {
        let Self { name, revision, before, after, .. } = self;
        let before = match before {
            Some(version) => format!("{name}@v{version}"),
            None => format!("{name} (not installed)"),
        };
        let mut lines = vec![format!("{before} -> {name}@v{after} (revision {revision})")];
        lines.extend(self.orphans.iter().map(|(name, version)| version.orphan_row(name)));
        lines.extend(self.accepted_risks.iter().map(|it| format!("WARNING: {it}")));
        lines.iter().map(|it| format!("{}\n", on_one_line(it))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{FIXTURE, catalogs, inputs, operators};

    /// Checks the plan that returns foo to revision 1, which has version 1.2.5: its text, and what blocks it.
    #[track_caller]
    fn check(present: &str, expected: &str) {
        let of = catalogs(FIXTURE);
        let bundle = of[0].bundle("foo", "foo.v1.2.5").expect("it is there");
        let operators = operators(&of, present);
        let plan = RollbackPlan::new(inputs(&operators), "foo", 1, bundle).expect("a plan");
        let block = plan.block.as_ref().map(|it| format!("{}: {}", it.reason, it.message));
        let text = plan.text() + &block.unwrap_or_default();
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        assert_eq!(text.trim_end(), expected.join("\n"), "{present}");
    }

    #[test]
    fn a_return_is_judged_as_the_controller_judges_it() {
        let moved = "foo@v2.0.1 -> foo@v1.2.5 (revision 1)";
        let baz = "baz: version 1.5.6; at 1.5.6; user";
        let missing = "foo depends on bar >=1.2.3 but bar is not installed";
        let foo = "foo: version 2.0.1; at 2.0.1";
        check(&format!("{foo}\nbar: at 1.2.7\n{baz}"), moved);
        let refused = format!("{moved}\nUpgradeBlocked: foo v1.2.5 waits: {missing}");
        check(&format!("{foo}\n{baz}"), &refused);
        check(&format!("{foo}; upgrade Warn\n{baz}"), &format!("{moved}\nWARNING: {missing}"));
        // It is requested already, and waits.
        check(&format!("{foo}; revision 1; back 1.2.5\n{baz}"), &refused);
        check(
            &format!("{foo}; paused\nbar: at 1.2.7\n{baz}"),
            &format!("{moved}\nPaused: foo is paused: `kubectl operator resume foo` ends that"),
        );
        // The rest of its change set stays.
        check(&format!("{foo}; set spring/2\nbar: at 1.2.7\n{baz}"), moved);
        check(&format!("{foo}; set spring\nbar: at 1.2.7\n{baz}"), moved);
        check(
            &format!("{foo}\nbar: at 1.2.7\nbaz: version 1.5.6; at 1.5.6; dependency"),
            &format!("{moved}\nbaz@v1.5.6 -> baz@v1.5.6 (orphaned)"),
        );
        check(
            "foo: version 1.2.5\nbar: at 1.2.7",
            "foo (not installed) -> foo@v1.2.5 (revision 1)",
        );
    }
}
