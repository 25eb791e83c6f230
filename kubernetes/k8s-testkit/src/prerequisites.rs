//! What tests need from outside the tree, and the record of those that ran without it.
//!
//! A test whose prerequisite is missing must not look like one that passed. [`required`] appends a
//! line `skipped: TEST: VARIABLE is not set` to the file that `SKIPPED_TESTS` names, from which a
//! run makes its closing line. The first such line for each variable also goes to the stderr of the
//! process, past the capture of the test harness.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Names the file to which skipped tests are appended, a line each.
const RECORD: &str = "SKIPPED_TESTS";
/// The reasons that this process has printed.
static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The value of a variable that a test cannot do without, such as the path of its data; `None` if
/// it is unset or empty, which is recorded as a test that is skipped.
pub fn required(variable: &str) -> Option<OsString> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    if value.is_none() {
        skip(&format!("{variable} is not set"));
    }
    value
}

/// Records that the running test is skipped, in whole or in part, and why.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    let first = PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(reason.to_owned());
    if first {
        // A closed stderr is not read.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    if let Some(path) = std::env::var_os(RECORD)
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path)
    {
        // The run that reads the record fails if it is not there.
        let _ = file.write_all(line.as_bytes());
    }
}
