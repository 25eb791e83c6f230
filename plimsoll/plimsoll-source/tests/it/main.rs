//! Loading, decisions and resolution against golden data.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, also where they are not test functions"
)]

mod golden;
