//! Whatever a written problem says: reading it ends, solving it ends, and what was read is written
//! and read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::expressions::Cel;
use plimsoll_resolve::{Resolution, Problem, solve};

fuzz_target!(|bytes: &[u8]| {
    let Ok(problem) = Problem::read(bytes) else { return };
    let again = Problem::read(problem.write().as_bytes()).expect("what was written can be read");
    assert_eq!(again, problem);
    if let Resolution::Unsatisfiable(explanation) = solve(&problem, &Cel) {
        assert!(!explanation.text().is_empty());
    }
});
