//! Migration: a step that is done in parts, after all else, and once.

use std::sync::Arc;

use plimsoll_api::{Effect, Reason};

use super::{Script, at, plan, world};
use crate::plan::mode::Mode;
use crate::progress::{Event, Mark, Progress, StepOutcome, Trace, Transience, TryError};

const LINES: &str = "0000_10_a_1 CustomResourceDefinition d
     0000_20_b_1 ConfigMap x/c";
/// The step that migrates the objects of the definition.
const MIGRATION: usize = 2;

impl Script {
    /// Begins a plan that ends with a migration, and comes to that.
    fn migrating() -> Self {
        let plan = Arc::unwrap_or_clone(plan(LINES, Mode::Updating));
        let definition = plan.steps[0].manifest.clone();
        let plan = Arc::new(plan.then_migrating([definition]));
        let progress = Progress::new(plan, world(), at(0));
        let mut script = Self { progress, clock: 0, revision: 100 };
        for (line, started) in
            [("start", "d"), ("applied d", ""), ("served Thing", "c"), ("applied c", "d")]
        {
            script.handle(line);
            assert_eq!(script.started(), started, "after `{line}`");
        }
        script
    }

    fn migrated(&mut self, outcome: StepOutcome) {
        self.progress.handle(Event::Executed { step: MIGRATION, outcome }, at(self.clock));
    }

    /// The problems, each with its reason and effect.
    fn reported(&self) -> Vec<(Reason, Option<Effect>, String)> {
        let problems = self.progress.problems(at(self.clock)).into_iter();
        problems.map(|it| (it.reason, it.effect, it.message)).collect()
    }
}

#[test]
fn a_migration_goes_on_until_all_is_done_and_is_not_repeated() {
    let mut script = Script::migrating();
    for part in ["0 of 2", "1 of 2"] {
        script.migrated(StepOutcome::Continued(part.to_owned()));
        let waits = (Reason::StorageVersionMigrating, Some(Effect::None), part.to_owned());
        assert_eq!(script.reported(), [waits]);
        assert_eq!((script.progress.passes(), script.started().as_str()), (0, "d"));
    }
    script.migrated(StepOutcome::Applied(Mark::new(200, Trace::Ours(1))));
    assert!(script.reported().is_empty());
    assert_eq!((script.progress.done(), script.progress.passes()), (vec![0, 1, 2], 1));
    script.revision = 300;
    for (line, started) in [("changed d", "d"), ("applied d", ""), ("sweep", "d c")] {
        script.handle(line);
        assert_eq!(script.started(), started, "after `{line}`");
        assert!(script.progress.is_done(MIGRATION));
    }
    assert_eq!(script.progress.repairs(), 1);
}

#[test]
fn what_is_refused_is_reported_while_the_rest_is_tried_again() {
    let mut script = Script::migrating();
    for _ in 0..3 {
        script.migrated(StepOutcome::Continued("1 of 2".to_owned()));
        assert_eq!(script.started(), "d");
        script.migrated(StepOutcome::Failed(TryError {
            reason: Reason::UpdatePayloadResourceInvalid,
            cause: "one is refused".to_owned(),
            transience: Transience::Lasting,
            retry_after: None,
        }));
        script.clock += 15;
        assert_eq!(script.started(), "d");
    }
    script.migrated(StepOutcome::Continued("1 of 2".to_owned()));
    let reported = script.reported();
    let [(Reason::UpdatePayloadResourceInvalid, Some(Effect::Fail), message)] = &reported[..]
    else {
        panic!("{reported:?}");
    };
    assert!(message.ends_with("one is refused"), "{message}");
}

#[test]
fn a_migration_that_is_left_out_ends_with_the_part_under_way() {
    let mut script = Script::migrating();
    script.progress.skip_migrations();
    script.migrated(StepOutcome::Continued("1 of 2".to_owned()));
    assert_eq!(script.started(), "");
    assert_eq!((script.reported(), script.progress.passes()), (Vec::new(), 1));
}
