//! Tests of parts of the controller on whole clusters.
#![expect(clippy::expect_used, reason = "these are tests, also where they are not test functions")]

mod admission;
