//! Pauses: which levels are held, and in which mode.

use super::{Script, at, plan, world};
use crate::plan::mode::Mode;
use crate::progress::Progress;
use crate::progress::pause::Pause;

#[test]
fn a_pause_holds_the_levels_after_it_and_nothing_else() {
    let plan = "0000_10_a_1 ConfigMap x/a1
                0000_10_a_2 ConfigMap x/a2
                0000_20_b_1 ConfigMap x/b1
                0000_30_c_1 ConfigMap x/c1";
    let run = |pause: Pause, script: &str| {
        let mut running = Script::new(plan, Mode::Updating);
        running.progress.set_pause(Some(pause), at(0));
        let mut reported = Vec::new();
        for line in script.split("; ") {
            match line {
                "on" => running.progress.set_pause(None, at(0)),
                "next" => running.progress.set_pause(Some(Pause::Next), at(0)),
                line => running.handle(line),
            }
            let at_level = running.progress.paused_at();
            reported.push(format!(
                "{}{}",
                running.started(),
                at_level.map_or(String::new(), |level| { format!(" |{level}") })
            ));
        }
        reported.join("; ")
    };
    // Asked for before anything began, the next level is the first one.
    assert_eq!(run(Pause::Next, "start; on; applied a1"), " |10; a1; a2");
    assert_eq!(
        run(Pause::Before(20), "start; applied a1; applied a2; on; applied b1; applied c1"),
        "a1; a2;  |20; b1; c1; "
    );
    // In the midst of a level, that level is finished.
    assert_eq!(
        run(Pause::Before(99), "start; next; applied a1; applied a2; on"),
        "a1; ; a2;  |20; b1"
    );
    // What is done is still kept as it is.
    assert_eq!(
        run(Pause::Before(20), "start; applied a1; applied a2; changed a1; applied a1"),
        "a1; a2;  |20; a1 |20;  |20"
    );
}

#[test]
fn a_pause_means_nothing_but_while_updating() {
    let mut running = Script::new("0000_10_a_1 ConfigMap x/a1", Mode::Initializing);
    running.progress.set_pause(Some(Pause::Before(0)), at(0));
    assert_eq!(running.started(), "a1");
    assert_eq!(running.progress.paused_at(), None);
}

#[test]
fn a_pause_holds_a_level_of_which_something_is_in_place_already() {
    let lines = "0000_10_a_1 ConfigMap x/a1
                 0000_20_b_1 ConfigMap x/b1
                 0000_20_b_2 ConfigMap x/b2
                 0000_20_c_1 ConfigMap x/c1";
    for pause in [Pause::Before(20), Pause::Before(10)] {
        let progress = Progress::new(plan(lines, Mode::Updating), world(), at(0));
        // As after a restart: of the second level, one chain is done and the other has begun.
        let mut progress = progress.resume(&[0, 1, 3], at(0));
        progress.set_pause(Some(pause), at(0));
        assert_eq!(progress.start(at(0)), [] as [usize; 0]);
        assert_eq!(progress.paused_at(), Some(20));
        progress.set_pause(None, at(0));
        assert_eq!(progress.start(at(0)), [2]);
    }
}
